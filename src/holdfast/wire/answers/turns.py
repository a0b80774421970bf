"""The request side of hidden calls: to go on after them, and to bring them back later.

turns: after the dialects. It works on whole requests through `wire`, so that every message it
does not touch keeps its very bytes.

The client never saw the hidden calls, so its next request is without them and their results. The
provider must have them: it is shown its own turn again, exactly, with all that was answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import msgspec

from holdfast.wire import (
    DIALECTS,
    Conversation,
    Entry,
    Message,
    Text,
    ToolResult,
    read,
    write,
)
from holdfast.wire.answers import anthropic, gemini, openai_chat, openai_responses
from holdfast.wire.answers.shared import NOTHING_SAID, Call, Hidden, calls_in, dicts
from holdfast.wire.strict import decode, encode, splice
from holdfast.wire.values import take

_WITHOUT = {
    "openai-chat": openai_chat.without,
    "openai-responses": openai_responses.without,
    "anthropic": anthropic.without,
    "gemini": gemini.without,
}


class Hop(msgspec.Struct, frozen=True):
    """One upstream call whose answer held hidden calls, or the last one of a chain of them."""

    turn: tuple[bytes, ...]
    """The assistant's turn: `Relay.assistant_turn`, `Answer.turn`."""
    results: tuple[tuple[Call, str], ...] = ()
    """The hidden calls with what the proxy answered; none in a last turn without hidden calls."""


class Kept(msgspec.Struct, frozen=True):
    """What the proxy keeps of an answer with hidden calls until the client's next request."""

    hops: tuple[Hop, ...]
    note: str = NOTHING_SAID
    """What the proxy has said instead of the model, if it had to: `Relay.close`, `join_answers`."""
    index: int = 0
    """How many messages the client's request had: where it will put the answer."""
    seen_id: str = ""
    """OpenAI's Responses: the id of the response that the client knows, that of the first hop."""
    last_id: str = ""
    """The id of the last hop's response."""

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


def continuation(
    conversation: Conversation, turn: Sequence[bytes], results: Sequence[tuple[Call, str]]
) -> Conversation:
    """The same request with the assistant's turn and the results of all its calls behind.

    Raises `EditError` where the provider would refuse it, such as for a call without a result.
    """
    dialect = conversation.dialect
    said = [decode(raw) for raw in _sendable(turn, conversation)]
    answers = _results(dialect, results)
    longer = conversation.insert(len(conversation.messages), *said, *answers)
    if dialect == "openai-responses" and conversation.rest.get("conversation"):
        # The provider keeps this conversation, and has put its own turn into it.
        longer = longer.with_messages(longer.messages[-len(answers) :])
    return longer


def turn_calls(turn: Sequence[bytes], dialect: str) -> list[Call]:
    """The calls of an assistant's turn, in order."""
    return calls_in([decode(raw) for raw in turn], dialect)


def with_own_ids(
    turn: Sequence[bytes], conversation: Conversation, hidden: Hidden
) -> tuple[bytes, ...]:
    """The same turn, its hidden calls with ids that no other call of the conversation has.

    Some services number the calls of each answer anew; the client never sees these.
    """
    taken = {call.id for message in conversation.messages for call in message.calls}
    values = [decode(raw) for raw in turn]
    fresh = False
    for made in _calls(values, conversation.dialect):
        key = "call_id" if conversation.dialect == "openai-responses" else "id"
        known = made.get(key)
        if not known or not isinstance(known, str):
            continue
        if known in taken and hidden(_name(made)):
            made[key] = next(one for n in count(2) if (one := f"{known}_{n}") not in taken)
            fresh = True
        taken.add(made[key])
    return tuple(map(encode, values)) if fresh else tuple(turn)


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


def _sendable(turn: Sequence[bytes], conversation: Conversation) -> list[bytes]:
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


def _results(dialect: str, results: Sequence[tuple[Call, str]]) -> list[Any]:
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


# --- bringing hidden calls back ----------------------------------------------------------------


def rejoin(conversation: Conversation, kept: Sequence[Kept], hidden: Hidden) -> Conversation:
    """The client's request with the hidden calls of earlier answers back in their places.

    An answer that the client has changed or dropped is left as the client has it. If nothing is
    brought back, the very conversation is given back; else all messages beside are the same ones.
    """
    if conversation.dialect == "openai-responses":
        conversation = _follow_chain(conversation, kept)
    messages = list(conversation.messages)
    places = _find(messages, kept, conversation.dialect, hidden)
    for (start, stop), one in sorted(places.items(), key=lambda item: item[0], reverse=True):
        messages[start:] = _with_hidden(messages[stop:], one, conversation)
    return conversation.with_messages(tuple(messages)) if places else conversation


Look = str | tuple[tuple[str, str, bytes], ...]
"""What a turn is known by."""


