"""A turn made of its pieces: messages that are counted as they are sent, and fit or do not go.

composing: after gathering; pure. A working set is trimmed in the seed's order until the serialized
request fits. Where none does, the least that can be answered goes out: critical rules, the last
answer, the user's turn (004-67), of which the middle is cut as the very last resort. Whatever is
cut there is kept behind a ref, and the tool that opens it is offered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from holdfast.assemble.ageing import cut, line
from holdfast.assemble.context import (
    PLAIN,
    TRIMMED,
    AssembledContext,
    BudgetInfo,
    ChatMessage,
    TurnSource,
    request_body,
    tool_definitions,
)
from holdfast.assemble.header import CRITICAL, Header
from holdfast.assemble.intents import Intent
from holdfast.assemble.working_set import (
    PartKind,
    Piece,
    TrimTarget,
    WorkingSet,
    memory_text,
    trimmed,
)
from holdfast.cite import count as count_text
from holdfast.errors import BudgetExceededError
from holdfast.quoting import set_in
from holdfast.store.refs import digest
from holdfast.summarise.fidelity import ContentFidelityRecord, Rung
from holdfast.tokens import count
from holdfast.trim.excerpts import middle_cut

COUNTED_AS = "gpt-5"
"""The model that requests are counted for where none is named: most of today's count like it."""


class Frame(NamedTuple):
    """What a turn is composed around."""

    user_turn: str
    intent: Intent
    header: Header
    limit: int
    model: str = ""
    dialect: str = PLAIN
    opener: str = ""
    recall: str = ""
    tools: tuple[str, ...] = ()
    """Names of the directory."""
    cut_from: int = 0
    """Tokens of the user's turn before its middle was cut out; 0: it stands whole."""
    cut_ref: str = ""

    @property
    def system(self) -> ChatMessage:
        """The header as a message."""
        return {"role": "system", "content": self.header.text}

    @property
    def user(self) -> ChatMessage:
        """What the user says."""
        return {"role": "user", "content": self.user_turn}

    @property
    def around(self) -> int:
        """Tokens of all but the working set."""
        return self.size([self.system, self.user], self.opener, self.recall)

    @property
    def least(self) -> int:
        """Tokens of the user's turn behind critical rules: what must fit for it to stay whole."""
        return self.size([self._replace(header=Header(CRITICAL)).system, self.user], "", "")

    def size(self, messages: Sequence[ChatMessage], opener: str, recall: str) -> int:
        """Input tokens of the serialized request."""
        body = request_body(
            list(messages), tool_definitions(opener, recall), self.model, self.dialect
        )
        return count(body, model=self.model or COUNTED_AS, dialect=self.dialect).tokens


def compose(frame: Frame, working: WorkingSet) -> AssembledContext | None:
    """A turn within its limit; None if no working set fits."""
    written: dict[int, _Written] = {}

    def size(smaller: WorkingSet) -> int:
        messages = [frame.system, *_spoken(frame, smaller)]
        used = frame.size(messages, frame.opener, frame.recall)
        written[id(smaller)] = _Written(smaller, messages, used)
        return used

    fitting = trimmed(working, size, frame.limit)
    if fitting is None:
        return None
    return _context(frame, written[id(fitting.working)], fitting.targets)


class _Written(NamedTuple):
    """A working set as it would be sent."""

    working: WorkingSet
    messages: list[ChatMessage]
    used: int


def minimal(frame: Frame, working: WorkingSet, ref: str) -> AssembledContext:
    """The least that can be answered (004-67); `ref` is where the user's turn is kept if it is cut.

    Raises:
        BudgetExceededError: not even the two ends of the user's turn fit.
    """
    answers = [said for said in working.history if said.role == "assistant"]
    least = frame._replace(header=Header(CRITICAL), tools=())
    smallest = 0
    for answer, turn, opener in _least_forms(answers[-1:], frame.user_turn, ref, frame.opener):
        working = WorkingSet(history=answer)
        shown = least._replace(user_turn=turn, opener=opener, recall="")
        if turn != frame.user_turn:
            shown = shown._replace(cut_from=count_text(frame.user_turn), cut_ref=ref)
        messages = [shown.system, *_spoken(shown, working)]
        smallest = shown.size(messages, opener, "")
        if smallest <= frame.limit:
            return _context(shown, _Written(working, messages, smallest), (), TRIMMED)
    raise BudgetExceededError(
        "the user's turn does not fit the budget, not even its two ends",
        where="token_budget",
        fix=f"Give at least {smallest} tokens.",
        kind="input",
        limit=frame.limit,
        planned=smallest,
    )


