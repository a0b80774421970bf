"""moving: everything of a scope out as lines, and in again.

after originals and sessions, before store. The lines are those of transfer.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, LiteralString

import msgspec

from holdfast.store import rules, transfer
from holdfast.store.operations import facts, journal, summaries, turns
from holdfast.store.postgres import (
    answers,
    blobs,
    jobs,
    originals,
    sessions,
    text,
    tools,
    upkeep,
)
from holdfast.store.postgres.database import Connection, Database
from holdfast.store.postgres.running import run
from holdfast.store.records import Turn
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation

_AT_A_TIME = 16

_SESSIONS: LiteralString = """
SELECT * FROM holdfast.sessions WHERE workspace = $1 AND username = $2 ORDER BY session
"""

_TURNS: LiteralString = """
SELECT session, record FROM holdfast.turns WHERE workspace = $1 AND username = $2
ORDER BY session, number
"""

_LINKS: LiteralString = """
SELECT name, session FROM holdfast.links WHERE workspace = $1 AND username = $2 ORDER BY name
"""

_REFS: LiteralString = """
SELECT r.*, c.damage, c.codec, c.data, c.size AS content_size,
    ARRAY (
        SELECT session FROM holdfast.uses AS u
        WHERE (u.workspace, u.username, u.sha256, u.kind)
            = (r.workspace, r.username, r.sha256, r.kind)) AS uses
FROM holdfast.refs AS r
LEFT JOIN holdfast.contents AS c
  ON c.workspace = r.workspace AND c.sha256 = r.sha256 AND NOT r.removed
WHERE r.workspace = $1 AND r.username = $2
ORDER BY r.number
"""

_MESSAGES: LiteralString = """
SELECT named.sha256, named.sessions, c.damage, c.codec, c.data, c.size AS content_size
FROM (
    SELECT sha256, array_agg(session) AS sessions
    FROM holdfast.messages WHERE workspace = $1 AND username = $2 GROUP BY sha256
) AS named
LEFT JOIN holdfast.contents AS c ON c.workspace = $1 AND c.sha256 = named.sha256
ORDER BY named.sha256
"""

CALIBRATION: LiteralString = """
SELECT data FROM holdfast.calibrations WHERE workspace = $1 AND username = $2
"""

_AUDIT: LiteralString = """
SELECT * FROM holdfast.audit WHERE workspace = $1 AND username = $2 ORDER BY at, number
"""

_ADD_SESSION: LiteralString = """
INSERT INTO holdfast.sessions (
    workspace, username, session, dialect, model, title, head, turns, created_at, updated_at,
    closed_at, forked_from, shared, client, client_session, client_agent, purpose)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
ON CONFLICT DO NOTHING
RETURNING session
"""

_ADD_LINK: LiteralString = """
INSERT INTO holdfast.links (workspace, username, name, session) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING
RETURNING name
"""

_KNOWN_REF: LiteralString = """
SELECT removed FROM holdfast.refs
WHERE workspace = $1 AND username = $2 AND sha256 = $3 AND kind = $4
"""

_ADD_REF: LiteralString = """
INSERT INTO holdfast.refs (
    workspace, username, sha256, kind, ref_id, size, tokens, summary, compressed, meta, flags,
    created_at, written_at, expires_at, accessed_at, accesses, removed)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
"""

_ADD_USE: LiteralString = """
INSERT INTO holdfast.uses (workspace, username, sha256, kind, session)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING
"""

_HAS_MESSAGE: LiteralString = """
SELECT FROM holdfast.messages WHERE workspace = $1 AND username = $2 AND sha256 = $3 LIMIT 1
"""

_ADD_CALIBRATION: LiteralString = """
INSERT INTO holdfast.calibrations (workspace, username, data) VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING
RETURNING username
"""

_ADD_AUDIT: LiteralString = """
INSERT INTO holdfast.audit (
    workspace, username, at, session, ref_id, sha256, action, size, from_tokens, to_tokens, flags)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11
WHERE NOT EXISTS (
    SELECT FROM holdfast.audit
    WHERE (workspace, username, at, session, ref_id, sha256, action, size, from_tokens, to_tokens,
           flags) = ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11))
