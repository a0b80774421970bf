"""Summaries that were paid for, kept for a while.

cache: after levels. A key stands for all that a summary depends on: the piece of content, what it
is read for, level, provider and model, version of the prompt, and budget (000-39, X06). So a change
of any of them is a miss, and a summary is never used for another question.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from holdfast.store.scope import Scope

_MOST_BYTES = 16_777_216


class SummaryCache(Protocol):
    """Where summaries are kept."""

    async def get(self, key: str) -> bytes | None:
        """What was put there, if it is still fresh."""

    async def put(self, key: str, value: bytes, ttl: float | None) -> None:
        """Keep a summary for so many seconds; None is for good."""


def cache_key(*parts: str | int | None) -> str:
    """A name for all that a summary depends on."""
    hashed = hashlib.sha256()
    for part in parts:
        data = repr(part).encode("utf-8", "backslashreplace")
        # With its length before it, no two lists of parts have the same bytes.
        hashed.update(len(data).to_bytes(8, "big"))
        hashed.update(data)
    return hashed.hexdigest()


class MemorySummaryCache:
    """Summaries in this process, those used longest ago let go first."""

    def __init__(
        self, most_bytes: int = _MOST_BYTES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most_bytes
        self._clock = clock
        self._bytes = 0
        self._entries: OrderedDict[str, tuple[bytes, float | None]] = OrderedDict()

    async def get(self, key: str) -> bytes | None:
        """See `SummaryCache`."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        value, ends_at = entry
        if ends_at is not None and self._clock() >= ends_at:
            self._remove(key)
            return None
        self._entries.move_to_end(key)
        return value

    async def put(self, key: str, value: bytes, ttl: float | None) -> None:
        """See `SummaryCache`."""
        if key in self._entries:
            self._remove(key)
        self._entries[key] = (value, None if ttl is None else self._clock() + ttl)
        self._bytes += len(value)
        while self._bytes > self._most:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: str) -> None:
        value, _ = self._entries.pop(key)
        self._bytes -= len(value)


class HasSummaries(Protocol):
    """What is needed of a store."""

    async def summary(self, scope: Scope, key: str) -> bytes | None:
        """A summary that is kept for this scope, if it is still fresh."""

    async def put_summary(
        self, scope: Scope, key: str, value: bytes, ttl_seconds: float | None
    ) -> None:
        """Keep a summary for this scope."""


class StoredSummaryCache:
    """Summaries in the store, for one scope: nobody sees what came of another's content."""

    def __init__(self, store: HasSummaries, scope: Scope) -> None:
        self._store = store
        self._scope = scope

    async def get(self, key: str) -> bytes | None:
        """See `SummaryCache`."""
        return await self._store.summary(self._scope, key)

    async def put(self, key: str, value: bytes, ttl: float | None) -> None:
        """See `SummaryCache`."""
        await self._store.put_summary(self._scope, key, value, ttl)
