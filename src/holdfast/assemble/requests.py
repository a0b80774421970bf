"""A client's request, assembled: its rules and its last turn as they came, memory between the two.

requests: after composing. A client that sends its whole history gets the same answers for a
request of a fixed size: what was said lately stays as it is or gets shorter with age, and quoted
memory stands for all the rest. Each message that goes out stands for the client's messages in
whose place it is, so that these can be rebuilt byte for byte. What is sent inside a tool exchange
is never assembled: it goes on from what was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from holdfast.assemble.ageing import cut, line
from holdfast.assemble.intents import TOKEN_BUDGET
from holdfast.assemble.working_set import (
    Piece,
    WorkingSet,
    in_form,
    memory_text,
    piece,
    trimmed,
)
from holdfast.expand.recalling import recall_tool
from holdfast.fitting import FitOptions, FitState, Fitted
from holdfast.fitting.cite_results import expansion_tool
from holdfast.fitting.draft import Draft, copied, standing_for, where
from holdfast.fitting.measure import Measure
from holdfast.fitting.originals import Originals
from holdfast.fitting.tool_offers import ask_for_usage, offer, offer_recall
from holdfast.store.records import Edit
from holdfast.summarise.fidelity import Rung
from holdfast.tokens.counter import Correction
from holdfast.trim.anchors import asks
from holdfast.trim.provenance import REPLACEMENT, Fold, Replacement
from holdfast.wire import (
    DIALECTS,
    Conversation,
    Entry,
    Message,
    Role,
    Text,
    stays,
    validate,
    write,
)
from holdfast.wire.chained import held_under
from holdfast.wire.rules.openai_chat import MOST_TOOLS
from holdfast.wire.running import RunningNote
from holdfast.wire.strict import encode


class Spoken(NamedTuple):
    """A request's messages: rules before, history between, the user's turn behind."""

    start: int
    """Index of the first message of the history."""
    stop: int
    """Index of the first message of the user's turn."""


class Turn(NamedTuple):
    """What a request is assembled of."""

    working: WorkingSet = WorkingSet()
    places: Mapping[str, int] = {}
    """Where the pieces of its history stand in the request, by their ids; those that another
    device has said stand nowhere."""
    budget: int = TOKEN_BUDGET["total"]
    """Most input tokens."""
    opens: bool = True
    """Whether refs may be shown, with the tool that opens them."""


def spoken(asked: Conversation) -> Spoken | None:
    """How a request is divided; None if it is not to be assembled.

    That is a request inside a tool exchange, one whose history the provider holds, and one with
    messages that act by their place.
    """
    messages = asked.messages
    stop = len(messages)
    while stop and messages[stop - 1].role in ("user", "system"):
        stop -= 1
    turn = messages[stop:]
    if not any(map(asks, turn)) or any(message.results for message in turn) or held_under(asked):
        return None
    start = 0
    while start < stop and messages[start].role == "system":
        start += 1
    return None if _STAYS.over(asked) else Spoken(start, stop)


def _any_stays(known: bool, messages: Sequence[Message]) -> bool:
    return known or any(map(stays, messages))


_STAYS: RunningNote[bool] = RunningNote("any stays", False, _any_stays)
"""Whether a request has a message that acts by its place: only what was added is looked at."""


def said_in(message: Message) -> str:
    """The words of a message."""
    return "\n".join(block.text for block in message.blocks if isinstance(block, Text)).strip()


def history_of(
    asked: Conversation, parts: Spoken, names: Mapping[int, str], pairs: int
) -> list[Piece]:
    """The last pairs of a request's history, whole: questions, and the last answer to each.

    `names` are the ids of its messages by their places. Calls and results between the two are left
    to memory.
    """
    pieces: list[Piece] = []
    has_answer = False
    for place in range(parts.stop - 1, parts.start - 1, -1):
        message = asked.messages[place]
        words = said_in(message)
        if asks(message):
            if words:
                pieces.append(_said(names[place], "user", words))
            has_answer = False
            pairs -= 1
            if not pairs:
                break
        elif message.role == "assistant" and words and not has_answer:
            pieces.append(_said(names[place], "assistant", words))
            has_answer = True
    return pieces[::-1]


def _said(name: str, role: str, words: str) -> Piece:
    return piece("history", name, words, role=role, original=words)


# --- the request that goes out -------------------------------------------------------------------


class Room(NamedTuple):
    """How much of a budget is left for history."""

    tokens: int
    over: bool
    """Whether all of the request is more than the budget."""


