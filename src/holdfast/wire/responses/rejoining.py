"""Bring the hidden calls of earlier answers back into a client's request.

rejoining: after turns and marks. The client never saw the hidden calls, so its next request is
without them and their results. The provider must have them: it is shown its own turn again,
exactly, with all that was answered. Every message beside keeps its very bytes. What an answer
held goes back only behind the very history that it answered: "Hello!" is what many conversations
were answered, and what one of them opened is no business of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.wire import DIALECTS, Conversation, Message, Text, ToolCall, read, write
from holdfast.wire.places import places
from holdfast.wire.responses.marks import with_marks
from holdfast.wire.responses.shared import Call, Hidden
from holdfast.wire.responses.turns import Hop, Kept, results_in, sendable, split, turn_calls
from holdfast.wire.strict import decode, encode, splice
from holdfast.wire.values import take

Run = tuple[int, int]
"""Where a turn of the assistant stands: from the first index to behind the last."""


def rejoin(
    conversation: Conversation,
    kept: Sequence[Kept],
    hidden: Hidden,
    before: Sequence[Message] = (),
) -> Conversation:
    """The client's request with the hidden calls of earlier answers back in their places.

    `before` are the client's messages that stand before those of the conversation. An answer that
    the client has changed or dropped is left as the client has it. If nothing is brought back, the
    very conversation is given back; else all messages beside are the same ones.
    """
    if conversation.dialect == "openai-responses":
        conversation = _follow_chain(conversation, kept)
    messages = list(conversation.messages)
    answers = _find(messages, kept, conversation.dialect, hidden, before)
    for (start, stop), answer in sorted(answers.items(), key=lambda item: item[0], reverse=True):
        shown, following = messages[start:stop], messages[stop:]
        messages[start:] = _with_hidden(shown, following, answer, conversation)
    return conversation.with_messages(tuple(messages)) if answers else conversation


# --- where the client has an answer ------------------------------------------------------------

Key = tuple[str, object]


class Look(NamedTuple):
    """What a turn is known by in its place: its calls, or if it has none its words.

    Clients change the rest, and white space; and a user may have written another answer there.
    """

    ids: tuple[str, ...] = ()
    """Of its calls; empty unless each has one."""
    uses: tuple[tuple[str, bytes], ...] = ()
    """Names and arguments of its calls."""
    words: str = ""

    @property
    def keys(self) -> list[Key]:
        """What to look it up by, the surest first."""
        if self.uses:
            return [*([("ids", self.ids)] if self.ids else []), ("uses", self.uses)]
        return [("words", self.words)] if self.words else []

    def may_be(self, other: Look) -> bool:
        """Whether ids do not tell two looks apart that are equal else."""
        # Gemini may send calls without ids, and clients then drop the field or make ids up (as
        # Pydantic AI and Gemini CLI do): only ids on both sides can say that a call is another.
        return not (self.ids and other.ids) or self.ids == other.ids


def _find(
    messages: Sequence[Message],
    kept: Sequence[Kept],
    dialect: str,
    hidden: Hidden,
    before: Sequence[Message],
) -> dict[Run, Kept]:
    """Where the client's versions of answers stand: runs of assistant messages."""
    if not kept:
        return {}
    behind = places((*before, *messages), len(before))
    runs: dict[Key, list[tuple[Run, Look]]] = {}
    for start, stop in _runs(messages):
        look = _look(messages[start:stop])
        for key in look.keys:
            runs.setdefault(key, []).append(((start, stop), look))
    answers: dict[Run, Kept] = {}
    for answer in reversed(kept):  # of several to one question, the last that looks like it
        alike = [
            run
            for look in _looks(answer, dialect, hidden)
            for key in look.keys
            for run, other in runs.get(key, ())
            if run not in answers
            and look.may_be(other)
            # A client may have begun the turn itself (Anthropic's prefill): then the answer
            # stands inside of the run.
            and (not answer.place or answer.place in behind[run[0] : run[1]])
        ]
        if alike:
            answers[min(alike, key=lambda run: abs(run[0] - answer.index))] = answer
    return answers


def _runs(messages: Sequence[Message]) -> list[Run]:
    """The turns of the assistant: messages or items that follow each other."""
    runs: list[Run] = []
    for n, message in enumerate(messages):
        if message.role != "assistant":
            continue
        if runs and runs[-1][1] == n:
            runs[-1] = (runs[-1][0], n + 1)
        else:
            runs.append((n, n + 1))
    return runs


def _looks(answer: Kept, dialect: str, hidden: Hidden) -> list[Look]:
    """What the client's version of an answer may be known by."""
    shown = [
        _message(raw, dialect) for hop in answer.hops for raw in split(hop.turn, dialect, hidden)
    ]
    look = _look(shown, [call for hop in answer.hops for _, call in sorted(hop.handed.items())])
    if look.uses:
        return [look]
    return [look, look._replace(words=look.words + _squeezed(answer.note))]


def _look(messages: Sequence[Message], handed: Sequence[Call] = ()) -> Look:
    calls: list[ToolCall | Call] = [call for message in messages for call in message.calls]
    calls += handed
    if calls:
        ids = tuple(call.id for call in calls)
        uses = tuple((call.name, _canonical(call.arguments)) for call in calls)
        return Look(ids if all(ids) else (), uses)
    words = [b.text for message in messages for b in message.blocks if isinstance(b, Text)]
    return Look(words=_squeezed("".join(words)))


