"""One account at a provider that several tenants share: bills every call and owns every object.

account: beside provider. It reads paths and bodies as leniently as any server might: slashes
merged, escapes read twice, letters in any case, the first and the last of two equal keys. It knows
whose a request is from the number that the test wrote into its headers, and from nothing else.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import posixpath
import random
import re
import zlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from holdfast.upstream.network import HttpSending, UpstreamReply

NUMBER = "x-try"
"""The header with the number of a request: the proxy forwards unknown headers."""
_OBJECTS = re.compile(
    r"/(files|uploads|vector_stores|conversations|containers|batches|messages/batches"
    r"|cachedcontents|responses|chat/completions|assistants|threads)(?:/([^/]+))?(?:/.*)?$"
)
_BILLED = re.compile(
    r"(?:/(?:chat/completions|completions|responses|messages|embeddings|embed|v1/complete|invoke|chat"
    r"|converse|generations|batches|rerank)"
    r"|:(?:generatecontent|streamgeneratecontent|embedcontent|batchembedcontents|predict))$"
)
_PREFIX = {"responses": "resp_", "files": "file-", "conversations": "conv_", "containers": "cntr_",
           "vector_stores": "vs_", "uploads": "upload_", "batches": "batch_",
           "messages/batches": "msgbatch_", "cachedcontents": "cachedContents/"}  # fmt: skip
LONGEST = 400
"""Tokens of an answer whose request does not bound it."""


class Account(HttpSending):
    """Answers in the place of all upstreams, under one key."""

    def __init__(self) -> None:
        super().__init__(idle_seconds=10)
        self.chance = random.Random(0)
        self.tenant_of: dict[str, str] = {}
        """Tenants by the number of the request; the test's own bookkeeping."""
        self.billed: Counter[str] = Counter()
        self.largest: Counter[str] = Counter()
        """The largest call of each tenant."""
        self.owner: dict[str, str] = {}
        """Tenants by the objects that were made for them."""
        self.held: dict[str, int] = {}
        """Tokens of a history by the response that ends it."""
        self.breaches: list[str] = []
        self.calls = 0

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
        """Answer a request, bill it, and record objects of other tenants that it reached."""
        del raw
        if not isinstance(body, bytes):
            body = b"".join([piece async for piece in body])
        self.calls += 1
        names = {name.lower(): value for name, value in headers.items()}
        tenant = self.tenant_of.get(names.get(NUMBER, ""), "")
        if not tenant:
            self.breaches.append("a request that nobody made")
        method = names.get("x-http-method-override", method).upper()
        if "openai-project" in names:
            self.breaches.append(f"{tenant} chose the project")
        path = _lenient(url)
        is_form = names.get("content-type", "").startswith("multipart/")
        takes_form = path.endswith(("/files", "/parts", "s/edits", "s/variations", "scriptions"))
        value = None if is_form and takes_form else _body(body)
        reply = self._reply(method, path, tenant, value)
        await self._pause()  # a client that leaves now was billed
        yield reply

    async def _pause(self) -> None:
        for _ in range(self.chance.randrange(6)):
            await asyncio.sleep(0)

    def _reply(self, method: str, path: str, tenant: str, pairs: Any) -> UpstreamReply:
        last = _last(pairs)
        for name in {*_strings(pairs), *path.split("/"), "/".join(path.split("/")[-2:])}:
            known = self._known(name)
            if known and self.owner[known] != tenant:
                self.breaches.append(f"{tenant} reached {known} of {self.owner[known]} at {path}")
        match = _OBJECTS.search(path)
        if method in ("GET", "DELETE"):
            is_list = match is not None and not match[2]
            value = {"data": sorted(self.owner)} if is_list else {"object": path}
            return _whole(200, value)
        if _BILLED.search(path) and isinstance(last, dict):
            return self._answered(path, tenant, last)
        if match is not None and not match[2]:
            return _whole(200, self._made(match[1], tenant))
        return _whole(200, {"ok": True})

    def _known(self, name: str) -> str:
        lower = {known.lower(): known for known in self.owner}
        for candidate in (name, "/".join(name.split("/")[-2:])):
            if candidate.lower() in lower:
                return lower[candidate.lower()]
        return ""

    def _made(self, kind: str, tenant: str) -> dict[str, Any]:
        name = f"{_PREFIX.get(kind, 'obj_')}{len(self.owner):06}x"
        self.owner[name] = tenant
        return {"name": name} if kind == "cachedcontents" else {"id": name, "object": kind}

    def _answered(self, path: str, tenant: str, body: dict[str, Any]) -> UpstreamReply:
        held = self.held.get(str(body.get("previous_response_id")), 0)
        taken = 1 + json.dumps(body).count("word") + held
        output = 0 if "embed" in path or "rerank" in path else self._length(body)
        value: dict[str, Any] = {}
        if path.endswith("/responses"):
            value = self._made("responses", tenant)
            self.held[value["id"]] = taken + output
        if path.endswith("batches"):
            value = self._made("messages/batches", tenant)
        streams = body.get("stream") is True or ":stream" in path
        if streams:
            self._bill(tenant, taken)
            return _Stream(self, path, tenant, (taken, output), value, _wants_usage(body))
        self._bill(tenant, taken + output)
        return _whole(200, _answer(path, value, taken, output))

    def _length(self, body: dict[str, Any]) -> int:
        config = body.get("generationConfig") or body.get("inferenceConfig") or body
        bounds = [config.get(key) for key in (
            "max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens",
            "maxTokens",
        )]  # fmt: skip
        bound = next((bound for bound in bounds if isinstance(bound, int)), LONGEST)
        many = body.get("n")
        longest = min(bound, LONGEST) * (many if isinstance(many, int) else 1)
        return self.chance.randint(1, max(1, longest))

    def _bill(self, tenant: str, tokens: int, before: int = 0) -> None:
        self.billed[tenant] += tokens
        self.largest[tenant] = max(self.largest[tenant], before + tokens)


