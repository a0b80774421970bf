"""Rules of Gemini's generateContent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.wire.blocks import ToolCall, ToolResult
from holdfast.wire.gemini import NAME as GEMINI
from holdfast.wire.gemini import SIGNATURES, tools
from holdfast.wire.rules.common import at
from holdfast.wire.rules.rule import CheckedMessage, Context, Finding, rule

G1 = rule(
    "G1",
    GEMINI,
    "Roles are user and model; function responses come from the user.",
    source="ai.google.dev, Content",
)


@G1.message
def responses_come_from_the_user(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    if message.role == "assistant":
        for result in message.results:
            yield at(message, result), "a function response stands in the model's turn"


G2 = rule(
    "G2",
    GEMINI,
    "A turn with function calls follows a user turn or function responses; no conversation begins "
    "with one.",
    source="gemini-cli#11814",
)


@G2.ends
def calls_follow_the_user(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    # Consecutive contents of the model are one turn, so only the first can be wrong.
    if messages and messages[0].calls:
        yield messages[0].place, "the conversation begins with a function call"


G3 = rule(
    "G3",
    GEMINI,
    "Function responses follow the turn that made the calls: as many as calls, with the same ids.",
    source="CLIProxyAPI#5199; gemini error 'number of function response parts'",
)


@G3.body
def responses_match_the_calls(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    calls: list[ToolCall] = []
    for n, message in enumerate(messages):
        if message.role == "assistant":
            # Consecutive contents of the model are one turn.
            opens = n == 0 or messages[n - 1].role != "assistant"
            calls = message.calls if opens else [*calls, *message.calls]
            continue
        answers = message.results
        # The API accepts plain text after a call, but never part of the responses.
        if answers and len(answers) != len(calls):
            yield message.place, f"{len(answers)} function responses to {len(calls)} calls"
        else:
            response_ids, call_ids = {r.call_id for r in answers}, {call.id for call in calls}
            if answers and "" not in response_ids | call_ids and response_ids != call_ids:
                yield message.place, "the responses have other ids than the calls"
        calls = []


PART_KEYS = frozenset(
    "text inlineData inline_data fileData file_data functionCall function_call "
    "functionResponse function_response executableCode executable_code "
    "codeExecutionResult code_execution_result toolCall tool_call toolResponse "
    "tool_response thought thoughtSignature thought_signature videoMetadata "
    "video_metadata mediaResolution media_resolution partMetadata part_metadata".split()
)
CONTENT_KEYS = frozenset({"role", "parts"})
_DATA_KEYS = PART_KEYS - frozenset(
    "thought videoMetadata video_metadata mediaResolution media_resolution "
    "partMetadata part_metadata".split()
)

G4 = rule(
    "G4",
    GEMINI,
    "parts is not empty, every part carries data, and there are no unknown fields.",
    source="gemini errors 'parts must not be empty', 'required oneof field data', 'Unknown name'",
)


@G4.message
def parts_carry_data(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    if unknown := message.value.keys() - CONTENT_KEYS:
        yield message.place, f"the content has {len(unknown)} unknown fields"
    if message.value["parts"] == []:
        yield (*message.place, "parts"), "parts is empty"
    for block in message.blocks:
        part = _part(message.value, block.place)
        if isinstance(part, list):
            continue  # recorded: the API accepts a list among the parts
        if not carries_data(part):
            yield at(message, block), "the part carries no data"
        elif unknown := part.keys() - PART_KEYS:
            yield at(message, block), f"the part has {len(unknown)} unknown fields"


def carries_data(part: Any) -> bool:
    """Return whether a part has any field that holds content; null counts as omitted."""
    return isinstance(part, dict) and any(
        part.get(key) is not None for key in part.keys() & _DATA_KEYS
    )


@G4.body
def contents_are_not_empty(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    if not messages:
        yield context.list_place, "there is no content"


G5 = rule(
    "G5",
    GEMINI,
    "Gemini 3: in the current turn the first call of each step keeps its thoughtSignature.",
    source="ai.google.dev, thought signatures",
)


@G5.ends
def current_turn_keeps_its_signatures(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    if not re.search(r"gemini-[3-9]", context.model):
        return
    for n in range(len(messages) - 1, -1, -1):
        message = messages[n]
        if message.role == "user" and not any(isinstance(b, ToolResult) for b in message.blocks):
            return  # the start of the current turn
        calls = message.calls
        if calls and not _is_signed(_part(message.value, calls[0].place)):
            yield at(message, calls[0]), "the function call has lost its thoughtSignature"


def _part(value: Any, place: Sequence[str | int]) -> Any:
    for step in place:
        value = value[step]
    return value


def _is_signed(part: dict[str, Any]) -> bool:
    return any(part.get(key) for key in SIGNATURES)


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")

G6 = rule(
    "G6",
    GEMINI,
    "The conversation does not end with the model (Gemini 1 took that); function names begin "
    "with a letter or _ and have at most 64 characters.",
    source="crewAI PR #6973; ai.google.dev, FunctionDeclaration",
)


@G6.ends
def ending_is_not_the_models(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    if messages and messages[-1].role == "assistant" and "gemini-1" not in context.model:
        yield messages[-1].place, "the last turn is the model's"


@G6.body
def names_are_well_formed(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    for tool in tools(context.body):
        if not tool.hosted and not _NAME.fullmatch(tool.name):
            yield (
                (*tool.place, "name"),
                "the name must begin with a letter or _ and have at most 64 characters",
            )
