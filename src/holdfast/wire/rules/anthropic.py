"""Rules of Anthropic's Messages API, except those on thinking."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from holdfast.wire.anthropic import NAME as ANTHROPIC
from holdfast.wire.blocks import (
    Media,
    Opaque,
    Text,
    ToolCall,
    ToolResult,
    text_of,
)
from holdfast.wire.json_places import Place
from holdfast.wire.media import base64_size
from holdfast.wire.rules.common import (
    PLAIN_ID,
    at,
    blank,
    has_content,
    repeated_calls,
    repeated_results,
)
from holdfast.wire.rules.rule import CheckedMessage, Context, Finding, rule


def _turns(messages: Sequence[CheckedMessage]) -> list[list[CheckedMessage]]:
    """Join consecutive messages of one role, as the API does before validation."""
    turns: list[list[CheckedMessage]] = []
    for message in messages:
        if message.role == "system":  # a system message between turns does not separate them
            continue
        if turns and turns[-1][0].role == message.role:
            turns[-1].append(message)
        else:
            turns.append([message])
    return turns


A1 = rule(
    "A1",
    ANTHROPIC,
    "Every tool_use is answered by a tool_result in the next message.",
    source="claude-code#2697",
)


@A1.body
def every_call_is_answered_next(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    for turn, following in pairwise([*_turns(messages), []]):
        answered = {result.call_id for message in following for result in message.results}
        for message in turn:
            for call in message.calls:
                if call.id not in answered:
                    yield at(message, call), "the call has no tool_result in the next message"


A2 = rule(
    "A2",
    ANTHROPIC,
    "Every tool_result has its tool_use in the message before.",
    source="claude-code#13460",
)


@A2.body
def every_result_follows_its_call(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    for preceding, turn in pairwise([[], *_turns(messages)]):
        call_ids = {call.id for message in preceding for call in message.calls}
        for message in turn:
            for result in message.results:
                if result.call_id not in call_ids:
                    yield at(message, result), "the message before has no tool_use with this id"


A3 = rule(
    "A3",
    ANTHROPIC,
    "tool_result blocks come first in their message, one after the other.",
    source="qwen-code#8161; docs.anthropic.com, tool use",
)


@A3.message
def results_come_first(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    has_other_block = False
    for block in message.blocks:
        if not isinstance(block, ToolResult):
            has_other_block = True
        elif has_other_block:
            yield at(message, block), "another block stands before this tool_result"


A4 = rule(
    "A4",
    ANTHROPIC,
    "An assistant message has no text after a tool_use.",
    source="recorded 400, opencode",
)


@A4.message
def no_text_after_a_call(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    called = False
    for block in message.blocks:
        if isinstance(block, ToolCall):
            called = True
        elif called and isinstance(block, Text):
            yield at(message, block), "text stands behind a tool_use"


A5 = rule(
    "A5",
    ANTHROPIC,
    "Ids of tool_use are unique in the request, and each has one result.",
    source="claude-code#20901",
)


@A5.body
def ids_are_unique(messages: Sequence[CheckedMessage], context: Context) -> Iterator[Finding]:
    yield from repeated_calls(messages)
    yield from repeated_results(messages)


A6 = rule(
    "A6",
    ANTHROPIC,
    "Ids and tool names are made of letters, digits, _ and -; a name has at most 128 characters.",
    source="bifrost#5097",
)


@A6.message
def ids_are_plain(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    for call in message.calls:
        if not PLAIN_ID.fullmatch(call.id):
            yield (*at(message, call), "id"), "the id must be letters, digits, _ and -"
        if not _NAME.fullmatch(call.name):
            yield (*at(message, call), "name"), "the name must be 1 to 128 letters, digits, _ and -"


_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")


@A6.body
def tool_names_are_plain(messages: Sequence[CheckedMessage], context: Context) -> Iterator[Finding]:
    offered = context.body.get("tools")
    for n, tool in enumerate(offered if isinstance(offered, list) else ()):
        name = tool.get("name") if isinstance(tool, dict) else None
        if isinstance(name, str) and not _NAME.fullmatch(name):
            yield ("tools", n, "name"), "the name must be 1 to 128 letters, digits, _ and -"


A7 = rule(
    "A7",
    ANTHROPIC,
    "Text is never empty nor, outside the assistant's messages, only white space; no message is "
    "empty but an optional last assistant one.",
    source="claude-code#59812, claude-code#23369",
)


@A7.message
def text_is_not_blank(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    if not message.value["content"]:
        # A system message may be empty and only set the effort from there on.
        if message.role != "assistant" and "output_config" not in message.value:
            yield (*message.place, "content"), "the message is empty"
        return
    for block in message.blocks:
        inner = block.parts if isinstance(block, ToolResult) else (block,)
        for part in inner:
            # Claude itself writes a lone space before a call, and the API accepts it back.
            if blank(part) and not (message.role == "assistant" and text_of(part)):
                yield at(message, part), "the text is empty or only white space"


@A7.seam
def only_the_last_message_is_empty(
    before: CheckedMessage | None, after: CheckedMessage | None, context: Context
) -> Iterator[Finding]:
    if before and after and before.role == "assistant" and not before.value["content"]:
        yield (*before.place, "content"), "the message is empty"


A8 = rule(
    "A8",
    ANTHROPIC,
    "A tool_result with is_error says what went wrong.",
    source="markform#153",
)


@A8.message
def errors_have_text(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    for result in message.results:
        if result.is_error and not has_content(result):
            yield at(message, result), "is_error is true, but the content is empty"


A9 = rule(
    "A9",
    ANTHROPIC,
    "There is at least one message. Consecutive messages of one role are joined by the API, and "
    "the assistant may begin.",
    source="docs.anthropic.com, Messages API; recorded requests that begin with the assistant",
)


@A9.body
def messages_are_not_empty(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    if not messages:
        yield context.list_place, "there is no message"


A10 = rule(
    "A10",
    ANTHROPIC,
    "From Claude 4.6 on the last message is the user's; before, a last assistant message "
    "does not end in white space.",
    source="copilot-api#261; docs.anthropic.com, prefill",
)


@A10.ends
def ending_can_be_continued(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    message = messages[-1] if messages else None
    if message is None or message.role != "assistant":
        return
    if not _takes_prefill(context.model):
        yield message.place, "the model takes no prefill: the last message must be the user's"
        return
    last = message.blocks[-1] if message.blocks else None
    if isinstance(last, Text) and last.text != last.text.rstrip():
        yield at(message, last), "the last assistant text ends in white space"


_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2}))?(?!\d)")


def _takes_prefill(model: str) -> bool:
    match = _VERSION.search(model)
    if match is None:
        return True
    return (int(match[1]), int(match[2] or 0)) < (4, 6)


A13 = rule(
    "A13",
    ANTHROPIC,
    "Every result of a server tool stands behind its server_tool_use; not always in the same "
    "message, for a turn may pause, or run code that calls the client's tools in between.",
    source="sdk-python#961; docs.anthropic.com, pause_turn and programmatic tool calling",
)


@A13.body
def server_tools_are_paired(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    uses = set()
    for message in messages:
        for block in message.blocks if message.role == "assistant" else ():
            if not isinstance(block, Opaque):
                continue
            if block.opens:
                uses.add(block.opens)
            elif block.type.endswith("_tool_result") and block.closes not in uses:
                yield at(message, block), "the server tool's use is missing before its result"


A14 = rule(
    "A14",
    ANTHROPIC,
    "At most 4 cache_control marks, none of one hour after one of five minutes (order: tools, "
    "system, messages), none on empty text or thinking.",
    source="headroom#2939",
)


@A14.body
def cache_marks_are_legal(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    marks = 0
    short = False
    for place, part in _cacheable(messages, context):
        mark = part.get("cache_control")
        if not isinstance(mark, dict):
            continue
        marks += 1
        if marks == 5:
            yield place, "there are more than 4 cache_control marks"
        if mark.get("ttl") == "1h" and short:
            yield place, "a cache mark of one hour stands behind one of five minutes"
        short = short or mark.get("ttl", "5m") == "5m"
        if part.get("type") in ("thinking", "redacted_thinking"):
            yield place, "a thinking block carries a cache mark"
        elif part.get("type") == "text" and not str(part.get("text", "")).strip():
            yield place, "an empty text carries a cache mark"


def _cacheable(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[tuple[Place, dict[str, Any]]]:
    for key in ("tools", "system"):
        yield from _marked(context.body.get(key), (key,))
    for message in messages:
        # Only blocks with cache marks need the raw value, and few messages have any.
        yield from _marked(message.value.get("content"), (*message.place, "content"))


def _marked(parts: Any, place: Place) -> Iterator[tuple[Place, dict[str, Any]]]:
    for n, part in enumerate(parts if isinstance(parts, list) else ()):
        if isinstance(part, dict):
            if part.get("type") == "tool_result":
                yield from _marked(part.get("content"), (*place, n, "content"))
            if "cache_control" in part:
                yield (*place, n), part


_MOST_BYTES, _MOST_MESSAGES, _MOST_IMAGES, _MOST_PIXELS = 32 * 1024 * 1024, 100_000, 100, 8000


A16 = rule(
    "A16",
    ANTHROPIC,
    "A body has at most 32 MB, 100,000 messages and 100 images of at most 8000 pixels a side.",
    source="docs.anthropic.com, request size limits; claude-code#23392",
)


@A16.body
def body_is_within_size(messages: Sequence[CheckedMessage], context: Context) -> Iterator[Finding]:
    if context.size > _MOST_BYTES:
        yield (), "the body has more than 32 MB"
    if len(messages) > _MOST_MESSAGES:
        yield (*context.list_place, _MOST_MESSAGES), "there are more than 100,000 messages"
    images = 0
    for message in messages:
        for block in message.blocks:
            for part in (block, *block.parts) if isinstance(block, ToolResult) else (block,):
                if not (isinstance(part, Media) and part.kind == "image"):
                    continue
                images += 1
                if images == _MOST_IMAGES + 1:
                    yield at(message, part), "there are more than 100 images"
                size = _image_size(message.value, part.place)
                if size and max(size) > _MOST_PIXELS:
                    yield at(message, part), "the image has more than 8000 pixels on a side"


def _image_size(value: Any, place: Place) -> tuple[int, int] | None:
    for step in place:
        value = value[step]
    source = value.get("source")
    data = source.get("data") if isinstance(source, dict) else None
    return base64_size(data) if isinstance(data, str) else None


A18 = rule(
    "A18",
    ANTHROPIC,
    "A system message among the others follows a turn of the user's, or one of the assistant's "
    "that ends in a server tool's result, and stands last or before the assistant's.",
    source="platform.claude.com, mid-conversation system messages",
)


@A18.seam
def instructions_stand_before_an_answer(
    before: CheckedMessage | None, after: CheckedMessage | None, context: Context
) -> Iterator[Finding]:
    if after is not None and _instructs(after) and not _may_be_instructed(before):
        yield after.place, "a system message must follow a turn of the user's"
    if before is not None and _instructs(before) and after is not None and after.role == "user":
        yield before.place, "a system message must stand last or before an assistant message"


def _instructs(message: CheckedMessage) -> bool:
    """Return whether it is a system message with content; an empty one only sets the effort."""
    return message.role == "system" and bool(message.blocks)


def _may_be_instructed(before: CheckedMessage | None) -> bool:
    if before is None:
        return False
    last = before.blocks[-1] if before.blocks else None
    ends_in_result = isinstance(last, Opaque) and bool(last.closes)
    return before.role in ("user", "system") or ends_in_result
