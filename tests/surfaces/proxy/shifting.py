"""A client that writes the same history in another shape with every request, and its model.

Providers take a text as a string or as a list with one text part, and cache marks move with every
request. The client draws both anew each time, as Claude Code and opencode do in turns. The model
opens refs beside the client's own tools, so that messages go out which the client never wrote.
Shared with the proxy are only bytes; how two messages are compared is written here by hand.
"""

from __future__ import annotations

import json
import random
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.fitting.test_citing import log
from tests.surfaces.proxy.gatekeeper import Got
from tests.surfaces.proxy.harness import KEYS
from tests.surfaces.proxy.spoken import REF, call, says, text
from tests.wire.responses.streams import Part, Script

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini", "converse", "cohere")
MODELS = {
    "openai-chat": "gpt-5",
    "openai-responses": "gpt-5",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
    "converse": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "cohere": "command-a-03-2025",
}
HEADERS = {"content-type": "application/json", **KEYS}
LIST_NAMES = {"openai-responses": "input", "gemini": "contents"}
TOOL = "read_log"
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
_IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
MARKS: dict[str, tuple[str, Any]] = {
    "anthropic": ("cache_control", {"type": "ephemeral"}),
    "openai-chat": ("cache_control", {"type": "ephemeral"}),
    "openai-responses": ("prompt_cache_breakpoint", {"mode": "explicit"}),
}
CACHE_POINT = {"cachePoint": {"type": "default"}}
MOST_MARKS = 4


# --- the model ---------------------------------------------------------------------------------


@dataclass
class MixingModel:
    """A model that opens refs alone, several times over, and beside the client's tools."""

    chance: random.Random
    hops: int = 0
    """Number of further openings before the client continues."""
    calls: int = 0

    def begin_turn(self) -> None:
        self.hops = self.chance.choice([0, 0, 1, 2])

    def __call__(self, got: Got) -> Script:
        refs = sorted({found[0] for found in REF.finditer(got.texts)})
        can_open = bool(refs) and "expand_ref" in got.tools
        parts: list[Part] = []
        if self.chance.random() < 0.7:
            parts.append(text(f"Step {self.calls}. ", "I look."))
        if can_open and self.hops:
            self.hops -= 1
            return says(*parts, *self._opened(refs))
        own = self._own()
        beside = self._opened(refs) if can_open and own and self.chance.random() < 0.6 else []
        made = [*own, *beside]
        self.chance.shuffle(made)
        if not (parts or made):
            parts.append(text("Done."))
        return says(*parts, *made)

    def _opened(self, refs: list[str]) -> list[Part]:
        lines = self.chance.choice(["1-3", "5-30", "1-90"])
        return [
            call("expand_ref", {"ref_id": self.chance.choice(refs), "lines": lines}, self._id())
            for _ in range(self.chance.choice([1, 1, 2]))
        ]

    def _own(self) -> list[Part]:
        return [
            call(TOOL, {"path": f"{self.calls}.log"}, self._id())
            for _ in range(self.chance.choice([0, 1, 1, 2]))
        ]

    def _id(self) -> str:
        self.calls += 1
        return f"call_{self.calls}"


# --- the client --------------------------------------------------------------------------------


