"""What a provider refuses, and in which words: the rules that the test upstream enforces."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import holdfast

KEY = "key-of-the-test"
_GEMINI = re.compile(r"/v1(?:beta)?/models/([^/:]+):(\w+)")
_PATHS = {
    "/v1/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
    "/v1/messages": "anthropic",
}
_NEEDED = {
    "openai-chat": {"model", "messages"},
    "openai-responses": {"model", "input"},
    "anthropic": {"model", "max_tokens", "messages"},
    "gemini": {"contents"},
}


@dataclass(frozen=True)
class Got:
    """A request as it reached the upstream."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def dialect(self) -> str:
        """Empty if the path asks for no answer of a model."""
        if (found := _GEMINI.fullmatch(self.path)) and found[2].endswith("enerateContent"):
            return "gemini"
        return _PATHS.get(self.path, "")

    @property
    def value(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body)
        return value

    @property
    def model(self) -> str:
        found = _GEMINI.fullmatch(self.path)
        return found[1] if found else str(self.value.get("model", ""))

    @property
    def streams(self) -> bool:
        return "streamGenerateContent" in self.path or self.value.get("stream") is True

    @property
    def tokens(self) -> int:
        return holdfast.count(self.body, dialect=self.dialect, model=self.model).tokens

    @property
    def tools(self) -> set[str]:
        return {tool.name for tool in holdfast.read(self.body, self.dialect).tools}

    @property
    def texts(self) -> str:
        """All that the model reads in messages and results, for looking things up."""
        conversation = holdfast.read(self.body, self.dialect)
        return "\n".join(
            block.text
            for message in conversation.messages
            for block in message.blocks
            if isinstance(block, holdfast.Text | holdfast.ToolResult)
        )


def refusal(got: Got, window: int) -> tuple[int, str] | None:
    """Why a provider would not answer this request; None if it would."""
    if not _has_key(got):
        return 401, "the key is missing or wrong"
    if leaked := [name for name in got.headers if name.lower().startswith("x-holdfast")]:
        return 400, f"headers that are none of the provider's business: {leaked}"
    try:
        value = got.value
    except ValueError:
        return 400, "the body is not JSON"
    if missing := _NEEDED[got.dialect] - value.keys():
        return 400, f"missing: {', '.join(sorted(missing))}"
    if broken := holdfast.validate(got.body, got.dialect, got.model):
        return 400, "; ".join(f"{one.rule} at {one.path}: {one.message}" for one in broken[:5])
    if got.tokens > window:
        return 400, too_long(got, window)
    return None


def too_long(got: Got, window: int) -> str:
    """The provider's own words for a request that does not fit."""
    if got.dialect == "anthropic":
        return f"prompt is too long: {got.tokens} tokens > {window} maximum"
    if got.dialect == "gemini":
        return f"The input token count ({got.tokens}) exceeds the maximum allowed ({window})."
    return f"This model's maximum context length is {window} tokens, not {got.tokens}."


def error(dialect: str, status: int, message: str) -> dict[str, Any]:
    """An error as the provider writes it."""
    if dialect == "anthropic":
        known = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
        kind = known.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}
    if dialect == "gemini":
        named = {401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}
        kind = named.get(status, "INVALID_ARGUMENT")
        return {"error": {"code": status, "message": message, "status": kind}}
    code = "context_length_exceeded" if "context length" in message else None
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _has_key(got: Got) -> bool:
    headers = {name.lower(): value for name, value in got.headers.items()}
    bears = headers.get("authorization") == f"Bearer {KEY}"
    if got.dialect == "anthropic":  # its newer clients bear the key, older ones name it
        return (bears or headers.get("x-api-key") == KEY) and "anthropic-version" in headers
    if got.dialect == "gemini":
        return KEY in (headers.get("x-goog-api-key"), got.query.get("key"))
    return bears
