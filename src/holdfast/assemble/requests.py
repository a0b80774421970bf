"""Assemble a client's request: its own rules and last turn, with memory in place of the history.

Requests get a fixed size: recent messages are shortened with age, and quoted memory replaces the
rest. Each message that is sent records the client's messages that it replaces, so that these can be
rebuilt byte for byte. A request inside a tool exchange is never assembled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from holdfast.assemble.history_compression import cut_middle, headline
from holdfast.assemble.intents import TOKEN_BUDGET
from holdfast.assemble.working_set import (
    ContextPiece,
    WorkingSet,
    make_piece,
    memory_text,
    replace_text,
    trim_to_fit,
)
from holdfast.expand.turn_recall import recall_tool
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
from holdfast.wire.prefix_values import PrefixNote
from holdfast.wire.rules.openai_chat import MOST_TOOLS
from holdfast.wire.stored_history import stored_history_id
from holdfast.wire.strict import encode


class RequestParts(NamedTuple):
    """The parts of a request's messages: rules before, history between, the user's turn after."""

    start: int
    """Index of the first message of the history."""
    stop: int
    """Index of the first message of the user's turn."""


class TurnMaterial(NamedTuple):
    """The material for an assembled request."""

    working: WorkingSet = WorkingSet()
    places: Mapping[str, int] = {}
    """Indexes of the history's pieces in the request, by id; pieces from another device have none.
    """
    budget: int = TOKEN_BUDGET["total"]
    """Maximum input tokens."""
    opens: bool = True
    """Whether refs may be shown, with the tool that opens them."""


def split_request(asked: Conversation) -> RequestParts | None:
    """Split a request into its parts; None if it must not be assembled.

    It is not assembled inside a tool exchange, if the provider holds its history, or if it has
    messages that act by their position.
    """
    messages = asked.messages
    stop = len(messages)
    while stop and messages[stop - 1].role in ("user", "system"):
        stop -= 1
    turn = messages[stop:]
    if (
        not any(map(asks, turn))
        or any(message.results for message in turn)
        or stored_history_id(asked)
    ):
        return None
    start = 0
    while start < stop and messages[start].role == "system":
        start += 1
    return None if _HAS_FIXED.over(asked) else RequestParts(start, stop)


def _any_fixed(known: bool, messages: Sequence[Message]) -> bool:
    return known or any(map(stays, messages))


_HAS_FIXED: PrefixNote[bool] = PrefixNote("any stays", False, _any_fixed)
"""Whether a request has a message that acts by its position; only added messages are checked."""


def message_text(message: Message) -> str:
    """Return the text of a message."""
    return "\n".join(block.text for block in message.blocks if isinstance(block, Text)).strip()


def recent_history(
    asked: Conversation, parts: RequestParts, names: Mapping[int, str], pairs: int
) -> list[ContextPiece]:
    """Return the last pairs of a request's history in full: questions, and the last answer to each.

    `names` has the ids of its messages by index. Calls and results in between are left to memory.
    """
    pieces: list[ContextPiece] = []
    has_answer = False
    for place in range(parts.stop - 1, parts.start - 1, -1):
        message = asked.messages[place]
        words = message_text(message)
        if asks(message):
            if words:
                pieces.append(_history_piece(names[place], "user", words))
            has_answer = False
            pairs -= 1
            if not pairs:
                break
        elif message.role == "assistant" and words and not has_answer:
            pieces.append(_history_piece(names[place], "assistant", words))
            has_answer = True
    return pieces[::-1]


def _history_piece(name: str, role: str, words: str) -> ContextPiece:
    return make_piece("history", name, words, role=role, original=words)


# --- the assembled request ------------------------------------------------------------------------


class HistoryBudget(NamedTuple):
    """The tokens that a budget leaves for history."""

    tokens: int
    over: bool
    """Whether the request as a whole exceeds the budget."""


def history_budget(
    asked: Conversation,
    parts: RequestParts,
    options: FitOptions,
    turn: TurnMaterial,
    calibration: Correction | None = None,
) -> HistoryBudget:
    """Return the tokens that a client's own rules, tools and last turn leave."""
    measure = _turn_measure(Measure.of(asked, options, calibration), turn.budget)
    around = asked.messages[: parts.start] + asked.messages[parts.stop :]
    now = _with_tools(_draft(asked), options, turn).now.with_messages(around)
    size = measure.size(measure.count(asked))
    return HistoryBudget(measure.most - measure.size(measure.count(now)), size > measure.most)


def _turn_measure(measure: Measure, budget: int) -> Measure:
    """Return the measure of a turn: its budget is a user's choice, not a model's limit."""
    return msgspec.structs.replace(measure, most=min(budget, measure.most), by_bound=False)


def _draft(asked: Conversation) -> Draft:
    return Draft(asked, asked, tuple((n, n + 1) for n in range(len(asked.messages))))


