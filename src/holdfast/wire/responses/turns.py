"""The request side of hidden calls: what is kept of them, and the request that goes on from them.

turns: after the dialects, before rejoining, which brings them back later. It works on whole
requests through `wire`, so that every message it does not touch keeps its very bytes.
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
from holdfast.wire.responses.shared import Call, Hidden, calls_in, dicts
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
    """One upstream call whose answer held hidden calls, or the last one of a chain of them."""

    turn: tuple[bytes, ...]
    """The assistant's turn: `Relay.assistant_turn`, `Answer.turn`."""
    results: tuple[tuple[Call, str], ...] = ()
    """The hidden calls with what the proxy answered; none in a last turn without hidden calls."""
    handed: dict[int, Call] = {}
    """In a last turn, the hidden calls that the client got as calls of its own tools: see
    `Handed`."""


class Kept(msgspec.Struct, frozen=True):
    """What the proxy keeps of an answer with hidden calls until the client's next request."""

    hops: tuple[Hop, ...]
    note: str = FORMER_NOTE
    """What the client may have been told instead of an empty answer, by earlier versions."""
    index: int = 0
    """How many messages the client's request had: where it will put the answer."""
    place: str = ""
    """The hash of these messages: only behind them it is brought back. Empty in what earlier
    versions stored, which went by the looks of an answer alone."""
    seen_id: str = ""
    """OpenAI's Responses: the id of the response that the client knows, that of the first hop."""
    last_id: str = ""
    """The id of the last hop's response."""
    dialect: str = ""
    """What the answer was written in: a session may speak several."""

    @property
    def size(self) -> int:
        """Bytes of the turns, and characters of what was answered."""
        return sum(
            sum(map(len, hop.turn)) + sum(len(answer) for _, answer in hop.results)
            for hop in self.hops
        )

    def __repr__(self) -> str:
        return f"<Kept, {len(self.hops)} hops>"


def split(turn: Sequence[bytes], dialect: str, hidden: Hidden) -> tuple[bytes, ...]:
    """What the client saw of an assistant's turn."""
    shown = [_WITHOUT[dialect](decode(message), hidden) for message in turn]
    return tuple(encode(message) for message in shown if message is not None)


def is_silent(turn: Sequence[bytes], dialect: str, hidden: Hidden) -> bool:
    """Return whether a client sees neither text nor a call of an assistant's turn."""
    return not any(_speaks(decode(message), dialect) for message in split(turn, dialect, hidden))


def _speaks(message: Any, dialect: str) -> bool:
    """Return whether a message holds more than reasoning and blanks."""
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
    conversation: Conversation, turn: Sequence[bytes], results: Sequence[tuple[Call, str]]
) -> Conversation:
    """The same request with the assistant's turn and the results of all its calls behind.

    Raises `EditError` where the provider would refuse it, such as for a call without a result.
    """
    dialect = conversation.dialect
    said = [decode(raw) for raw in sendable(turn, conversation)]
    answers = results_in(dialect, results)
    longer = conversation.insert(len(conversation.messages), *said, *answers)
    if dialect == "openai-responses" and conversation.rest.get("conversation"):
        # The provider keeps this conversation, and has put its own turn into it.
        longer = longer.with_messages(longer.messages[-len(answers) :])
    return longer


def turn_calls(turn: Sequence[bytes], dialect: str) -> list[Call]:
    """The calls of an assistant's turn, in order."""
    return calls_in([decode(raw) for raw in turn], dialect)


def with_own_ids(
    turn: Sequence[bytes], conversation: Conversation, hidden_name: Callable[[str], str]
) -> tuple[bytes, ...]:
    """Return the same turn, its hidden calls with ids of their own, right names and valid JSON.

    Some services number the calls of each answer anew; the client never sees these. `hidden_name`
    gives the name of the hidden tool that a call means, or nothing: OpenAI refuses a history in
    which a call is named `functions.expand_ref`. Services that write the history into a template
    (vllm#43995, llama.cpp#25510) refuse one in which the arguments of a call are no JSON object.
    """
    taken = {call.id for message in conversation.messages for call in message.calls}
    values = [decode(raw) for raw in turn]
    fresh = False
    for made in _calls(values, conversation.dialect):
        name = _name(made)
        meant = hidden_name(name)
        if meant and meant != name:
            (made if "name" in made else made["function"])["name"] = meant
            fresh = True
        if meant and _has_invalid_arguments(holder := made.get("function", made)):
            holder["arguments"] = "{}"
            fresh = True
        key = "call_id" if conversation.dialect == "openai-responses" else "id"
        known = made.get(key)
        if not known or not isinstance(known, str):
            continue
        if known in taken and meant:
            made[key] = next(one for n in count(2) if (one := f"{known}_{n}") not in taken)
            fresh = True
        taken.add(made[key])
    return tuple(map(encode, values)) if fresh else tuple(turn)


def _has_invalid_arguments(call: dict[str, Any]) -> bool:
    """Return whether the arguments are text that is no JSON object."""
    arguments = call.get("arguments")
    if not isinstance(arguments, str):
        return False
    try:
        return not isinstance(msgspec.json.decode(arguments), dict)
    except (ValueError, RecursionError):
        return True


def _calls(messages: Sequence[Any], dialect: str) -> list[dict[str, Any]]:
    """The calls in an assistant's messages, as they stand there."""
    if dialect == "openai-responses":
        return [one for one in messages if one.get("type") in ("function_call", "custom_tool_call")]
    if dialect == "openai-chat":
        return [call for one in messages for call in dicts(one.get("tool_calls"))]
    if dialect == "anthropic":
        blocks = [block for one in messages for block in dicts(one.get("content"))]
        return [block for block in blocks if block.get("type") == "tool_use"]
    parts = [part for one in messages for part in dicts(one.get("parts"))]
    return [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), dict)]


def _name(call: dict[str, Any]) -> str:
    return take(call, "name") or take(call, "function", "name")


def sendable(turn: Sequence[bytes], conversation: Conversation) -> list[bytes]:
    """What of a turn can be sent back.

    OpenAI's Responses take reasoning only if it was stored or sealed, and led to an item.
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


def results_in(dialect: str, results: Sequence[tuple[Call, str]]) -> list[Any]:
    """What was answered, as messages of a dialect."""
    blocks = tuple(
        ToolResult(call_id=call.id, name=call.name, text=answer) for call, answer in results
    )
    made = DIALECTS[dialect].compose([Entry("tool", blocks)]) if blocks else []
    if dialect == "gemini":
        for content in made:
            content["parts"] = [_without_empty_id(part) for part in content["parts"]]
    return made


def _without_empty_id(part: dict[str, Any]) -> dict[str, Any]:
    given = part["functionResponse"]
    return {"functionResponse": {k: v for k, v in given.items() if k != "id" or v}}
