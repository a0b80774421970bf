"""upkeep: usage and audit, how full the store is, what is damaged, what may go.

after originals and sessions, before store.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, LiteralString

from holdfast.errors import StoreError
from holdfast.store import rules
from holdfast.store.operations import summaries
from holdfast.store.postgres import answers, blobs, text, tools
from holdfast.store.postgres.database import Connection, Database
from holdfast.store.postgres.running import run
from holdfast.store.protocol import Progress
from holdfast.store.records import AuditEntry, Cleaned, Damage, StoreStats, UsageTotal
from holdfast.store.scope import Scope

DAY: LiteralString = "to_char(to_timestamp(started_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
SUMS: LiteralString = """
    count(*) AS turns,
    sum(predicted)::bigint AS predicted,
    sum(untouched)::bigint AS untouched,
    sum(input)::bigint AS input,
    sum(cached)::bigint AS cached,
    sum(output)::bigint AS output,
    sum(expansions)::bigint AS expansions,
    sum(expansion_tokens)::bigint AS expansion_tokens,
    coalesce(sum(round(cost::numeric, 9)), 0)::float8 AS cost,
    coalesce(sum(round(saved_cost::numeric, 9)), 0)::float8 AS saved_cost,
    count(*) FILTER (WHERE failed) AS failed,
    count(*) FILTER (WHERE answered) AS answered,
    count(*) FILTER (WHERE lazy_saved > 0) AS lazy,
    sum(lazy_saved)::bigint AS lazy_saved,
    sum(tool_searches)::bigint AS tool_searches,
    sum(tool_calls)::bigint AS tool_calls,
    sum(lazy_calls)::bigint AS lazy_calls,
    sum(cache_written)::bigint AS cache_written,
    sum(cache_written_hour)::bigint AS cache_written_hour,
    coalesce(sum(round(demo_cost::numeric, 9)), 0)::float8 AS demo_cost,
    coalesce(sum(round(demo_saved_cost::numeric, 9)), 0)::float8 AS demo_saved_cost,
    count(*) FILTER (WHERE unreported) AS unreported,
    count(*) FILTER (WHERE estimated) AS estimated,
    count(*) FILTER (WHERE assumed) AS assumed,
    count(*) FILTER (WHERE unpriced) AS unpriced,
    count(*) FILTER (WHERE overflows) AS overflows
"""
"""The fields of `UsageTotal` behind its name, summed over turns."""

_USAGE: LiteralString = f"""
SELECT CASE $3 WHEN 'model' THEN model WHEN 'session' THEN session ELSE {DAY} END AS name,
    {SUMS}
FROM holdfast.turns
WHERE workspace = $1 AND username = $2 AND $4 IN ('', session) AND started_at >= $5
GROUP BY 1
"""  # noqa: S608 - constants

_AUDIT: LiteralString = """
SELECT * FROM holdfast.audit
WHERE workspace = $1 AND username = $2
ORDER BY at DESC, number DESC
LIMIT $3 OFFSET $4
"""

_STATS: LiteralString = """
WITH live AS (
    SELECT workspace, sha256, r.kind, r.size, r.flags, r.expires_at, c.damage,
        octet_length(c.data) AS stored
    FROM holdfast.refs AS r
    LEFT JOIN holdfast.contents AS c USING (workspace, sha256)
    WHERE r.workspace = ANY ($1::text[]) AND r.username = $2 AND NOT r.removed
), once AS (
    SELECT DISTINCT ON (workspace, sha256) size, stored FROM live
)
SELECT
    (SELECT count(*) FROM live) AS refs,
    (SELECT count(*) FROM once) AS contents,
    (SELECT coalesce(sum(size), 0) FROM once)::bigint AS size,
    (SELECT coalesce(sum(stored), 0) FROM once)::bigint AS stored,
    (
        SELECT count(DISTINCT (workspace, client_session)) FILTER (WHERE client_session <> '')
            + count(*) FILTER (WHERE client_session = '')
        FROM holdfast.sessions
        WHERE workspace = ANY ($1::text[]) AND username = $2 AND purpose = ''
    ) AS sessions,
    (SELECT count(*) FROM holdfast.turns
     WHERE workspace = ANY ($1::text[]) AND username = $2) AS turns,
    (SELECT count(*) FROM live WHERE damage IS NULL AND expires_at <= $3) AS stale,
    (SELECT count(*) FROM live WHERE damage IS NOT NULL) AS damaged,
    (SELECT count(*) FROM live WHERE flags <> '[]') AS flagged,
    (SELECT coalesce(json_object_agg(kind, refs), '{}')
     FROM (SELECT kind, count(*) AS refs FROM live GROUP BY kind) AS kinds)::text AS by_kind
