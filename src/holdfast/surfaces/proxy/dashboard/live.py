"""The stream of events that keeps the first page new without loading it again.

live: after gathering, before pages. The store is looked at, not this process: of several workers
any may have answered. An event holds the parts of the page that changed, made as the page was.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec

from holdfast.errors import StoreError
from holdfast.surfaces.proxy.dashboard import frame, links
from holdfast.surfaces.proxy.dashboard.pulse import live_list, three_answers
from holdfast.surfaces.proxy.dashboard.trouble import failures_section
from holdfast.surfaces.proxy.dashboard.visits import Visit
from holdfast.surfaces.proxy.service import Service

LOOK_SECONDS = 1.0
"""How often the store is asked whether anything is new."""
MOST_WATCHERS = 50
"""Streams at once: each is a connection that stays."""
_REST = 10
"""How many times as long as an event took to make, the next one waits at least."""
_BEAT_LOOKS = 15
"""Looks without news after which a word is sent all the same: else someone on the way hangs up."""


class Watchers:
    """How many look at the page just now."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.count = 0

    @property
    def are_many(self) -> bool:
        """Whether no one more is let in."""
        return self.count >= MOST_WATCHERS

    async def events(self, visit: Visit, period: str) -> AsyncIterator[bytes]:
        """Yield an event whenever something changed, until the proxy stops."""
        self.count += 1
        try:
            last_change, looks = -1.0, 0
            while not self._service.is_closing:
                took = 0.0
                changed_at = await _changed_at(visit)
                if changed_at not in (None, last_change):
                    last_change, looks = changed_at or 0.0, 0
                    began = time.perf_counter()
                    news = await _event(visit, period)
                    took = time.perf_counter() - began
                    yield news
                looks += 1
                if looks % _BEAT_LOOKS == 0:
                    yield b": still here\n\n"
                # Over 400,000 turns an event takes a second of work, which clients wait for.
                await asyncio.sleep(max(LOOK_SECONDS, took * _REST))
        finally:
            self.count -= 1


async def _changed_at(visit: Visit) -> float | None:
    try:
        await visit.refresh()
        return await visit.reports().changed_at()
    except StoreError:
        return None  # it may be back in a moment


async def _event(visit: Visit, period: str) -> bytes:
    """Return one event: HTML by the id of the element that it replaces."""
    with frame.within(await visit.frame()), links.within(visit.named):
        pulse = await visit.reports().pulse(period, time.time(), visit.refused())
        parts = {
            "answers": str(three_answers(pulse)),
            "live": str(live_list(pulse)),
            "failures": str(failures_section(pulse.failures)),
        }
    return b"data: " + msgspec.json.encode(parts) + b"\n\n"
