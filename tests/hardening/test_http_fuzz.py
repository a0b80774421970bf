"""Any HTTP request gets a typed error or a valid response, no internal error, in flat memory."""

from __future__ import annotations

import asyncio
import gc
import random
import re
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from tests.hardening.asks import Asked, asked
from tests.hardening.campaign import Campaign, short_and_full
from tests.hardening.driving import era
from tests.hardening.shrinking import shrunk

REQUESTS = 100_000
"""With the openings of test_expand_fuzz.py a million."""
ERA = 2_000
"""Requests to one proxy."""
_GROWTH_BYTES = 48 * 2**20
"""Allowed growth of a process over all eras after the first two, which fill caches."""

SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"request_limit": 900},
    {"max_body_bytes": 6_000},
    {"serve_token": "key-of-the-test"},
    {"privacy_policy": "refuse"},
    {"on_store_failure": "refuse", "request_limit": 20_000},
)
"""Each era has the next of these."""


def _signature(complaint: str) -> str:
    """What two complaints about the same fault have in common."""
    return re.sub(r"[0-9a-f]{16}|\d+", "#", complaint)[:60]


async def _smallest(request: Asked, wrong: list[str], overrides: dict[str, Any]) -> str:
    """Return the request for a test of the finding, if a fresh proxy has it too."""

    async def goes_wrong(smaller: Asked) -> bool:
        async with era(**overrides) as proxy:
            _, complaints = await proxy.judged(smaller, random.Random(0))
        return bool(complaints) and _signature(complaints[0]) == _signature(wrong[0])

    if not await goes_wrong(request):
        return f"only in its era: {request!r:.3000}"
    return repr(await shrunk(request, goes_wrong))


async def _hunt(campaign: Campaign, most: int) -> None:
    rounds = campaign.rounds(most)
    resident: list[int] = []
    signatures: set[str] = set()  # the same fault again is no new finding
    number = next(rounds, None)
    while number is not None:
        overrides = SETTINGS[number // ERA % len(SETTINGS)]
        async with era(**overrides) as proxy:
            while number is not None:
                chance = campaign.chance(number)
                request = asked(chance)
                _, wrong = await proxy.judged(request, chance)
                if wrong and _signature(wrong[0]) not in signatures:
                    signatures.add(_signature(wrong[0]))
                    smallest = await _smallest(request, wrong, overrides)
                    campaign.found(f"round {number}: {wrong[0]} | {smallest}")
                number = next(rounds, None)
                if number is not None and number % ERA == 0:
                    break
        gc.collect()
        resident.append(psutil.Process().memory_info().rss)
    settled = resident[2:]
    if settled and max(settled) - settled[0] > _GROWTH_BYTES:
        campaign.found(f"memory grew: {resident}")
    campaign.figures["resident MB"] = f"{resident[0] >> 20} to {resident[-1] >> 20}"


pytestmark = pytest.mark.filterwarnings("ignore::holdfast.tokens.counter.UnknownModelWarning")


@short_and_full("requests", 2_000, REQUESTS)
def test_fuzzed_requests_are_answered_in_order(campaign: Campaign, requests: int) -> None:
    asyncio.run(_hunt(campaign, requests))
