"""Parsing of a request that reuses the previous one, so that only new messages are read.

Clients send their whole history with each request: a prefix with the same bytes is neither parsed
nor hashed again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from holdfast.wire import Conversation, read
from holdfast.wire.strict import Limits

_BEGINNING = 1_000
"""Bytes of the look-up key; requests with the same key are compared as far as they are equal."""
_MOST_ALIKE = 8
"""Conversations with the same beginning, such as a long system text, that are kept in mind."""
_MOST_BYTES = 32_000_000
"""Of bodies; the oldest are forgotten first."""


_MOST_BEGINNINGS = 200
"""A parsed conversation takes many times its bytes, so idle ones are released."""


Key = tuple[str, str, bytes]
"""The tenant, the dialect, and how a body begins."""


class Recent:
    """The conversations that were read last."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: OrderedDict[Key, list[Conversation]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()  # large bodies are read in threads

    def before(self, body: bytes, dialect: str, tenant: str = "") -> Conversation | None:
        """Return the conversation that a request continues."""
        with self._lock:
            alike = tuple(self._known.get((tenant, dialect, body[:_BEGINNING]), ()))
        return next((earlier for earlier in alike if _goes_on(body, earlier)), None)

    def read(
        self, body: bytes, dialect: str, tenant: str = "", before: Conversation | None = None
    ) -> Conversation:
        """Parse a request; messages that were parsed before are the same objects again.

        Cached values belong to a message, so tenants share none.
        """
        conversation = read(body, dialect, previous=before, limits=self._limits)
        with self._lock:
            self._remember(body, (tenant, dialect, body[:_BEGINNING]), before, conversation)
        return conversation

    def _remember(
        self, body: bytes, key: Key, before: Conversation | None, conversation: Conversation
    ) -> None:
        alike = self._known.get(key, [])
        remaining = [each for each in alike if each is not before][-_MOST_ALIKE + 1 :]
        self._bytes += len(body) + _size(remaining) - _size(alike)
        self._known[key] = [*remaining, conversation]
        self._known.move_to_end(key)
        while self._bytes > _MOST_BYTES or len(self._known) > _MOST_BEGINNINGS:
            self._bytes -= _size(self._known.popitem(last=False)[1])


def _goes_on(body: bytes, before: Conversation) -> bool:
    source = before.source or b""
    return bool(source) and body.startswith(
        memoryview(source)[: len(source) - len(before.frame.tail)]
    )


def _size(conversations: list[Conversation]) -> int:
    return sum(len(conversation.source or b"") for conversation in conversations)
