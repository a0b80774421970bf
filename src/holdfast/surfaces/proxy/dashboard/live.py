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
from holdfast.surfaces.proxy.dashboard.gathering import Gathering
from holdfast.surfaces.proxy.dashboard.links import within
from holdfast.surfaces.proxy.dashboard.pulse import live_list, three_answers
from holdfast.surfaces.proxy.service import Service

LOOK_SECONDS = 1.0
"""How often the store is asked whether anything is new."""
MOST_WATCHERS = 50
"""Streams at once: each is a connection that stays."""
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

    async def events(self, gathering: Gathering, period: str, tenant: str) -> AsyncIterator[bytes]:
        """What is new, as long as someone looks and the proxy runs.

        `tenant` is the one that the address names, for the links: see links.py.
        """
        self.count += 1
        try:
            seen, looks = -1.0, 0
            while not self._service.is_closing:
                changed_at = await _changed_at(gathering)
                if changed_at not in (None, seen):
                    seen, looks = changed_at or 0.0, 0
                    with within(tenant):
                        news = await event(gathering, period)
                    yield news
                looks += 1
                if looks % _BEAT_LOOKS == 0:
                    yield b": still here\n\n"
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self.count -= 1


async def _changed_at(gathering: Gathering) -> float | None:
    try:
        return await gathering.changed_at()
    except StoreError:
        return None  # it may be back in a moment


async def event(gathering: Gathering, period: str) -> bytes:
    """One event: HTML by the id of the element that it belongs in."""
    pulse = await gathering.pulse(period, time.time())
    parts = {"answers": str(three_answers(pulse)), "live": str(live_list(pulse))}
    return b"data: " + msgspec.json.encode(parts) + b"\n\n"
