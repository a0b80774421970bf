"""sessions: sessions, their turns, and the messages that turns name.

after blobs and originals, before store.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, LiteralString

import msgspec

from holdfast.store import rules
from holdfast.store.operations import facts, journal
from holdfast.store.operations import turns as remembered
from holdfast.store.postgres import (
    answers,
    blobs,
    jobs,
    originals,
    scrubbing,
    text,
)
from holdfast.store.postgres.database import Connection, Database
from holdfast.store.postgres.running import run
from holdfast.store.records import ClientKey, Erased, SessionRecord, Turn
from holdfast.store.scope import Scope

_HASH = re.compile(r"[0-9a-f]{64}")

_SESSION: LiteralString = """
SELECT * FROM holdfast.sessions WHERE workspace = $1 AND username = $2 AND session = $3
"""

_SESSION_BESIDE: LiteralString = """
SELECT s.*, (
    SELECT coalesce(max(sequence), 0) FROM holdfast.journal
    WHERE workspace = $1 AND username = $2 AND session = $3 AND name = $4
) AS length
FROM (VALUES (1)) AS always (one)
LEFT JOIN holdfast.sessions AS s
    ON s.workspace = $1 AND s.username = $2 AND s.session = $3
"""

_SESSIONS: LiteralString = """
SELECT * FROM holdfast.sessions
WHERE workspace = $1 AND username = $2 AND ($4 = '' OR client_session = $4)
ORDER BY updated_at DESC, session DESC
LIMIT $3
"""

_SESSIONS_BEFORE: LiteralString = """
SELECT * FROM holdfast.sessions
WHERE workspace = $1 AND username = $2 AND ($4 = '' OR client_session = $4)
    AND (updated_at, session) < ($5, $6)
ORDER BY updated_at DESC, session DESC
LIMIT $3
"""

_WITH_HEAD: LiteralString = """
SELECT * FROM holdfast.sessions
WHERE workspace = $1 AND username = $2 AND head = ANY($3::text[])
    AND head <> '' AND closed_at IS NULL
    AND ($4::text IS NULL OR (client_session = $4 AND client_agent = $5))
ORDER BY array_position($3::text[], head), updated_at DESC, session DESC
LIMIT 1
"""

_SAVE_SESSION: LiteralString = """
INSERT INTO holdfast.sessions (
    workspace, username, session, dialect, model, title, head, turns, created_at, updated_at,
    closed_at, forked_from, shared, client, client_session, client_agent, purpose)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
ON CONFLICT (workspace, username, session) DO UPDATE SET
    dialect = excluded.dialect, model = excluded.model, title = excluded.title,
    head = excluded.head, turns = excluded.turns, created_at = excluded.created_at,
    updated_at = excluded.updated_at, closed_at = excluded.closed_at,
    forked_from = excluded.forked_from, shared = excluded.shared,
    client = excluded.client, client_session = excluded.client_session,
    client_agent = excluded.client_agent, purpose = excluded.purpose
"""

_LAST_TURN: LiteralString = """
SELECT coalesce(max(number), 0) FROM holdfast.turns
WHERE workspace = $1 AND username = $2 AND session = $3
"""

ADD_TURN: LiteralString = """
INSERT INTO holdfast.turns (
    workspace, username, session, number, record, model, started_at, predicted, untouched, input,
    cached, output, expansions, expansion_tokens, cost, saved_cost, failed, answered,
    lazy_saved, tool_searches, tool_calls, lazy_calls, cache_written, cache_written_hour,
    demo_cost, demo_saved_cost, unreported, estimated, assumed, unpriced, overflows)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
    $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31)
