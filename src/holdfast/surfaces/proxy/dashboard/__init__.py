"""The dashboard: what clients sent, what models saw instead, and what that saved.

Values: html → links → frame → views → charts → layout → trouble → pulse → lost_page →
sessions_page → tenants_page → overview · editing → inspector → message_page · contents · about ·
exports. Readers of the store: gathering (one tenant) · reports (one or several) → inspecting →
visits → live → actions → pages. Each uses only what stands before it.
"""

from holdfast.surfaces.proxy.dashboard.pages import routes

__all__ = ["routes"]
