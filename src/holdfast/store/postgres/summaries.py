"""summaries: summaries of contents by their keys.

after database, before originals. What is damaged is never served: it is missing, and made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from holdfast.store import rules
from holdfast.store.pack import pack, unpack
from holdfast.store.postgres.database import Connection, Database
from holdfast.store.records import Damage, Summary
from holdfast.store.refs import digest
from holdfast.store.scope import Scope

_GET: LiteralString = """
SELECT key, source, expires_at, sha256, size, codec, data FROM holdfast.summaries
WHERE workspace = $1 AND username = $2 AND key = $3 AND (expires_at IS NULL OR expires_at > $4)
"""

_INSERT: LiteralString = """
INSERT INTO holdfast.summaries (
    workspace, username, key, source, expires_at, sha256, size, codec, data)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""

PUT: LiteralString = (
    _INSERT
    + """
ON CONFLICT (workspace, username, key) DO UPDATE
SET source = excluded.source, expires_at = excluded.expires_at, sha256 = excluded.sha256,
    size = excluded.size, codec = excluded.codec, data = excluded.data
"""
)

ADD: LiteralString = _INSERT + "ON CONFLICT DO NOTHING RETURNING key"

ALL: LiteralString = """
SELECT key, source, expires_at, sha256, size, codec, data FROM holdfast.summaries
WHERE workspace = $1 AND username = $2 ORDER BY key
"""

_REMOVE_OF: LiteralString = """
DELETE FROM holdfast.summaries AS s
WHERE workspace = $1 AND username = $2 AND source <> '' AND source = ANY ($3)
  AND NOT EXISTS (
    SELECT FROM holdfast.refs AS r
    WHERE (r.workspace, r.username, r.sha256) = (s.workspace, s.username, s.source)
      AND NOT r.removed)
"""

REMOVE_EXPIRED: LiteralString = """
DELETE FROM holdfast.summaries WHERE workspace = $1 AND username = $2 AND expires_at <= $3
"""

_REMOVE: LiteralString = """
DELETE FROM holdfast.summaries
WHERE workspace = $1 AND username = $2 AND sha256 = $3 AND codec = $4 AND data = $5
"""

_AT_A_TIME = 16


async def get(database: Database, scope: Scope, key: str, now: float) -> bytes | None:
    """The summary of this key, if it is there, whole and not past its time."""
    rows = await database.fetch(_GET, scope.workspace, scope.user, key, now)
    summary = opened(rows[0]) if rows else None
    return None if summary is None else summary.value


def values(scope: Scope, summary: Summary) -> tuple[object, ...]:
    """A summary as the values of `PUT` and `ADD`."""
    packed = pack(summary.value)
    return (
        *(scope.workspace, scope.user, summary.key, summary.source, summary.expires_at),
        *(digest(summary.value), len(summary.value), packed.codec, packed.data),
    )


def opened(row: Any) -> Summary | None:
    """A row as a summary; None if it is not what was stored."""
    value = unpack(row["codec"], row["data"], size=row["size"], sha256=row["sha256"])
    return None if value is None else Summary(row["key"], value, row["source"], row["expires_at"])


async def remove_of(connection: Connection, scope: Scope, hashes: Sequence[str]) -> None:
    """Remove the summaries of contents that their user no longer has."""
    await connection.execute(_REMOVE_OF, scope.workspace, scope.user, list(hashes))


async def unsound(connection: Connection, scope: Scope) -> list[Any]:
    """The rows of summaries that are not what was stored."""
    asked = (scope.workspace, scope.user)
    rows = connection.cursor(ALL, *asked, prefetch=_AT_A_TIME)
    return [row async for row in rows if opened(row) is None]


async def remove(database: Database, scope: Scope, rows: Sequence[Any]) -> list[Damage]:
    """Remove damaged summaries, unless they were made again since: they can be."""
    for row in rows:
        key = (scope.workspace, scope.user, row["sha256"], row["codec"], row["data"])
        await database.fetch(_REMOVE, *key)
    return [rules.damaged_summary(row["sha256"]) for row in rows]
