"""What the pages about sessions show, made from the store's records.

views: after links, before charts. Pure: the records and the time come as arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from holdfast.store.records import Edit, SessionRecord, Turn, TurnUsage, UsageTotal, summed

PARTS = ("system and tools", "messages", "cited away", "folded away")
"""The parts of a request: what was sent, then what was left out of it."""

_CITING = "cite"


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Usage in the words of the dashboard."""

    requests: int = 0
    failed: int = 0
    """Of these, without an answer."""
    answered: int = 0
    """Of these, from memory."""
    untouched: int = 0
    """Input tokens as the clients asked."""
    billed: int = 0
    """Input tokens over all calls: as reported, else as counted."""
    saved: int = 0
    """Untouched less billed."""
    cost: float = 0.0
    saved_cost: float = 0.0
    expansions: int = 0
    cached: int = 0
    """Of the input that was billed."""


def totals(parts: Iterable[UsageTotal]) -> Totals:
    """Many sums of usage as one."""
    usage = summed("", parts)
    return Totals(
        requests=usage.turns,
        failed=usage.failed,
        answered=usage.answered,
        untouched=usage.untouched,
        billed=usage.input,
        saved=usage.saved,
        cost=usage.cost,
        saved_cost=usage.saved_cost,
        expansions=usage.expansions,
        cached=usage.cached,
    )


class TenantRow(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant in the list."""

    name: str
    sessions: int
    totals: Totals
    updated_at: float | None
    """When it was last there; None if it has no sessions."""


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session in the list."""

    record: SessionRecord
    totals: Totals


class TurnRow(msgspec.Struct, frozen=True, kw_only=True):
    """A turn in a list, with the session it belongs to."""

    session: str
    turn: Turn
    parts: tuple[int, ...]
    """Tokens, as `PARTS` names them."""


def turn_rows(
    session: str, turns: Sequence[Turn], standing: Mapping[int, int] | None = None
) -> list[TurnRow]:
    """The turns of a session; `standing` is the tokens of system and tools by turn number."""
    left: dict[bool, int] = {True: 0, False: 0}
    rows = []
    for turn in turns:
        for edit in turn.edits:
            left[edit.action == _CITING] += max(0, edit.from_tokens - edit.to_tokens)
        fixed = min((standing or {}).get(turn.number, 0), turn.usage.predicted)
        parts = (fixed, turn.usage.predicted - fixed, *_away(turn.usage, left[True], left[False]))
        rows.append(TurnRow(session=session, turn=turn, parts=parts))
    return rows


def _away(usage: TurnUsage, cited: int, folded: int) -> tuple[int, int]:
    """What was left out, by way: a record holds the sum, and the edits so far how it came about."""
    away = max(0, usage.untouched - usage.predicted)
    share = cited / (cited + folded) if cited + folded else 1.0
    by_citing = round(away * share)
    return by_citing, away - by_citing


def beginnings(first: Turn, turns: Sequence[Turn]) -> dict[int, tuple[str, str]]:
    """By turn number, the hashes of what stands still: the frame, and the first message sent.

    `first` is the session's first turn; the first message seldom changes after it.
    """
    opening = ""
    openings = {}
    for turn in (first, *turns):
        if turn.sent is None:
            continue
        if not turn.sent.shared and turn.sent.added:
            opening = turn.sent.added[0]
        openings[turn.number] = (turn.sent.frame, opening)
    return openings


def latest(rows: Iterable[TurnRow], most: int) -> list[TurnRow]:
    """The rows last begun, in order."""
    return sorted(rows, key=lambda row: row.turn.started_at)[-most:]


def warned(rows: Iterable[TurnRow], most: int) -> list[TurnRow]:
    """Turns with a warning, the newest first."""
    return latest((row for row in rows if row.turn.warnings), most)[::-1]


class Explained(msgspec.Struct, frozen=True):
    """An edit, and the turn that made it; 0 where that is not known."""

    edit: Edit
    turn: int


def turns_of_edits(turns: Iterable[Turn]) -> dict[Edit, int]:
    """By edit, the turn that made it."""
    numbers: dict[Edit, int] = {}
    for turn in turns:
        for edit in turn.edits:
            numbers.setdefault(edit, turn.number)
    return numbers
