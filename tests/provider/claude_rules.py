"""What Anthropic's Messages refuses, in its words: rules A1 to A16, written from the list.

As the API does, neighbours of one role are joined first (A9); places in the words are those of the
joined messages. What binds a thinking block to its conversation is in binding.py.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator
from typing import Any

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_BAD_NAME = "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d+)[-.](\d{1,2})(?!\d)|claude-[a-z]+-(\d+)(?!\d)")
_THOUGHTS = ("thinking", "redacted_thinking")
_WIDEST = 8_000
_PNG = b"\x89PNG\r\n\x1a\n"


def violations(value: dict[str, Any], model: str) -> Iterator[str]:
    messages = joined(value["messages"])
    if not messages:
        yield "messages: at least one message is required"
        return
    if len(value["messages"]) > 100_000:
        yield "messages: List should have at most 100000 items after validation"
    if messages[0]["role"] != "user":
        yield 'messages: first message must use the "user" role'
    for number, message in enumerate(messages):
        yield from _message(message, number, model, last=number == len(messages) - 1)
    yield from _exchanges(messages)
    yield from _end(messages[-1], model)
    yield from _thinking(value, messages)
    yield from _cache(value, messages)
    yield from _tools(value)


def version(model: str) -> tuple[int, int]:
    """The generation in a model's name: (4, 6) of `claude-opus-4-6`."""
    found = _VERSION.search(model)
    if not found:
        return (0, 0)
    return (int(found[1]), int(found[2])) if found[1] else (int(found[3]), 0)


def joined(messages: list[Any]) -> list[dict[str, Any]]:
    """Messages as the API reads them: neighbours of one role are one, a string is one block."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        if turns and turns[-1]["role"] == message.get("role"):
            turns[-1]["content"] = [*turns[-1]["content"], *blocks]
        else:
            turns.append({"role": message.get("role"), "content": list(blocks)})
    return turns


def _message(message: dict[str, Any], number: int, model: str, *, last: bool) -> Iterator[str]:
    role, content = message["role"], message["content"]
    if role not in ("user", "assistant") and not (role == "system" and version(model) >= (4, 8)):
        yield f"messages.{number}.role: Input should be 'user' or 'assistant'"
    if not content and not (last and role == "assistant"):
        yield (
            f"messages.{number}: all messages must have non-empty content except for the "
            "optional final assistant message"
        )
    for place, block in enumerate(content):
        yield from _block(block, f"messages.{number}.content.{place}")


def _block(block: dict[str, Any], path: str) -> Iterator[str]:
    match block.get("type"):
        case None:
            yield f"{path}.type: Field required"
        case "text" if not block.get("text"):
            yield "messages: text content blocks must be non-empty"
        case "text" if not str(block["text"]).strip():
            yield "messages: text content blocks must contain non-whitespace text"
        case "tool_use":
            if not _ID.fullmatch(str(block.get("id"))):
                yield f"{path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
            if not _NAME.fullmatch(str(block.get("name"))):
                yield f"{path}.tool_use.name: {_BAD_NAME}"
            if not isinstance(block.get("input"), dict):
                yield f"{path}.tool_use.input: Input should be a valid dictionary"
        case "tool_result":
            yield from _result(block, path)
        case "thinking" if not block.get("thinking") and not block.get("signature"):
            yield f"{path}.thinking: each thinking block must contain thinking"


def _result(block: dict[str, Any], path: str) -> Iterator[str]:
    content = block.get("content")
    if block.get("is_error") and not (content.strip() if isinstance(content, str) else content):
        yield f"{path}: content cannot be empty if `is_error` is true"
    for inner in content if isinstance(content, list) else ():
        if inner.get("type") == "text" and not inner.get("text"):
            yield "messages: text content blocks must be non-empty"


def _exchanges(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Yield violations of A1 to A5 and A13: calls and results, message by message."""
    every: set[str] = set()
    for number, message in enumerate(messages):
        content = message["content"]
        calls = [block.get("id") for block in content if block.get("type") == "tool_use"]
        for name in calls:
            if name in every:
                yield f"messages.{number}: `tool_use` ids must be unique"
            every.add(name)
        if message["role"] == "assistant":
            yield from _call_order(content, number)
            yield from _server_tools(content, number)
        follower = messages[number + 1]["content"] if number + 1 < len(messages) else []
        unanswered = [name for name in calls if name not in _leading_results(follower)]
        if unanswered:
            yield (
                f"messages.{number}: `tool_use` ids were found without `tool_result` blocks "
                f"immediately after: {', '.join(map(str, unanswered))}. Each `tool_use` block "
                "must have a corresponding `tool_result` block in the next message."
            )
        before = messages[number - 1]["content"] if number else []
        yield from _results(content, before, number)


def _leading_results(content: list[dict[str, Any]]) -> set[Any]:
    """Return the results that count as answers: those before all other blocks (A3)."""
    answered = set()
    for block in content:
        if block.get("type") != "tool_result":
            break
        answered.add(block.get("tool_use_id"))
    return answered


def _results(
    content: list[dict[str, Any]], before: list[dict[str, Any]], number: int
) -> Iterator[str]:
    called = {block.get("id") for block in before if block.get("type") == "tool_use"}
    answered: set[Any] = set()
    for place, block in enumerate(content):
        if block.get("type") != "tool_result":
            continue
        name = block.get("tool_use_id")
        if name not in called:
            yield (
                f"messages.{number}.content.{place}: unexpected `tool_use_id` found in "
                f"`tool_result` blocks: {name}. Each `tool_result` block must have a "
                "corresponding `tool_use` block in the previous message."
            )
        if name in answered:
            yield (
                "each tool_use must have a single result. Found multiple `tool_result` blocks "
                f"with id: {name}"
            )
        answered.add(name)


