"""A real model answers questions about tool results, with and without Holdfast in between.

`make judge` fetches a model of 1.5 billion parameters (1.1 GB, once), starts it, asks it questions
with a known answer in several conditions, and prints a table. See docs/discussions/judge.md.
Nothing here is part of the package; the model is for evaluation only and never shipped.
"""
