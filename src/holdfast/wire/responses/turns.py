"""Store hidden calls, and build the request that continues after them.

It works on complete requests through `wire`, so that untouched messages keep their bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import msgspec

from holdfast.wire import (
    DIALECTS,
    Conversation,
    Entry,
    ToolResult,
)
from holdfast.wire.responses import anthropic, gemini, openai_chat, openai_responses
from holdfast.wire.responses.shared import IsHidden, ModelCall, calls_in, dicts
from holdfast.wire.strict import decode, encode
from holdfast.wire.values import take

_WITHOUT = {
    "openai-chat": openai_chat.without,
    "openai-responses": openai_responses.without,
    "anthropic": anthropic.without,
    "gemini": gemini.without,
}


FORMER_NOTE = "The model opened stored content and then ended its turn without an answer."


class Hop(msgspec.Struct, frozen=True):
    """One upstream call with hidden calls, or the last one of such a chain."""

    turn: tuple[bytes, ...]
    """The assistant's turn: `Relay.assistant_turn`, `Answer.turn`."""
    results: tuple[tuple[ModelCall, str], ...] = ()
    """Hidden calls with the proxy's results; empty in a last turn without hidden calls."""
    handed: dict[int, ModelCall] = {}
    """In a last turn, the hidden calls that the client received as calls of its own tools; see
    `Handed`.
    """


class HiddenTurn(msgspec.Struct, frozen=True):
    """A response with hidden calls, stored until the client's next request."""

    hops: tuple[Hop, ...]
    note: str = FORMER_NOTE
    """Text that earlier versions may have sent the client instead of an empty response."""
    index: int = 0
    """Number of messages in the client's request, after which it will place the response."""
    place: str = ""
    """Hash of these messages; the turn is restored only after them. Empty in data of earlier
    versions, which compared only the response itself.
    """
    seen_id: str = ""
    """OpenAI Responses: id of the response that the client knows, that of the first hop."""
    last_id: str = ""
    """Id of the last hop's response."""
    dialect: str = ""
    """Dialect of the response; a session may use several."""

    @property
    def size(self) -> int:
        """Return the bytes of the turns plus the characters of the results."""
        return sum(
            sum(map(len, hop.turn)) + sum(len(answer) for _, answer in hop.results)
            for hop in self.hops
        )

    def __repr__(self) -> str:
        return f"<Kept, {len(self.hops)} hops>"


def split(turn: Sequence[bytes], dialect: str, hidden: IsHidden) -> tuple[bytes, ...]:
    """Return the part of an assistant's turn that the client saw."""
    visible_messages = [_WITHOUT[dialect](decode(message), hidden) for message in turn]
    return tuple(encode(message) for message in visible_messages if message is not None)


def is_silent(turn: Sequence[bytes], dialect: str, hidden: IsHidden) -> bool:
    """Return whether a client sees neither text nor a call of an assistant's turn."""
    return not any(_speaks(decode(message), dialect) for message in split(turn, dialect, hidden))


def _speaks(message: Any, dialect: str) -> bool:
    """Return whether a message contains more than reasoning and white space."""
    if dialect == "openai-responses" and message.get("type", "message") != "message":
        return bool(message["type"] != "reasoning")
    if message.get("tool_calls") or message.get("refusal"):
        return True
    parts = message.get("parts") or message.get("content") or ()
    if isinstance(parts, str):
        return bool(parts.strip())
    return any(
        bool(str(part["text"]).strip()) and not part.get("thought")
        if "text" in part
        else part.get("type") not in ("thinking", "redacted_thinking")
        for part in dicts(parts)
    )


def continuation(
    conversation: Conversation, turn: Sequence[bytes], results: Sequence[tuple[ModelCall, str]]
) -> Conversation:
    """Return the request extended by the assistant's turn and the results of all its calls.

    Raise `EditError` if the provider would reject it, for example for a call without a result.
    """
    dialect = conversation.dialect
    turn_messages = [decode(raw) for raw in sendable(turn, conversation)]
    answers = results_in(dialect, results)
    longer = conversation.insert(len(conversation.messages), *turn_messages, *answers)
    if dialect == "openai-responses" and conversation.rest.get("conversation"):
        # The provider stores this conversation and has already added its own turn.
        longer = longer.with_messages(longer.messages[-len(answers) :])
    return longer


