"""Servers of which nothing is known: started all at once, and waited for a little.

acquaintance: after upstream, before gateway. A host shows nothing until it has a list, so a list
must not wait for the slowest of twenty servers, nor for one that never answers. What comes up later
is told by `list_changed`. How long is waited is counted once from the first start, not by request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from contextlib import suppress

from holdfast.errors import HoldfastError
from holdfast.surfaces.mcp.upstream import Host, Upstream

LIST_SECONDS = 1.0
"""How long a list waits in all if nothing is known of any server."""
CALL_SECONDS = 10.0
"""How long a search, or a call of a tool that no list has, waits: it has but one answer."""


class Acquaintance:
    """The starts that are under way."""

    def __init__(self, upstreams: Collection[Upstream]) -> None:
        self._upstreams = upstreams
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._began: float | None = None

    async def for_list(self, host: Host) -> None:
        """Start who is not known; wait only if nobody is."""
        self._start(host)
        if not any(upstream.card for upstream in self._upstreams):
            await self._wait(LIST_SECONDS)

    async def for_call(self, host: Host) -> None:
        """Start who is not known, and wait for all of them."""
        self._start(host)
        await self._wait(CALL_SECONDS)

    async def close(self) -> None:
        """Give up the starts."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, host: Host) -> None:
        for upstream in self._upstreams:
            name = upstream.spec.name
            if upstream.card is None and upstream.is_startable and name not in self._tasks:
                self._tasks[name] = asyncio.ensure_future(self._try_start(upstream, host))
                self._began = self._began or time.monotonic()

    async def _wait(self, seconds: float) -> None:
        if self._began is None or not self._tasks:
            return
        left = self._began + seconds - time.monotonic()
        if left > 0:
            await asyncio.wait(list(self._tasks.values()), timeout=left)

    async def _try_start(self, upstream: Upstream, host: Host) -> None:
        try:
            with suppress(HoldfastError):  # its state says so
                await upstream.started(host)
        finally:
            del self._tasks[upstream.spec.name]
