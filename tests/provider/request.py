"""A request as it reached the provider of the tests, read without the package under test."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.provider.held_tools import shown
from tests.provider.tokens import billed_tokens, functions, least_tokens, words
from tests.provider.tool_changes import added

_GEMINI = re.compile(r"/v1(?:beta)?/models/([^/:]+):(\w+)")
_CONVERSE = re.compile(r"/model/(.+)/(converse|converse-stream)")
_PATHS = {
    "/v1/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
    "/v1/messages": "anthropic",
    "/v2/chat": "cohere",
}
_AZURES = re.compile(r"^/openai/deployments/[^/]+/|^/(openai|api)/v1/")


@dataclass(frozen=True)
class Got:
    """A request as it reached the upstream."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    raw_path: str = ""
    """As on the wire; `path` is unescaped."""

    @property
    def dialect(self) -> str:
        """Empty if the path asks for no answer of a model."""
        address = _GEMINI.fullmatch(self.path)
        if address and address[2].endswith("enerateContent"):
            return "gemini"
        if _CONVERSE.fullmatch(self.path):
            return "converse"
        return _PATHS.get(_AZURES.sub("/v1/", self.path), "")

    @cached_property
    def value(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body)
        return value

    @property
    def model(self) -> str:
        address = _GEMINI.fullmatch(self.path) or _CONVERSE.fullmatch(self.path)
        return address[1] if address else str(self.value.get("model", ""))

    @property
    def streams(self) -> bool:
        named = "streamGenerateContent" in self.path or self.path.endswith("/converse-stream")
        return named or self.value.get("stream") is True

    @cached_property
    def tokens(self) -> int:
        """Return the tokens that the provider reports."""
        return billed_tokens(self.value, self.dialect, self.model)

    @cached_property
    def least(self) -> int:
        """Return a lower bound of the prompt's tokens."""
        return least_tokens(self.value, self.dialect, self.model)

    @property
    def tools(self) -> set[str]:
        """Return the tools that the model sees: a hidden one appears with a message that refers to
        it.
        """
        every = (*functions({**self.value, "tools": list(shown(self.value))}), *added(self.value))
        return {str(function.get("name")) for function in every}

    @property
    def texts(self) -> str:
        """All that the model reads in messages and results, for looking things up."""
        return "\n".join(_texts(self.value, self.dialect))

    def header(self, name: str) -> str:
        """A header of any spelling; empty if it is not there."""
        return next((v for n, v in self.headers.items() if n.lower() == name), "")


def _texts(value: dict[str, Any], dialect: str) -> Iterator[str]:
    match dialect:
        case "converse" | "cohere":
            yield from words(value["messages"])
        case "anthropic" | "openai-chat":
            for message in value["messages"]:
                yield from _content(message.get("content"))
        case "openai-responses":
            items = value["input"]
            for item in [{"content": items}] if isinstance(items, str) else items:
                yield from _content(item.get("content", item.get("output")))
        case _:
            for content in value["contents"]:
                parts = content["parts"]
                for part in [parts] if isinstance(parts, dict) else parts:
                    kept = {k: v for k, v in part.items() if k != "functionCall"}
                    yield from words(kept)


def _content(content: Any) -> Iterator[str]:
    """Yield texts and results of a message; calls are the model's output, not its input."""
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "tool_result":
            yield from _content(block.get("content"))
        elif isinstance(block.get("text"), str):
            yield block["text"]
