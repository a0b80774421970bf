"""The data of the pages, derived from the store's records: sums, rows, and selections.

Pure: the records and the time are arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta

import msgspec

from holdfast.store.across import ALWAYS, Period
from holdfast.store.records import (
    AuditEntry,
    Edit,
    RefInfo,
    SessionRecord,
    Turn,
    TurnParts,
    UsageTotal,
    summed,
)

PARTS = (*TurnParts.__struct_fields__, "hidden")
"""The parts of a request: the sent ones, then the hidden one."""
PERIODS = ("today", "yesterday", "week", "month", "all")
_DAYS = {"today": (0, 0), "yesterday": (1, 1), "week": (6, 0), "month": (29, 0)}
"""By period, how many days ago it began and ended."""


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
    demo_cost: float = 0.0
    """The list price of the offline model's answers, which nobody is billed for."""
    demo_saved_cost: float = 0.0
    unreported: int = 0
    """Of the requests, those whose billed tokens are estimates."""
    estimated: int = 0
    """Of the requests, those whose saved tokens are estimates."""
    assumed: int = 0
    """Of the requests, those whose saved money is an estimate."""
    expansions: int = 0
    expansion_tokens: int = 0
    cached: int = 0
    """Of the input that was billed."""
    lazy: int = 0
    """Of the requests, those in which schemas of tools were set aside."""
    lazy_saved: int = 0
    """Tokens of these schemas."""
    tool_searches: int = 0
    tool_calls: int = 0
    lazy_calls: int = 0
    """Of the calls of tools, those of tools that were set aside."""


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
        demo_cost=usage.demo_cost,
        demo_saved_cost=usage.demo_saved_cost,
        unreported=usage.unreported,
        estimated=usage.estimated,
        assumed=usage.assumed,
        expansions=usage.expansions,
        expansion_tokens=usage.expansion_tokens,
        cached=usage.cached,
        lazy=usage.lazy,
        lazy_saved=usage.lazy_saved,
        tool_searches=usage.tool_searches,
        tool_calls=usage.tool_calls,
        lazy_calls=usage.lazy_calls,
    )


def days_of(period: str, days: Sequence[UsageTotal], today: str) -> list[UsageTotal]:
    """The days of a period; all of them if it is none that we know."""
    if period not in _DAYS:
        return list(days)
    first, last = (str(date.fromisoformat(today) - timedelta(ago)) for ago in _DAYS[period])
    return [total for total in days if first <= total.name <= last]


def span_of(period: str, today: str) -> Period:
    """Return when a period begins and ends; always, if it is none that we know."""
    if period not in _DAYS:
        return ALWAYS
    first, last = (date.fromisoformat(today) - timedelta(ago) for ago in _DAYS[period])
    return Period(_midnight(first), _midnight(last + timedelta(1)))


def _midnight(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


class TenantRow(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant in the list."""

    tenant: str
    name: str
    """The display name."""
    sessions: int
    totals: Totals
    """Of the period that the page shows."""
    updated_at: float | None
    """When it was last there; None if it has no sessions."""


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session in the list."""

    record: SessionRecord
    totals: Totals
    tenant: str = ""
    """Whose it is; empty if the page is about one tenant."""
    owner: str = ""
    """The display name of that tenant."""
    turns: int = 0
    """Requests of its conversations."""
    side_requests: int = 0
    """Requests of its client for titles, checks and the like."""


SIDE = "side"
"""Shows the side requests themselves, in the place of sessions."""
SHOWN: dict[str, Callable[[SessionRow], bool]] = {
    "all": lambda _: True,
    "failed": lambda row: row.totals.failed > 0,
    "opened": lambda row: row.totals.expansions > 0,
    "loss": lambda row: row.totals.saved < 0,
    SIDE: lambda _: True,
}
"""By name, which sessions a list shows."""


def chosen(rows: Iterable[SessionRow], words: str, show: str) -> list[SessionRow]:
    """Return the sessions of the wanted kind whose title, name or model has all the words."""
    terms = words.casefold().split()
    is_shown = SHOWN.get(show, SHOWN["all"])

    def named(row: SessionRow) -> str:
        return f"{row.record.title} {row.record.session} {row.record.model}".casefold()

    return [row for row in rows if is_shown(row) and all(word in named(row) for word in terms)]


class TurnRow(msgspec.Struct, frozen=True, kw_only=True):
    """A turn in a list, with the session it belongs to."""

    session: str
    title: str = ""
    turn: Turn
    parts: tuple[int, ...]
    """Tokens, as `PARTS` names them."""
    tenant: str = ""
    """Whose it is; empty if the page is about one tenant."""


def turn_rows(record: SessionRecord, turns: Iterable[Turn], tenant: str = "") -> list[TurnRow]:
    """The turns of a session."""
    return [
        TurnRow(
            session=record.session,
            title=record.title,
            turn=turn,
            parts=_parts(turn),
            tenant=tenant,
        )
        for turn in turns
    ]


class RefRow(msgspec.Struct, frozen=True):
    """A ref in a list."""

    info: RefInfo
    tenant: str = ""
    """Whose it is; empty if the page is about one tenant."""
    owner: str = ""
    """The display name of that tenant."""


def _parts(turn: Turn) -> tuple[int, ...]:
    """Return the tokens of a request by part; earlier versions did not record the parts."""
    usage, parts = turn.usage, turn.parts
    if not any(msgspec.structs.astuple(parts)):
        parts = TurnParts(history=usage.predicted)
    # The provider may count differently: only its own reports are comparable.
    is_one_call = not (usage.expansions or usage.answered)
    sent_tokens = usage.input if is_one_call else usage.predicted
    return (*msgspec.structs.astuple(parts), max(0, usage.untouched - sent_tokens))


def latest(rows: Iterable[TurnRow], most: int) -> list[TurnRow]:
    """The rows last begun, in order."""
    return sorted(rows, key=lambda row: row.turn.started_at)[-most:]


def warned(rows: Iterable[TurnRow], most: int, within: Period = ALWAYS) -> list[TurnRow]:
    """Return the turns of a period with a warning, the newest first."""
    turns = (row for row in rows if within.start <= row.turn.started_at < within.stop)
    return latest((row for row in turns if row.turn.warnings), most)[::-1]


class KindRow(msgspec.Struct, frozen=True, kw_only=True):
    """The compression of contents of one kind."""

    kind: str
    contents: int
    from_tokens: int
    to_tokens: int
    opened: int
    """How many of them were opened at least once."""


def by_kind(refs: Sequence[RefInfo], audit: Iterable[AuditEntry]) -> list[KindRow]:
    """Return the compression by kind, the largest first, from the stored refs and the audit."""
    cited = {entry.ref_id: entry for entry in audit if entry.to_tokens and entry.from_tokens}
    rows = []
    for kind in {info.kind for info in refs}:
        infos = [info for info in refs if info.kind == kind and info.ref_id in cited]
        entries = [cited[info.ref_id] for info in infos]
        rows.append(
            KindRow(
                kind=kind,
                contents=len(infos),
                from_tokens=sum(entry.from_tokens for entry in entries),
                to_tokens=sum(entry.to_tokens for entry in entries),
                opened=sum(info.accesses > 0 for info in infos),
            )
        )
    return sorted((row for row in rows if row.contents), key=lambda row: -row.from_tokens)


class Explanation(msgspec.Struct, frozen=True):
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
