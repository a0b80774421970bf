"""Restore the hidden calls of earlier responses in a client's request.

The client never saw the hidden calls, so its next request lacks them and their results, which the
provider must receive exactly. They are restored only after the same history that the response
answered: "Hello!" answers many conversations, and one must not receive content opened in another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.wire import DIALECTS, Conversation, Message, Text, ToolCall, read, write
from holdfast.wire.places import places
from holdfast.wire.responses.marks import with_marks
from holdfast.wire.responses.shared import IsHidden, ModelCall
from holdfast.wire.responses.turns import HiddenTurn, Hop, results_in, sendable, split, turn_calls
from holdfast.wire.strict import decode, encode, splice
from holdfast.wire.values import take

Run = tuple[int, int]
"""Span of an assistant's turn: first index, and index after the last."""


def rejoin(
    conversation: Conversation,
    kept: Sequence[HiddenTurn],
    hidden: IsHidden,
    before: Sequence[Message] = (),
) -> Conversation:
    """Return the client's request with the hidden calls of earlier responses restored.

    `before` are the client's messages preceding those of the conversation. A response that the
    client changed or dropped is left as the client has it. Without a match, the same conversation
    is returned; other messages stay the same objects.
    """
    if conversation.dialect == "openai-responses":
        conversation = _follow_chain(conversation, kept)
    messages = list(conversation.messages)
    answers = _find(messages, kept, conversation.dialect, hidden, before)
    for (start, stop), answer in sorted(answers.items(), key=lambda item: item[0], reverse=True):
        client_turn, following = messages[start:stop], messages[stop:]
        messages[start:] = _with_hidden(client_turn, following, answer, conversation)
    return conversation.with_messages(tuple(messages)) if answers else conversation


# --- finding responses in the request -----------------------------------------------------------

Key = tuple[str, object]


class TurnLook(NamedTuple):
    """The features that identify a turn: its calls, or its text if it has none.

    Clients change everything else, including white space, and a user may have edited the response.
    """

    ids: tuple[str, ...] = ()
    """Ids of the calls; empty unless every call has one."""
    uses: tuple[tuple[str, bytes], ...] = ()
    """Names and arguments of the calls."""
    words: str = ""

    @property
    def keys(self) -> list[Key]:
        """Return the look-up keys, most reliable first."""
        if self.uses:
            return [*([("ids", self.ids)] if self.ids else []), ("uses", self.uses)]
        return [("words", self.words)] if self.words else []

    def may_be(self, other: TurnLook) -> bool:
        """Return whether ids permit two otherwise equal looks to be the same."""
        # Gemini may send calls without ids, and clients then omit or invent them (Pydantic AI,
        # Gemini CLI). Only ids on both sides can show that two calls differ.
        return not (self.ids and other.ids) or self.ids == other.ids


def _find(
    messages: Sequence[Message],
    kept: Sequence[HiddenTurn],
    dialect: str,
    hidden: IsHidden,
    before: Sequence[Message],
) -> dict[Run, HiddenTurn]:
    """Return the runs of assistant messages that are the client's versions of stored turns."""
    if not kept:
        return {}
    behind = places((*before, *messages), len(before))
    runs: dict[Key, list[tuple[Run, TurnLook]]] = {}
    for start, stop in _runs(messages):
        look = _look(messages[start:stop])
        for key in look.keys:
            runs.setdefault(key, []).append(((start, stop), look))
    answers: dict[Run, HiddenTurn] = {}
    # among several with the same question, prefer the last one that matches
    for answer in reversed(kept):
        alike = [
            run
            for look in _looks(answer, dialect, hidden)
            for key in look.keys
            for run, run_look in runs.get(key, ())
            if run not in answers
            and look.may_be(run_look)
            # With Anthropic's prefill the client starts the turn itself, and the response is inside
            # the run.
            and (not answer.place or answer.place in behind[run[0] : run[1]])
        ]
        if alike:
            answers[min(alike, key=lambda run: abs(run[0] - answer.index))] = answer
    return answers