"""

_HELD: LiteralString = """
SELECT count(DISTINCT sha256) FROM (
    SELECT sha256 FROM holdfast.messages WHERE workspace = $1 AND username = $2
    UNION ALL
    SELECT sha256 FROM holdfast.refs WHERE workspace = $1 AND username = $2 AND NOT removed
) AS held
"""

_ALL_HELD: LiteralString = """
WITH held AS (
    SELECT sha256 FROM holdfast.messages WHERE workspace = $1 AND username = $2
    UNION
    SELECT sha256 FROM holdfast.refs WHERE workspace = $1 AND username = $2 AND NOT removed
)
SELECT held.sha256, c.damage, c.codec, c.data, c.size AS content_size,
    ARRAY (
        SELECT ref_id FROM holdfast.refs AS r
        WHERE r.workspace = $1 AND r.username = $2 AND r.sha256 = held.sha256 AND NOT removed
        ORDER BY ref_id) AS refs
FROM held LEFT JOIN holdfast.contents AS c ON c.workspace = $1 AND c.sha256 = held.sha256
ORDER BY held.sha256
"""

_MAY_GO: LiteralString = """
    r.workspace = $1 AND r.username = $2 AND NOT r.removed
    AND r.written_at <= $3 AND (r.accessed_at IS NULL OR r.accessed_at <= $3)
    AND NOT EXISTS (  -- an open session, or one that was closed a moment ago
        SELECT FROM holdfast.uses AS u
        LEFT JOIN holdfast.sessions AS s USING (workspace, username, session)
        WHERE (u.workspace, u.username, u.sha256, u.kind)
            = (r.workspace, r.username, r.sha256, r.kind)
          AND u.session <> '' AND (s.closed_at IS NULL OR s.closed_at > $3))
    AND (r.expires_at <= $3 OR (
        SELECT bool_and(u.session <> '') FROM holdfast.uses AS u
        WHERE (u.workspace, u.username, u.sha256, u.kind)
            = (r.workspace, r.username, r.sha256, r.kind)))
"""

_CANDIDATES: LiteralString = (
    "SELECT sha256, kind FROM holdfast.refs AS r WHERE "  # noqa: S608 - all literals
    + _MAY_GO
    + "ORDER BY number"
)

_CLEAN: LiteralString = (
    """
