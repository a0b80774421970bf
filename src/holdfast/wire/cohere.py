"""Cohere v2 chat: OpenAI's messages with extensions (`tool_plan`, documents as results).

The older v1 format (`message` and `chat_history`) is parsed too, with `message` as the only
message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.wire import openai_chat
from holdfast.wire.blocks import Block, Role, Text, Thinking, Tool, ToolResult
from holdfast.wire.dialect import Entry
from holdfast.wire.json_places import Place
from holdfast.wire.values import inner, json_text, take

if TYPE_CHECKING:
    from holdfast.wire.message import Message

NAME = "cohere"
LISTS: tuple[Place, ...] = (("messages",), ("message",))
INLINE_SYSTEM = True


def check(message: Any, place: Place) -> Role:
    if isinstance(message, str) and place == LISTS[1]:
        return "user"
    return openai_chat.check(message, place)


def blocks(message: Any, owner: Message | None) -> tuple[Block, ...]:
    if isinstance(message, str):
        return (Text(text=message, owner=owner),)
    content_blocks = openai_chat.blocks(message, owner)
    if plan := take(message, "tool_plan"):
        return (Thinking(text=plan, place=("tool_plan",), owner=owner), *content_blocks)
    if message["role"] == "tool" and isinstance(message.get("content"), list):
        # Results may be a list of documents, whose data is the text.
        result = content_blocks[0]
        assert isinstance(result, ToolResult)
        texts = (
            take(part, "text") or json_text(inner(part, "document").get("data", ""))
            for part in message["content"]
            if isinstance(part, dict)
        )
        return (_with_text(result, "\n".join(texts)),)
    return content_blocks


def _with_text(result: ToolResult, text: str) -> ToolResult:
    return ToolResult(
        call_id=result.call_id,
        text=text,
        parts=result.parts,
        place=result.place,
        slot=result.slot,
        owner=result.owner,
    )


def system(body: Any) -> tuple[Block, ...]:
    text = body.get("preamble")  # v1
    if not isinstance(text, str):
        return ()
    return (Text(text=text, place=("preamble",), slot=("preamble",)),)


def tools(body: Any) -> tuple[Tool, ...]:
    return openai_chat.tools(body)


def content(block: Block, text: str) -> Any:
    return text if isinstance(block, ToolResult) else openai_chat.content(block, text)


def compose(entries: Sequence[Entry]) -> list[Any]:
    return openai_chat.compose(entries)


_PLAIN = ("model", "temperature", "max_tokens", "stream")


def params(body: Any) -> dict[str, Any]:
    common_params = {name: body[name] for name in _PLAIN if name in body}
    renamed = {"p": "top_p", "stop_sequences": "stop"}
    common_params |= {common: body[native] for native, common in renamed.items() if native in body}
    if isinstance(body.get("tool_choice"), str):
        common_params["tool_choice"] = body["tool_choice"].lower()
    return common_params


def envelope(system: str, tools: Sequence[Tool], params: dict[str, Any]) -> dict[str, Any]:
    body = {name: params.pop(name) for name in _PLAIN if name in params}
    if "top_p" in params:
        body["p"] = params.pop("top_p")
    if "stop" in params:
        stop = params.pop("stop")
        body["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if tools:
        body |= openai_chat.envelope("", tools, {})
        choice = params.get("tool_choice")
        if choice in ("required", "none"):
            body["tool_choice"] = params.pop("tool_choice").upper()
        elif choice == "auto":  # Cohere has no value for auto: it is the default
            params.pop("tool_choice")
    return body
