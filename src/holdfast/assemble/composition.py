"""Compose a turn from its pieces, within its budget as it is serialized.

A working set is trimmed in a fixed order until the request fits. If none fits, the minimum is sent:
critical rules, the last answer and the user's turn, whose middle is cut as the last resort and
stored with a ref.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from holdfast.assemble.context import (
    PLAIN,
    TRIMMED,
    AssembledContext,
    ChatMessage,
    ContextBudget,
    TurnSource,
    request_body,
    tool_definitions,
)
from holdfast.assemble.header import CRITICAL, TurnHeader
from holdfast.assemble.history_compression import cut_middle, headline
from holdfast.assemble.intents import Intent
from holdfast.assemble.working_set import (
    ContextPiece,
    PartKind,
    TrimTarget,
    WorkingSet,
    memory_text,
    trim_to_fit,
)
from holdfast.cite import count as count_text
from holdfast.errors import BudgetExceededError
from holdfast.quoting import set_in
from holdfast.store.refs import digest
from holdfast.summarise.fidelity import ContentFidelityRecord, Rung
from holdfast.tokens import count
from holdfast.trim.excerpts import middle_cut

COUNTED_AS = "gpt-5"
"""The model for which requests are counted if none is named: most current models count like it."""


class TurnFrame(NamedTuple):
    """The fixed parts of a turn around its working set."""

    user_turn: str
    intent: Intent
    header: TurnHeader
    limit: int
    model: str = ""
    dialect: str = PLAIN
    opener: str = ""
    recall: str = ""
    tools: tuple[str, ...] = ()
    """Names of the tools in the directory."""
    cut_from: int = 0
    """Tokens of the user's turn before its middle was cut; 0 if it is complete."""
    cut_ref: str = ""

    @property
    def system(self) -> ChatMessage:
        """Return the header as a message."""
        return {"role": "system", "content": self.header.text}

    @property
    def user(self) -> ChatMessage:
        """Return the user's turn as a message."""
        return {"role": "user", "content": self.user_turn}

    @property
    def around(self) -> int:
        """Return the tokens of everything but the working set."""
        return self.size([self.system, self.user], self.opener, self.recall)

    @property
    def least(self) -> int:
        """Return the tokens of the critical rules and the complete user's turn."""
        return self.size([self._replace(header=TurnHeader(CRITICAL)).system, self.user], "", "")

    def size(self, messages: Sequence[ChatMessage], opener: str, recall: str) -> int:
        """Return the input tokens of the serialized request."""
        body = request_body(
            list(messages), tool_definitions(opener, recall), self.model, self.dialect
        )
        return count(body, model=self.model or COUNTED_AS, dialect=self.dialect).tokens


def compose(frame: TurnFrame, working: WorkingSet) -> AssembledContext | None:
    """Return a turn within its limit; None if no working set fits."""
    rendered: dict[int, _RenderedTurn] = {}

    def size(smaller: WorkingSet) -> int:
        messages = [frame.system, *_messages(frame, smaller)]
        used = frame.size(messages, frame.opener, frame.recall)
        rendered[id(smaller)] = _RenderedTurn(smaller, messages, used)
        return used

    result = trim_to_fit(working, size, frame.limit)
    if result is None:
        return None
    return _context(frame, rendered[id(result.working)], result.targets)


class _RenderedTurn(NamedTuple):
    """A working set with the messages to send."""

    working: WorkingSet
    messages: list[ChatMessage]
    used: int


def compose_minimal(frame: TurnFrame, working: WorkingSet, ref: str) -> AssembledContext:
    """Return the smallest turn that can be answered; `ref` has the user's turn if it is cut.

    Raises:
        BudgetExceededError: if not even the two ends of the user's turn fit.
    """
    answers = [each for each in working.history if each.role == "assistant"]
    least = frame._replace(header=TurnHeader(CRITICAL), tools=())
    smallest = 0
    for answer, turn, opener in _minimal_forms(answers[-1:], frame.user_turn, ref, frame.opener):
        working = WorkingSet(history=answer)
        reduced = least._replace(user_turn=turn, opener=opener, recall="")
        if turn != frame.user_turn:
            reduced = reduced._replace(cut_from=count_text(frame.user_turn), cut_ref=ref)
        messages = [reduced.system, *_messages(reduced, working)]
        smallest = reduced.size(messages, opener, "")
        if smallest <= frame.limit:
            return _context(reduced, _RenderedTurn(working, messages, smallest), (), TRIMMED)
    raise BudgetExceededError(
        "the user's turn does not fit the budget, not even its two ends",
        where="token_budget",
        fix=f"Give at least {smallest} tokens.",
        kind="input",
        limit=frame.limit,
        planned=smallest,
    )


