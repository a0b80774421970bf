"""The providers' network inside this process: checks the providers' rules, and answers at random.

It replaces the proxy's client for upstreams, so that a million requests need no socket; its rules
and its answers are those of tests/provider and of tests/surfaces/proxy, which share nothing with
the package.
"""

from __future__ import annotations

import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

from holdfast.upstream.network import HttpSending, UpstreamReply
from tests.hardening.shapes import refused
from tests.provider.request import Got
from tests.surfaces.proxy.gatekeeper import error
from tests.surfaces.proxy.spoken import REF, call, says, text, whole
from tests.wire.responses.streams import Script, write

_OPTIONS = ("lines", "query", "path", "page", "rows", "range", "pattern", "what", "characters")
_VALUES: tuple[Any, ...] = (
    "1-3", "3", 2, "0-0", "-5", "9" * 30, "error", "[", "(a+)+$", "$.a[0]", "$..", "", None, [], {},
    ["1-2", "5"], True, 1.5, -1, 10**20, "\x00", "\ud83d\ude00", "a" * 3000, "INFO step", "\\b",
)  # fmt: skip


class Provider(HttpSending):
    """Answers in the place of all upstreams."""

    def __init__(self) -> None:
        super().__init__(idle_seconds=10)
        self.chance = random.Random()
        self.sent: list[Got] = []
        self.refused: list[str] = []
        """Why requests were refused: the words of the provider."""

    def begin(self, chance: random.Random) -> None:
        """Forget earlier requests, and use new random numbers."""
        self.chance = chance
        self.sent.clear()
        self.refused.clear()

    @asynccontextmanager
    async def send(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        body: bytes | AsyncIterator[bytes],
        *,
        raw: bool = False,
    ) -> AsyncIterator[UpstreamReply]:
        """Judge a request, and answer it."""
        del raw
        if not isinstance(body, bytes):  # what only passes through comes in pieces
            body = b"".join([piece async for piece in body])
        request = Got(method, unquote(urlsplit(url).path), {}, headers, body)
        self.sent.append(request)
        yield self._reply(request)

    def _reply(self, request: Got) -> _Reply:
        if not request.dialect or request.method != "POST":
            return _Reply(200, "application/json", (b'{"object":"list","data":[]}',))
        if why := self._refused(request):
            self.refused.append(why)
            body = json.dumps(error(request.dialect, 400, why)).encode()
            return _Reply(400, "application/json", (body,))
        script = replace(self._script(request), input=request.tokens, id=str(len(self.sent)))
        if request.streams:
            events = write(script, request.dialect)
            if request.dialect == "openai-chat" and not _wants_usage(request.value):
                del events[-2]
            return _Reply(200, "text/event-stream", tuple(events))
        body = json.dumps(whole(script, request.dialect)).encode()
        return _Reply(200, "application/json", (body,))

    def _refused(self, request: Got) -> str:
        return refused(request.dialect, request.path, request.body)

    def _script(self, request: Got) -> Script:
        """Open a ref in the request, or answer."""
        has_tool = b'"expand_ref"' in request.body
        cited = REF.findall(request.body.decode()) if has_tool else []
        if not cited or len(self.sent) > 3 or self.chance.random() < 0.4:
            return says(text("Done", "."))
        options = {
            name: self.chance.choice(_VALUES)
            for name in self.chance.sample(_OPTIONS, self.chance.randrange(3))
        }
        ref = self.chance.choice(cited) if self.chance.random() < 0.9 else "ref:log:" + "0" * 16
        opening = call("expand_ref", {"ref_id": ref, **options}, f"call_{len(self.sent)}x")
        return says(text("Let me look."), opening)


class _Reply:
    """An answer that is there already, given piece by piece."""

    def __init__(self, status: int, kind: str, pieces: tuple[bytes, ...]) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {"content-type": kind}
        self._pieces = pieces

    async def chunks(self) -> AsyncGenerator[bytes]:
        for piece in self._pieces:
            yield piece


def _wants_usage(value: Mapping[str, Any]) -> bool:
    options = value.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))