def _call_order(content: list[dict[str, Any]], number: int) -> Iterator[str]:
    called = False
    for place, block in enumerate(content):
        called = called or block.get("type") == "tool_use"
        if called and block.get("type") == "text":
            yield (
                f"messages.{number}.content.{place}: `text` blocks cannot follow `tool_use` blocks "
                "in an assistant message"
            )


def _server_tools(content: list[dict[str, Any]], number: int) -> Iterator[str]:
    results = {
        block.get("tool_use_id")
        for block in content
        if str(block.get("type")).endswith("_tool_result")
    }
    for block in content:
        if block.get("type") == "server_tool_use" and block.get("id") not in results:
            name = block.get("name")
            yield (
                f"messages.{number}: `{name}` tool use with id `{block.get('id')}` was found "
                f"without a corresponding `{name}_tool_result` block"
            )


def _end(message: dict[str, Any], model: str) -> Iterator[str]:
    if message["role"] != "assistant":
        return
    if version(model) >= (4, 6):
        yield (
            "This model does not support assistant message prefill. The conversation must end "
            "with a user message."
        )
    elif message["content"] and str(message["content"][-1].get("text", "")).endswith(
        (" ", "\n", "\t")
    ):
        yield "messages: final assistant content cannot end with trailing whitespace"


def _thinking(value: dict[str, Any], messages: list[dict[str, Any]]) -> Iterator[str]:
    """A11 and A15; adaptive thinking asks for neither a budget nor a first block."""
    asked = value.get("thinking") or {}
    forced = (value.get("tool_choice") or {}).get("type") in ("any", "tool")
    if asked.get("type") in ("enabled", "adaptive") and forced:
        yield "Thinking may not be enabled when tool_choice forces tool use."
    if asked.get("type") != "enabled":
        return
    budget = asked.get("budget_tokens", 0)
    if budget < 1024:
        yield "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    if budget >= value["max_tokens"]:
        yield "`max_tokens` must be greater than `thinking.budget_tokens`."
    callers = [
        number
        for number, message in enumerate(messages)
        if any(block.get("type") == "tool_use" for block in message["content"])
    ]
    first = messages[callers[-1]]["content"][0].get("type") if callers else "thinking"
    if first not in _THOUGHTS and _is_current(messages, callers[-1]):
        yield (
            f"messages.{callers[-1]}.content.0.type: Expected `thinking` or `redacted_thinking`, "
            f"but found `{first}`. When `thinking` is enabled, a final `assistant` message must "
            "start with a thinking block (preceeding the lastmost set of `tool_use` and "
            "`tool_result` blocks)."
        )


def _is_current(messages: list[dict[str, Any]], number: int) -> bool:
    """Return whether only results follow this message: the model is still in its turn."""
    return all(
        block.get("type") == "tool_result"
        for message in messages[number + 1 :]
        for block in message["content"][:1]
    )


def _cache(value: dict[str, Any], messages: list[dict[str, Any]]) -> Iterator[str]:
    """A14, in the order in which the API reads: tools, system, messages."""
    system = value.get("system")
    marked: list[tuple[str, dict[str, Any]]] = [
        *((f"tools.{n}", tool) for n, tool in enumerate(value.get("tools") or ())),
        *((f"system.{n}", b) for n, b in enumerate(system if isinstance(system, list) else ())),
        *(
            (f"messages.{n}.content.{place}", block)
            for n, message in enumerate(messages)
            for place, block in enumerate(message["content"])
        ),
    ]
    marked = [(path, block) for path, block in marked if block.get("cache_control")]
    if len(marked) > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}."
    short = False
    for path, block in marked:
        lasting = block["cache_control"].get("ttl", "5m")
        if lasting == "1h" and short:
            yield (
                f"{path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a "
                "ttl='5m' cache_control block. Note that blocks are processed in the following "
                "order: `tools`, `system`, `messages`."
            )
        short = short or lasting == "5m"
        if block.get("type") in _THOUGHTS:
            yield f"{path}.thinking.cache_control: Extra inputs are not permitted"
        if block.get("type") == "text" and not block.get("text"):
            yield f"{path}.text: cache_control cannot be set for empty text blocks"


def _tools(value: dict[str, Any]) -> Iterator[str]:
    names = [tool.get("name") for tool in value.get("tools") or ()]
    for number, name in enumerate(names):
        if not _NAME.fullmatch(str(name)):
            yield f"tools.{number}.custom.name: {_BAD_NAME}"
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."
    images = list(_images(value["messages"]))
    if len(images) > 100:
        yield f"messages: Too many images: {len(images)} > 100"
    for image in images:
        if max(_size(image)) > _WIDEST:
            yield (
                "image.source.base64.data: At least one of the image dimensions exceed max allowed "
                "size: 8000 pixels"
            )


def _images(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for inner in value:
            yield from _images(inner)
    elif isinstance(value, dict):
        if value.get("type") == "image":
            yield value
        else:
            yield from _images(value.get("content"))


def _size(image: dict[str, Any]) -> tuple[int, int]:
    """Width and height of a PNG; other images are not measured."""
    start = str(image.get("source", {}).get("data", ""))[:64]
    try:
        data = base64.b64decode(start)
    except ValueError:
        return (0, 0)
    if not data.startswith(_PNG) or len(data) < 24:
        return (0, 0)
    width, height = struct.unpack(">II", data[16:24])
    return width, height
