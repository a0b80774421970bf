"""Convert a program's messages and tools into a request in a model's dialect, and answers back.

requests: before all other files of the client. Messages may be in any dialect, all in the same one.
Their member `holdfast` is for us, and never sent: `{"anchor": true}` keeps a message through every
fold, `tokens` is its counted size (001-75).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.expand.tool import write as write_tool
from holdfast.guard.estimate import conversation_of, request_with_tools
from holdfast.trim.anchors import DEFAULT_ANCHORS, AnchorDefinition
from holdfast.trim.provenance import own_of
from holdfast.wire import (
    DIALECTS,
    Conversation,
    Entry,
    Message,
    Text,
    ToolCall,
    ToolResult,
    convert,
    read,
)
from holdfast.wire.strict import decode, encode

EXTENSION = "holdfast"
"""The key of a message with our marks and counts."""
_OUTPUT = {
    "openai-chat": ("max_tokens",),
    "openai-responses": ("max_output_tokens",),
    "anthropic": ("max_tokens",),
    "gemini": ("generationConfig", "maxOutputTokens"),
}


class ParsedRequest(msgspec.Struct, frozen=True):
    """A parsed request before fitting."""

    conversation: Conversation
    dialect: str
    """That of the caller's messages: an answer is given back in it."""
    marked: frozenset[int]
    """Hashes of the blocks in messages that the caller wants kept."""


def build(  # noqa: PLR0913 - all that a request is made of
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    *,
    to: str,
    model: str,
    system: str,
    output: int,
    more: Mapping[str, Any],
    caps_completion: bool = False,
) -> ParsedRequest:
    """Return a request in the dialect `to`; `more` are fields in that dialect."""
    bare = [{key: value for key, value in m.items() if key != EXTENSION} for m in messages]
    conversation = conversation_of(bare)
    dialect = conversation.dialect
    body = dict(decode(conversation.source)) if conversation.source else {"messages": bare}
    if system:
        _put_system(body, dialect, system)
    if tools:
        body["tools"] = _tools_in(dialect, tools)
    if dialect != to:
        body = decode(convert(body, to, dialect).body)
    _put(body, _output_field(to, caps_completion=caps_completion), output)
    if to != "gemini":
        body["model"] = model
    marked = frozenset(
        print_
        for message, value in zip(conversation.messages, messages, strict=False)
        if isinstance(value.get(EXTENSION), Mapping) and value[EXTENSION].get("anchor")
        for print_ in _prints(message)
    )
    return ParsedRequest(read(encode({**body, **more}), to), dialect, marked)


def _output_field(dialect: str, *, caps_completion: bool) -> tuple[str, ...]:
    if dialect == "openai-chat" and caps_completion:  # OpenAI's newer models know no other
        return ("max_completion_tokens",)
    return _OUTPUT[dialect]


def _put(body: dict[str, Any], place: tuple[str, ...], value: int) -> None:
    for key in place[:-1]:
        body = body.setdefault(key, {})
    body.setdefault(place[-1], value)


def _put_system(body: dict[str, Any], dialect: str, system: str) -> None:
    match dialect:
        case "gemini":
            body["systemInstruction"] = {"parts": [{"text": system}]}
        case "openai-responses":
            body["instructions"] = system
        case "anthropic":
            body["system"] = system
        case _:
            body["messages"] = [{"role": "system", "content": system}, *body["messages"]]


def _tools_in(dialect: str, tools: Sequence[Mapping[str, Any]]) -> list[Any]:
    offered = request_with_tools(tools)
    if offered.dialect == dialect:
        return list(tools)
    return [write_tool(dialect, tool) for tool in offered.tools]


def _messages_of(dialect: str, turn: Sequence[bytes]) -> tuple[Message, ...]:
    key = {"gemini": "contents", "openai-responses": "input"}.get(dialect, "messages")
    return read({key: [decode(raw) for raw in turn]}, dialect).messages if turn else ()


def text_of(dialect: str, turn: Sequence[bytes]) -> str:
    """Return the text of an assistant's turn."""
    blocks = [block for m in _messages_of(dialect, turn) for block in m.blocks]
    return "".join(block.text for block in blocks if isinstance(block, Text))


def turn_in(dialect: str, turn: Sequence[bytes], given: str, tokens: int) -> list[dict[str, Any]]:
    """Return an assistant's turn as messages of the caller's dialect, with its counted tokens."""
    messages: list[dict[str, Any]] = [decode(raw) for raw in turn]
    if dialect != given and messages:
        blocks = [block for m in _messages_of(dialect, turn) for block in m.blocks]
        spoken = [block for block in blocks if isinstance(block, Text | ToolCall)]
        # Some providers refuse text after a call.
        spoken.sort(key=lambda block: isinstance(block, ToolCall))
        messages = DIALECTS[given].compose([Entry("assistant", tuple(spoken))])
    if messages:
        messages[-1] = {**messages[-1], EXTENSION: {"tokens": tokens}}
    return messages


def anchors_with(marked: frozenset[int], more: Iterable[AnchorDefinition]) -> Any:
    """The anchors of a request: the usual ones, the client's own, and what messages are marked."""
    if not marked:
        return (*DEFAULT_ANCHORS, *more)

    def is_marked(message: Message, _: int, __: Sequence[Message]) -> bool:
        return not marked.isdisjoint(_prints(own_of(message)))

    mark = AnchorDefinition(
        type="instruction_anchor", selector=is_marked, priority=90, description="marked to be kept"
    )
    return (*DEFAULT_ANCHORS, *more, mark)


def _prints(message: Message) -> Iterator[int]:
    """Return a hash of each block of a message, the same in every dialect."""
    for block in message.blocks:
        if isinstance(block, Text | ToolResult) and block.text:
            yield hash(block.text)