def room_of(
    asked: Conversation,
    parts: Spoken,
    options: FitOptions,
    turn: Turn,
    calibration: Correction | None = None,
) -> Room:
    """The room that a client's own rules, tools and last turn leave."""
    measure = _of_turn(Measure.of(asked, options, calibration), turn.budget)
    around = asked.messages[: parts.start] + asked.messages[parts.stop :]
    now = _with_tools(_draft(asked), options, turn).now.with_messages(around)
    size = measure.size(measure.count(asked))
    return Room(measure.most - measure.size(measure.count(now)), size > measure.most)


def _of_turn(measure: Measure, budget: int) -> Measure:
    """The measure of an assembled turn: its budget is somebody's wish, no model's bound."""
    return msgspec.structs.replace(measure, most=min(budget, measure.most), by_bound=False)


def _draft(asked: Conversation) -> Draft:
    return Draft(asked, asked, tuple((n, n + 1) for n in range(len(asked.messages))))


def assembled_request(
    asked: Conversation, options: FitOptions, turn: Turn, calibration: Correction | None = None
) -> Fitted | None:
    """The request within the budget of its turn; None if it cannot be assembled so.

    Whoever gets None makes it fit as any other: it may be that the client's own rules and tools
    leave no room, or that something would leave which may not be stored.
    """
    parts = spoken(asked)
    if parts is None:
        return None
    measure = Measure.of(asked, options, calibration)
    of_turn = _of_turn(measure, turn.budget)
    draft = _with_tools(_draft(asked), options, turn)
    writing = _Writing(draft, parts, turn, of_turn)

    def size(working: WorkingSet) -> int:
        messages = writing.messages(working)
        return of_turn.size(of_turn.count(draft.now.with_messages(messages)))

    working = next(_fitting(turn.working, size, of_turn.most), None)
    if working is None:
        return None
    messages = writing.messages(working)
    draft = draft.with_messages(messages, *writing.edits(messages))
    originals = Originals(options.rules)
    if originals.would_lose(asked.messages, messages) or validate(draft.now, model=measure.model):
        return None
    if options.reports_usage:
        draft = ask_for_usage(draft, new=True)
    return Fitted(
        body=write(draft.now),
        count=measure.count(draft.now),
        limit=measure.most,
        edits=draft.edits,
        state=FitState(
            asked=asked,
            sent=draft.now,
            origins=draft.origins,
            frame_edits=draft.frame_edits,
            refs=bool(writing.opener),
        ),
        asked_count=measure.count(asked),
    )


def _with_tools(draft: Draft, options: FitOptions, turn: Turn) -> Draft:
    """The two tools, so that the model can ask for what was left out."""
    hosted = any(tool.hosted for tool in draft.asked.tools)  # Gemini refuses ours beside these
    full = draft.asked.dialect == "openai-chat" and len(draft.asked.tools) + 2 > MOST_TOOLS
    if not options.opens or full or (hosted and draft.asked.dialect == "gemini"):
        return draft
    if turn.opens:
        draft = offer(draft, options, new=True)
    return offer_recall(draft, new=True)


def _fitting(
    working: WorkingSet, size: Callable[[WorkingSet], int], most: int
) -> Iterator[WorkingSet]:
    """Sets that fit, the largest first: trimmed in the seed's order, else the least (004-67)."""
    if fitting := trimmed(working, size, most):
        yield fitting.working
    answers = [said for said in working.history if said.role == "assistant"][-1:]
    for form in (cut, line):
        shorter = tuple(in_form(said, *form(said.original)) for said in answers)
        if shorter and size(least := WorkingSet(history=shorter)) <= most:
            yield least
    if size(WorkingSet()) <= most:
        yield WorkingSet()


