"""blobs: bytes stored once per workspace, whoever refers to them.

after database, before originals and sessions. Those who add hold a shared lock of the workspace
for their transaction, those who remove an exclusive one: so nothing is removed between being
found and being referred to. Both take it first, and add in the order of hashes: nobody waits in
a circle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, LiteralString

from holdfast.store import pack, rules
from holdfast.store.postgres.database import Connection, Database
from holdfast.store.scope import Scope

_LOCK_TO_ADD: LiteralString = "SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 71))"
_LOCK_TO_REMOVE: LiteralString = "SELECT pg_advisory_xact_lock(hashtextextended($1, 71))"

_KEEP: LiteralString = """
INSERT INTO holdfast.contents AS known (workspace, sha256, size, codec, data)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (workspace, sha256) DO UPDATE
SET codec = excluded.codec, data = excluded.data, size = excluded.size, damage = NULL
WHERE known.damage IS NOT NULL
"""

_SWEEP: LiteralString = """
DELETE FROM holdfast.contents AS c
WHERE workspace = $1 AND sha256 = ANY ($2)
  AND NOT EXISTS (
    SELECT FROM holdfast.refs AS r
    WHERE r.workspace = c.workspace AND r.sha256 = c.sha256 AND NOT r.removed)
  AND NOT EXISTS (
    SELECT FROM holdfast.messages AS m
    WHERE m.workspace = c.workspace AND m.sha256 = c.sha256)
RETURNING size
"""

_SWEEP_ALL: LiteralString = """
DELETE FROM holdfast.contents AS c
WHERE workspace = $1
  AND NOT EXISTS (
    SELECT FROM holdfast.refs AS r
    WHERE r.workspace = c.workspace AND r.sha256 = c.sha256 AND NOT r.removed)
  AND NOT EXISTS (
    SELECT FROM holdfast.messages AS m
    WHERE m.workspace = c.workspace AND m.sha256 = c.sha256)
"""

# The data is compared, so that what was healed since it was read stays sound.
_MARK: LiteralString = """
WITH marked AS (
    UPDATE holdfast.contents SET damage = $3
    WHERE workspace = $1 AND sha256 = $2 AND damage IS NULL AND codec = $4 AND data = $5
    RETURNING workspace, sha256
)
INSERT INTO holdfast.audit (
    workspace, username, at, session, ref_id, sha256, action, size, from_tokens, to_tokens, flags)
SELECT r.workspace, r.username, $7, $8, r.ref_id, r.sha256, 'damaged', r.size, r.tokens, 0, r.flags
FROM marked JOIN holdfast.refs AS r USING (workspace, sha256)
WHERE r.username = $6 AND NOT r.removed
ORDER BY r.number
"""


async def lock_to_add(connection: Connection, scope: Scope) -> None:
    """Let nothing be removed from the workspace until the transaction ends."""
    await connection.execute(_LOCK_TO_ADD, scope.workspace)


async def lock_to_remove(connection: Connection, scope: Scope) -> None:
    """Let nothing be added to the workspace or removed from it until the transaction ends."""
    await connection.execute(_LOCK_TO_REMOVE, scope.workspace)


async def keep(
    connection: Connection, scope: Scope, blobs: Mapping[str, bytes | memoryview]
) -> None:
    """Store what is new, and heal what is damaged."""
    rows = []
    for sha256, data in sorted(blobs.items()):
        packed = pack.pack(data)
        rows.append((scope.workspace, sha256, len(data), packed.codec, packed.data))
    await connection.executemany(_KEEP, rows)


async def sweep(connection: Connection, scope: Scope, hashes: Iterable[str]) -> list[int]:
    """Remove those that nobody in the workspace refers to: the sizes of what went."""
    rows = await connection.fetch(_SWEEP, scope.workspace, sorted(set(hashes)))
    return [row["size"] for row in rows]


async def sweep_all(connection: Connection, scope: Scope) -> None:
    """Remove the contents of a workspace that nobody refers to, under the lock to remove."""
    await connection.execute(_SWEEP_ALL, scope.workspace)


def opened(row: Any) -> bytes | None:
    """The bytes of a row of contents; None if they are not what was stored."""
    if row["data"] is None or row["damage"] is not None:
        return None
    return pack.unpack(row["codec"], row["data"], size=row["content_size"], sha256=row["sha256"])


async def mark(database: Database, scope: Scope, rows: Collection[Any], now: float) -> None:
    """Set damaged contents apart, and note it for the refs of this user."""
    for row in rows:
        if row["data"] is not None and row["damage"] is None:
            where = (scope.workspace, row["sha256"], rules.DAMAGE, row["codec"], row["data"])
            await database.fetch(_MARK, *where, scope.user, now, scope.session)
