"""How a request reaches a model: over the network in its own dialect, offline, or as a prompt.

transports: after requests. Like `upstream.network`, a transport takes a body and returns a
reply, so its reader does not depend on the kind of transport.

    offline                        our own: it quotes
    openai:…, anthropic:…, google:…  the provider, or the address that the settings or `url` name
    [cli]claude:haiku              the program of that name; it is given the conversation as text
    anything else                  Pydantic AI, if it is installed; likewise
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from holdfast.errors import ModelRefusedError, SettingsError
from holdfast.models.opening import EXTRACTIVE, is_here, open_model
from holdfast.models.protocol import CompletionModel
from holdfast.settings import Settings
from holdfast.tokens import count
from holdfast.tokens.provider_ids import ProviderId
from holdfast.upstream.offline import OfflineModel, random_id
from holdfast.upstream.upstreams import DIALECT_OF, OFFICIAL, Family, Upstream, configured
from holdfast.wire import Text, ToolCall, ToolResult, read
from holdfast.wire.responses import OfflineResponse, compose_response, stream_response

if TYPE_CHECKING:
    from holdfast.upstream.network import HttpSending, UpstreamReply

OFFLINE = "offline"
_FAMILIES: dict[str, Family] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "gemini",
    "gemini": "gemini",
}
_MOST_PROMPT_OUTPUT = 4_096


class Plugin(Protocol):
    """The functions of a provider's plugin (001-73); each may be missing."""

    def estimate_token_usage(self, messages: Sequence[Mapping[str, Any]]) -> int:
        """Input tokens of these messages, in the provider's own way."""

    def parse_response(self, body: bytes) -> Mapping[str, Any]:
        """The usage that an answer reports, in any provider's form."""


class Transport(Protocol):
    """A way to a model."""

    dialect: str
    provider: str
    model: str
    counted_as: str
    """The model as counters and price lists know it."""
    billed: bool
    """Whether a provider bills the calls and reports usage."""

    def send(self, body: bytes, *, stream: bool) -> AbstractAsyncContextManager[UpstreamReply]:
        """Send a request; the answer is read inside `async with`."""

    async def close(self) -> None:
        """Let go of connections."""


def open_transport(
    model: str, settings: Settings, *, url: str = "", key: str = "", dialect: str = ""
) -> Transport:
    """The way to the model that an id means.

    Raises:
        SettingsError: the id can mean no model, or the address is none.
        ModelRefusedError: `forbid_model_calls` is set, and the model is not of this machine.
    """
    if model.strip().lower() in (OFFLINE, EXTRACTIVE):
        return OfflineTransport(dialect or "openai-chat")
    id_ = ProviderId.parse(model)
    family = None if id_.is_program else _FAMILIES.get(id_.provider)
    named = configured(settings)
    if family is None and not id_.is_program and (url or (id_.is_local and "openai" in named)):
        family = "openai"
    if family is None:
        return PromptTransport(id_, open_model(model, settings))
    upstream = _upstream(family, named.get(family), url, key)
    if settings.forbid_model_calls and not is_here(upstream.url):
        raise ModelRefusedError(
            "models of others may not be asked", where=model, fix="Switch forbid_model_calls off."
        )
    return HttpTransport(
        id_, upstream, dialect or DIALECT_OF[family], settings.upstream_idle_seconds
    )


def _upstream(family: Family, named: Upstream | None, url: str, key: str) -> Upstream:
    base = (url or (named.url if named else OFFICIAL[family])).rstrip("/")
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise SettingsError(
            "the address of the model is no HTTP address",
            where="url",
            fix=f"Give one such as {OFFICIAL[family]}, without a user name.",
        )
    # The key of the settings is only sent to the address of the settings.
    own = named.key if named is not None and (not url or base == named.url) else ""
    return Upstream(family, base, key or own)