@dataclass
class ShiftingClient:
    """Keeps a history in one shape, and sends it in random shapes."""

    dialect: str
    chance: random.Random
    name: str
    """Of the conversation: no two begin alike."""
    invents_ids: bool = False
    history: list[Any] = field(default_factory=list)
    asked: int = 0
    invented: int = 0

    def add_answer(self, value: Any) -> None:
        """Append the model's answer, and the client's next message."""
        said = answer_messages(value, self.dialect)
        self.history += said
        if self.dialect == "gemini" and self.invents_ids:
            self._invent_ids(said)
        results = [(call_id, self._result()) for call_id in calls_in(said, self.dialect)]
        self.chance.shuffle(results)
        added = result_messages(results, self.dialect)
        if self.dialect == "anthropic" and added:
            self._add_beside(added[0]["content"])
        self.history += added
        if not results or (self.dialect != "gemini" and self.chance.random() < 0.1):
            self.ask()

    def _invent_ids(self, said: list[Any]) -> None:
        """Give calls without an id one, as Pydantic AI and Gemini CLI do."""
        for message in said:
            for part in message["parts"]:
                if "functionCall" in part and "id" not in part["functionCall"]:
                    self.invented += 1
                    part["functionCall"]["id"] = f"own_{self.invented}"

    def _add_beside(self, blocks: list[Any]) -> None:
        """Add an image to a result and text after the results, as Claude Code does."""
        if self.chance.random() < 0.2:
            words = {"type": "text", "text": blocks[0]["content"]}
            blocks[0]["content"] = [words, deepcopy(_IMAGE)]
        if self.chance.random() < 0.3:
            blocks.append({"type": "text", "text": "Remember the rules."})

    def ask(self) -> None:
        self.asked += 1
        words = f"Question {self.asked} of {self.name}: what went wrong? "
        words += "More words. " * self.chance.choice([0, 5, 60])
        message = user_message(words.strip(), self.dialect)
        self.history.append(message)

    def _result(self) -> str:
        size = self.chance.choice([1, 5, 30, 60, 120])
        return log(size, self.chance.randrange(40))

    def body(self) -> bytes:
        """Return the next request, in random shapes."""
        messages = [self._shaped(deepcopy(message)) for message in self.history]
        self._mark(messages)
        frame = frame_in(self.dialect)
        value = {**frame, LIST_NAMES.get(self.dialect, "messages"): messages}
        separators = (",", ":") if self.chance.random() < 0.5 else (", ", ": ")
        is_ascii = self.chance.random() < 0.5
        return json.dumps(value, separators=separators, ensure_ascii=is_ascii).encode()

    def _shaped(self, message: Any) -> Any:
        if self.chance.random() < 0.5:
            return message
        shaped = as_lists(message, self.dialect)
        if self.chance.random() < 0.3:
            shaped = dict(reversed(shaped.items()))
        return shaped

    def _mark(self, messages: list[Any]) -> None:
        """Mark the ends of the last messages, and a few other places."""
        places = [*range(len(messages))[-2:], *range(len(messages))]
        left = self.chance.randrange(MOST_MARKS + 1)
        for number in dict.fromkeys(self.chance.sample(places, len(places))[:left]):
            mark_message(messages[number], self.dialect, self.chance)


def frame_in(dialect: str) -> dict[str, Any]:
    """Return the fields around the messages."""
    function = {"name": TOOL, "description": "Reads a log.", "parameters": _SCHEMA}
    model = MODELS[dialect]
    match dialect:
        case "openai-chat" | "cohere":
            return {"model": model, "tools": [{"type": "function", "function": function}]}
        case "openai-responses":
            tool = {"type": "function", "strict": False, **function}
            return {"model": model, "store": False, "tools": [tool]}
        case "anthropic":
            tool = {"name": TOOL, "description": "Reads a log.", "input_schema": _SCHEMA}
            return {"model": model, "max_tokens": 1000, "tools": [tool]}
        case "gemini":
            return {"tools": [{"functionDeclarations": [function]}]}
        case _:
            schema = {"json": _SCHEMA}
            spec = {"name": TOOL, "description": "Reads a log.", "inputSchema": schema}
            return {"toolConfig": {"tools": [{"toolSpec": spec}]}}


def user_message(words: str, dialect: str) -> Any:
    if dialect == "gemini":
        return {"role": "user", "parts": [{"text": words}]}
    if dialect == "converse":
        return {"role": "user", "content": [{"text": words}]}
    return {"role": "user", "content": words}


def answer_messages(value: Any, dialect: str) -> list[Any]:
    """Return the messages that a client adds to its history after an answer."""
    match dialect:
        case "openai-chat":
            return [choice["message"] for choice in value["choices"]]
        case "openai-responses":
            return [
                {k: v for k, v in item.items() if k not in ("id", "status")}
                for item in value["output"]
            ]
        case "anthropic":
            return [{"role": value["role"], "content": value["content"]}]
        case "gemini":
            return [candidate["content"] for candidate in value["candidates"]]
        case "converse":
            return [value["output"]["message"]]
        case _:
            return [value["message"]]


def calls_in(messages: list[Any], dialect: str) -> list[tuple[str, str]]:
    """Id and name of each call."""
    parts = [part for message in messages for part in _parts(message)]
    match dialect:
        case "openai-chat" | "cohere":
            calls = [c for message in messages for c in message.get("tool_calls") or ()]
            return [(c["id"], c["function"]["name"]) for c in calls]
        case "openai-responses":
            return [(i["call_id"], i["name"]) for i in messages if i.get("type") == "function_call"]
        case "anthropic":
            return [(p["id"], p["name"]) for p in parts if p["type"] == "tool_use"]
        case "gemini":
            calls = [part["functionCall"] for part in parts if "functionCall" in part]
            return [(c.get("id", ""), c["name"]) for c in calls]
        case _:
            calls = [part["toolUse"] for part in parts if "toolUse" in part]
            return [(c["toolUseId"], c["name"]) for c in calls]


