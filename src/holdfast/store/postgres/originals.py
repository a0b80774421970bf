"""originals: put, open, list and forget originals behind refs.

after blobs, before store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, LiteralString

from holdfast.store import rules
from holdfast.store.operations import facts, summaries
from holdfast.store.postgres import answers, blobs, jobs, scrubbing
from holdfast.store.postgres.database import Connection, Database
from holdfast.store.postgres.running import run
from holdfast.store.records import Content, RefInfo, Stored
from holdfast.store.refs import RefName, parse
from holdfast.store.scope import Scope

_COLLIDING: LiteralString = """
SELECT FROM unnest($3::text[], $4::text[]) AS added (ref_id, sha256)
JOIN holdfast.refs AS r
  ON r.workspace = $1 AND r.username = $2 AND r.ref_id = added.ref_id AND r.sha256 <> added.sha256
LIMIT 1
"""

_BURY: LiteralString = """
DELETE FROM holdfast.refs AS r
USING unnest($3::text[], $4::text[]) AS again (sha256, kind)
WHERE r.workspace = $1 AND r.username = $2 AND r.removed
  AND r.sha256 = again.sha256 AND r.kind = again.kind
"""

_PUT: LiteralString = """
WITH before AS (
    SELECT FROM holdfast.refs
    WHERE workspace = $1 AND username = $2 AND sha256 = $3 AND kind = $4
), put AS (
    INSERT INTO holdfast.refs AS known (
        workspace, username, sha256, kind, ref_id, size, tokens, summary, compressed, meta, flags,
        created_at, written_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, $13)
    ON CONFLICT (workspace, username, sha256, kind) DO UPDATE SET
        tokens = coalesce(nullif(known.tokens, 0), excluded.tokens),
        summary = coalesce(nullif(known.summary, ''), excluded.summary),
        compressed = coalesce(nullif(known.compressed, ''), excluded.compressed),
        meta = coalesce(nullif(known.meta, '{}'), excluded.meta),
        flags = coalesce(nullif(known.flags, '[]'), excluded.flags),
        written_at = excluded.written_at,
        -- NULL is never, and so the latest.
        expires_at = CASE WHEN known.expires_at IS NOT NULL AND excluded.expires_at IS NOT NULL
                     THEN greatest(known.expires_at, excluded.expires_at) END
    RETURNING *
), used AS (
    INSERT INTO holdfast.uses (workspace, username, sha256, kind, session)
    SELECT workspace, username, sha256, kind, $14 FROM put
    ON CONFLICT DO NOTHING
)
INSERT INTO holdfast.audit (
    workspace, username, at, session, ref_id, sha256, action, size, from_tokens, to_tokens, flags)
SELECT workspace, username, $12, $14, ref_id, sha256,
    CASE WHEN EXISTS (SELECT FROM before) THEN 'seen again' ELSE 'stored' END,
    size, tokens, $15, flags
FROM put
"""

FIND: LiteralString = """
SELECT r.*, c.damage
FROM holdfast.refs AS r
LEFT JOIN holdfast.contents AS c ON c.workspace = r.workspace AND c.sha256 = r.sha256
WHERE r.workspace = $1 AND r.username = $2 AND r.sha256 BETWEEN $3 AND $4 AND $5 IN ('', r.kind)
"""

OPEN: LiteralString = """
SELECT r.*, c.damage, c.codec, c.data, c.size AS content_size
FROM holdfast.refs AS r
LEFT JOIN holdfast.contents AS c
  ON c.workspace = r.workspace AND c.sha256 = r.sha256 AND NOT r.removed
WHERE r.workspace = $1 AND r.username = $2 AND r.sha256 BETWEEN $3 AND $4 AND $5 IN ('', r.kind)
"""

_COUNT_ACCESS: LiteralString = """
WITH opened AS (
    UPDATE holdfast.refs SET accesses = accesses + 1, accessed_at = $5
    WHERE workspace = $1 AND username = $2 AND sha256 = $3 AND kind = $4
    RETURNING *
), used AS (
    INSERT INTO holdfast.uses (workspace, username, sha256, kind, session)
    SELECT workspace, username, sha256, kind, $6 FROM opened WHERE $6 <> ''
    ON CONFLICT DO NOTHING
)
SELECT *, NULL AS damage FROM opened
"""

_LIST: LiteralString = """
SELECT r.*, c.damage
FROM holdfast.refs AS r
LEFT JOIN holdfast.contents AS c ON c.workspace = r.workspace AND c.sha256 = r.sha256
WHERE r.workspace = $1 AND r.username = $2 AND NOT r.removed
  AND r.number < $3 AND $4 IN ('', r.kind)