def _lenient(url: str) -> str:
    path = unquote(unquote(urlsplit(url).path)).replace("\\", "/").partition(";")[0]
    return posixpath.normpath(re.sub("/+", "/", path)).lower()


def _body(body: bytes) -> Any:
    """Parse a body of any type; objects become lists of pairs."""
    for unpack in (lambda data: data, gzip.decompress, zlib.decompress):
        try:
            return json.loads(unpack(body), object_pairs_hook=lambda pairs: [*pairs, None])
        except (ValueError, OSError, zlib.error, UnicodeDecodeError, EOFError):
            continue
    return None


def _last(value: Any) -> Any:
    """The value as most parsers read it: of equal keys, the last."""
    if isinstance(value, list):
        if value and value[-1] is None and all(isinstance(one, tuple) for one in value[:-1]):
            return {key: _last(inside) for key, inside in value[:-1]}
        return [_last(one) for one in value]
    return value


def _strings(value: Any, key: str = "") -> Iterator[str]:
    """Yield all strings except the text of messages."""
    if isinstance(value, str) and key not in ("content", "text", "metadata", "model"):
        yield value
    elif isinstance(value, list):
        for one in value:
            if isinstance(one, tuple):
                if one[0] != "metadata":
                    yield from _strings(one[1], one[0])
            else:
                yield from _strings(one, key if isinstance(one, str) else "")


def _wants_usage(body: Mapping[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def _usage(path: str, taken: int, output: int) -> dict[str, Any]:
    if ":" in path:
        return {"usageMetadata": {"promptTokenCount": taken, "candidatesTokenCount": output}}
    if path.endswith(("responses", "messages")):
        return {"usage": {"input_tokens": taken, "output_tokens": output}}
    return {"usage": {"prompt_tokens": taken, "completion_tokens": output}}


def _answer(path: str, value: dict[str, Any], taken: int, output: int) -> dict[str, Any]:
    usage = (
        {} if "embedcontent" in path or path.endswith("batches") else _usage(path, taken, output)
    )
    text = "word " * output
    if ":" in path:
        part = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}
        return {"candidates": [part], **usage}
    if path.endswith("responses"):
        said = {"type": "message", "id": f"msg_{value['id']}", "role": "assistant",
                "content": [{"type": "output_text", "text": text, "annotations": []}]}  # fmt: skip
        return {"object": "response", "status": "completed", "output": [said], **value, **usage}
    if path.endswith("/messages"):
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
                "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
                **usage}  # fmt: skip
    choice = {"index": 0, "message": {"role": "assistant", "content": text},
              "finish_reason": "stop"}  # fmt: skip
    return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], **value, **usage}


class _Piece:
    """An answer that is there already."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {"content-type": "application/json"}
        self._body = body

    async def chunks(self) -> AsyncGenerator[bytes]:
        middle = len(self._body) // 2
        for piece in (self._body[:middle], self._body[middle:]):
            await asyncio.sleep(0)
            yield piece


def _whole(status: int, value: Mapping[str, Any]) -> UpstreamReply:
    return _Piece(status, json.dumps(value).encode())


class _Stream:
    """A stream of OpenAI's chat; each event is billed when it is sent."""

    def __init__(
        self,
        account: Account,
        path: str,
        tenant: str,
        tokens: tuple[int, int],
        value: dict[str, Any],
        wants_usage: bool,
    ) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = {"content-type": "text/event-stream"}
        self._account = account
        self._path = path
        self._tenant = tenant
        self._tokens = tokens
        self._value = value
        self._wants_usage = wants_usage

    async def chunks(self) -> AsyncGenerator[bytes]:
        taken, output = self._tokens
        sent = 0
        while sent < output:
            await asyncio.sleep(0)
            now = min(8, output - sent)
            self._account._bill(self._tenant, now, taken + sent)
            sent += now
            yield _data(self._event("word " * now, sent == output))
        for event in self._end(taken, output):
            yield event

    def _event(self, text: str, is_last: bool) -> dict[str, Any]:
        if ":" in self._path:
            part: dict[str, Any] = {"content": {"role": "model", "parts": [{"text": text}]}}
            if is_last:
                return {"candidates": [part | {"finishReason": "STOP"}],
                        **_usage(self._path, *self._tokens)}  # fmt: skip
            return {"candidates": [part]}
        if self._path.endswith("responses"):
            return {"type": "response.output_text.delta", "item_id": "m", "output_index": 0,
                    "content_index": 0, "delta": text}  # fmt: skip
        if self._path.endswith("/messages"):
            return {"type": "content_block_delta", "index": 0,
                    "delta": {"type": "text_delta", "text": text}}  # fmt: skip
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
        return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}

    def _end(self, taken: int, output: int) -> Iterator[bytes]:
        usage = _usage(self._path, taken, output)
        if self._path.endswith("responses"):
            response = {"object": "response", "status": "completed", "output": [], **self._value}
            yield _data({"type": "response.completed", "response": response | usage})
        elif self._path.endswith("/messages"):
            yield _data({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, **usage})
            yield _data({"type": "message_stop"})
        elif ":" not in self._path:
            if self._wants_usage:
                yield _data({"id": "chatcmpl-1", "choices": [], **usage})
            yield b"data: [DONE]\n\n"


def _data(value: Mapping[str, Any]) -> bytes:
    name = value.get("type")
    head = f"event: {name}\n".encode() if isinstance(name, str) else b""
    return head + b"data: " + json.dumps(value).encode() + b"\n\n"
