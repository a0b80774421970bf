"""Start servers without a card, all at once, with a bounded wait.

A host shows nothing until it has a list, so a list must not wait for the slowest of twenty servers
or for one that never answers. Later servers are announced by `list_changed`. The wait is counted
from the first start, not per request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from contextlib import suppress

from holdfast.errors import HoldfastError
from holdfast.surfaces.mcp.upstream import McpUpstream, RequestHost

LIST_SECONDS = 1.0
"""Maximum wait of a list if no server has a card."""
CALL_SECONDS = 10.0
"""Maximum wait of a search or of a call of an unlisted tool, which have only one answer."""


class ServerStarts:
    """The starts in progress."""

    def __init__(self, upstreams: Collection[McpUpstream]) -> None:
        self._upstreams = upstreams
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._began: float | None = None

    async def for_list(self, host: RequestHost) -> None:
        """Start servers without a card; wait only if no server has one."""
        self._start(host)
        if not any(upstream.card for upstream in self._upstreams):
            await self._wait(LIST_SECONDS)

    async def for_call(self, host: RequestHost) -> None:
        """Start servers without a card and wait for all of them."""
        self._start(host)
        await self._wait(CALL_SECONDS)

    async def close(self) -> None:
        """Cancel the starts."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, host: RequestHost) -> None:
        for upstream in self._upstreams:
            name = upstream.spec.name
            if upstream.card is None and upstream.is_startable and name not in self._tasks:
                self._tasks[name] = asyncio.ensure_future(self._try_start(upstream, host))
                self._began = self._began or time.monotonic()

    async def _wait(self, seconds: float) -> None:
        if self._began is None or not self._tasks:
            return
        remaining = self._began + seconds - time.monotonic()
        if remaining > 0:
            await asyncio.wait(list(self._tasks.values()), timeout=remaining)

    async def _try_start(self, upstream: McpUpstream, host: RequestHost) -> None:
        try:
            with suppress(HoldfastError):  # its state has the reason
                await upstream.started(host)
        finally:
            del self._tasks[upstream.spec.name]
