"""Sessions whose history a provider holds: known by the provider's names, not by their messages.

chains: after heads, before holdfast. A request that goes on from a response by its id has no
beginning to be known by. Names are kept in the store, so that they outlive the process, and the
latest in memory, for the next request may come before a name is written down.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from holdfast.store import Scope, Store

_MOST_NAMES = 1_000
"""Of one tenant, a quarter of a megabyte. There may be 256 tenants, and a name is asked of memory
only until it is written down."""


class Chains:
    """Which session a provider's name belongs to."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope
        self._latest: OrderedDict[str, str] = OrderedDict()

    async def session_of(self, name: str) -> str:
        """The session whose history is held under a name; empty if none is known."""
        return self._latest.get(name) or await self._store.session_linked(self._scope, name)

    def remember(self, name: str, session: str) -> None:
        """Know a name at once."""
        self._latest[name] = session
        self._latest.move_to_end(name)
        while len(self._latest) > _MOST_NAMES:
            self._latest.popitem(last=False)

    async def answered(self, session: str, names: Sequence[str]) -> None:
        """Note what the client may call the history from now on: `names_of_answer` of it."""
        for name in names:
            self.remember(name, session)
        await self._store.link(self._scope.of(session), names)
