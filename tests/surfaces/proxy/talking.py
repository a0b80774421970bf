"""The providers' official clients with one interface, so that one story runs with all of them.

Each keeps its history as its own documentation shows, with the client's own response objects.
"""

from __future__ import annotations

import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from tests.surfaces.proxy.gatekeeper import KEY

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # only our own warnings are errors
    import anthropic
    import openai
    from google import genai
    from google.genai import types as gemini_types

__all__ = [
    "CLIENTS",
    "TOOL",
    "Chat",
    "Gemini",
    "Heard",
    "Messages",
    "Responses",
    "Talk",
    "anthropic",
    "close_clients",
    "gemini_types",
    "genai",
    "openai",
]

Tools = Sequence[dict[str, Any]]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOL: dict[str, Any] = {
    "name": "read_log",
    "description": "Reads a log file.",
    "parameters": SCHEMA,
}


@dataclass(frozen=True)
class Heard:
    """A client's result for a response."""

    text: str
    calls: list[tuple[str, str, dict[str, Any]]]
    """Id, name and arguments of each tool call."""
    usage: tuple[int, int]
    """Input and output tokens."""


class Talk(Protocol):
    """A conversation through an official client."""

    def ask(self, words: str) -> Heard:
        """Say something as the user."""

    def give(self, call: tuple[str, str, dict[str, Any]], result: str) -> Heard:
        """Give the result of a tool call."""


_CLIENTS: list[Any] = []
_C = TypeVar("_C")


def _closed_later(client: _C) -> _C:
    _CLIENTS.append(client)
    return client


def close_clients() -> None:
    """Close the vendors' clients, which leave sockets to the garbage collector.

    Its complaint, an error like every warning, would fail whichever test runs then.
    """
    while _CLIENTS:
        _CLIENTS.pop().close()


class _OpenAI(ABC):
    """Both APIs of openai."""

    def __init__(
        self, url: str, *, stream: bool, tool: dict[str, Any] = TOOL, more: Tools = ()
    ) -> None:
        self.tools = (tool, *more)
        self.client = _closed_later(openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0))
        self.stream = stream
        self.history: list[Any] = []

    def ask(self, words: str) -> Heard:
        return self._go({"role": "user", "content": words})

    def give(self, call: tuple[str, str, dict[str, Any]], result: str) -> Heard:
        return self._go(self.result(call, result))

    @staticmethod
    @abstractmethod
    def result(call: tuple[str, str, dict[str, Any]], result: str) -> Any:
        """Return the item with the result of a call."""

    @abstractmethod
    def _go(self, item: Any) -> Heard:
        """Add an item to the history, and send it."""


class Chat(_OpenAI):
    """openai, Chat Completions."""

    @staticmethod
    def result(call: tuple[str, str, dict[str, Any]], result: str) -> Any:
        return {"role": "tool", "tool_call_id": call[0], "content": result}

    def _go(self, item: Any) -> Heard:
        self.history.append(item)
        tools = [{"type": "function", "function": tool} for tool in self.tools]
        how: Any = {"model": "gpt-5", "messages": self.history, "tools": tools}
        if self.stream:
            options: Any = {"include_usage": True}
            with self.client.chat.completions.stream(**how, stream_options=options) as events:
                for _ in events:
                    pass
                made: Any = events.get_final_completion()
        else:
            made = self.client.chat.completions.create(**how)
        said = made.choices[0].message
        self.history.append(said.model_dump(exclude_none=True, exclude={"parsed"}))
        for call in self.history[-1].get("tool_calls", ()):
            call["function"].pop("parsed_arguments", None)
            call.pop("index", None)
        calls = [
            (call.id, call.function.name, json.loads(call.function.arguments))
            for call in said.tool_calls or ()
        ]
        return Heard(
            said.content or "", calls, (made.usage.prompt_tokens, made.usage.completion_tokens)
        )


class Responses(_OpenAI):
    """openai, Responses."""

    @staticmethod
    def result(call: tuple[str, str, dict[str, Any]], result: str) -> Any:
        return {"type": "function_call_output", "call_id": call[0], "output": result}

    def _go(self, item: Any) -> Heard:
        self.history.append(item)
        tools: Any = [{"type": "function", "strict": False, **tool} for tool in self.tools]
        how: Any = {"model": "gpt-5", "input": self.history, "tools": tools, "store": False}
        if self.stream:
            with self.client.responses.stream(**how) as events:
                for _ in events:
                    pass
                made: Any = events.get_final_response()
        else:
            made = self.client.responses.create(**how)
        for output in made.output:
            kept = output.model_dump(exclude_none=True, exclude={"parsed_arguments", "status"})
            for part in kept.get("content", ()):
                part.pop("parsed", None)
            self.history.append(kept)
        calls = [
            (item.call_id, item.name, json.loads(item.arguments))
            for item in made.output
            if item.type == "function_call"
        ]
        return Heard(made.output_text, calls, (made.usage.input_tokens, made.usage.output_tokens))


