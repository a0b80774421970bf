"""Memory is returned to the system after a large request, or when a connection is closed.

glibc keeps freed memory in as many heaps as there were threads, and takes ever larger blocks out of
them: after twenty requests of 20 MB a nearly empty proxy had 1.8 GB. On other systems nothing is
done, and most need nothing. Reference cycles are freed only by Python's collector, whose full run
holds every request: it comes while there is none.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Awaitable, Callable
from functools import cache

LARGE_BYTES = 1_000_000
"""Of a request after which it pays to give memory back."""
# mallopt's parameters, from <malloc.h>: they have had these numbers since 1996, and 2009.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_HEAPS = 2
"""Threads that allocate at once: Python lets one of them run, the others wait for disks."""
_IDLE_TICKS = 50
"""Five seconds: clients that ask one thing after the other pause for less."""
_YOUNG_COLLECTIONS = 100
"""Collections of younger objects that make a full one worth its time: two million new objects."""


class IdleCollector:
    """Runs a full garbage collection once no request has been under way for a while."""

    def __init__(self) -> None:
        self._ticks = 0

    def tick(self, *, is_idle: bool) -> None:
        """Note, ten times a second, whether any request is under way."""
        self._ticks = self._ticks + 1 if is_idle else 0
        if self._ticks >= _IDLE_TICKS and gc.get_count()[2] >= _YOUNG_COLLECTIONS:
            gc.collect()


def use_few_heaps() -> None:
    """Let large blocks be mapped separately, so that each is returned when it is freed.

    glibc raises this threshold itself with the first large block that is freed; a value that was
    set is kept.
    """
    mallopt = _of_glibc("mallopt")
    if mallopt is not None:
        mallopt(_ARENA_MAX, _HEAPS)
        mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_TRIM_THRESHOLD, LARGE_BYTES)


async def give_back_after(work: Awaitable[None]) -> None:
    """Return free heap memory to the system after some work; it takes milliseconds."""
    await work
    await asyncio.to_thread(give_back)


def give_back() -> None:
    """Return the free memory inside the heaps to the system."""
    malloc_trim = _of_glibc("malloc_trim")
    if malloc_trim is not None:
        malloc_trim(0)


def free_closed_transports() -> None:
    """Let asyncio's transports be freed as soon as they are closed, to clients and upstreams.

    Each keeps a bound method of itself, a reference cycle: a kilobyte for each connection until a
    full collection. With TLS the transport is inside aiohttp's, out of reach, so the patch applies
    to all.
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
    """The read and write callback of a closed transport."""


@cache
def _of_glibc(name: str) -> Callable[..., object] | None:
    try:
        function: Callable[..., object] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return None
    return function
