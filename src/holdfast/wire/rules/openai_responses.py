"""Rules of OpenAI's Responses API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.wire.openai_responses import NAME as RESPONSES
from holdfast.wire.rules.common import at, long_strings, openai_answers
from holdfast.wire.rules.rule import CheckedMessage, Context, Finding, rule

R1 = rule(
    "R1",
    RESPONSES,
    "Every call has its output among the items, and every output its call.",
    source="platform.openai.com, function calling; error 'No tool output found for function call'",
)


@R1.body
def calls_and_outputs_are_paired(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    call_ids = {call.id for message in messages for call in message.calls}
    answered = {result.call_id for message in messages for result in message.results}
    elsewhere = _continues(messages, context)
    for message in messages:
        for call in message.calls:
            if call.id not in answered:
                yield at(message, call), "no output answers the call"
        for result in message.results:
            if result.call_id not in call_ids and not elsewhere:
                yield at(message, result), "no call has this call_id"


def _continues(messages: Sequence[CheckedMessage], context: Context) -> bool:
    """Return whether the provider stores earlier items, which may contain the calls."""
    if context.body.get("previous_response_id") or context.body.get("conversation"):
        return True
    return any(_kind(message) == "item_reference" for message in messages)


def _kind(message: CheckedMessage) -> str:
    return (
        "message" if isinstance(message.value, str) else str(message.value.get("type", "message"))
    )


R2 = rule(
    "R2",
    RESPONSES,
    "A reasoning item is followed by the item that it led to.",
    source="vercel/ai#7099, continue#11994",
)


@R2.seam
def reasoning_leads_to_an_item(
    before: CheckedMessage | None, after: CheckedMessage | None, context: Context
) -> Iterator[Finding]:
    if before is None or _kind(before) != "reasoning":
        return
    if after is None or after.role != "assistant":
        yield before.place, "the reasoning item has lost the item that followed it"


R3 = rule(
    "R3",
    RESPONSES,
    "With store: false nothing refers to what the provider did not keep: reasoning comes with "
    "encrypted_content, and no item is a reference.",
    source="platform.openai.com, conversation state; vercel/ai#7099",
)


@R3.message
def nothing_refers_to_unstored_items(
    message: CheckedMessage, context: Context
) -> Iterator[Finding]:
    if context.body.get("store") is not False:
        return
    kind = _kind(message)
    if kind == "item_reference":
        yield message.place, "the item refers to a response that was not stored"
    elif kind == "reasoning" and message.value.get("id") and not _is_whole(message.value):
        yield message.place, "the reasoning item has no encrypted_content"


def _is_whole(reasoning: dict[str, Any]) -> bool:
    """Return whether reasoning can be used without the provider's copy."""
    return any(reasoning.get(key) for key in ("encrypted_content", "content"))


_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs"}

R4 = rule(
    "R4",
    RESPONSES,
    "id and call_id are 1 to 64 letters, digits, _ and -; an id begins as its type demands "
    "(msg, fc, rs).",
    source="openai error 'Expected an ID that begins with'; platform.openai.com",
)


@R4.message
def ids_are_well_formed(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    if isinstance(message.value, str) or not openai_answers(context):
        return
    for key in ("id", "call_id"):
        value = message.value.get(key)
        if isinstance(value, str) and not _ID.fullmatch(value):
            yield (*message.place, key), f"the {key} must be 1 to 64 letters, digits, _ and -"
    prefix = _PREFIXES.get(_kind(message))
    item_id = message.value.get("id")
    if prefix and isinstance(item_id, str) and not item_id.startswith(prefix):
        yield (*message.place, "id"), f"the id must begin with {prefix}"


_LONGEST = 10_485_760

R5 = rule(
    "R5",
    RESPONSES,
    "The input is not empty, unless the provider keeps it; a string has at most 10,485,760 "
    "characters.",
    source="pi#4246; openai error string_above_max_length",
)


@R5.message
def strings_are_within_bounds(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    yield from long_strings(message, _LONGEST)


@R5.body
def input_is_not_empty(messages: Sequence[CheckedMessage], context: Context) -> Iterator[Finding]:
    elsewhere = ("prompt", "previous_response_id", "conversation")
    if not messages and not any(context.body.get(key) for key in elsewhere):
        yield context.list_place, "there is no item"