RETURNING number
"""


async def export(database: Database, scope: Scope) -> AsyncIterator[bytes]:
    """Every record of the scope as lines of JSON, all of one moment."""
    yield transfer.encode(transfer.Header())
    async with database.snapshot() as connection:
        async for line in _lines(connection, scope):
            yield transfer.encode(line)
        async for line in _pages(connection, scope, turns.lines):
            yield transfer.encode(line)
        async for line in _pages(connection, scope, journal.lines):
            yield transfer.encode(line)


async def _lines(connection: Connection, scope: Scope) -> AsyncIterator[transfer.Line]:
    def rows(sql: LiteralString) -> Any:
        return connection.cursor(sql, scope.workspace, scope.user, prefetch=_AT_A_TIME)

    async for row in rows(_SESSIONS):
        yield transfer.SessionLine(sessions.record_of(row))
    async for row in rows(_TURNS):
        yield transfer.TurnLine(row["session"], rules.from_json(row["record"], Turn))
    async for row in rows(_LINKS):
        yield transfer.LinkLine(row["name"], row["session"])
    async for row in rows(_REFS):
        yield _ref_line(row)
    async for row in rows(_MESSAGES):
        data = blobs.opened(row)
        if data is not None:
            named = _unescaped(row["sessions"])
            yield transfer.MessageLine(sha256=row["sha256"], sessions=named, data=data)
    async for line in _pages(connection, scope, summaries.lines):
        yield line
    async for line in _made_lines(rows):
        yield line
    async for line in _pages(connection, scope, facts.lines):
        yield line
    async for row in rows(CALIBRATION):
        yield transfer.CalibrationLine(row["data"])
    async for row in rows(_AUDIT):
        yield transfer.AuditLine(upkeep.entry_of(row))


async def _made_lines(rows: Callable[[LiteralString], Any]) -> AsyncIterator[transfer.Line]:
    """What was made of contents, or is to be."""
    async for row in rows(jobs.ALL):
        yield transfer.JobLine.of(jobs.job_of(row))
    async for row in rows(answers.ALL):
        if (answer := answers.opened(row)) is not None:
            yield transfer.AnswerLine(answer)
    async for row in rows(tools.ALL):
        if (tool := tools.opened(row)) is not None:
            yield transfer.ToolLine(msgspec.structs.replace(tool, revision=0))


async def _pages(
    connection: Connection,
    scope: Scope,
    lines_of: Callable[[Scope, Any], Operation[transfer.Page]],
) -> AsyncIterator[transfer.Line]:
    after: Any = None
    while True:
        lines, after = await run(connection, lines_of(scope, after))
        for line in lines:
            yield line
        if after is None:
            break


def _ref_line(row: Any) -> transfer.RefLine:
    shown = {name: row[name] for name in transfer.RefLine.__struct_fields__}
    shown["meta"], shown["flags"] = json.loads(row["meta"]), tuple(json.loads(row["flags"]))
    shown["uses"], shown["data"] = _unescaped(row["uses"]), blobs.opened(row)
    return transfer.RefLine(**shown)


def _unescaped(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(map(text.unescaped, names)))


async def restore(database: Database, scope: Scope, lines: AsyncIterator[bytes]) -> int:
    """Read what `export` wrote, each part in one transaction."""
    new = 0
    async for batch in transfer.batches(lines):
        new += await database.transact(_part(scope, batch))
    return new


def _part(scope: Scope, batch: Sequence[transfer.Line]) -> Any:
    async def work(connection: Connection) -> int:
        await blobs.lock_to_add(connection, scope)
        refs = [line for line in batch if isinstance(line, transfer.RefLine)]
        messages = [line for line in batch if isinstance(line, transfer.MessageLine)]
        named = [(line.ref_id, line.sha256) for line in refs]
        await originals.check_collisions(connection, scope, named)
        data = {line.sha256: line.data for line in refs if line.data is not None}
        data |= {line.sha256: line.data for line in messages}
        await blobs.keep(connection, scope, data)
        return sum([await _restore(connection, scope, line) for line in batch])

    return work


async def _restore(connection: Connection, scope: Scope, line: transfer.Line) -> bool:
    who = (scope.workspace, scope.user)
    match line:
        case transfer.RefLine():
            return await _restore_ref(connection, scope, line)
        case transfer.MessageLine(sha256=sha256, sessions=named):
            known = await connection.fetch(_HAS_MESSAGE, *who, sha256)
            for session in named:
                await sessions.add_messages(connection, scope.of(session), [sha256])
            return not known
        case transfer.JobLine():
            return await _is_new(connection, jobs.RESTORE, *who, *msgspec.structs.astuple(line))
        case transfer.SummaryLine(summary=summary):
            return await run(connection, summaries.restore(scope, summary))
        case transfer.RememberedLine():
            return await run(connection, turns.restore(scope, line))
        case transfer.FactLine(fact=fact):
            return await run(connection, facts.restore(scope, fact))
        case transfer.AnswerLine(answer=answer):
            values = answers.values(scope.of(answer.session), answer)
            return await _is_new(connection, answers.ADD, *values)
        case _:
            return await _restore_told(connection, scope, line)


async def _restore_told(connection: Connection, scope: Scope, line: transfer.Line) -> bool:
    """Write a record that is no content and is made of none."""
    who = (scope.workspace, scope.user)
    match line:
        case transfer.SessionLine(record=record):
            return await _is_new(connection, _ADD_SESSION, *sessions.session_values(scope, record))
        case transfer.TurnLine(session=session, record=turn):
            values = sessions.turn_values(scope.of(session), turn)
            return await _is_new(connection, sessions.ADD_TURN, *values)
        case transfer.LinkLine(name=name, session=session):
            return await _is_new(connection, _ADD_LINK, *who, name, session)
        case transfer.JournalLine():
            return await run(connection, journal.restore(scope, line))
        case transfer.ToolLine(tool=tool):
            return await _is_new(connection, tools.ADD, *tools.values(scope, tool))
        case transfer.CalibrationLine(data=data):
            return await _is_new(connection, _ADD_CALIBRATION, *who, data)
        case transfer.AuditLine(entry=entry):
            values = (entry.at, entry.session, entry.ref_id, entry.sha256, entry.action)
            counts = (entry.size, entry.from_tokens, entry.to_tokens, rules.to_json(entry.flags))
            return await _is_new(connection, _ADD_AUDIT, *who, *values, *counts)
        case _:
            return False


async def _is_new(connection: Connection, sql: LiteralString, *values: object) -> bool:
    return bool(await connection.fetch(sql, *values))


async def _restore_ref(connection: Connection, scope: Scope, line: transfer.RefLine) -> bool:
    key = (scope.workspace, scope.user, line.sha256, line.kind)
    known = await connection.fetch(_KNOWN_REF, *key)
    is_new = not known or (known[0]["removed"] and line.data is not None)
    if is_new:
        await originals.bury(connection, scope, [(line.sha256, line.kind)])
        await connection.execute(
            _ADD_REF,
            *(*key, line.ref_id, line.size, line.tokens, line.summary, line.compressed),
            *(rules.to_json(line.meta), rules.to_json(line.flags), line.created_at),
            *(line.written_at, line.expires_at, line.accessed_at, line.accesses),
            line.data is None,
        )
    await connection.executemany(_ADD_USE, [(*key, session) for session in line.uses])
    return is_new