def _runs(messages: Sequence[Message]) -> list[Run]:
    """Return the assistant's turns: consecutive messages or items."""
    runs: list[Run] = []
    for n, message in enumerate(messages):
        if message.role != "assistant":
            continue
        if runs and runs[-1][1] == n:
            runs[-1] = (runs[-1][0], n + 1)
        else:
            runs.append((n, n + 1))
    return runs


def _looks(answer: HiddenTurn, dialect: str, hidden: IsHidden) -> list[TurnLook]:
    """Return the possible features of the client's version of a response."""
    visible_messages = [
        _message(raw, dialect) for hop in answer.hops for raw in split(hop.turn, dialect, hidden)
    ]
    look = _look(
        visible_messages, [call for hop in answer.hops for _, call in sorted(hop.handed.items())]
    )
    if look.uses:
        return [look]
    return [look, look._replace(words=look.words + _without_space(answer.note))]


def _look(messages: Sequence[Message], handed: Sequence[ModelCall] = ()) -> TurnLook:
    calls: list[ToolCall | ModelCall] = [call for message in messages for call in message.calls]
    calls += handed
    if calls:
        ids = tuple(call.id for call in calls)
        uses = tuple((call.name, _canonical(call.arguments)) for call in calls)
        return TurnLook(ids if all(ids) else (), uses)
    words = [b.text for message in messages for b in message.blocks if isinstance(b, Text)]
    return TurnLook(words=_without_space("".join(words)))


def _without_space(words: str) -> str:
    return "".join(words.split())


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


# Clients that use protobuf send every number as a float, and keys in another order.
_arguments = msgspec.json.Decoder(float_hook=_number).decode
_sorted = msgspec.json.Encoder(order="sorted").encode


def _canonical(arguments: Any) -> bytes:
    """Return arguments as bytes that do not depend on their formatting."""
    text = arguments.encode() if isinstance(arguments, str) else encode(arguments or {})
    try:
        return _sorted(_arguments(text))
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return text


# --- restoring a response ------------------------------------------------------------------------


def _with_hidden(
    shown: list[Message], following: list[Message], answer: HiddenTurn, conversation: Conversation
) -> list[Message]:
    """Return a response with all its hops, followed by the later messages."""
    dialect = conversation.dialect
    restored: list[Message] = []
    for hop in answer.hops[:-1]:
        restored.extend(_message(raw, dialect) for raw in sendable(hop.turn, conversation))
        restored.extend(_message_from(value, dialect) for value in results_in(dialect, hop.results))
    last = answer.hops[-1]
    restored.extend(_message(raw, dialect) for raw in sendable(last.turn, conversation))
    restored = with_marks(restored, shown)
    if dialect == "gemini":
        calls = [call for message in shown for call in message.calls]
        if last.results or last.handed or _has_other_ids(calls, last):
            return [*restored, *_in_order(following, last, calls)]
    if not last.results:
        return [*restored, *following]
    if dialect == "anthropic":
        return [*restored, *_in_one_message(following, last)]
    return [*restored, *_in_front(following, last, dialect)]


def _in_front(following: list[Message], hop: Hop, dialect: str) -> list[Message]:
    """Return the results as separate messages before the client's."""
    return [
        *(_message_from(value, dialect) for value in results_in(dialect, hop.results)),
        *following,
    ]


def _in_one_message(following: list[Message], hop: Hop) -> list[Message]:
    """Return Anthropic messages with all results at the start of the next user message."""
    [ours] = results_in("anthropic", hop.results)
    if not (following and following[0].role == "user"):
        return [_message_from(ours, "anthropic"), *following]
    next_message = following[0].value
    content = next_message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    together = {**next_message, "content": [*ours["content"], *parts]}
    return [_message_from(together, "anthropic"), *following[1:]]


def _has_other_ids(seen_calls: Sequence[ToolCall], hop: Hop) -> bool:
    """Return whether the client assigned other ids to calls than the provider."""
    return [call.id for call in seen_calls] != [call.id for call in turn_calls(hop.turn, "gemini")]


