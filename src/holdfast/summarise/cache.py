"""Cache summaries, which cost money, for a limited time.

The key covers everything a summary depends on: the piece, the reader's question, level, provider
and model, prompt version and budget. A change of any of them is a miss, so a summary is never
reused for another question.
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
    """A cache of summaries by key."""

    async def get(self, key: str) -> bytes | None:
        """Return the value of a key; None if it is missing or expired."""

    async def put(self, key: str, value: bytes, ttl: float | None) -> None:
        """Store a value for `ttl` seconds; None stores it without expiry."""


def cache_key(*parts: str | int | None) -> str:
    """Return a hash over everything that a summary depends on."""
    hashed = hashlib.sha256()
    for part in parts:
        data = repr(part).encode("utf-8", "backslashreplace")
        # The length prefix makes the encoding of a list of parts unambiguous.
        hashed.update(len(data).to_bytes(8, "big"))
        hashed.update(data)
    return hashed.hexdigest()


class MemorySummaryCache:
    """An in-process cache that evicts the least recently used summaries."""

    def __init__(
        self, most_bytes: int = _MOST_BYTES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most_bytes
        self._clock = clock
        self._bytes = 0
        self._entries: OrderedDict[str, tuple[bytes, float | None]] = OrderedDict()

    async def get(self, key: str) -> bytes | None:
        """Return the value of a key; see `SummaryCache`."""
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
        """Store a value; see `SummaryCache`."""
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
    """The part of the store that holds summaries."""

    async def summary(self, scope: Scope, key: str) -> bytes | None:
        """Return a summary stored in a scope; None if it is missing or expired."""

    async def put_summary(
        self, scope: Scope, key: str, value: bytes, ttl_seconds: float | None
    ) -> None:
        """Store a summary in a scope."""


class StoredSummaryCache:
    """Summaries in the store for one scope, so that no scope sees another's content."""

    def __init__(self, store: HasSummaries, scope: Scope) -> None:
        self._store = store
        self._scope = scope

    async def get(self, key: str) -> bytes | None:
        """Return the value of a key; see `SummaryCache`."""
        return await self._store.summary(self._scope, key)

    async def put(self, key: str, value: bytes, ttl: float | None) -> None:
        """Store a value; see `SummaryCache`."""
        await self._store.put_summary(self._scope, key, value, ttl)
