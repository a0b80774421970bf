"""summaries: summaries of contents by their keys, in SQL.

summaries: after driver, before originals. Each function is a job for a connection, inside of a
transaction. What is damaged is never served: it is missing, and made again.
"""

from __future__ import annotations

from collections.abc import Mapping

import apsw

from holdfast.store.pack import Packed, pack, unpack
from holdfast.store.records import Summary
from holdfast.store.refs import digest
from holdfast.store.scope import Scope


def get(db: apsw.Connection, scope: Scope, key: str, now: float) -> bytes | None:
    """The summary of this key, if it is there, whole and not past its time."""
    row = db.execute(
        "SELECT codec, CAST(data AS BLOB), size, sha256 FROM summaries"
        " WHERE workspace = ? AND owner = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?)",
        (scope.workspace, scope.user, key, now),
    ).fetchone()
    if row is None:
        return None
    codec, data, size, sha256 = row
    return unpack(codec, data, size=size, sha256=sha256)


def add(db: apsw.Connection, scope: Scope, summary: Summary) -> bool:
    """Keep a summary unless there is one with its key; whether there was none."""
    is_new = not db.execute(
        "SELECT EXISTS (SELECT 1 FROM summaries WHERE workspace = ? AND owner = ? AND key = ?)",
        (scope.workspace, scope.user, summary.key),
    ).get
    if is_new:
        put(db, scope, summary, pack(summary.value))
    return is_new


def put(db: apsw.Connection, scope: Scope, summary: Summary, packed: Packed) -> None:
    """Keep a summary in the place of an earlier one with its key."""
    db.execute(
        "INSERT OR REPLACE INTO summaries"
        " (workspace, owner, key, source, expires_at, sha256, size, codec, data)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(scope.workspace, scope.user, summary.key, summary.source, summary.expires_at),
            *(digest(summary.value), len(summary.value), packed.codec, packed.data),
        ),
    )


def page(db: apsw.Connection, scope: Scope, after: str, limit: int) -> tuple[list[Summary], str]:
    """Whole summaries behind a key, and the key to go on behind; empty at the end."""
    rows = list(
        db.execute(
            "SELECT key, source, expires_at, codec, CAST(data AS BLOB), size, sha256"
            " FROM summaries"
            " WHERE workspace = ? AND owner = ? AND key > ? ORDER BY key LIMIT ?",
            (scope.workspace, scope.user, after, limit),
        )
    )
    summaries = []
    for key, source, expires_at, codec, data, size, sha256 in rows:
        value = unpack(codec, data, size=size, sha256=sha256)
        if value is not None:
            summaries.append(Summary(key, value, source, expires_at))
    return summaries, rows[-1][0] if len(rows) == limit else ""


def unsound(db: apsw.Connection, scope: Scope) -> dict[str, str]:
    """Summaries that are not what was stored: their hashes by their keys."""
    rows = db.execute(
        "SELECT key, codec, CAST(data AS BLOB), size, sha256 FROM summaries"
        " WHERE workspace = ? AND owner = ?",
        (scope.workspace, scope.user),
    )
    return {
        key: sha256
        for key, codec, data, size, sha256 in rows
        if unpack(codec, data, size=size, sha256=sha256) is None
    }


def remove(db: apsw.Connection, scope: Scope, unsound: Mapping[str, str]) -> None:
    """Remove summaries by their keys, unless others have taken their places since."""
    for key, sha256 in unsound.items():
        db.execute(
            "DELETE FROM summaries WHERE workspace = ? AND owner = ? AND key = ? AND sha256 = ?",
            (scope.workspace, scope.user, key, sha256),
        )


def remove_of(db: apsw.Connection, scope: Scope, source: str) -> None:
    """Remove the summaries of a content that its user no longer has."""
    db.execute(
        "DELETE FROM summaries WHERE workspace = ?1 AND owner = ?2 AND source = ?3"
        " AND source <> '' AND NOT EXISTS (SELECT 1 FROM refs WHERE workspace = ?1"
        " AND owner = ?2 AND sha256 = ?3 AND content IS NOT NULL)",
        (scope.workspace, scope.user, source),
    )


def remove_expired(db: apsw.Connection, scope: Scope, now: float) -> None:
    """Remove what is past its time."""
    db.execute(
        "DELETE FROM summaries WHERE workspace = ? AND owner = ? AND expires_at <= ?",
        (scope.workspace, scope.user, now),
    )
