"""What a client gets of an answer: its outcome, what is told of its calls, and a stream that ends.

delivery: after remembering, before exchange.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from holdfast.surfaces.proxy.remembering import Remembering
from holdfast.surfaces.proxy.switches import PREFIX
from holdfast.wire.answers import input_tokens


class Outcome(NamedTuple):
    """What the client gets: an answer in one piece, or a stream."""

    status: int
    headers: dict[str, str]
    body: bytes | AsyncIterable[bytes]


def account(billed: dict[str, Any], calls: int, saved: int | None) -> dict[str, str]:
    """What all calls of an answer were shown, and saved together, where there were several.

    The usage in the answer is of the last one: clients take it for the size of their conversation.
    """
    if calls < 2:
        return {}
    told = {f"{PREFIX}calls": str(calls), f"{PREFIX}input-tokens": str(input_tokens(billed))}
    return told if saved is None else told | {f"{PREFIX}saved": str(saved)}


class Pieces:
    """A stream that gives its upstream call back even if nobody ever reads from it."""

    def __init__(
        self, pieces: AsyncGenerator[bytes], calls: AsyncExitStack, remembering: Remembering
    ) -> None:
        self._pieces = pieces
        self._calls = calls
        self._remembering = remembering

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        """End it, read or not."""
        await self._pieces.aclose()
        await self._calls.aclose()
        if not self._remembering.is_kept:
            self._remembering.end()