def _squeezed(words: str) -> str:
    return "".join(words.split())


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


# Clients that go through protobuf send every number as a float, and keys in an order of their own.
_arguments = msgspec.json.Decoder(float_hook=_number).decode
_sorted = msgspec.json.Encoder(order="sorted").encode


def _canonical(arguments: Any) -> bytes:
    """Arguments as bytes that do not depend on how they were spelled."""
    text = arguments.encode() if isinstance(arguments, str) else encode(arguments or {})
    try:
        return _sorted(_arguments(text))
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return text


# --- the answer in its place -------------------------------------------------------------------


def _with_hidden(
    shown: list[Message], following: list[Message], answer: Kept, conversation: Conversation
) -> list[Message]:
    """An answer with all its hops, and the messages that follow it."""
    dialect = conversation.dialect
    whole: list[Message] = []
    for hop in answer.hops[:-1]:
        whole.extend(_message(raw, dialect) for raw in sendable(hop.turn, conversation))
        whole.extend(_composed(value, dialect) for value in results_in(dialect, hop.results))
    last = answer.hops[-1]
    whole.extend(_message(raw, dialect) for raw in sendable(last.turn, conversation))
    whole = with_marks(whole, shown)
    if dialect == "gemini":
        calls = [call for message in shown for call in message.calls]
        if last.results or last.handed or _has_other_ids(calls, last):
            return [*whole, *_in_order(following, last, calls)]
    if not last.results:
        return [*whole, *following]
    if dialect == "anthropic":
        return [*whole, *_in_one_message(following, last)]
    return [*whole, *_in_front(following, last, dialect)]


def _in_front(following: list[Message], hop: Hop, dialect: str) -> list[Message]:
    """Results as messages of their own, before those of the client."""
    return [*(_composed(value, dialect) for value in results_in(dialect, hop.results)), *following]


def _in_one_message(following: list[Message], hop: Hop) -> list[Message]:
    """Anthropic: all results stand in the user message that follows, before anything else."""
    [ours] = results_in("anthropic", hop.results)
    if not (following and following[0].role == "user"):
        return [_composed(ours, "anthropic"), *following]
    given = following[0].value
    content = given["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    together = {**given, "content": [*ours["content"], *parts]}
    return [_composed(together, "anthropic"), *following[1:]]


def _has_other_ids(seen_calls: Sequence[ToolCall], hop: Hop) -> bool:
    """Return whether the client gave calls ids that the provider did not: its results have them."""
    return [call.id for call in seen_calls] != [call.id for call in turn_calls(hop.turn, "gemini")]


def _in_order(following: list[Message], hop: Hop, seen_calls: Sequence[ToolCall]) -> list[Message]:
    """Gemini: as many responses as calls in one content, in their order, for ids may be missing.

    `seen_calls` are the visible calls as the client has them: those that were handed to it under
    names of its own stand last, and are answered under the name that the model has used.
    """
    ours = [part for content in results_in("gemini", hop.results) for part in content["parts"]]
    if not (following and following[0].results):
        added = [_composed({"role": "user", "parts": ours}, "gemini")] if ours else []
        return [*added, *following]
    given = following[0].value
    parts = given["parts"] if isinstance(given["parts"], list) else [given["parts"]]
    places = {block.place[-1] for block in following[0].results}
    theirs = [part for n, part in enumerate(parts) if n in places or parts is not given["parts"]]
    rest = [part for part in parts if part not in theirs]
    hidden = [call for call, _ in hop.results]
    own = len(seen_calls) - len(hop.handed)
    client_calls = iter(seen_calls[:own])
    handed_calls = iter(seen_calls[own:])
    ordered = []
    for n, call in enumerate(turn_calls(hop.turn, "gemini")):
        if call in hidden:
            hidden.remove(call)
            ordered.append(ours.pop(0))
        elif theirs:
            name = hop.handed[n].name if n in hop.handed else call.name
            seen = next(handed_calls if n in hop.handed else client_calls, None)
            response = theirs.pop(_answering(theirs, seen.id if seen else "", name))
            ordered.append(_as_answer_to(call, response))
    together = {**given, "parts": [*ordered, *ours, *theirs, *rest]}
    return [_composed(together, "gemini"), *following[1:]]


def _answering(responses: Sequence[Any], call_id: str, name: str) -> int:
    """Which response answers a call: that with its id, else of its name, else the first."""
    given = [_response(part) for part in responses]
    by_id = (n for n, (_, value) in enumerate(given) if call_id and take(value, "id") == call_id)
    by_name = (n for n, (_, value) in enumerate(given) if take(value, "name") == name)
    return next(by_id, next(by_name, 0))


def _as_answer_to(call: Call, part: Any) -> Any:
    """A response with the name of its call and its id as the provider gave it, or with none."""
    key, value = _response(part)
    if take(value, "id") == call.id and take(value, "name") == call.name:
        return part
    named = {name: field for name, field in value.items() if name not in ("id", "name")}
    return {**part, key: {**({"id": call.id} if call.id else {}), "name": call.name, **named}}


def _response(part: Any) -> tuple[str, Any]:
    key = "functionResponse" if "functionResponse" in part else "function_response"
    return key, part[key]


def _follow_chain(conversation: Conversation, kept: Sequence[Kept]) -> Conversation:
    """Where the provider keeps the history: go on from the last hop, which the client never saw."""
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


def _composed(value: Any, dialect: str) -> Message:
    return _message(encode(value), dialect)
