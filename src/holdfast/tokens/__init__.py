"""tokens: what a request costs, and what a model can take."""
