"""Holdfast in the frameworks that people keep: one thin adapter for each, over the same `Session`.

integrations: beside surfaces; nothing here is a second implementation of anything. Each adapter is
an extra of its own (`pip install "holdfast[langchain]"`) and is imported only by name:
`from holdfast.integrations.langchain import HoldfastMiddleware`. What they share is beneath them:
`_host` runs the engine, `_session` turns messages into requests that fit, and back.
"""