WITH gone AS (
    UPDATE holdfast.refs AS r SET removed = true, compressed = ''
    FROM unnest($6::text[], $7::text[]) AS candidate (sha256, kind)
    WHERE r.sha256 = candidate.sha256 AND r.kind = candidate.kind AND """  # noqa: S608 - all literals
    + _MAY_GO
    + """
    RETURNING r.*
), noted AS (
    INSERT INTO holdfast.audit (
        workspace, username, at, session, ref_id, sha256, action, size, from_tokens, to_tokens,
        flags)
    SELECT workspace, username, $4, $5, ref_id, sha256, 'removed', size, tokens, 0, flags
    FROM gone ORDER BY number
)
SELECT sha256 FROM gone
"""
)

_NEVER_LOOKED_AT: LiteralString = (
    "SELECT 1 FROM pg_class WHERE oid = 'holdfast.refs'::regclass AND reltuples < 0"
)
_LOOK: LiteralString = (
    "ANALYZE holdfast.contents, holdfast.refs, holdfast.uses, holdfast.messages, holdfast.audit"
)

_PART = 500
"""Refs that are removed in one transaction."""

_AT_A_TIME = 16
"""Contents that are read ahead when all are read."""


async def usage(database: Database, scope: Scope, by: str, since: float) -> list[UsageTotal]:
    """Usage summed over turns."""
    asked = (scope.workspace, scope.user, by, scope.session, since)
    rows = [UsageTotal(**row) for row in await database.fetch(_USAGE, *asked)]
    return sorted(rows, key=lambda total: total.name)


async def audit(database: Database, scope: Scope, limit: int, before: int) -> list[AuditEntry]:
    """The newest compressions."""
    asked = (scope.workspace, scope.user, max(limit, 0), max(before, 0))
    return [entry_of(row) for row in await database.fetch(_AUDIT, *asked)]


def entry_of(row: Any) -> AuditEntry:
    """A row of audit as a record."""
    named = {name: row[name] for name in AuditEntry.__struct_fields__}
    return AuditEntry(**named | {"flags": tuple(json.loads(row["flags"]))})


async def stats(database: Database, user: str, workspaces: Sequence[str], now: float) -> StoreStats:
    """Return how much some workspaces of a user hold together."""
    (row,) = await database.fetch(_STATS, text.encoded(workspaces), user, now)
    by_kind = dict(sorted(json.loads(row["by_kind"]).items()))
    return StoreStats(**dict(row) | {"by_kind": by_kind})


async def look_at_once(database: Database) -> None:
    """Let PostgreSQL look at tables that it never looked at: until then it plans for empty ones.

    It does so by itself, but only after a minute; a first import has grown by then.
    """
    with suppress(StoreError):  # what was stored is stored, and only slower to find
        if await database.fetch(_NEVER_LOOKED_AT):
            await database.fetch(_LOOK)


async def verify(
    database: Database, scope: Scope, now: float, progress: Progress | None
) -> list[Damage]:
    """Read everything once."""
    asked = (scope.workspace, scope.user)
    damaged, damages, done = [], [], 0
    async with database.snapshot() as connection:
        number = await connection.fetchval(_HELD, *asked)
        async for row in connection.cursor(_ALL_HELD, *asked, prefetch=_AT_A_TIME):
            done += 1
            if blobs.opened(row) is None:
                damaged.append(row)
                refs = tuple(row["refs"])
                damages.append(Damage(sha256=row["sha256"], why=rules.DAMAGE, refs=refs))
            if progress is not None:
                progress(done, number)
        unsound_answers = await answers.unsound(connection, scope)
        unsound_tools = await tools.unsound(connection, scope)
    await blobs.mark(database, scope, damaged, now)
    damages += await tools.remove(database, scope, unsound_tools)
    damages += await answers.remove(database, scope, unsound_answers)
    return damages


async def gc(database: Database, scope: Scope, now: float, grace_seconds: float) -> Cleaned:
    """Remove what is stale and what closed sessions left, in parts that are each whole.

    The long search goes on beside the writers; they wait only while a part is removed.
    """
    which = (scope.workspace, scope.user, now - grace_seconds)
    await database.fetch(answers.REMOVE_EXPIRED, scope.workspace, scope.user, now)
    candidates = await database.fetch(_CANDIDATES, *which)
    total = Cleaned(0, 0, 0)
    for start in range(0, len(candidates), _PART):
        part = candidates[start : start + _PART]
        keys = ([row["sha256"] for row in part], [row["kind"] for row in part])
        asked = (*which, now, scope.session, *keys)
        went = await database.transact(functools.partial(_clean, scope=scope, asked=asked))
        total = Cleaned(
            total.refs + went.refs, total.contents + went.contents, total.bytes + went.bytes
        )
    return total


async def _clean(connection: Connection, scope: Scope, asked: tuple[object, ...]) -> Cleaned:
    """Remove candidates that may still go."""
    await blobs.lock_to_remove(connection, scope)
    gone = await connection.fetch(_CLEAN, *asked)
    hashes = [row["sha256"] for row in gone]
    await run(connection, summaries.drop_of_sources(scope, hashes))
    sizes = await blobs.sweep(connection, scope, hashes)
    return Cleaned(len(gone), len(sizes), sum(sizes))
