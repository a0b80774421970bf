"""journal: journals in SQL, and the shelf that makes the calls on them true.

journal: after driver and writer, before store. One writer writes at a time, so that the place an
entry gets is the one that was looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import apsw

from holdfast.store import journal
from holdfast.store.journal import JournalEntry, JournalShelf
from holdfast.store.pack import pack, unpack
from holdfast.store.records import Damage
from holdfast.store.refs import digest
from holdfast.store.scope import Scope
from holdfast.store.sqlite.writer import Readers, Writer
from holdfast.store.transfer import JournalLine

_MINE = "workspace = ? AND owner = ?"
_OF_SESSION = f"{_MINE} AND session = ?"
_NAMED = f"{_OF_SESSION} AND name = ?"
_COLUMNS = "sequence, at, sha256, size, codec, CAST(data AS BLOB)"
_ADD = (
    "INSERT INTO journal (workspace, owner, session, name, sequence, at, sha256, size, codec, data)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_Row = tuple[int, float, str, int, int, bytes]


class SqliteJournal(JournalShelf):
    """Keeps journals in the file of the store."""

    def __init__(self, writer: Writer, readers: Readers, clock: Callable[[], float]) -> None:
        self._writer = writer
        self._readers = readers
        self._clock = clock

    async def append(
        self, scope: Scope, name: str, entries: Sequence[bytes], *, expect: int | None = None
    ) -> int:
        """Add entries behind the last."""
        key, now = (*_session(scope), journal.checked(name)), self._clock()
        packed = [(digest(data), len(data), *pack(data)) for data in entries]

        def job(db: apsw.Connection) -> int:
            last = db.execute(f"SELECT max(sequence) FROM journal WHERE {_NAMED}", key).get  # noqa: S608 - constants
            place = (last or 0) + 1
            journal.check_place(name, expect, place)
            for sequence, stored in enumerate(packed, place):
                db.execute(_ADD, (*key, sequence, now, *stored))
            return place + len(packed)

        return await self._writer.submit(job)

    async def read(self, scope: Scope, name: str, after: int = 0) -> list[JournalEntry]:
        """The entries behind a sequence."""

        def job(db: apsw.Connection) -> list[JournalEntry]:
            rows = db.execute(
                f"SELECT {_COLUMNS} FROM journal WHERE {_NAMED} AND sequence > ?"  # noqa: S608 - constants
                " ORDER BY sequence",
                (*_session(scope), name, after),
            ).fetchall()  # all, for a statement that a damaged entry cuts short would stay open
            return [_entry(name, row) for row in rows]

        return await self._readers.read(job)

    async def names(self, scope: Scope, prefix: str = "") -> list[str]:
        """The journals of the scope."""

        def job(db: apsw.Connection) -> list[str]:
            rows = db.execute(
                f"SELECT DISTINCT name FROM journal WHERE {_OF_SESSION}"  # noqa: S608 - constants
                " AND substr(name, 1, ?) = ? ORDER BY name",
                (*_session(scope), len(prefix), prefix),
            )
            return [name for (name,) in rows]

        return await self._readers.read(job)

    async def forget(self, scope: Scope, name: str) -> int:
        """Remove a journal without a trace."""

        def job(db: apsw.Connection) -> int:
            db.execute(f"DELETE FROM journal WHERE {_NAMED}", (*_session(scope), name))  # noqa: S608 - constants
            return db.changes()

        return await self._writer.remove(job)


def _session(scope: Scope) -> tuple[str, str, str]:
    return scope.workspace, scope.user, scope.session


def _opened(row: _Row) -> bytes | None:
    _, _, sha256, size, codec, data = row
    return unpack(codec, data, size=size, sha256=sha256)


def _entry(name: str, row: Any) -> JournalEntry:
    return JournalEntry(row[0], journal.whole(name, row[0], _opened(row)), row[1])


def remove_of_session(db: apsw.Connection, scope: Scope) -> int:
    """Remove the journals of a session; return how many entries they had."""
    db.execute(f"DELETE FROM journal WHERE {_OF_SESSION}", _session(scope))  # noqa: S608 - constants
    return db.changes()


def unsound(db: apsw.Connection, scope: Scope) -> list[Damage]:
    """Entries that are not what was written; they stay, for what follows stands behind them."""
    rows = db.execute(f"SELECT {_COLUMNS} FROM journal WHERE {_MINE}", _session(scope)[:2])  # noqa: S608 - constants
    return [journal.damaged(row[2]) for row in rows if _opened(row) is None]


def page(
    db: apsw.Connection, scope: Scope, after: tuple[str, str, int], limit: int
) -> tuple[list[JournalLine], tuple[str, str, int] | None]:
    """Whole entries behind a place as lines, and the place to go on behind; None at the end."""
    rows = list(
        db.execute(
            f"SELECT session, name, {_COLUMNS} FROM journal WHERE {_MINE}"  # noqa: S608 - constants
            " AND (session, name, sequence) > (?, ?, ?) ORDER BY session, name, sequence LIMIT ?",
            (*_session(scope)[:2], *after, limit),
        )
    )
    lines = [
        JournalLine(session=session, name=name, entry=JournalEntry(row[0], data, row[1]))
        for session, name, *row in rows
        if (data := _opened(row)) is not None
    ]
    return lines, rows[-1][:3] if len(rows) == limit else None


def restore(db: apsw.Connection, scope: Scope, line: JournalLine) -> bool:
    """Put an exported entry behind the ones before it; whether it was not there."""
    key, entry = (*_session(scope.of(line.session)), line.name), line.entry
    last = db.execute(f"SELECT max(sequence) FROM journal WHERE {_NAMED}", key).get  # noqa: S608 - constants
    is_next = entry.sequence == (last or 0) + 1
    if is_next:
        stored = (digest(entry.data), len(entry.data), *pack(entry.data))
        db.execute(_ADD, (*key, entry.sequence, entry.at, *stored))
    return is_next
