"""The dashboard: the clients' requests, the requests that models saw, and the savings.

Values, in the order of imports: html → links → frame → views → charts → layout → trouble → pulse →
lost_page → sessions_page → tenants_page → overview · editing → inspector → message_page · contents
· about · exports. Readers of the store: gathering (one tenant) · reports (one or several) →
inspecting → visits → live → actions → pages.
"""

from holdfast.surfaces.proxy.dashboard.pages import routes

__all__ = ["routes"]
