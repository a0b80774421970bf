"""The dashboard: what clients sent, what models saw instead, and what that saved.

html → links → views → inspection · charts · standing → layout → overview → inspector → contents →
gathering → pages, each using only what stands before it.
"""

from holdfast.surfaces.proxy.dashboard.pages import routes

__all__ = ["routes"]
