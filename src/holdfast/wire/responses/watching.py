"""Streams of the dialects in which nothing is hidden: looked at while they pass, never changed.

watching: after converse and cohere; beside relay, which drives the streams of all others.
"""

from __future__ import annotations

from typing import Any, Protocol

from holdfast.wire.responses.cohere import CohereWatch
from holdfast.wire.responses.converse import ConverseWatch


class Watch(Protocol):
    """What is seen of a stream."""

    usage: dict[str, Any]
    """What was reported; empty if nothing was."""
    ended: bool
    """It came to its end."""
    failed: bool
    """It reported an error, or cannot be read: then nothing more is looked at."""

    def feed(self, chunk: bytes) -> None:
        """Take bytes that go to the client."""


_WATCHES: dict[str, type[Watch]] = {"converse": ConverseWatch, "cohere": CohereWatch}


def watch(dialect: str) -> Watch:
    """Look at a stream of a dialect that is not in `CONTINUED`."""
    return _WATCHES[dialect]()