def _least_forms(
    answer: Sequence[Piece], turn: str, ref: str, opener: str
) -> Iterator[tuple[tuple[Piece, ...], str, str]]:
    """Ever less: the last answer whole, cut, as a line, gone; then less of the user's turn."""
    for said in answer:
        whole = said.original or said.text
        yield (_as(said, whole, Rung.RAW),), turn, ""
        yield (_as(said, *cut(whole)),), turn, ""
        yield (_as(said, *line(whole)),), turn, ""
    yield (), turn, ""
    # Each time half as much of it, for the count of a cut text is known only when it is cut. With
    # gpt-5 a tool costs 166 tokens: where that is too much, only the record says where the rest is.
    for way in (opener, "") if ref else ():
        most = len(turn) // 2
        while most >= _LEAST_SHOWN:
            yield (), middle_cut(turn, most, ref if way else "", way), way
            most //= 2


_LEAST_SHOWN = 24
"""Characters of the user's turn: fewer say nothing."""


def _as(said: Piece, text: str, level: Rung) -> Piece:
    return msgspec.structs.replace(said, text=text, level=level, tokens=count_text(text))


# --- the messages, and what they stand for -------------------------------------------------------


def _spoken(frame: Frame, working: WorkingSet) -> list[ChatMessage]:
    """Memory as the user's side hands it in, recent pairs in their roles, the user's turn last."""
    messages: list[ChatMessage] = []
    if working.remembers:
        text = memory_text(working, recall=frame.recall, opener=frame.opener)
        messages.append({"role": "user", "content": text})
    messages += [{"role": said.role, "content": _words(said)} for said in working.history]
    messages.append(frame.user)
    return messages


def _words(said: Piece) -> str:
    """What was said, without a line that could pass for ours; what was cut has lines of ours."""
    return set_in(said.text) if said.level is Rung.RAW else said.text


def _context(
    frame: Frame, written: _Written, targets: tuple[TrimTarget, ...], *warnings: str
) -> AssembledContext:
    working = written.working
    if targets:
        warnings = (TRIMMED, *warnings)
    return AssembledContext(
        header=tuple(written.messages[:1]),
        working_set=tuple(written.messages[1:]),
        budget=BudgetInfo(used=written.used, limit=frame.limit, warnings=warnings),
        lazy_tools=tuple(filter(None, (frame.opener, frame.recall, *frame.tools))),
        cache_key=_cache_key(frame, working),
        sources=tuple(_sources(frame, working)),
        intent=frame.intent,
        trimmed=targets,
        opener=frame.opener,
        recall=frame.recall,
    )


def _cache_key(frame: Frame, working: WorkingSet) -> str:
    """The same for what is the same to an answer: all that is sent but the user's turn."""
    said = [[each.kind, each.id, each.text] for each in working.pieces]
    return digest(msgspec.json.encode([frame.header.text, frame.dialect, frame.model, said]))


def _sources(frame: Frame, working: WorkingSet) -> Iterator[TurnSource]:
    parts: tuple[tuple[PartKind, str], ...] = (
        ("rules", frame.header.rules),
        ("tools", frame.header.directory),
        ("profile", frame.header.card),
    )
    for part, text in parts:
        if text:
            tokens = count_text(text)
            record = ContentFidelityRecord(
                source_id=part, phase="header", tokens_from=tokens, tokens_to=tokens
            )
            yield TurnSource(part=part, id=part, message=0, tokens=tokens, fidelity=record)
    behind = 1 + working.remembers
    for each in (*working.facts, *working.recalled, *working.summaries):
        yield _source(each, 1)
    for place, each in enumerate(working.history, behind):
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
    at = behind + len(working.history)
    yield TurnSource(part="user", id="user_turn", message=at, tokens=tokens, fidelity=record)


def _source(each: Piece, message: int) -> TurnSource:
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