ON CONFLICT DO NOTHING
RETURNING number
"""

_TURNS: LiteralString = """
SELECT record FROM holdfast.turns
WHERE workspace = $1 AND username = $2 AND session = $3 AND number > $4
ORDER BY number
LIMIT $5
"""

_ADD_MESSAGES: LiteralString = """
INSERT INTO holdfast.messages (workspace, username, sha256, session)
SELECT $1, $2, sha256, $4 FROM unnest($3::text[]) AS added (sha256) ORDER BY sha256
ON CONFLICT DO NOTHING
"""

_NAME_MESSAGES: LiteralString = """
INSERT INTO holdfast.messages (workspace, username, sha256, session)
SELECT DISTINCT workspace, username, sha256, $4 FROM holdfast.messages
WHERE workspace = $1 AND username = $2 AND sha256 = ANY ($3) ORDER BY sha256
ON CONFLICT DO NOTHING
"""

_MESSAGES: LiteralString = """
SELECT asked.sha256, c.damage, c.codec, c.data, c.size AS content_size
FROM unnest($3::text[]) WITH ORDINALITY AS asked (sha256, place)
LEFT JOIN holdfast.contents AS c ON c.workspace = $1 AND c.sha256 = asked.sha256
WHERE EXISTS (
    SELECT FROM holdfast.messages AS m
    WHERE m.workspace = $1 AND m.username = $2 AND m.sha256 = asked.sha256)
ORDER BY asked.place
"""

_LINK: LiteralString = """
INSERT INTO holdfast.links (workspace, username, name, session) VALUES ($1, $2, $4, $3)
ON CONFLICT (workspace, username, name) DO UPDATE SET session = excluded.session
"""

_LINKED: LiteralString = """
SELECT session FROM holdfast.links
WHERE workspace = $1 AND username = $2 AND name = ANY($3::text[])
ORDER BY array_position($3::text[], name)
LIMIT 1
"""

_SCOPES: LiteralString = """
SELECT workspace, username FROM (
    SELECT workspace, username, max(updated_at) AS used FROM holdfast.sessions GROUP BY 1, 2
    UNION ALL
    SELECT DISTINCT workspace, username, 0.0::float8 FROM holdfast.refs WHERE NOT removed
    UNION ALL
    SELECT workspace, username, 0.0::float8 FROM holdfast.remembered_changes AS c WHERE EXISTS (
        SELECT FROM holdfast.remembered AS r
        WHERE (r.workspace, r.username) = (c.workspace, c.username))
    UNION ALL
    SELECT workspace, username, 0.0::float8 FROM holdfast.fact_counters AS c WHERE EXISTS (
        SELECT FROM holdfast.facts AS f
        WHERE (f.workspace, f.username) = (c.workspace, c.username))
    UNION ALL
    SELECT DISTINCT workspace, username, 0.0::float8 FROM holdfast.answers
    UNION ALL
    SELECT DISTINCT workspace, username, 0.0::float8 FROM holdfast.journal
    UNION ALL
    SELECT DISTINCT workspace, username, 0.0::float8 FROM holdfast.tools
) AS used
GROUP BY 1, 2
ORDER BY max(used) DESC, 1 DESC, 2 DESC
"""

_CLOSE: LiteralString = """
UPDATE holdfast.sessions SET closed_at = $4
WHERE workspace = $1 AND username = $2 AND session = $3
RETURNING session
"""

_IS_USED: LiteralString = """
SELECT FROM holdfast.uses WHERE workspace = $1 AND username = $2 AND session = $3 LIMIT 1
"""

_ONLY_ITS_REFS: LiteralString = """
SELECT r.sha256, r.kind
FROM holdfast.uses AS u
JOIN holdfast.refs AS r USING (workspace, username, sha256, kind)
WHERE u.workspace = $1 AND u.username = $2 AND u.session = $3
  AND NOT EXISTS (
    SELECT FROM holdfast.uses AS other
    WHERE (other.workspace, other.username, other.sha256, other.kind)
        = (u.workspace, u.username, u.sha256, u.kind) AND other.session <> u.session)
