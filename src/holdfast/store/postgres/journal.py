"""journal: journals on PostgreSQL, and the shelf that makes the calls on them true.

after database, before store. Who appends holds a lock on the name of the journal, so that the place
an entry gets is the one that was looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, LiteralString

from holdfast.store import journal
from holdfast.store.journal import JournalEntry, JournalShelf
from holdfast.store.pack import pack, unpack
from holdfast.store.postgres.database import Connection, Database
from holdfast.store.postgres.scrubbing import Scrubber
from holdfast.store.records import Damage
from holdfast.store.refs import digest
from holdfast.store.scope import Scope
from holdfast.store.transfer import JournalLine

_LOCK: LiteralString = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"

_LAST: LiteralString = """
SELECT coalesce(max(sequence), 0) FROM holdfast.journal
WHERE workspace = $1 AND username = $2 AND session = $3 AND name = $4
"""

_ADD: LiteralString = """
INSERT INTO holdfast.journal (
    workspace, username, session, name, sequence, at, sha256, size, codec, data)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
"""

_READ: LiteralString = """
SELECT * FROM holdfast.journal
WHERE workspace = $1 AND username = $2 AND session = $3 AND name = $4 AND sequence > $5
ORDER BY sequence
"""

_NAMES: LiteralString = """
SELECT DISTINCT name FROM holdfast.journal
WHERE workspace = $1 AND username = $2 AND session = $3 AND starts_with(name, $4)
ORDER BY name
"""

_FORGET: LiteralString = """
DELETE FROM holdfast.journal
WHERE workspace = $1 AND username = $2 AND session = $3 AND name = $4
RETURNING sequence
"""

OF_SESSION: LiteralString = """
DELETE FROM holdfast.journal WHERE workspace = $1 AND username = $2 AND session = $3
"""

ALL: LiteralString = """
SELECT * FROM holdfast.journal WHERE workspace = $1 AND username = $2
ORDER BY session, name, sequence
"""

_AT_A_TIME = 16


class PostgresJournal(JournalShelf):
    """Keeps journals in the database of the store."""

    def __init__(self, database: Database, clock: Callable[[], float], scrubber: Scrubber) -> None:
        self._database = database
        self._scrubber = scrubber
        self._clock = clock

    async def append(
        self, scope: Scope, name: str, entries: Sequence[bytes], *, expect: int | None = None
    ) -> int:
        """Add entries behind the last."""
        key, now = (*_session(scope), journal.checked(name)), self._clock()

        async def work(connection: Connection) -> int:
            place = await _next(connection, key)
            journal.check_place(name, expect, place)
            added = [JournalEntry(place + n, bytes(data), now) for n, data in enumerate(entries)]
            await connection.executemany(_ADD, [_values(key, entry) for entry in added])
            return place + len(added)

        return await self._database.transact(work)

    async def read(self, scope: Scope, name: str, after: int = 0) -> list[JournalEntry]:
        """The entries behind a sequence."""
        rows = await self._database.fetch(_READ, *_session(scope), name, after)
        return [
            JournalEntry(
                row["sequence"], journal.whole(name, row["sequence"], opened(row)), row["at"]
            )
            for row in rows
        ]

    async def names(self, scope: Scope, prefix: str = "") -> list[str]:
        """The journals of the scope."""
        rows = await self._database.fetch(_NAMES, *_session(scope), prefix)
        return [row["name"] for row in rows]

    async def forget(self, scope: Scope, name: str) -> int:
        """Remove a journal without a trace."""
        removed = len(await self._database.fetch(_FORGET, *_session(scope), name))
        self._scrubber.begin(["journal"] if removed else [])
        return removed


def _session(scope: Scope) -> tuple[str, str, str]:
    return scope.workspace, scope.user, scope.session


async def _next(connection: Connection, key: tuple[str, ...]) -> int:
    """The sequence of the next entry, which nobody else takes before this transaction ends."""
    await connection.execute(_LOCK, "\n".join(("journal", *key)))
    return int(await connection.fetchval(_LAST, *key)) + 1


def _values(key: tuple[str, ...], entry: JournalEntry) -> tuple[object, ...]:
    packed = pack(entry.data)
    stored = (digest(entry.data), len(entry.data), packed.codec, packed.data)
    return (*key, entry.sequence, entry.at, *stored)


def opened(row: Any) -> bytes | None:
    """The bytes of an entry; None if they are not what was written."""
    return unpack(row["codec"], row["data"], size=row["size"], sha256=row["sha256"])


def line_of(row: Any) -> JournalLine | None:
    """A row as the line of an export; None if it is damaged."""
    data = opened(row)
    if data is None:
        return None
    entry = JournalEntry(row["sequence"], data, row["at"])
    return JournalLine(session=row["session"], name=row["name"], entry=entry)


async def restore(connection: Connection, scope: Scope, line: JournalLine) -> bool:
    """Put an exported entry behind the ones before it; whether it was not there."""
    key = (*_session(scope.of(line.session)), line.name)
    is_next = line.entry.sequence == await _next(connection, key)
    if is_next:
        await connection.execute(_ADD, *_values(key, line.entry))
    return is_next


async def unsound(connection: Connection, scope: Scope) -> list[Damage]:
    """Entries that are not what was written; they stay, for what follows stands behind them."""
    rows = connection.cursor(ALL, scope.workspace, scope.user, prefetch=_AT_A_TIME)
    return [journal.damaged(row["sha256"]) async for row in rows if opened(row) is None]
