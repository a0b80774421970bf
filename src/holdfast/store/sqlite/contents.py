"""contents: bytes, once for each workspace, as long as anything refers to them; in SQL.

contents: after driver. Each function is a job for a connection, inside of a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import chain

import apsw

from holdfast.store.pack import Packed
from holdfast.store.scope import Scope

DATA = "CAST(data AS BLOB)"
"""Damage may turn bytes into what looks like text; it is read as bytes all the same."""

_AT_ONCE = 32
"""Contents of one statement: each number of them is one more statement to be prepared."""


def keep(db: apsw.Connection, scope: Scope, sha256: str, size: int, packed: Packed) -> int:
    """Store bytes once per workspace, healing what is damaged; return their row."""
    stored = db.execute(
        "SELECT id, damage FROM contents WHERE workspace = ? AND sha256 = ?",
        (scope.workspace, sha256),
    ).fetchone()
    if stored is None:
        db.execute(
            "INSERT INTO contents (workspace, sha256, size, codec, data) VALUES (?, ?, ?, ?, ?)",
            (scope.workspace, sha256, size, packed.codec, packed.data),
        )
        return db.last_insert_rowid()
    if stored[1] is not None:
        db.execute(
            "UPDATE contents SET size = ?, codec = ?, data = ?, damage = NULL WHERE id = ?",
            (size, packed.codec, packed.data, stored[0]),
        )
    return int(stored[0])


def keep_all(db: apsw.Connection, scope: Scope, contents: Mapping[str, tuple[int, Packed]]) -> None:
    """The same for many, by their hashes, with their sizes: in as few statements as can be.

    For each statement the driver lets other threads run, and waits until they let it go on: a turn
    of twenty messages, with a look-up and an insert for each, waited sixty times.
    """
    rows = [
        (scope.workspace, sha256, size, packed.codec, packed.data)
        for sha256, (size, packed) in contents.items()
    ]
    for at in range(0, len(rows), _AT_ONCE):
        part = rows[at : at + _AT_ONCE]
        db.execute(_keeping(len(part)), tuple(chain.from_iterable(part)))


@cache
def _keeping(rows: int) -> str:
    values = ", ".join(["(?, ?, ?, ?, ?)"] * rows)
    return (
        f"INSERT INTO contents (workspace, sha256, size, codec, data) VALUES {values}"  # noqa: S608
        " ON CONFLICT (workspace, sha256) DO UPDATE SET size = excluded.size,"
        " codec = excluded.codec, data = excluded.data, damage = NULL WHERE damage IS NOT NULL"
    )


def sweep(db: apsw.Connection, content: int) -> int:
    """Remove a content that nobody refers to; 1 if it went."""
    db.execute(
        "DELETE FROM contents WHERE id = ?1"
        " AND NOT EXISTS (SELECT 1 FROM refs WHERE content = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM messages WHERE content = ?1)",
        (content,),
    )
    return db.changes()


def sweep_all(db: apsw.Connection, scope: Scope) -> None:
    """Remove the contents of a workspace that nobody refers to."""
    db.execute(
        "DELETE FROM contents WHERE workspace = ?"
        " AND NOT EXISTS (SELECT 1 FROM refs WHERE content = contents.id)"
        " AND NOT EXISTS (SELECT 1 FROM messages WHERE content = contents.id)",
        (scope.workspace,),
    )