class Messages:
    """anthropic."""

    def __init__(self, url: str, *, stream: bool, more: Tools = ()) -> None:
        self.tools = (TOOL, *more)
        self.model = "claude-sonnet-4-5"
        self.client = _closed_later(anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0))
        self.stream = stream
        self.history: list[Any] = []

    def ask(self, words: str) -> Heard:
        return self._go([{"type": "text", "text": words}])

    def give(self, call: tuple[str, str, dict[str, Any]], result: str) -> Heard:
        return self.give_parts([self.result(call, result)])

    @staticmethod
    def result(call: tuple[str, str, dict[str, Any]], result: str) -> Any:
        return {"type": "tool_result", "tool_use_id": call[0], "content": result}

    def give_parts(self, parts: list[Any]) -> Heard:
        return self._go(parts)

    def _go(self, content: Any) -> Heard:
        self.history.append({"role": "user", "content": content})
        how: Any = {"model": self.model, "max_tokens": 1000, "messages": self.history}
        how["tools"] = [
            {
                "name": tool["name"],
                "description": tool["description"],
                "input_schema": tool["parameters"],
            }
            for tool in self.tools
        ]
        if self.stream:
            with self.client.messages.stream(**how) as events:
                for _ in events:
                    pass
                made: Any = events.get_final_message()
        else:
            made = self.client.messages.create(**how)
        self.history.append(
            {
                "role": "assistant",
                "content": [block.model_dump(exclude_none=True) for block in made.content],
            }
        )
        for block in self.history[-1]["content"]:
            block.pop("parsed_output", None)
        calls = [(b.id, b.name, b.input) for b in made.content if b.type == "tool_use"]
        said = "".join(block.text for block in made.content if block.type == "text")
        return Heard(said, calls, (made.usage.input_tokens, made.usage.output_tokens))


class Gemini:
    """google-genai."""

    def __init__(self, url: str, *, stream: bool, more: Tools = ()) -> None:
        self.tools = (TOOL, *more)
        options = gemini_types.HttpOptions(base_url=url)
        self.client = _closed_later(genai.Client(api_key=KEY, http_options=options))
        self.stream = stream
        self.history: list[Any] = []

    def ask(self, words: str) -> Heard:
        return self._go(gemini_types.Part(text=words))

    def give(self, call: tuple[str, str, dict[str, Any]], result: str) -> Heard:
        return self.give_parts(self.result(call, result))

    @staticmethod
    def result(call: tuple[str, str, dict[str, Any]], result: str) -> Any:
        response = gemini_types.FunctionResponse(
            id=call[0], name=call[1], response={"result": result}
        )
        return gemini_types.Part(function_response=response)

    def give_parts(self, *parts: Any) -> Heard:
        return self._go(*parts)

    def _go(self, *given: Any) -> Heard:
        self.history.append(gemini_types.Content(role="user", parts=list(given)))
        declared: Any = [
            {
                "name": tool["name"],
                "description": tool["description"],
                "parameters_json_schema": tool["parameters"],
            }
            for tool in self.tools
        ]
        tools: Any = [gemini_types.Tool(function_declarations=declared)]
        off = gemini_types.AutomaticFunctionCallingConfig(disable=True)
        config = gemini_types.GenerateContentConfig(tools=tools, automatic_function_calling=off)
        how: Any = {"model": "gemini-2.5-flash", "contents": self.history, "config": config}
        if self.stream:
            chunks = list(self.client.models.generate_content_stream(**how))
        else:
            chunks = [self.client.models.generate_content(**how)]
        parts: list[Any] = []
        for chunk in chunks:
            for candidate in chunk.candidates or ():
                parts += (candidate.content and candidate.content.parts) or ()
        self.history.append(gemini_types.Content(role="model", parts=parts))
        calls = [(p.function_call.id, p.function_call.name, p.function_call.args)
                 for p in parts if p.function_call]  # fmt: skip
        used: Any = chunks[-1].usage_metadata
        said = "".join(part.text for part in parts if part.text)
        return Heard(said, calls, (used.prompt_token_count, used.candidates_token_count))


CLIENTS: dict[str, Any] = {
    "openai-chat": Chat,
    "openai-responses": Responses,
    "anthropic": Messages,
    "gemini": Gemini,
}
