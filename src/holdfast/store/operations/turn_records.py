"""Turns of sessions with their messages and usage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from holdfast.store import rules
from holdfast.store.operations import contents, originals, sessions
from holdfast.store.records import SessionRecord, Turn, UsageTotal
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Row, Runner, Values, load
from holdfast.store.transfer import CONTENTS_PAGE, PAGE, MessageLine, Page, TurnLine

_sql = load("sessions")

_SUMMED = (
    "predicted", "untouched", "input", "cached", "output", "expansions", "expansion_tokens", "cost",
    "saved_cost", "failed", "answered", "lazy_saved", "tool_searches", "tool_calls", "lazy_calls",
    "cache_written", "cache_written_hour", "demo_cost", "demo_saved_cost", "unreported",
    "estimated", "assumed", "unpriced", "overflows",
)  # fmt: skip
"""Fields of a turn's usage with separate columns, so that they can be summed."""


# --- writing -------------------------------------------------------------------------------------


async def add(
    runner: Runner,
    scope: Scope,
    turn: Turn,
    session: SessionRecord,
    messages: Mapping[str, bytes | memoryview],
) -> None:
    """Append a turn to the scope's session."""
    if sum(map(len, messages.values())) <= contents.AT_ONCE_BYTES:
        # Packed by the writer's thread, which is awake then.
        await runner.write(_add_checked, scope, turn, session, messages)
    else:
        packed = await runner.compute(_checked, scope, session, messages)
        await runner.write(_add, scope, turn, session, packed)


def _checked(
    scope: Scope, session: SessionRecord, messages: Mapping[str, bytes | memoryview]
) -> list[Values]:
    rules.check_turn(scope, session, messages)
    return contents.packed(messages)


def _add_checked(
    scope: Scope,
    turn: Turn,
    session: SessionRecord,
    messages: Mapping[str, bytes | memoryview],
) -> Operation[None]:
    return _add(scope, turn, session, _checked(scope, session, messages))


def _add(scope: Scope, turn: Turn, session: SessionRecord, packed: list[Values]) -> Operation[None]:
    yield from contents.lock_to_add(scope)
    ((last,),) = yield _sql.last_turn(scope)
    rules.check_number(turn.number, last)
    if not (yield _sql.add_turn(scope, **_values(turn))):
        rules.check_number(turn.number, turn.number)  # added by someone else since we looked
    yield from sessions.save(scope, session)
    yield from contents.keep(scope, packed)
    new = [row["sha256"] for row in packed]
    yield from _name_new(scope, new)
    if known_hashes := rules.hashes_of(turn).difference(new):
        yield _sql.name_messages(scope, hashes=sorted(known_hashes))


def _name_new(scope: Scope, hashes: Sequence[str]) -> Operation[None]:
    """Note that the scope's session names messages that were just stored."""
    if hashes:
        yield _sql.name_new_messages(scope, hashes=hashes)


def _values(turn: Turn) -> Values:
    usage = turn.usage
    values = {name: getattr(usage, name) for name in _SUMMED}
    values["number"] = turn.number
    values["started_at"] = turn.started_at
    values["model"] = turn.model
    values["record"] = rules.to_json(turn)
    return values


# --- reading -------------------------------------------------------------------------------------


def turns(scope: Scope, *, after: int, limit: int) -> Operation[list[Turn]]:
    """Return the turns of the scope's session in order."""
    rows = yield _sql.turns(scope, after=after, limit=max(limit, 0))
    return [rules.from_json(record, Turn) for (record,) in rows]


async def messages(
    runner: Runner, scope: Scope, hashes: Sequence[str], clock: Callable[[], float]
) -> dict[str, bytes]:
    """Return the bytes of messages that turns of this user name.

    Raises:
        DamagedContentError: a message does not match its hash; it is marked as damaged.
    """
    opened = await runner.fetch(_messages, scope, rules.distinct(hashes))
    damaged = [sha256 for sha256, data in opened.items() if data is None]
    if damaged:
        await runner.write(originals.set_apart, scope, damaged, clock())
        raise rules.damaged(damaged[0])
    return {sha256: data for sha256, data in opened.items() if data is not None}


def _messages(scope: Scope, hashes: Sequence[str]) -> Operation[dict[str, bytes | None]]:
    rows = yield _sql.messages(scope, hashes=hashes)
    return {row[0]: contents.opened(*row) for row in rows}


def usage(
    scope: Scope, *, by: Literal["model", "session", "day"], since: float
) -> Operation[list[UsageTotal]]:
    """Return the usage summed over turns, of the scope's session if it names one."""
    statements = {
        "model": _sql.usage_by_model,
        "session": _sql.usage_by_session,
        "day": _sql.usage_by_day,
    }
    return totals((yield statements[by](scope, since=since)))


def totals(rows: Iterable[Row]) -> list[UsageTotal]:
    """Return rows of a name and its sums as records, in the order of the names."""
    return sorted(map(total_of, rows), key=lambda total: total.name)


def total_of(row: Row) -> UsageTotal:
    """Return a row of a name and its sums as a record."""
    return UsageTotal(**dict(zip(UsageTotal.__struct_fields__, row, strict=True)))


# --- export and restore --------------------------------------------------------------------------


def lines(scope: Scope, after: Any) -> Operation[Page]:
    """Return the exported lines of turns by session and number."""
    session, number = after or ("", 0)
    rows = yield _sql.exported_turns(scope, after=session, number=number, limit=PAGE)
    page = [TurnLine(name, rules.from_json(record, Turn)) for name, _, record in rows]
    return [*page], (rows[-1][0], rows[-1][1]) if len(rows) == PAGE else None


def message_lines(scope: Scope, after: Any) -> Operation[Page]:
    """Return the exported lines of messages by their hashes, without damaged ones."""
    rows = yield _sql.exported_messages(scope, after=after or "", limit=CONTENTS_PAGE)
    hashes = [sha256 for (sha256,) in rows]
    names: dict[str, list[str]] = {sha256: [] for sha256 in hashes}
    for sha256, session in (yield _sql.names_of_messages(scope, hashes=hashes)):
        names[sha256].append(session)
    opened = yield from _messages(scope, hashes)
    page = [
        MessageLine(sha256=sha256, sessions=tuple(sorted(names[sha256])), data=data)
        for sha256, data in opened.items()
        if data is not None
    ]
    return [*page], hashes[-1] if len(rows) == CONTENTS_PAGE else None


def restore(scope: Scope, session: str, turn: Turn) -> Operation[bool]:
    """Write an exported turn; return whether it was new."""
    return bool((yield _sql.add_turn(scope.of(session), **_values(turn))))


def restore_message(scope: Scope, line: MessageLine) -> Operation[bool]:
    """Note the sessions that name a message whose bytes are stored; return whether it was new."""
    earlier = yield _sql.names_of_messages(scope, hashes=[line.sha256])
    for session in line.sessions:
        yield from _name_new(scope.of(session), [line.sha256])
    return not earlier