def _in_order(following: list[Message], hop: Hop, seen_calls: Sequence[ToolCall]) -> list[Message]:
    """Return Gemini messages with one content of responses, in the order of the calls.

    Ids may be missing, so the numbers must match. `seen_calls` are the visible calls in the
    client's version; calls handed to it under its own names come last, and their responses take the
    name that the model used.
    """
    own_parts = [part for content in results_in("gemini", hop.results) for part in content["parts"]]
    if not (following and following[0].results):
        added = [_message_from({"role": "user", "parts": own_parts}, "gemini")] if own_parts else []
        return [*added, *following]
    next_message = following[0].value
    parts = (
        next_message["parts"]
        if isinstance(next_message["parts"], list)
        else [next_message["parts"]]
    )
    places = {block.place[-1] for block in following[0].results}
    client_parts = [
        part for n, part in enumerate(parts) if n in places or parts is not next_message["parts"]
    ]
    other_parts = [part for part in parts if part not in client_parts]
    hidden = [call for call, _ in hop.results]
    own = len(seen_calls) - len(hop.handed)
    client_calls = iter(seen_calls[:own])
    handed_calls = iter(seen_calls[own:])
    ordered = []
    for n, call in enumerate(turn_calls(hop.turn, "gemini")):
        if call in hidden:
            hidden.remove(call)
            ordered.append(own_parts.pop(0))
        elif client_parts:
            name = hop.handed[n].name if n in hop.handed else call.name
            client_call = next(handed_calls if n in hop.handed else client_calls, None)
            response = client_parts.pop(
                _answering(client_parts, client_call.id if client_call else "", name)
            )
            ordered.append(_as_answer_to(call, response))
    together = {**next_message, "parts": [*ordered, *own_parts, *client_parts, *other_parts]}
    return [_message_from(together, "gemini"), *following[1:]]


def _answering(responses: Sequence[Any], call_id: str, name: str) -> int:
    """Return the index of a call's response: by its id, else by its name, else the first."""
    named_responses = [_response(part) for part in responses]
    by_id = (
        n
        for n, (_, value) in enumerate(named_responses)
        if call_id and take(value, "id") == call_id
    )
    by_name = (n for n, (_, value) in enumerate(named_responses) if take(value, "name") == name)
    return next(by_id, next(by_name, 0))


def _as_answer_to(call: ModelCall, part: Any) -> Any:
    """Return a response with the name and id that the provider used for its call."""
    key, value = _response(part)
    if take(value, "id") == call.id and take(value, "name") == call.name:
        return part
    named = {name: field for name, field in value.items() if name not in ("id", "name")}
    return {**part, key: {**({"id": call.id} if call.id else {}), "name": call.name, **named}}


def _response(part: Any) -> tuple[str, Any]:
    key = "functionResponse" if "functionResponse" in part else "function_response"
    return key, part[key]


def _follow_chain(conversation: Conversation, kept: Sequence[HiddenTurn]) -> Conversation:
    """Continue from the last hop, unknown to the client, if the provider stores the history."""
    previous = conversation.rest.get("previous_response_id")
    answer = next((answer for answer in kept if previous and answer.seen_id == previous), None)
    if answer is None:
        return conversation
    body = write(conversation)
    if answer.last_id and answer.last_id != previous:
        body = splice(body, ("previous_response_id",), encode(answer.last_id))
        conversation = read(body, conversation.dialect)
    results = answer.hops[-1].results
    if not results:
        return conversation
    longer = _in_front(list(conversation.messages), answer.hops[-1], conversation.dialect)
    return conversation.with_messages(tuple(longer))


def _message(raw: bytes, dialect: str) -> Message:
    spoken = DIALECTS[dialect]
    return Message(raw, spoken.check(decode(raw), ()), spoken)


def _message_from(value: Any, dialect: str) -> Message:
    return _message(encode(value), dialect)
