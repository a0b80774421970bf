"""Which session continues a response that the provider stores.

response_chains: before sessions. A request that continues a response by its id holds no history to
find its session by. The ids are kept in the store, so that they survive the process; the latest are
in memory too, because the next request may come before an id is stored.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from holdfast.store import Scope, Store

_MOST_IDS = 1_000
"""Ids in memory per tenant, a quarter of a megabyte. There may be 256 tenants, and an id is looked
up in memory only until it is stored."""


class ResponseChains:
    """The sessions of response ids, for one scope."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope
        self._latest: OrderedDict[str, str] = OrderedDict()

    async def session_of(self, response_id: str) -> str:
        """Return the name of the session that a response belongs to; empty if it is unknown."""
        session = self._latest.get(response_id)
        return session or await self._store.session_linked(self._scope, response_id)

    def remember(self, response_id: str, session: str) -> None:
        """Remember the session of a response in memory."""
        self._latest[response_id] = session
        self._latest.move_to_end(response_id)
        while len(self._latest) > _MOST_IDS:
            self._latest.popitem(last=False)

    async def answered(self, session: str, response_ids: Sequence[str]) -> None:
        """Remember and store the ids by which a client may continue a session."""
        for response_id in response_ids:
            self.remember(response_id, session)
        await self._store.link(self._scope.of(session), response_ids)