def assemble_request(
    asked: Conversation,
    options: FitOptions,
    turn: TurnMaterial,
    calibration: Correction | None = None,
) -> Fitted | None:
    """Return the request within its turn's budget; None if it cannot be assembled.

    The caller then fits it like any other: the client's own rules and tools may leave no tokens, or
    a part may have to be dropped that may not be stored.
    """
    parts = split_request(asked)
    if parts is None:
        return None
    measure = Measure.of(asked, options, calibration)
    of_turn = _turn_measure(measure, turn.budget)
    draft = _with_tools(_draft(asked), options, turn)
    writing = _RequestWriter(draft, parts, turn, of_turn)

    def size(working: WorkingSet) -> int:
        messages = writing.messages(working)
        return of_turn.size(of_turn.count(draft.now.with_messages(messages)))

    working = next(_fitting_sets(turn.working, size, of_turn.most), None)
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


def _with_tools(draft: Draft, options: FitOptions, turn: TurnMaterial) -> Draft:
    """Offer the two tools with which the model can ask for omitted messages."""
    hosted = any(tool.hosted for tool in draft.asked.tools)  # Gemini rejects ours beside these
    full = draft.asked.dialect == "openai-chat" and len(draft.asked.tools) + 2 > MOST_TOOLS
    if not options.opens or full or (hosted and draft.asked.dialect == "gemini"):
        return draft
    if turn.opens:
        draft = offer(draft, options, new=True)
    return offer_recall(draft, new=True)


def _fitting_sets(
    working: WorkingSet, size: Callable[[WorkingSet], int], most: int
) -> Iterator[WorkingSet]:
    """Yield sets that fit, largest first: trimmed in the fixed order, then the minimum."""
    if fitting := trim_to_fit(working, size, most):
        yield fitting.working
    answers = [each for each in working.history if each.role == "assistant"][-1:]
    for form in (cut_middle, headline):
        shorter = tuple(replace_text(each, *form(each.original)) for each in answers)
        if shorter and size(least := WorkingSet(history=shorter)) <= most:
            yield least
    if size(WorkingSet()) <= most:
        yield WorkingSet()


class _RequestWriter:
    """Writes a request's messages for any working set; each records the replaced ones."""

    def __init__(
        self, draft: Draft, parts: RequestParts, turn: TurnMaterial, measure: Measure
    ) -> None:
        self._asked = draft.asked
        self._parts = parts
        self._places = turn.places
        self._measure = measure
        self._each = measure.count(draft.asked).message_tokens
        """Tokens of each of the client's messages; empty if the counter counts only whole requests.
        """
        self._why = f"the turn is assembled within {measure.most:,} tokens"
        self.opener = expansion_tool(draft.now)[0] if expansion_tool(draft.now)[1] else ""
        self._recall = recall_tool(draft.now)[0] if recall_tool(draft.now)[1] else ""

    def messages(self, working: WorkingSet) -> tuple[Message, ...]:
        """Return the client's rules, memory, recent history and the user's turn."""
        client_messages, parts = self._asked.messages, self._parts
        history = {
            self._places[each.id]: each for each in working.history if each.id in self._places
        }
        from_elsewhere = [each for each in working.history if each.id not in self._places]
        system_indexes = {
            n for n in range(parts.start, parts.stop) if client_messages[n].role == "system"
        }
        first = min((*history, *system_indexes), default=parts.stop)
        left_out = client_messages[parts.start : first]
        messages = list(client_messages[: parts.start])
        if left_out or working.remembers:
            messages.append(self._memory(working, left_out))
        messages += [self._message_from_elsewhere(each) for each in from_elsewhere]
        pending: list[Message] = []
        for n in range(first, parts.stop):
            if n in history or n in system_indexes:
                messages.append(self._render(n, history.get(n), pending))
                pending = []
            else:
                pending.append(client_messages[n])
        turn = list(client_messages[parts.stop :])
        if pending:
            turn[0] = self._render(parts.stop, None, pending)
        return (*messages, *turn)

    def edits(self, messages: Sequence[Message]) -> list[Edit]:
        """Return the edits of all messages."""
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
        # It is a digest of the client's messages and may be folded like one.
        fold = Fold(start, stop, tokens, refs=refs) if left_out else None
        REPLACEMENT.put(message, Replacement(left_out, (edit,), refs, fold))
        return message

    def _message_from_elsewhere(self, said: ContextPiece) -> Message:
        """Return a message that was sent on another device."""
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

    def _render(
        self, place: int, history: ContextPiece | None, pending: Sequence[Message]
    ) -> Message:
        """Return a client's message as it is sent; it replaces the omitted ones before it."""
        own = self._asked.messages[place]
        is_complete = history is None or (history.level is Rung.RAW and _is_plain(own))
        if is_complete and not pending:
            return own
        message = (
            copied(own)
            if is_complete or history is None
            else self._composed(history.role, history.text)
        )
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
        if not is_complete:
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
    """Return whether a message may be kept without its neighbours.

    A call needs its result; thinking and items made with reasoning need what they were made with.
    Of such an answer only the text is sent.
    """
    if message.role == "user":
        return not message.results
    value = message.parsed
    has_item_id = (
        isinstance(value, dict) and message.dialect == "openai-responses" and "id" in value
    )
    return not has_item_id and all(isinstance(block, Text) for block in message.blocks)