ORDER BY r.number
"""

_DELETE: tuple[LiteralString, ...] = (
    "DELETE FROM holdfast.uses WHERE workspace = $1 AND username = $2 AND session = $3",
    "DELETE FROM holdfast.turns WHERE workspace = $1 AND username = $2 AND session = $3",
    "DELETE FROM holdfast.links WHERE workspace = $1 AND username = $2 AND session = $3",
    "DELETE FROM holdfast.sessions WHERE workspace = $1 AND username = $2 AND session = $3",
)

_DELETE_MESSAGES: LiteralString = """
DELETE FROM holdfast.messages WHERE workspace = $1 AND username = $2 AND session = $3
RETURNING sha256
"""


def _key(scope: Scope) -> tuple[str, str, str]:
    return (scope.workspace, scope.user, scope.session)


async def session(database: Database, scope: Scope) -> SessionRecord | None:
    """The session that the scope names."""
    rows = await database.fetch(_SESSION, *_key(scope))
    return record_of(rows[0]) if rows else None


async def session_beside(
    database: Database, scope: Scope, journal: str
) -> tuple[SessionRecord | None, int]:
    """The session that the scope names, and how long one of its journals is."""
    (row,) = await database.fetch(_SESSION_BESIDE, *_key(scope), journal)
    return record_of(row) if row["session"] is not None else None, row["length"]


async def sessions(
    database: Database, scope: Scope, *, limit: int, before: str, client_session: str
) -> list[SessionRecord]:
    """Return the sessions last used."""
    asked = (scope.workspace, scope.user, max(limit, 0), client_session)
    if not before:
        return [record_of(row) for row in await database.fetch(_SESSIONS, *asked)]
    last = await database.fetch(_SESSION, scope.workspace, scope.user, before)
    if not last:
        raise rules.no_place_to_go_on(before)
    place = (last[0]["updated_at"], before)
    return [record_of(row) for row in await database.fetch(_SESSIONS_BEFORE, *asked, *place)]


async def session_with_head(
    database: Database, scope: Scope, heads: Sequence[str], client: ClientKey | None
) -> SessionRecord | None:
    """Return the open session with the first of these heads, of one client or of any."""
    asked = text.encoded(heads)
    client_session, client_agent = client or (None, None)
    rows = await database.fetch(
        _WITH_HEAD, scope.workspace, scope.user, asked, client_session, client_agent
    )
    return record_of(rows[0]) if rows else None


def record_of(row: Any) -> SessionRecord:
    """A row of sessions as a record."""
    return SessionRecord(**{name: row[name] for name in SessionRecord.__struct_fields__})


async def save_session(connection: Connection, scope: Scope, record: SessionRecord) -> None:
    """Keep a session as it is now."""
    values = session_values(scope, record)
    await connection.execute(_SAVE_SESSION, *values)


def session_values(scope: Scope, record: SessionRecord) -> tuple[object, ...]:
    """A session as the values of its row."""
    return (scope.workspace, scope.user, *msgspec.structs.astuple(record))


def turn_values(scope: Scope, turn: Turn) -> tuple[object, ...]:
    """A turn of the scope's session as the values of its row."""
    usage = turn.usage
    return (
        *(*_key(scope), turn.number, rules.to_json(turn), turn.model, turn.started_at),
        *(usage.predicted, usage.untouched, usage.input, usage.cached, usage.output),
        *(usage.expansions, usage.expansion_tokens, usage.cost, usage.saved_cost, usage.failed),
        usage.answered,
        *(usage.lazy_saved, usage.tool_searches, usage.tool_calls, usage.lazy_calls),
        *(usage.cache_written, usage.cache_written_hour, usage.demo_cost, usage.demo_saved_cost),
        *(usage.unreported, usage.estimated, usage.assumed, usage.unpriced),
        usage.overflows,
    )


async def add_turn(
    database: Database,
    scope: Scope,
    turn: Turn,
    record: SessionRecord,
    messages: Mapping[str, bytes | memoryview],
) -> None:
    """Append a turn to the scope's session."""
    rules.check_turn(scope, record, messages)

    async def work(connection: Connection) -> None:
        await blobs.lock_to_add(connection, scope)
        rules.check_number(turn.number, await connection.fetchval(_LAST_TURN, *_key(scope)))
        if not await connection.fetch(ADD_TURN, *turn_values(scope, turn)):
            rules.check_number(turn.number, turn.number)  # added by someone else since we looked
        await save_session(connection, scope, record)
        await blobs.keep(connection, scope, messages)
        await add_messages(connection, scope, messages)
        await _name_messages(connection, scope, turn)

    await database.transact(work)


async def add_messages(connection: Connection, scope: Scope, hashes: Collection[str]) -> None:
    """Note that the session names messages, new ones of this user among them."""
    values = (scope.workspace, scope.user, sorted(hashes), scope.session)
    await connection.execute(_ADD_MESSAGES, *values)