def _minimal_forms(
    answer: Sequence[ContextPiece], turn: str, ref: str, opener: str
) -> Iterator[tuple[tuple[ContextPiece, ...], str, str]]:
    """Yield ever smaller turns: first a shorter last answer, then a shorter user's turn."""
    for each in answer:
        full_text = each.original or each.text
        yield (_with_text(each, full_text, Rung.RAW),), turn, ""
        yield (_with_text(each, *cut_middle(full_text)),), turn, ""
        yield (_with_text(each, *headline(full_text)),), turn, ""
    yield (), turn, ""
    # Halve the length each time, since the tokens of a cut text are known only after the cut. With
    # gpt-5 the tool costs 166 tokens: if those do not fit, only the record has the ref.
    for way in (opener, "") if ref else ():
        most = len(turn) // 2
        while most >= _LEAST_CHARACTERS:
            yield (), middle_cut(turn, most, ref if way else "", way), way
            most //= 2


_LEAST_CHARACTERS = 24
"""Minimum characters of the user's turn; fewer are useless."""


def _with_text(original: ContextPiece, text: str, level: Rung) -> ContextPiece:
    return msgspec.structs.replace(original, text=text, level=level, tokens=count_text(text))


# --- messages and their sources -----------------------------------------------------------------


def _messages(frame: TurnFrame, working: WorkingSet) -> list[ChatMessage]:
    """Return memory as a user message, recent pairs in their roles, and the user's turn last."""
    messages: list[ChatMessage] = []
    if working.remembers:
        text = memory_text(working, recall=frame.recall, opener=frame.opener)
        messages.append({"role": "user", "content": text})
    messages += [{"role": each.role, "content": _text_of(each)} for each in working.history]
    messages.append(frame.user)
    return messages


def _text_of(each: ContextPiece) -> str:
    """Return a piece's text.

    A full text is indented so that it cannot pass for our lines; a cut has ours.
    """
    return set_in(each.text) if each.level is Rung.RAW else each.text


def _context(
    frame: TurnFrame, rendered: _RenderedTurn, targets: tuple[TrimTarget, ...], *warnings: str
) -> AssembledContext:
    working = rendered.working
    if targets:
        warnings = (TRIMMED, *warnings)
    return AssembledContext(
        header=tuple(rendered.messages[:1]),
        working_set=tuple(rendered.messages[1:]),
        budget=ContextBudget(used=rendered.used, limit=frame.limit, warnings=warnings),
        lazy_tools=tuple(filter(None, (frame.opener, frame.recall, *frame.tools))),
        cache_key=_cache_key(frame, working),
        sources=tuple(_sources(frame, working)),
        intent=frame.intent,
        trimmed=targets,
        opener=frame.opener,
        recall=frame.recall,
    )


def _cache_key(frame: TurnFrame, working: WorkingSet) -> str:
    """Return a key that is equal for contexts that differ only in the user's turn."""
    pieces = [[each.kind, each.id, each.text] for each in working.pieces]
    return digest(msgspec.json.encode([frame.header.text, frame.dialect, frame.model, pieces]))


def _sources(frame: TurnFrame, working: WorkingSet) -> Iterator[TurnSource]:
    parts: tuple[tuple[PartKind, str], ...] = (
        ("rules", frame.header.rules),
        ("tools", frame.header.directory),
        ("profile", frame.header.profile_card),
    )
    for part, text in parts:
        if text:
            tokens = count_text(text)
            record = ContentFidelityRecord(
                source_id=part, phase="header", tokens_from=tokens, tokens_to=tokens
            )
            yield TurnSource(part=part, id=part, message=0, tokens=tokens, fidelity=record)
    history_start = 1 + working.remembers
    for each in (*working.facts, *working.recalled, *working.summaries):
        yield _source(each, 1)
    for place, each in enumerate(working.history, history_start):
        yield _source(each, place)
    tokens = count_text(frame.user_turn)
    record = ContentFidelityRecord(
        source_id="user_turn",
        phase="user",
        level=Rung.TRUNCATED if frame.cut_ref else Rung.RAW,
        tokens_from=frame.cut_from or tokens,
        tokens_to=tokens,
        truncated=bool(frame.cut_ref),
        reason="it alone is more than the budget" if frame.cut_ref else "",
        ref=frame.cut_ref,
    )
    at = history_start + len(working.history)
    yield TurnSource(part="user", id="user_turn", message=at, tokens=tokens, fidelity=record)


def _source(each: ContextPiece, message: int) -> TurnSource:
    record = ContentFidelityRecord(
        source_id=each.id,
        phase=each.kind,
        level=each.level,
        priority=each.score,
        tokens_from=each.whole,
        tokens_to=each.tokens,
        truncated=each.level is Rung.TRUNCATED,
        reason="" if each.level is Rung.RAW else "older turns are shown shorter",
        ref=each.id if each.kind == "summary" else "",
    )
    return TurnSource(
        part=each.kind,
        id=each.id,
        message=message,
        tokens=each.tokens,
        score=each.score,
        stale=each.stale,
        fidelity=record,
    )