ORDER BY r.number DESC
LIMIT $5
"""

_LIST_OF_MANY: LiteralString = """
SELECT r.*, c.damage
FROM holdfast.refs AS r
LEFT JOIN holdfast.contents AS c ON c.workspace = r.workspace AND c.sha256 = r.sha256
WHERE r.username = $1 AND r.workspace = ANY ($2::text[]) AND NOT r.removed
  AND r.number < $3 AND $4 IN ('', r.kind)
ORDER BY r.number DESC
LIMIT $5
"""

_LIST_OF_SESSION: LiteralString = """
SELECT r.*, c.damage
FROM holdfast.uses AS u
JOIN holdfast.refs AS r USING (workspace, username, sha256, kind)
LEFT JOIN holdfast.contents AS c ON c.workspace = r.workspace AND c.sha256 = r.sha256
WHERE u.workspace = $1 AND u.username = $2 AND u.session = $6 AND NOT r.removed
  AND r.number < $3 AND $4 IN ('', r.kind)
ORDER BY r.number DESC
LIMIT $5
"""

_DROP: LiteralString = """
WITH gone AS (
    DELETE FROM holdfast.refs
    WHERE workspace = $1 AND username = $2 AND sha256 = $3 AND kind = $4
    RETURNING *
), noted AS (
    INSERT INTO holdfast.audit (
        workspace, username, at, session, ref_id, sha256, action, size, from_tokens, to_tokens,
        flags)
    SELECT workspace, username, $5, $6, ref_id, sha256, 'removed', size, tokens, 0, flags
    FROM gone WHERE NOT removed
)
SELECT sha256, ref_id FROM gone
"""

_NEWEST = 2**63 - 1


async def put(database: Database, scope: Scope, contents: Sequence[Content], now: float) -> None:
    """Store originals, all or none."""
    for content in contents:
        rules.check_content(content)
    if contents:
        await database.transact(lambda connection: _put(connection, scope, contents, now))


async def _put(
    connection: Connection, scope: Scope, contents: Sequence[Content], now: float
) -> None:
    await blobs.lock_to_add(connection, scope)
    await blobs.keep(connection, scope, {c.sha256: c.data for c in contents})
    await check_collisions(connection, scope, [(c.ref_id, c.sha256) for c in contents])
    await bury(connection, scope, [(c.sha256, c.kind) for c in contents])
    with_ref = (
        (
            *(scope.workspace, scope.user, c.sha256, c.kind, c.ref_id, len(c.data), c.tokens),
            *(c.summary, c.compressed, rules.to_json(c.meta), rules.to_json(c.flags)),
            *(now, rules.expiry(now, c.ttl_seconds), scope.session, c.compressed_tokens),
        )
        for c in contents
    )
    await connection.executemany(_PUT, with_ref)


async def check_collisions(
    connection: Connection, scope: Scope, added: Iterable[tuple[str, str]]
) -> None:
    """Raise if a ref is, or would be, that of two contents."""
    by_ref: dict[str, str] = {}
    for ref_id, sha256 in added:
        if by_ref.setdefault(ref_id, sha256) != sha256:
            raise rules.collision()
    asked = (list(by_ref), list(by_ref.values()))
    if await connection.fetch(_COLLIDING, scope.workspace, scope.user, *asked):
        raise rules.collision()


async def bury(connection: Connection, scope: Scope, refs: Sequence[tuple[str, str]]) -> None:
    """Remove what is left of removed refs, by hash and kind: they are stored anew."""
    hashes, kinds = [sha256 for sha256, _ in refs], [kind for _, kind in refs]
    await connection.execute(_BURY, scope.workspace, scope.user, hashes, kinds)


async def get(
    database: Database, scope: Scope, ref: str, clock: Callable[[], float], *, peek: bool
) -> Stored | None:
    """Open a ref, and count the access unless it is a `peek`."""
    name = parse(ref)
    if name is None:
        return None
    asked = (*rules.hash_range(name), name.kind)
    row = _chosen(name, await database.fetch(OPEN, scope.workspace, scope.user, *asked))
    if row is None or row["removed"]:
        return None
    data = blobs.opened(row)
    if data is None:
        await blobs.mark(database, scope, [row], clock())
        raise rules.damaged(row["ref_id"])
    now = clock()
    if peek:
        return Stored(info_of(row, now), data)
    key = (scope.workspace, scope.user, row["sha256"], row["kind"])
    counted = await database.fetch(_COUNT_ACCESS, *key, now, scope.session)
    # Between the two statements the ref may have been forgotten; its content was read before.
    return Stored(info_of(counted[0] if counted else row, now), data)


async def info(database: Database, scope: Scope, ref: str, now: float) -> RefInfo | None:
    """What is known of a ref."""
    row = await _find(database, scope, ref)
    return None if row is None else info_of(row, now)


async def refs(
    database: Database, scope: Scope, now: float, *, kind: str, limit: int, before: str
) -> list[RefInfo]:
    """The refs stored last."""
    number = await _place(database, scope, before) if before else _NEWEST
    asked = (scope.workspace, scope.user, number, kind, max(limit, 0))
    if scope.session:
        rows = await database.fetch(_LIST_OF_SESSION, *asked, scope.session)
    else:
        rows = await database.fetch(_LIST, *asked)
    return [info_of(row, now) for row in rows]


async def newest_of(
    database: Database,
    owners: tuple[str, list[str]],
    *,
    kind: str,
    limit: int,
    before: tuple[Scope, str] | None,
) -> list[Any]:
    """Return the refs stored last in some workspaces of a user, as rows."""
    number = _NEWEST if before is None else await _place(database, *before)
    return await database.fetch(_LIST_OF_MANY, *owners, number, kind, max(limit, 0))


async def _place(database: Database, scope: Scope, ref: str) -> int:
    last = await _find(database, scope, ref)
    if last is None:
        raise rules.no_place_to_go_on(ref)
    number: int = last["number"]
    return number


async def forget(database: Database, scope: Scope, refs: Sequence[str], now: float) -> int:
    """Remove refs without a trace."""

    async def work(connection: Connection) -> int:
        await blobs.lock_to_remove(connection, scope)
        rows = [await _find(connection, scope, ref) for ref in rules.distinct(refs)]
        gone = await drop(connection, scope, [row for row in rows if row is not None], now)
        if gone:
            await connection.execute(scrubbing.COUNT)
        return gone

    return await database.transact(work)


async def drop(connection: Connection, scope: Scope, rows: Iterable[Any], now: float) -> int:
    """Remove refs, and contents that nobody refers to, under the lock to remove."""
    keys = rules.distinct(f"{row['sha256']} {row['kind']}" for row in rows)
    each = [(scope.workspace, scope.user, *key.split(" "), now, scope.session) for key in keys]
    gone = await connection.fetchmany(_DROP, each)
    hashes = [row["sha256"] for row in gone]
    await run(connection, summaries.drop_of_sources(scope, hashes))
    refs = [row["ref_id"] for row in gone]
    for statement in (jobs.OF_REF, answers.OF_REFS):
        await connection.execute(statement, scope.workspace, scope.user, refs)
    await run(connection, facts.drop_of_refs(scope, refs))
    await blobs.sweep(connection, scope, hashes)
    return len(gone)


async def _find(source: Database | Connection, scope: Scope, ref: str) -> Any:
    name = parse(ref)
    if name is None:
        return None
    low, high = rules.hash_range(name)
    rows = await source.fetch(FIND, scope.workspace, scope.user, low, high, name.kind)
    return _chosen(name, rows)


def _chosen(name: RefName, rows: Sequence[Any]) -> Any:
    return rules.choose(name, rows, lambda row: (row["ref_id"], row["sha256"]))


def info_of(row: Any, now: float) -> RefInfo:
    """A row of refs as a record."""
    return RefInfo(
        ref_id=row["ref_id"],
        kind=row["kind"],
        sha256=row["sha256"],
        size=row["size"],
        tokens=row["tokens"],
        summary=row["summary"],
        compressed=row["compressed"],
        meta=json.loads(row["meta"]),
        flags=tuple(json.loads(row["flags"])),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        accessed_at=row["accessed_at"],
        accesses=row["accesses"],
        state=rules.state_of(
            removed=row["removed"],
            damage=row["damage"],
            expires_at=row["expires_at"],
            now=now,
        ),
    )
