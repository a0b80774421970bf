"""Say what matters in a content, without a model: one condenser per kind."""
