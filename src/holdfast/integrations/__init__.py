"""Thin adapters for agent frameworks, all over the same `Session`.

Each adapter is an extra (`pip install "holdfast[langchain]"`) and is imported by name: `from
holdfast.integrations.langchain import HoldfastMiddleware`. `_host` runs the engine for them, and
`_session` converts messages to requests that fit, and back.
"""
