"""Memory goes back to the system once a large request is answered, or a connection is closed.

heap: before app and server. glibc keeps what was freed for later, in as many heaps as there were
threads, and takes ever larger blocks out of them: after twenty requests of 20 MB a proxy that held
almost nothing looked like one of 1.8 GB. Elsewhere than on glibc nothing is done, and nothing is
needed on most systems. What refers to itself is freed by Python's collector alone, whose full look
comes once in some 100,000 requests: see server.py.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Awaitable, Callable
from functools import cache

LARGE_BYTES = 1_000_000
"""Of a request after which it pays to give memory back."""
# mallopt's parameters, from <malloc.h>: they have had these numbers since 1996, and 2009.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_HEAPS = 2
"""Threads that allocate at once: Python lets one of them run, the others wait for disks."""


def use_few_heaps() -> None:
    """Let large blocks be mapped on their own, so that each goes back when it is freed.

    glibc raises that threshold by itself with the first large block that is freed; set once, it
    stays.
    """
    mallopt = _of_glibc("mallopt")
    if mallopt is not None:
        mallopt(_ARENA_MAX, _HEAPS)
        mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_TRIM_THRESHOLD, LARGE_BYTES)


async def give_back_after(work: Awaitable[None]) -> None:
    """Give back what is free inside the heaps once work is done; it takes milliseconds."""
    await work
    await asyncio.to_thread(give_back)


def give_back() -> None:
    """Return the free memory inside the heaps to the system."""
    malloc_trim = _of_glibc("malloc_trim")
    if malloc_trim is not None:
        malloc_trim(0)


def free_closed_transports() -> None:
    """Let asyncio's transports be free as soon as they are closed, to clients and upstreams.

    Each keeps a method of its own that reads or writes, and so refers to itself: a kilobyte for
    each connection until a full collection. With TLS the transport is inside aiohttp's, out of
    reach, so that it is done for all of them.
    """
    transport = getattr(asyncio.selector_events, "_SelectorTransport", None)
    lose = getattr(transport, "_call_connection_lost", None)
    if transport is None or lose is None or lose.__module__ == __name__:
        return  # another loop, or it is done already

    def lose_and_let_go(closed: asyncio.BaseTransport, error: Exception | None) -> None:
        try:
            lose(closed, error)
        finally:
            for name, value in [*vars(closed).items()]:
                if getattr(value, "__self__", None) is closed:
                    setattr(closed, name, _nothing)

    transport._call_connection_lost = lose_and_let_go


def _nothing() -> None:
    """What a closed transport reads and writes."""


@cache
def _of_glibc(name: str) -> Callable[..., object] | None:
    try:
        function: Callable[..., object] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return None
    return function