def result_messages(results: list[tuple[tuple[str, str], str]], dialect: str) -> list[Any]:
    """The results of calls, as messages."""
    if not results:
        return []
    match dialect:
        case "openai-chat" | "cohere":
            return [
                {"role": "tool", "tool_call_id": name, "content": words}
                for (name, _), words in results
            ]
        case "openai-responses":
            return [
                {"type": "function_call_output", "call_id": name, "output": words}
                for (name, _), words in results
            ]
        case "anthropic":
            blocks = [
                {"type": "tool_result", "tool_use_id": name, "content": words}
                for (name, _), words in results
            ]
            return [{"role": "user", "content": blocks}]
        case "gemini":
            return [{"role": "user", "parts": [_gemini_result(*result) for result in results]}]
        case _:
            return [{"role": "user", "content": [_converse_result(*one) for one in results]}]


def _converse_result(call_name: tuple[str, str], words: str) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": call_name[0], "content": [{"text": words}]}}


def _gemini_result(call_name: tuple[str, str], words: str) -> dict[str, Any]:
    name, tool = call_name
    known = {"id": name} if name else {}
    return {"functionResponse": {**known, "name": tool, "response": {"output": words}}}


def _parts(message: Any) -> list[Any]:
    parts = message.get("content", message.get("parts"))
    return parts if isinstance(parts, list) else []


# --- shapes ------------------------------------------------------------------------------------


def as_lists(message: Any, dialect: str) -> Any:
    """The same message with lists of one text part in the place of strings, or the reverse."""
    kind = "text"
    if dialect == "openai-responses":
        kind = "output_text" if message.get("role") == "assistant" else "input_text"
        if message.get("role"):
            message["type"] = "message"
        if "output" in message:
            message["output"] = _other_shape(message["output"], kind)
    if dialect == "gemini" and len(message["parts"]) == 1:
        return {**message, "parts": message["parts"][0]}
    if dialect in ("gemini", "converse") or message.get("content") is None:
        return message
    for part in _parts(message):
        if part.get("type") == "tool_result":
            part["content"] = _other_shape(part["content"], kind)
    return {**message, "content": _other_shape(message["content"], kind)}


def _other_shape(content: Any, kind: str) -> Any:
    if isinstance(content, str) and content:
        return [{"type": kind, "text": content}]
    if isinstance(content, list) and len(content) == 1 and content[0].get("type") == kind:
        return content[0]["text"]
    return content


def mark_message(message: Any, dialect: str, chance: random.Random) -> None:
    """Set a cache mark on a message, mostly on its last part; a string becomes a list for that."""
    if dialect == "converse":
        message["content"].append(CACHE_POINT)
    if dialect not in MARKS:
        return
    if isinstance(message.get("content"), str) and message["content"]:
        message |= as_lists(message, dialect)
    name, mark = MARKS[dialect]
    parts = [part for part in _parts(message) if part.get("type") not in ("thinking", None)]
    if dialect != "anthropic":
        parts = [part for part in parts if part.get("type") in ("text", "input_text")]
    if parts:
        part = parts[-1] if chance.random() < 0.8 else chance.choice(parts)
        part[name] = mark


# --- what is the same --------------------------------------------------------------------------


def messages_of(body: bytes, dialect: str) -> list[Any]:
    messages: list[Any] = json.loads(body)[LIST_NAMES.get(dialect, "messages")]
    return messages


def bare(value: Any) -> Any:
    """A message in one shape: no cache marks, and every text as a string."""
    if isinstance(value, list):
        parts = [bare(part) for part in value if part != CACHE_POINT]
        if len(parts) == 1 and isinstance(parts[0], dict) and _is_text(parts[0]):
            return parts[0]["text"]
        return parts
    if not isinstance(value, dict):
        return value
    inner = {k: bare(v) for k, v in value.items() if k not in _UNSAID and v is not None}
    if inner.get("type") == "message":
        del inner["type"]
    if isinstance(inner.get("parts"), dict):
        inner["parts"] = bare([inner["parts"]])
    return inner


_UNSAID = ("cache_control", "prompt_cache_breakpoint", "annotations", "logprobs")


def _is_text(part: dict[str, Any]) -> bool:
    return set(part) <= {"type", "text"} and isinstance(part.get("text"), str)


def marks_in(value: Any) -> int:
    """Return the number of cache marks in a body."""
    if isinstance(value, list):
        return sum(map(marks_in, value))
    if not isinstance(value, dict):
        return 0
    own = sum(name in value for name in ("cache_control", "prompt_cache_breakpoint", "cachePoint"))
    return own + sum(map(marks_in, value.values()))
