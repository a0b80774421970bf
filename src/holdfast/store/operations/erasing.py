"""Erasing: records that go for good: those of long ago, and all that a user has."""

from __future__ import annotations

from holdfast.store.operations import contents, facts, originals, sessions, turns
from holdfast.store.records import ErasedRecords
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Runner, Statement, load

SESSIONS_AT_ONCE = 10
RECORDS_AT_ONCE = 200
"""Removed in one transaction: other writers wait for it."""
_ALWAYS = float("inf")

_sql = load("erasing")

_CLEAR: dict[str, Statement] = {
    "refs": _sql.clear_refs,
    "turns": _sql.clear_turns,
    "messages": _sql.clear_messages,
    "links": _sql.clear_links,
    "sessions": _sql.clear_sessions,
    "calibrations": _sql.clear_calibrations,
    "audit": _sql.clear_audit,
    "summaries": _sql.clear_summaries,
    "jobs": _sql.clear_jobs,
    "quotas": _sql.clear_quotas,
    "facts": _sql.clear_facts,
    "answers": _sql.clear_answers,
    "journal": _sql.clear_journal,
    "tools": _sql.clear_tools,
    "daily_usage": _sql.clear_daily_usage,
    "reservations": _sql.clear_reservations,
}
"""The statement for each table: removes the remaining rows and returns their number."""
_RECORDS = ("summaries", "jobs", "facts", "answers", "journal", "tools")


def owners() -> Operation[list[Scope]]:
    """Return everyone who has any record, be it only a summary or an entry of the audit."""
    rows = yield _sql.owners(Scope())
    return [Scope(user, workspace) for workspace, user in rows]


async def expire(runner: Runner, scope: Scope, before: float, now: float) -> ErasedRecords:
    """Remove records last used before a time, in several transactions."""
    erased = ErasedRecords()
    while part := await runner.write(_expire, scope, before, now):
        erased += part
    return erased


async def erase(runner: Runner, scope: Scope, now: float) -> ErasedRecords:
    """Remove everything that a user has: in parts, and then the rest in one transaction."""
    erased = await expire(runner, scope, _ALWAYS, now)
    return erased + await runner.write(_erase_rest, scope)


def _expire(scope: Scope, before: float, now: float) -> Operation[ErasedRecords]:
    """Remove a part; nothing removed means that none is left."""
    yield from contents.lock_to_remove(scope)
    erased = yield from _remove_old(scope, before, now)
    if erased:  # else every sweep would make all proxies replace their workers
        yield _sql.count_removal(scope)
    return erased


def _remove_old(scope: Scope, before: float, now: float) -> Operation[ErasedRecords]:
    names = yield _sql.old_sessions(scope, before=before, limit=SESSIONS_AT_ONCE)
    if names:
        erased = ErasedRecords()
        for (name,) in names:
            erased += yield from sessions.delete(scope.of(name), now)
        return erased
    numbers = yield _sql.old_refs(scope, before=before, limit=RECORDS_AT_ONCE)
    if numbers:
        rows = yield from originals.with_numbers(scope, [number for (number,) in numbers])
        return ErasedRecords(refs=(yield from originals.drop(scope, rows, now)))
    places = yield _sql.old_turns(scope, before=before, limit=RECORDS_AT_ONCE)
    if places:
        return ErasedRecords(
            records=(yield from turns.expire(scope, [place for (place,) in places]))
        )
    ids = yield _sql.old_facts(scope, before=before, limit=RECORDS_AT_ONCE)
    if ids:
        return ErasedRecords(
            records=(yield from facts.remove(scope, [fact_id for (fact_id,) in ids]))
        )
    for statement in (_sql.remove_old_answers, _sql.remove_old_entries, _sql.remove_old_audit):
        removed = yield statement(scope, before=before, limit=RECORDS_AT_ONCE)
        if removed:
            return ErasedRecords(records=len(removed))
    return ErasedRecords()


def _erase_rest(scope: Scope) -> Operation[ErasedRecords]:
    """Remove everything else that a user has, and contents that nobody refers to."""
    yield from contents.lock_to_remove(scope)
    yield _sql.count_removal(scope)
    records = (yield from turns.remove_all(scope)) + (yield from facts.remove_all(scope))
    removed = {}
    for table, statement in _CLEAR.items():
        ((removed[table],),) = yield statement(scope)
    yield from contents.sweep_all(scope)
    return ErasedRecords(
        sessions=removed["sessions"],
        turns=removed["turns"],
        refs=removed["refs"],
        records=records + sum(removed[table] for table in _RECORDS),
    )