def _find(
    messages: Sequence[Message], kept: Sequence[Kept], dialect: str, hidden: Hidden
) -> dict[tuple[int, int], Kept]:
    """Where the client's versions of answers stand: runs of assistant messages."""
    runs: dict[Look, list[tuple[int, int]]] = {}
    for start, stop in _runs(messages) if kept else ():
        runs.setdefault(_look(messages[start:stop]), []).append((start, stop))
    found: dict[tuple[int, int], Kept] = {}
    for one in kept:
        looks = _looks(one, dialect, hidden)
        alike = [run for look in looks for run in runs.get(look, ()) if run not in found]
        if alike:
            found[min(alike, key=lambda run: abs(run[0] - one.index))] = one
    return found


def _runs(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """The turns of the assistant: messages or items that follow each other."""
    runs: list[tuple[int, int]] = []
    for n, message in enumerate(messages):
        if message.role != "assistant":
            continue
        if runs and runs[-1][1] == n:
            runs[-1] = (runs[-1][0], n + 1)
        else:
            runs.append((n, n + 1))
    return runs


def _looks(kept: Kept, dialect: str, hidden: Hidden) -> list[Look]:
    """What the client's version of an answer may be known by."""
    shown = [
        _message(raw, dialect) for hop in kept.hops for raw in split(hop.turn, dialect, hidden)
    ]
    look = _look(shown)
    if not isinstance(look, str):
        return [look]
    return [one for one in (look, look + _squeezed(kept.note)) if one]


def _look(messages: Sequence[Message]) -> Look:
    """A turn's calls, or if it has none its words: clients change the rest, and white space."""
    calls = tuple(
        (call.id, "", b"") if call.id else ("", call.name, encode(call.arguments))
        for message in messages
        for call in message.calls
    )
    if calls:
        return calls
    words = [b.text for message in messages for b in message.blocks if isinstance(b, Text)]
    return _squeezed("".join(words))


def _squeezed(words: str) -> str:
    return "".join(words.split())


def _with_hidden(following: list[Message], kept: Kept, conversation: Conversation) -> list[Message]:
    """An answer with all its hops, and the messages that follow it."""
    dialect = conversation.dialect
    whole: list[Message] = []
    for hop in kept.hops:
        whole.extend(_message(raw, dialect) for raw in _sendable(hop.turn, conversation))
        if hop is not kept.hops[-1]:
            whole.extend(_made(value, dialect) for value in _results(dialect, hop.results))
        elif hop.results:
            following = _JOIN_RESULTS.get(dialect, _in_front)(following, hop, dialect)
    return [*whole, *following]


def _in_front(following: list[Message], hop: Hop, dialect: str) -> list[Message]:
    """Results as messages of their own, before those of the client."""
    return [*(_made(value, dialect) for value in _results(dialect, hop.results)), *following]


def _in_one_message(following: list[Message], hop: Hop, dialect: str) -> list[Message]:
    """Anthropic: all results stand in the user message that follows, before anything else."""
    [made] = _results(dialect, hop.results)
    if not (following and following[0].role == "user"):
        return [_made(made, dialect), *following]
    given = following[0].value
    content = given["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    together = {**given, "content": [*made["content"], *parts]}
    return [_made(together, dialect), *following[1:]]


def _in_order(following: list[Message], hop: Hop, dialect: str) -> list[Message]:
    """Gemini: as many responses as calls in one content, in their order, for ids may be missing."""
    [made] = _results(dialect, hop.results)
    if not (following and following[0].results):
        return [_made(made, dialect), *following]
    given = following[0].value
    parts = given["parts"] if isinstance(given["parts"], list) else [given["parts"]]
    places = {block.place[-1] for block in following[0].results}
    theirs = [part for n, part in enumerate(parts) if n in places or parts is not given["parts"]]
    rest = [part for part in parts if part not in theirs]
    ours = list(made["parts"])
    known = [call for call, _ in hop.results]
    ordered = []
    for call in turn_calls(hop.turn, dialect):
        queue = ours if call in known else theirs
        if call in known:
            known.remove(call)
        if queue:
            ordered.append(queue.pop(0))
    together = {**given, "parts": [*ordered, *ours, *theirs, *rest]}
    return [_made(together, dialect), *following[1:]]


_JOIN_RESULTS = {"anthropic": _in_one_message, "gemini": _in_order}


def _follow_chain(conversation: Conversation, kept: Sequence[Kept]) -> Conversation:
    """Where the provider keeps the history: go on from the last hop, which the client never saw."""
    previous = conversation.rest.get("previous_response_id")
    one = next((one for one in kept if previous and one.seen_id == previous), None)
    if one is None:
        return conversation
    body = write(conversation)
    if one.last_id and one.last_id != previous:
        body = splice(body, ("previous_response_id",), encode(one.last_id))
        conversation = read(body, conversation.dialect)
    results = one.hops[-1].results
    if not results:
        return conversation
    longer = _in_front(list(conversation.messages), one.hops[-1], conversation.dialect)
    return conversation.with_messages(tuple(longer))


def _message(raw: bytes, dialect: str) -> Message:
    spoken = DIALECTS[dialect]
    return Message(raw, spoken.check(decode(raw), ()), spoken)


def _made(value: Any, dialect: str) -> Message:
    return _message(encode(value), dialect)
