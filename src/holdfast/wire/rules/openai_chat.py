"""Rules of OpenAI's Chat Completions API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.wire.blocks import Opaque, ToolCall
from holdfast.wire.openai_chat import NAME as CHAT
from holdfast.wire.rules.common import at, long_strings, openai_answers
from holdfast.wire.rules.rule import CheckedMessage, Context, Finding, rule

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


C1 = rule(
    "C1",
    CHAT,
    "Every tool call is answered by the tool messages that follow at once, in any order.",
    source="pydantic-ai#2360",
)


@C1.body
def every_call_is_answered_at_once(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    for n, message in enumerate(messages):
        # The legacy function_call is answered by name or not at all.
        calls = [call for call in message.calls if call.place != ("function_call",)]
        if not calls:
            continue
        answered: set[str] = set()
        for follower in messages[n + 1 : n + 1 + _run(messages, n + 1)]:
            answered.update(result.call_id for result in follower.results)
        for call in calls:
            if call.id not in answered:
                yield at(message, call), "no tool message right behind answers the call"


C2 = rule(
    "C2",
    CHAT,
    "A tool message follows the assistant message that made its call.",
    source="openai error 'must be a response to a preceeding message with tool_calls'",
)


@C2.body
def every_result_follows_its_call(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    calls: set[str] = set()
    for message in messages:
        answers = message.results
        if not answers:
            calls = {call.id for call in message.calls}
        for result in answers:
            # Recorded: Ollama accepts a result without an id.
            if not result.call_id and not openai_answers(context):
                continue
            if result.call_id not in calls and message.value["role"] == "tool":
                yield at(message, result), "no assistant message before it made this call"


def _run(messages: Sequence[CheckedMessage], start: int) -> int:
    """Return the number of consecutive tool messages from `start` on."""
    stop = start
    while stop < len(messages) and messages[stop].role == "tool":
        stop += 1
    return stop - start


C3 = rule(
    "C3",
    CHAT,
    "Content is null only in an assistant message that calls tools; elsewhere it is at least ''.",
    source="vercel/ai PR #13744",
)


@C3.message
def content_is_not_null(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    if message.value.get("content") is not None or not openai_answers(context):
        return
    # Audio and refusals of an earlier answer replace its content.
    stands_in = ("tool_calls", "function_call", "audio", "refusal")
    if not (message.role == "assistant" and any(message.value.get(key) for key in stands_in)):
        yield (*message.place, "content"), "the content is null"


C4 = rule(
    "C4",
    CHAT,
    "Neither messages nor tool_calls are empty; names are 1 to 64 letters, digits, _ and -.",
    source="platform.openai.com, Chat API reference",
)


@C4.message
def calls_are_named(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    if message.value.get("tool_calls") == [] and openai_answers(context):
        yield (*message.place, "tool_calls"), "tool_calls is an empty list"
    for call in message.calls:
        if not _NAME.fullmatch(call.name) and openai_answers(context):
            yield at(message, call), "the function's name must be 1 to 64 letters, digits, _ and -"


@C4.body
def messages_and_tools_are_named(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    if not messages:
        yield context.list_place, "there is no message"
    for n, name in _tool_names(context):
        if not _NAME.fullmatch(name) and openai_answers(context):
            yield (
                ("tools", n, "function", "name"),
                "the function's name must be 1 to 64 letters, digits, _ and -",
            )


def _tool_names(context: Context) -> Iterator[tuple[int, str]]:
    offered = context.body.get("tools")
    for n, tool in enumerate(offered if isinstance(offered, list) else ()):
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict):
            yield n, str(function.get("name", ""))


MOST_TOOLS, _LONGEST_ID = 128, 40

C5 = rule(
    "C5",
    CHAT,
    "A call's id has at most 40 characters; at most 128 tools, and 128 calls in a message.",
    source="openai-dotnet#317",
)


@C5.message
def calls_are_within_bounds(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    calls = [
        b
        for b in message.blocks
        if isinstance(b, (ToolCall, Opaque)) and b.place[:1] == ("tool_calls",)
    ]
    if len(calls) > MOST_TOOLS:
        yield (*message.place, "tool_calls"), "there are more than 128 calls in one message"
    for call in message.calls:
        if len(call.id) > _LONGEST_ID and openai_answers(context):
            yield (*at(message, call), "id"), "the id has more than 40 characters"


@C5.body
def tools_are_within_bounds(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    offered = context.body.get("tools")
    many = isinstance(offered, list) and len(offered) > MOST_TOOLS
    if many and openai_answers(context):
        yield ("tools", MOST_TOOLS), "there are more than 128 tools"


_LONGEST, _LONGEST_OLD = 10_485_760, 1_048_576
_OLD = re.compile(r"gpt-(3\.5|4-|4$)")

C6 = rule(
    "C6",
    CHAT,
    "A string has at most 10,485,760 characters (1,048,576 for gpt-3.5 and gpt-4).",
    source="openai error string_above_max_length",
)


@C6.message
def strings_are_within_bounds(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    yield from long_strings(message, _LONGEST_OLD if _OLD.match(context.model) else _LONGEST)


C7 = rule(
    "C7",
    CHAT,
    "DeepSeek takes a tool's result as one string, not as a list of parts.",
    source="litellm#6642, cline#247, qwen-code#2318",
)


@C7.message
def result_is_one_string(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    a_list = isinstance(message.value.get("content"), list)
    if a_list and message.role == "tool" and context.model.startswith("deepseek"):
        yield (*message.place, "content"), "the content is a list of parts"
