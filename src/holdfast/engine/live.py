"""The sessions in memory, of all scopes of a store; released sessions are read again when needed.

live: before parts and sessions. A session with an open request is never dropped, however many
others come: its turn is not recorded yet, and a second request for it must get the same object.

Records may also be removed by another process, such as `holdfast store erase` beside a running
proxy. So the store's counter of removals is checked regularly, and copies in memory are dropped.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from holdfast.errors import StoreError
from holdfast.faults import logged_faults
from holdfast.store import Scope, Store
from holdfast.workers import Workers

if TYPE_CHECKING:
    from holdfast.engine.session import Session

_MOST_SESSIONS = 1_000
"""Those of 10 KB take 120 MB together, so that both bounds are reached about at once."""
_MOST_BYTES = 128_000_000
"""As sessions weigh themselves, of all tenants together; one alone may have more."""


class LiveSessions:
    """Sessions by their scope; those unused for longest are released."""

    def __init__(self) -> None:
        self.most_bytes = _MOST_BYTES
        self._recent: OrderedDict[Scope, Session] = OrderedDict()
        self._sizes: dict[Scope, int] = {}
        self._bytes = 0
        """The sum of the sizes: to add up a thousand with each request took a twentieth of it."""
        self._in_use: WeakValueDictionary[Scope, Session] = WeakValueDictionary()

    def __iter__(self) -> Iterator[Session]:
        return iter(self._recent.values())

    def get(self, scope: Scope) -> Session | None:
        """The session of a scope, if it is in memory."""
        session = self._in_use.get(scope)
        if session is not None:
            self.add(session)
        return session

    def add(self, session: Session) -> None:
        """Keep a session in mind."""
        self._in_use[session.scope] = self._recent[session.scope] = session
        self._recent.move_to_end(session.scope)
        self._forget_unused()

    def weigh(self, session: Session, size: int) -> None:
        """Note the size of a session in bytes, and release others if the limit is exceeded."""
        if session.scope in self._recent:
            self._bytes += size - self._sizes.get(session.scope, 0)
            self._sizes[session.scope] = size
            self._forget_unused()
        else:  # it was forgotten while its request was answered, and has learnt something since
            session.let_go()

    def drop(self, scope: Scope) -> None:
        """Drop the session of a scope, unless a request is being answered in it."""
        if self._recent.pop(scope, None) is not None:
            self._bytes -= self._sizes.pop(scope, 0)

    def drop_all(self) -> None:
        """Drop every session that no request is being answered in; each comes back when used."""
        self._recent.clear()
        self._sizes.clear()
        self._bytes = 0

    def _forget_unused(self) -> None:
        while len(self._recent) > 1 and (
            len(self._recent) > _MOST_SESSIONS or self._bytes > self.most_bytes
        ):
            scope, session = self._recent.popitem(last=False)
            session.let_go()
            self._bytes -= self._sizes.pop(scope, 0)


LOOK_SECONDS = 5.0


class RemovalWatch:
    """Drops sessions in memory and replaces workers when records were removed."""

    def __init__(self, store: Store, live: LiveSessions, workers: Workers) -> None:
        self._store = store
        self._live = live
        self._workers = workers
        self._seen: int | None = None

    async def look(self) -> None:
        """Drop copies that may hold removed text, if anything was removed since the last check."""
        try:
            removals = await self._store.removals()
        except StoreError:
            return  # the next look
        if self._seen is not None and removals != self._seen:
            self._live.drop_all()
            await asyncio.to_thread(self._workers.recycle)
        self._seen = removals

    async def run(self) -> None:
        """Look from time to time, without end."""
        faults = logged_faults("holdfast.engine")
        while True:
            with faults.caught("removals"):
                await self.look()
            await asyncio.sleep(LOOK_SECONDS)