async def _name_messages(connection: Connection, scope: Scope, turn: Turn) -> None:
    """Note that the session names messages, of those that this user has."""
    hashes = _proper(rules.hashes_of(turn))
    values = (scope.workspace, scope.user, sorted(hashes), scope.session)
    await connection.execute(_NAME_MESSAGES, *values)


def _proper(hashes: Collection[str]) -> list[str]:
    """Those that can be hashes: others name nothing."""
    return [sha256 for sha256 in hashes if _HASH.fullmatch(sha256)]


async def turns(database: Database, scope: Scope, *, after: int, limit: int) -> list[Turn]:
    """The turns of the session in order."""
    rows = await database.fetch(_TURNS, *_key(scope), after, max(limit, 0))
    return [rules.from_json(row["record"], Turn) for row in rows]


async def messages(
    database: Database, scope: Scope, hashes: Sequence[str], now: float
) -> dict[str, bytes]:
    """The bytes of messages that this user's turns name."""
    asked = _proper(rules.distinct(hashes))
    rows = await database.fetch(_MESSAGES, scope.workspace, scope.user, asked)
    originals = {}
    for row in rows:
        data = blobs.opened(row)
        if data is None:
            await blobs.mark(database, scope, [row], now)
            raise rules.damaged(row["sha256"])
        originals[row["sha256"]] = data
    return originals


async def link(database: Database, scope: Scope, names: Sequence[str]) -> None:
    """Note under which names a provider holds the session's history."""
    rules.check_session(scope)

    async def work(connection: Connection) -> None:
        # In one order for all, so that two who link the same names do not wait for each other.
        await connection.executemany(_LINK, [(*_key(scope), name) for name in sorted(set(names))])

    await database.transact(work)


async def session_linked(database: Database, scope: Scope, names: Sequence[str]) -> str:
    """The session that has the first of these names."""
    # Inside an array the driver encodes by itself.
    asked = [text.encode(name).decode() for name in names]
    rows = await database.fetch(_LINKED, scope.workspace, scope.user, asked)
    return str(rows[0]["session"]) if rows else ""


async def scopes(database: Database) -> list[Scope]:
    """Everyone who has something here, who used it last first."""
    rows = await database.fetch(_SCOPES)
    return [Scope(row["username"], row["workspace"]) for row in rows]


async def close_session(database: Database, scope: Scope, now: float) -> None:
    """Note that a session is over."""
    rules.check_session(scope)

    async def work(connection: Connection) -> None:
        if await connection.fetch(_CLOSE, *_key(scope), now):
            return
        if await connection.fetch(_IS_USED, *_key(scope)):
            await save_session(connection, scope, rules.closed(scope.session, now))

    await database.transact(work)


async def delete_session(database: Database, scope: Scope, now: float) -> Erased:
    """Remove a session, its turns and the refs that only it used."""
    rules.check_session(scope)

    async def work(connection: Connection) -> Erased:
        await blobs.lock_to_remove(connection, scope)
        erased = await delete(connection, scope, now)
        if erased:
            await connection.execute(scrubbing.COUNT)
        return erased

    return await database.transact(work)


async def delete(connection: Connection, scope: Scope, now: float) -> Erased:
    """Remove a session and all that is its own, under the lock to remove."""
    only = await connection.fetch(_ONLY_ITS_REFS, *_key(scope))
    refs = await originals.drop(connection, scope, only, now)
    gone = [await _deleted(connection, statement, scope) for statement in _DELETE]
    for statement in jobs.OF_SESSION:
        await connection.execute(statement, *_key(scope))
    records = await run(connection, remembered.drop_of_session(scope))
    records += await _deleted(connection, answers.OF_SESSION, scope)
    records += await run(connection, journal.drop_of_session(scope))
    records += await run(connection, facts.drop_of_session(scope))
    named = await connection.fetch(_DELETE_MESSAGES, *_key(scope))
    await blobs.sweep(connection, scope, [row["sha256"] for row in named])
    _, turns, _, sessions = gone
    return Erased(sessions=sessions, turns=turns, refs=refs, records=records)


async def _deleted(connection: Connection, statement: LiteralString, scope: Scope) -> int:
    """Run a DELETE for the scope's session; return how many rows went."""
    status: str = await connection.execute(statement, *_key(scope))
    return int(status.rpartition(" ")[2])