def turn_calls(turn: Sequence[bytes], dialect: str) -> list[ModelCall]:
    """Return the calls of an assistant's turn, in order."""
    return calls_in([decode(raw) for raw in turn], dialect)


def with_own_ids(
    turn: Sequence[bytes], conversation: Conversation, hidden_name: Callable[[str], str]
) -> tuple[bytes, ...]:
    """Return a turn whose hidden calls have unique ids, valid names and valid JSON arguments.

    Some services restart call numbers in each response. `hidden_name` maps a call's name to the
    hidden tool it means, or to an empty string: OpenAI rejects a history with a call named
    `functions.expand_ref`, and services with prompt templates (vllm#43995, llama.cpp#25510) reject
    arguments that are not a JSON object.
    """
    used_ids = {call.id for message in conversation.messages for call in message.calls}
    values = [decode(raw) for raw in turn]
    fresh = False
    for model_call in _calls(values, conversation.dialect):
        name = _name(model_call)
        tool_name = hidden_name(name)
        if tool_name and tool_name != name:
            (model_call if "name" in model_call else model_call["function"])["name"] = tool_name
            fresh = True
        if tool_name and _has_invalid_arguments(holder := model_call.get("function", model_call)):
            holder["arguments"] = "{}"
            fresh = True
        key = "call_id" if conversation.dialect == "openai-responses" else "id"
        call_id = model_call.get(key)
        if not call_id or not isinstance(call_id, str):
            continue
        if call_id in used_ids and tool_name:
            model_call[key] = next(
                candidate for n in count(2) if (candidate := f"{call_id}_{n}") not in used_ids
            )
            fresh = True
        used_ids.add(model_call[key])
    return tuple(map(encode, values)) if fresh else tuple(turn)


def _has_invalid_arguments(call: dict[str, Any]) -> bool:
    """Return whether the arguments are text that is not a JSON object."""
    arguments = call.get("arguments")
    if not isinstance(arguments, str):
        return False
    try:
        return not isinstance(msgspec.json.decode(arguments), dict)
    except (ValueError, RecursionError):
        return True


def _calls(messages: Sequence[Any], dialect: str) -> list[dict[str, Any]]:
    """Return the calls in an assistant's messages, in the dialect's form."""
    if dialect == "openai-responses":
        return [
            message
            for message in messages
            if message.get("type") in ("function_call", "custom_tool_call")
        ]
    if dialect == "openai-chat":
        return [call for message in messages for call in dicts(message.get("tool_calls"))]
    if dialect == "anthropic":
        blocks = [block for message in messages for block in dicts(message.get("content"))]
        return [block for block in blocks if block.get("type") == "tool_use"]
    parts = [part for message in messages for part in dicts(message.get("parts"))]
    return [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), dict)]


def _name(call: dict[str, Any]) -> str:
    return take(call, "name") or take(call, "function", "name")


def sendable(turn: Sequence[bytes], conversation: Conversation) -> list[bytes]:
    """Return the part of a turn that can be sent back.

    OpenAI Responses accepts reasoning only if it was stored or encrypted and led to an item
    (vercel/ai#7099).
    """
    if conversation.dialect != "openai-responses":
        return list(turn)
    stored = conversation.rest.get("store") is not False
    kinds = [_reasoning(decode(raw)) for raw in turn]
    last = max((n for n, kind in enumerate(kinds) if not kind), default=-1)
    return [
        raw for raw, kind in zip(turn[: last + 1], kinds, strict=False) if stored or kind != "bare"
    ]


def _reasoning(item: Any) -> str:
    if item.get("type") != "reasoning":
        return ""
    return "sealed" if item.get("encrypted_content") else "bare"


def results_in(dialect: str, results: Sequence[tuple[ModelCall, str]]) -> list[Any]:
    """Return results as messages of a dialect."""
    blocks = tuple(
        ToolResult(call_id=call.id, name=call.name, text=answer) for call, answer in results
    )
    messages = DIALECTS[dialect].compose([Entry("tool", blocks)]) if blocks else []
    if dialect == "gemini":
        for content in messages:
            content["parts"] = [_without_empty_id(part) for part in content["parts"]]
    return messages


def _without_empty_id(part: dict[str, Any]) -> dict[str, Any]:
    response = part["functionResponse"]
    return {"functionResponse": {k: v for k, v in response.items() if k != "id" or v}}
