"""The response for a client: its outcome, the headers about its calls, and a stream with an end.

Includes complete responses in the client's format. The network code is in upstream/.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from holdfast.errors import ProviderError
from holdfast.surfaces.proxy.answer_reuse import AnswerReuse
from holdfast.surfaces.proxy.switches import PREFIX
from holdfast.surfaces.proxy.upstreams import returned_headers
from holdfast.upstream.network import UpstreamError, UpstreamReply
from holdfast.wire.responses import input_tokens


class Outcome(NamedTuple):
    """A response for the client: complete, or a stream."""

    status: int
    headers: dict[str, str]
    body: bytes | AsyncIterable[bytes]


def account(billed: dict[str, Any], calls: int, saved: int | None) -> dict[str, str]:
    """What all calls of an answer were shown, and saved together, where there were several.

    The usage in the answer is of the last one: clients take it for the size of their conversation.
    """
    if calls < 2:
        return {}
    headers = {f"{PREFIX}calls": str(calls), f"{PREFIX}input-tokens": str(input_tokens(billed))}
    return headers if saved is None else headers | {f"{PREFIX}saved": str(saved)}


class Pieces:
    """A stream that gives its upstream call back even if nobody ever reads from it."""

    def __init__(
        self, pieces: AsyncGenerator[bytes], calls: AsyncExitStack, remembering: AnswerReuse
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


class UpstreamResponse(NamedTuple):
    """An answer of the upstream that came in one piece."""

    status: int
    headers: dict[str, str]
    body: bytes


async def received(reply: UpstreamReply, most: int) -> UpstreamResponse:
    """All of an answer, unless it is larger than any answer should be."""
    if 300 <= reply.status < 400:
        raise UpstreamError(
            "the upstream sends us elsewhere", fix="Give its new address in the settings."
        )
    headers = returned_headers(reply.headers, changed=True)
    parts = []
    size = 0
    async for chunk in reply.chunks():
        size += len(chunk)
        if size > most:
            raise ProviderError(
                f"the upstream's answer has more than {most:,} bytes", fix="Ask for less at once."
            )
        parts.append(chunk)
    return UpstreamResponse(reply.status, headers, b"".join(parts))