class HttpTransport:
    """A provider over the network, in its own dialect."""

    billed = True

    def __init__(
        self, id_: ProviderId, upstream: Upstream, dialect: str, idle_seconds: float
    ) -> None:
        self.provider, self.model, self.dialect = id_.provider, id_.model, dialect
        self.counted_as = id_.id
        self._upstream = upstream
        self._idle_seconds = idle_seconds
        self._sending: HttpSending | None = None

    @property
    def caps_completion(self) -> bool:
        """Whether an answer's length is limited in the words of OpenAI's newer models."""
        return (urlsplit(self._upstream.url).hostname or "").endswith("openai.com")

    @asynccontextmanager
    async def send(self, body: bytes, *, stream: bool) -> AsyncIterator[UpstreamReply]:
        """Send a request, once."""
        if self._sending is None:
            from holdfast.upstream.network import HttpSending  # noqa: PLC0415 - takes 200 ms

            self._sending = await HttpSending(idle_seconds=self._idle_seconds).__aenter__()
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if self._upstream.family == "anthropic":
            headers["anthropic-version"] = "2023-06-01"
        address = self._address(stream=stream)
        headers |= self._upstream.key_header
        async with self._sending.send(address, "POST", headers, body) as reply:
            yield reply

    def _address(self, *, stream: bool) -> str:
        base = self._upstream.url
        last = base.rpartition("/")[2]
        is_versioned = bool(urlsplit(base).path) and last[:1] == "v" and last[1:2].isdigit()
        if self.dialect == "gemini":
            verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
            return f"{base}{'' if is_versioned else '/v1beta'}/models/{self.model}:{verb}"
        paths = {"anthropic": "messages", "openai-responses": "responses"}
        path = paths.get(self.dialect, "chat/completions")
        return f"{base}/{path}" if is_versioned else f"{base}/v1/{path}"

    async def close(self) -> None:
        """Close the connections."""
        if self._sending is not None:
            await self._sending.__aexit__(None, None, None)
            self._sending = None


class _Ready:
    """An answer that is there already, as a reply."""

    status = 200

    def __init__(self, pieces: Sequence[bytes], *, stream: bool) -> None:
        kind = "text/event-stream" if stream else "application/json"
        self.headers: Mapping[str, str] = {"content-type": kind}
        self._pieces = pieces

    async def chunks(self) -> AsyncGenerator[bytes]:
        for piece in self._pieces:
            yield piece


class OfflineTransport:
    """The offline model, in the dialect that it is asked in."""

    billed = False
    provider, model = "holdfast", OFFLINE
    counted_as = "openai:gpt-4o"
    """It counts by that model's vocabulary, and takes what that takes."""
    caps_completion = False

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self._model = OfflineModel()

    @asynccontextmanager
    async def send(self, body: bytes, *, stream: bool) -> AsyncIterator[UpstreamReply]:
        """Answer a request."""
        conversation = read(body, self.dialect)
        tokens = count(conversation, model=self.counted_as).tokens
        if stream:
            yield _Ready(self._model.stream(conversation, self.dialect, tokens), stream=True)
        else:
            yield _Ready((self._model.answer(conversation, self.dialect, tokens),), stream=False)

    async def close(self) -> None:
        """Do nothing: there is no connection."""


class PromptTransport:
    """A model that takes a prompt and gives a text: a program, or one that Pydantic AI reaches.

    It is given the conversation as text and calls no tools.
    """

    billed = True
    dialect = "openai-chat"
    caps_completion = False

    def __init__(self, id_: ProviderId, model: CompletionModel) -> None:
        self.provider, self.model = id_.provider, id_.model
        self.counted_as = id_.id
        self._model = model

    @asynccontextmanager
    async def send(self, body: bytes, *, stream: bool) -> AsyncIterator[UpstreamReply]:
        """Ask once."""
        system, prompt = prompt_of(body)
        most = read(body, self.dialect).rest.get("max_tokens")
        limit = most if isinstance(most, int) else _MOST_PROMPT_OUTPUT
        completion = await self._model.complete(prompt, system=system, max_tokens=limit)
        response = OfflineResponse(
            id=random_id(),
            model=completion.model or self.model,
            created=int(time.time()),
            pieces=(completion.text,),
            input_tokens=completion.input_tokens,
            output_tokens=completion.output_tokens,
            cut=completion.cut,
        )
        if stream:
            yield _Ready(tuple(stream_response(response, self.dialect)), stream=True)
        else:
            yield _Ready((compose_response(response, self.dialect),), stream=False)

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def prompt_of(body: bytes) -> tuple[str, str]:
    """Return a chat request as instructions and one prompt, with the role before each message."""
    system: list[str] = []
    lines: list[str] = []
    for message in read(body, PromptTransport.dialect).messages:
        texts = [block.text for block in message.blocks if isinstance(block, Text | ToolResult)]
        texts += [f"(calls {b.name})" for b in message.blocks if isinstance(b, ToolCall)]
        text = "\n".join(filter(None, texts))
        if message.role == "system":
            system.append(text)
        else:
            lines.append(f"{message.role}: {text}")
    return "\n\n".join(system), "\n\n".join(lines)
