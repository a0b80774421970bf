"""Copies in memory of what was removed from the store: they go too.

removals: after live, before holdfast. Another process may remove records, such as `holdfast store
erase` beside a running proxy: so the store's count of removals is looked at from time to time.
"""

from __future__ import annotations

import asyncio

from holdfast.engine.live import LiveSessions
from holdfast.errors import StoreError
from holdfast.faults import logged_faults
from holdfast.store import Store
from holdfast.workers import Workers

LOOK_SECONDS = 5.0


class RemovalWatch:
    """Drops sessions in memory and replaces workers when records were removed."""

    def __init__(self, store: Store, live: LiveSessions, workers: Workers) -> None:
        self._store = store
        self._live = live
        self._workers = workers
        self._seen: int | None = None

    async def look(self) -> None:
        """Drop what may hold removed text, if anything was removed since the last look."""
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
