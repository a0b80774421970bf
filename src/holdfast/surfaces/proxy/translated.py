"""Requests to an upstream in another dialect than the client's, and their responses.

Fields that cannot be translated are listed for the client and the record.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import NamedTuple
from urllib.parse import quote

from holdfast.surfaces.proxy.delivery import received
from holdfast.upstream.network import UpstreamReply, is_stream
from holdfast.upstream.upstreams import UpstreamTarget
from holdfast.wire import Answerer, Conversation, convert, custom_tools
from holdfast.wire.responses import AnswerTranslator, translate_error, translate_response

_PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
}
SAFE = "/:@!$&'()*+,;=~"
"""Characters that need no escape in a path (RFC 3986, 3.3)."""
_MOST_NAMED = 8
"""Maximum number of losses listed one by one: a header has no room for two hundred images."""


class TranslatedRequest(NamedTuple):
    """A request in the dialect of its upstream."""

    body: bytes
    lost: tuple[str, ...]
    custom: frozenset[str] = frozenset()
    """The client's tools whose input is any text, which the upstream was offered as functions."""


def translated_path(target: UpstreamTarget, *, streams: bool) -> str:
    """Where an upstream is asked for an answer, its escapes written."""
    if target.dialect == "converse":
        verb = "converse-stream" if streams else "converse"
        return f"/model/{quote(target.model, safe='')}/{verb}"
    if target.dialect != "gemini":
        return _PATHS[target.dialect]
    verb = "streamGenerateContent" if streams else "generateContent"
    return f"/v1beta/models/{quote(target.model, safe=SAFE)}:{verb}"


def translated_request(
    request: Conversation, target: UpstreamTarget, *, streams: bool, longest: int
) -> TranslatedRequest:
    """The request as the upstream reads it; `longest` is the model's longest answer."""
    answerer = Answerer(model=target.model, streams=streams, output_limit=longest)
    converted = convert(request, target.dialect, answerer=answerer)
    lost = dict.fromkeys(f"{loss.path}: {loss.message}" for loss in converted.lost)
    named_losses = list(lost)[:_MOST_NAMED]
    if len(lost) > _MOST_NAMED:
        named_losses.append(f"{len(lost) - _MOST_NAMED} more")
    return TranslatedRequest(converted.body, tuple(named_losses), custom_tools(request))


async def translated_reply(
    reply: UpstreamReply, target: UpstreamTarget, to: str, most: int, custom: frozenset[str]
) -> tuple[UpstreamReply, tuple[str, ...]]:
    """Return the upstream's response in the dialect `to`, and the losses of a complete one.

    At most `most` bytes of a complete response are read.
    """
    speaks, model = target.dialect, target.model
    if reply.status < 400 and is_stream(reply):
        translator = AnswerTranslator(speaks=speaks, to=to, model=model, custom=custom)
        return _TranslatedStream(reply, translator), ()
    raw_body = await received(reply, most)
    if raw_body.status >= 400:
        body = translate_error(raw_body.status, raw_body.body, speaks=speaks, to=to)
        return _TranslatedWhole(raw_body.status, raw_body.headers, body), ()
    answer = translate_response(raw_body.body, speaks=speaks, to=to, model=model, custom=custom)
    return _TranslatedWhole(answer.status, raw_body.headers, answer.body), answer.lost


class _TranslatedWhole:
    """An answer in one piece."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {**headers, "content-type": "application/json"}
        self._body = body

    async def chunks(self) -> AsyncGenerator[bytes]:
        yield self._body


class _TranslatedStream:
    """An answer that comes piece by piece, each translated as it comes."""

    def __init__(self, reply: UpstreamReply, translator: AnswerTranslator) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self._reply = reply
        self._translator = translator

    async def chunks(self) -> AsyncGenerator[bytes]:
        async with aclosing(self._reply.chunks()) as chunks:
            async for chunk in chunks:
                for piece in self._translator.feed(chunk):
                    yield piece
        for piece in self._translator.close():
            yield piece
