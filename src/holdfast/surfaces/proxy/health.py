"""Health of the store, checked while somebody requests the proxy's health.

Requests reveal a failing store; without requests, as when a load balancer has removed the proxy,
only a check does.
"""

from __future__ import annotations

import asyncio

from holdfast.errors import StoreError
from holdfast.store import Store
from holdfast.store.deadline import REQUEST_SECONDS, store_deadline, without_deadline
from holdfast.surfaces.proxy.telemetry import Telemetry

_PAUSE_SECONDS = 0.5
_OLD_SECONDS = REQUEST_SECONDS + _PAUSE_SECONDS
"""Seconds after which a check is too old: health must be right within three seconds."""
_WATCH_SECONDS = 90.0
"""How long the store is watched after somebody asked: container runtimes ask every 30 seconds. So
the answer does not wait for the store, and an idle proxy that nobody asks leaves it alone."""


class StoreHealth:
    """Looks at the store in the background."""

    def __init__(self, store: Store, telemetry: Telemetry) -> None:
        self._store = store
        self._telemetry = telemetry
        self._asked_at = self._looked_at = float("-inf")
        self._look: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None

    async def is_available(self) -> bool:
        """Return whether the store can be read and written; at once while it is being watched."""
        loop = asyncio.get_running_loop()
        self._asked_at = loop.time()
        if self._asked_at - self._looked_at > _OLD_SECONDS:
            await self._look_together()
        if self._watch is None or self._watch.done():
            self._watch = loop.create_task(self._keep_watching(), context=without_deadline())
        return not self._telemetry.store_fails

    async def close(self) -> None:
        """Stop watching."""
        tasks = [task for task in (self._look, self._watch) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look_together(self) -> None:
        """Wait for the look that is under way, or begin one.

        One that began beside it would wait for its own two seconds after the first had failed.
        """
        if self._look is None or self._look.done():
            loop = asyncio.get_running_loop()
            self._look = loop.create_task(self._look_once(), context=without_deadline())
        await asyncio.wait({self._look})

    async def _look_once(self) -> None:
        failure = ""
        try:
            with store_deadline():
                await self._store.check()
        except StoreError as error:
            failure = str(error)
        self._looked_at = asyncio.get_running_loop().time()
        self._telemetry.look_at_store(failure)

    async def _keep_watching(self) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() - self._asked_at < _WATCH_SECONDS:
            await asyncio.sleep(_PAUSE_SECONDS)
            await self._look_together()