class _Writing:
    """Writes the messages of one request for any working set, and says what each stands for."""

    def __init__(self, draft: Draft, parts: Spoken, turn: Turn, measure: Measure) -> None:
        self._asked = draft.asked
        self._parts = parts
        self._places = turn.places
        self._measure = measure
        self._each = measure.count(draft.asked).message_tokens
        """Of each of the client's messages; nothing where a counter of its own counts the whole."""
        self._why = f"the turn is assembled within {measure.most:,} tokens"
        self.opener = expansion_tool(draft.now)[0] if expansion_tool(draft.now)[1] else ""
        self._recall = recall_tool(draft.now)[0] if recall_tool(draft.now)[1] else ""

    def messages(self, working: WorkingSet) -> tuple[Message, ...]:
        """The client's rules, memory, recent history, the user's turn."""
        asked, parts = self._asked.messages, self._parts
        shown = {self._places[said.id]: said for said in working.history if said.id in self._places}
        elsewhere = [said for said in working.history if said.id not in self._places]
        kept = {n for n in range(parts.start, parts.stop) if asked[n].role == "system"}
        first = min((*shown, *kept), default=parts.stop)
        left_out = asked[parts.start : first]
        messages = list(asked[: parts.start])
        if left_out or working.remembers:
            messages.append(self._memory(working, left_out))
        messages += [self._added(said) for said in elsewhere]
        pending: list[Message] = []
        for n in range(first, parts.stop):
            if n in shown or n in kept:
                messages.append(self._shown(n, shown.get(n), pending))
                pending = []
            else:
                pending.append(asked[n])
        turn = list(asked[parts.stop :])
        if pending:
            turn[0] = self._shown(parts.stop, None, pending)
        return (*messages, *turn)

    def edits(self, messages: Sequence[Message]) -> list[Edit]:
        """All that was done to them."""
        stands = (REPLACEMENT.get(message) for message in messages)
        return [edit for stand in stands if stand is not None for edit in stand.edits]

    def _memory(self, working: WorkingSet, left_out: tuple[Message, ...]) -> Message:
        text = memory_text(working, recall=self._recall, opener=self.opener)
        message = self._composed("user", text)
        start = self._parts.start
        stop = start + len(left_out)
        tokens = sum(self._each[start:stop]) if self._each else self._tokens(left_out)
        edit = Edit(
            action="assemble",
            what="quoted memory stands for earlier messages",
            why=self._why,
            where=where(start, stop),
            from_tokens=round(tokens),
            to_tokens=round(self._tokens((message,))),
            start=start,
            stop=stop,
        )
        refs = tuple(summary.id for summary in working.summaries)
        # It is a digest of what the client sent, and may be folded as one.
        fold = Fold(start, stop, tokens, refs=refs) if left_out else None
        REPLACEMENT.put(message, Replacement(left_out, (edit,), refs, fold))
        return message

    def _added(self, said: Piece) -> Message:
        """Something that was said on another device."""
        message = self._composed(said.role, said.text)
        at = self._parts.start
        edit = Edit(
            action="assemble",
            what="brought back what was said on another device",
            why=self._why,
            where=where(at, at),
            to_tokens=said.tokens,
            start=at,
            stop=at,
        )
        return standing_for(message, (), (edit,))

    def _shown(self, place: int, said: Piece | None, pending: Sequence[Message]) -> Message:
        """One of the client's messages as it goes out, and those left out right before it."""
        own = self._asked.messages[place]
        whole = said is None or (said.level is Rung.RAW and _is_plain(own))
        if whole and not pending:
            return own
        message = copied(own) if whole or said is None else self._composed(said.role, said.text)
        edits = []
        if pending:
            start = place - len(pending)
            edits.append(
                Edit(
                    action="assemble",
                    what="left out calls and results between a question and its answer",
                    why=self._why,
                    where=where(start, place),
                    from_tokens=round(self._tokens(tuple(pending))),
                    start=start,
                    stop=place,
                )
            )
        if not whole:
            edits.append(
                Edit(
                    action="assemble",
                    what="shortened an earlier message by its age",
                    why=self._why,
                    where=where(place, place + 1),
                    from_tokens=round(self._tokens((own,))),
                    to_tokens=round(self._tokens((message,))),
                    start=place,
                    stop=place + 1,
                )
            )
        return standing_for(message, (*pending, own), tuple(edits), own=len(pending))

    def _composed(self, role: str, text: str) -> Message:
        dialect = DIALECTS[self._asked.dialect]
        speaker: Role = "assistant" if role == "assistant" else "user"
        [value] = dialect.compose([Entry(speaker, (Text(text=text),))])
        return Message(encode(value), speaker, dialect)

    def _tokens(self, messages: tuple[Message, ...]) -> float:
        return self._measure.tokens(self._asked, messages) if messages else 0.0


def _is_plain(message: Message) -> bool:
    """Whether a message may stand without what stood around it.

    A call needs its result, and thinking or an item made with reasoning what it was made with (R2):
    of such an answer only the words go out, written anew.
    """
    if message.role == "user":
        return not message.results
    value = message.parsed
    named = isinstance(value, dict) and message.dialect == "openai-responses" and "id" in value
    return not named and all(isinstance(block, Text) for block in message.blocks)
