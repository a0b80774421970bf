"""facts: the shelf of facts on PostgreSQL: its statements, and its rows as records.

after database, before originals and sessions, with which facts go. Whoever writes facts counts up
first, and with that holds the counter's row until the end: of two writers of one scope the second
sees what the first wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, LiteralString

import msgspec

from holdfast.store import fact_shelf as shelf
from holdfast.store import rules
from holdfast.store.fact_shelf import Fact, FactChanges, FactRow, FactShelf, FactSource, NewFact
from holdfast.store.postgres import text
from holdfast.store.postgres.database import Connection, Database
from holdfast.store.postgres.scrubbing import Scrubber
from holdfast.store.records import Damage
from holdfast.store.scope import Scope

_SELECT: LiteralString = """
SELECT f.*, (
    SELECT json_agg(json_build_array(s.ref, s.place, s.session) ORDER BY s.number)
    FROM holdfast.fact_sources AS s WHERE s.fact = f.number) AS sources
FROM holdfast.facts AS f WHERE f.workspace = $1 AND f.username = $2
"""
_BY_ID: LiteralString = _SELECT + " AND f.id = ANY ($3)"
_PAGE: LiteralString = _SELECT + " AND f.id > $3 ORDER BY f.id LIMIT $4"
ALL: LiteralString = _SELECT + " ORDER BY f.id"
_BEFORE: LiteralString = (
    _SELECT + " AND f.superseded_by <> '' AND f.superseded_by = ANY ($3) ORDER BY f.id"
)
_LATEST: LiteralString = (
    _SELECT
    + """
AND $3 IN ('', f.kind) AND ($4 = '' OR f.tags ? $4) AND (NOT $5 OR f.superseded_by = '')
AND ($6 = '' OR EXISTS (
    SELECT FROM holdfast.fact_sources AS s WHERE s.fact = f.number AND s.session = $6))
ORDER BY f.created_at DESC, f.id LIMIT $7
"""
)
_SAME: LiteralString = _SELECT + " AND f.superseded_by = '' AND f.key = $3"
_OF_SUBJECT: LiteralString = (
    _SELECT + " AND f.superseded_by = '' AND f.subject <> '' AND f.subject = $3"
)
_IS_THERE: LiteralString = """
SELECT FROM holdfast.facts WHERE workspace = $1 AND username = $2
AND (id = $3 OR ($4 AND superseded_by = '' AND key = $5))
"""
_COUNT_UP: LiteralString = """
INSERT INTO holdfast.fact_counters AS c (workspace, username, counter, purged)
VALUES ($1, $2, 1, CASE WHEN $3 THEN 1 ELSE 0 END)
ON CONFLICT (workspace, username) DO UPDATE SET counter = c.counter + 1,
    purged = CASE WHEN $3 THEN c.counter + 1 ELSE c.purged END
RETURNING counter
"""
_COUNTS: LiteralString = """
SELECT counter, purged FROM holdfast.fact_counters WHERE workspace = $1 AND username = $2
"""
_UNCHANGED: LiteralString = """
 AND $4 = (SELECT coalesce(max(counter), 0) FROM holdfast.fact_counters
           WHERE workspace = $1 AND username = $2)
"""
_CONFIRM: LiteralString = _BY_ID + _UNCHANGED
_SUPERSEDE: LiteralString = """
UPDATE holdfast.facts SET superseded_by = $4, version = $5
WHERE workspace = $1 AND username = $2 AND id = ANY ($3)
"""
_WRITE: LiteralString = """
INSERT INTO holdfast.facts (
    workspace, username, id, kind, text, key, subject, said_by, tags, standing, created_at,
    decay_weight, superseded_by, version, embedder, vector)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
ON CONFLICT (workspace, username, id) DO UPDATE
SET subject = excluded.subject, tags = excluded.tags, standing = excluded.standing,
    created_at = excluded.created_at, decay_weight = excluded.decay_weight,
    superseded_by = excluded.superseded_by, version = excluded.version
RETURNING number
"""
_CLEAR_SOURCES: LiteralString = "DELETE FROM holdfast.fact_sources WHERE fact = $1"
_ADD_SOURCE: LiteralString = """
INSERT INTO holdfast.fact_sources (workspace, username, fact, session, ref, place)
VALUES ($1, $2, $3, $4, $5, $6)
"""
_REMOVE: LiteralString = """
DELETE FROM holdfast.facts WHERE workspace = $1 AND username = $2 AND id = ANY ($3) RETURNING id
"""
_ROWS: LiteralString = """
SELECT id, kind, text, subject, said_by, tags, standing, created_at, decay_weight, superseded_by,
    (SELECT json_agg(DISTINCT session) FROM holdfast.fact_sources WHERE fact = f.number)
        AS sessions, embedder, vector
FROM holdfast.facts AS f
WHERE workspace = $1 AND username = $2 AND version > $3 AND ($3 > 0 OR superseded_by = '')
"""
_IDS: LiteralString = "SELECT id FROM holdfast.facts WHERE workspace = $1 AND username = $2"
_TEXTS: LiteralString = """
SELECT id, key, text FROM holdfast.facts WHERE workspace = $1 AND username = $2
"""
_DROP_OF_REFS: LiteralString = """
DELETE FROM holdfast.fact_sources WHERE workspace = $1 AND username = $2 AND ref = ANY ($3)
RETURNING fact
"""
_DROP_OF_SESSION: LiteralString = """
DELETE FROM holdfast.fact_sources
WHERE workspace = $1 AND username = $2 AND session <> '' AND session = $3 RETURNING fact
"""
_TOUCH: LiteralString = "UPDATE holdfast.facts SET version = $2 WHERE number = ANY ($1)"
_WITHOUT_SOURCE: LiteralString = """
DELETE FROM holdfast.facts AS f WHERE number = ANY ($1)
AND NOT EXISTS (SELECT FROM holdfast.fact_sources AS s WHERE s.fact = f.number)
RETURNING 1
"""


class PostgresFacts(FactShelf):
    """Keeps facts in the database of the store."""

    def __init__(self, database: Database, scrubber: Scrubber) -> None:
        self._database = database
        self._scrubber = scrubber

    async def _fetch(self, sql: LiteralString, scope: Scope, *values: object) -> list[Fact]:
        return facts_of(await self._database.fetch(sql, scope.workspace, scope.user, *values))

    async def add(self, scope: Scope, facts: Sequence[NewFact]) -> list[Fact]:
        """Add facts."""
        shelf.check(facts)

        async def work(connection: Connection) -> list[Fact]:
            version = await _count_up(connection, scope)
            who = (scope.workspace, scope.user)
            named = facts_of(await connection.fetch(_BY_ID, *who, shelf.named(facts)))
            shelf.check_current(facts, [fact for fact in named if fact.is_current])
            ids = [await _add(connection, scope, new, version) for new in facts]
            return shelf.ordered(facts_of(await connection.fetch(_BY_ID, *who, ids)), ids)

        return await self._database.transact(work)

    async def get(self, scope: Scope, ids: Sequence[str]) -> list[Fact]:
        """Facts by their ids."""
        return shelf.ordered(await self._fetch(_BY_ID, scope, list(ids)), ids)

    async def latest(
        self, scope: Scope, *, kind: str = "", tag: str = "", limit: int = 100, current: bool = True
    ) -> list[Fact]:
        """The facts said last."""
        asked = (kind, tag, current, scope.session, shelf.limited(limit))
        return await self._fetch(_LATEST, scope, *asked)

    async def before(self, scope: Scope, ids: Sequence[str]) -> list[Fact]:
        """The facts whose place these took."""
        return await self._fetch(_BEFORE, scope, list(ids))

    async def page(self, scope: Scope, after: str = "", limit: int = shelf.PAGE) -> list[Fact]:
        """All facts by their ids."""
        return await self._fetch(_PAGE, scope, after, shelf.limited(limit))

    async def remove(self, scope: Scope, ids: Sequence[str]) -> int:
        """Remove facts without a trace."""

        async def work(connection: Connection) -> int:
            return await remove(connection, scope, ids)

        removed = await self._database.transact(work)
        self._scrubber.begin(["facts", "fact_sources"] if removed else [])
        return removed

    async def changes(self, scope: Scope, since: int = 0) -> FactChanges:
        """What happened since a count."""
        who = (scope.workspace, scope.user)
        async with self._database.snapshot() as connection:
            counts = await connection.fetchrow(_COUNTS, *who) or {"counter": 0, "purged": 0}
            rows = await connection.fetch(_ROWS, *who, since)
            left = await connection.fetch(_IDS, *who) if counts["purged"] > since > 0 else None
        facts = [
            FactRow._make(row)._replace(
                tags=tuple(json.loads(row["tags"])),
                sessions=tuple(sorted(map(text.unescaped, json.loads(row["sessions"] or "[]")))),
            )
            for row in rows
        ]
        ids = None if left is None else frozenset(row["id"] for row in left)
        return FactChanges(counts["counter"], facts, ids)

    async def confirm(self, scope: Scope, ids: Sequence[str], counter: int) -> list[Fact] | None:
        """Facts by their ids, if nothing has changed; none is told from changed by the count."""
        if confirmed := await self._fetch(_CONFIRM, scope, list(ids), counter):
            return shelf.ordered(confirmed, ids)
        rows = await self._database.fetch(_COUNTS, scope.workspace, scope.user)
        return [] if (rows[0]["counter"] if rows else 0) == counter else None


def facts_of(rows: Iterable[Any]) -> list[Fact]:
    """Rows as facts; what is not what was stored is as good as missing."""
    return [
        fact_of(row) for row in rows if row["sources"] and shelf.key_of(row["text"]) == row["key"]
    ]


def fact_of(row: Any) -> Fact:
    """A row as a fact."""
    return Fact(
        id=row["id"],
        kind=row["kind"],
        text=row["text"],
        sources=tuple(
            FactSource(*map(text.unescaped, source)) for source in json.loads(row["sources"])
        ),
        subject=row["subject"],
        said_by=row["said_by"],
        tags=tuple(json.loads(row["tags"])),
        standing=row["standing"],
        created_at=row["created_at"],
        decay_weight=row["decay_weight"],
        superseded_by=row["superseded_by"],
    )


async def _count_up(connection: Connection, scope: Scope, *, purges: bool = False) -> int:
    return int(await connection.fetchval(_COUNT_UP, scope.workspace, scope.user, purges))


async def _add(connection: Connection, scope: Scope, new: NewFact, version: int) -> str:
    who = (scope.workspace, scope.user)
    same = facts_of(await connection.fetch(_SAME, *who, shelf.key_of(new.fact.text)))
    current: list[Fact] = []
    if new.supersedes:
        current += facts_of(await connection.fetch(_BY_ID, *who, list(new.supersedes)))
    if new.fact.subject:
        current += facts_of(await connection.fetch(_OF_SUBJECT, *who, new.fact.subject))
    current = [fact for fact in current if fact.is_current]
    fact, superseded = shelf.settled(new, same[0] if same else None, current)
    if superseded:
        await connection.execute(_SUPERSEDE, *who, superseded, fact.id, version)
    made = msgspec.structs.replace(new, fact=fact)
    await _write(connection, scope, made, version, is_new=not same)
    return fact.id


async def _write(
    connection: Connection, scope: Scope, new: NewFact, version: int, *, is_new: bool = True
) -> None:
    """Write a fact, or what may have changed of one with its id."""
    fact = new.fact
    number = await connection.fetchval(
        _WRITE,
        *(scope.workspace, scope.user, fact.id, fact.kind, fact.text, shelf.key_of(fact.text)),
        *(fact.subject, fact.said_by, rules.to_json(fact.tags), fact.standing),
        *(fact.created_at, fact.decay_weight, fact.superseded_by, version),
        *(new.embedder, new.vector),
    )
    if not is_new:
        await connection.execute(_CLEAR_SOURCES, number)
    sources = [
        (scope.workspace, scope.user, number, source.session, source.ref, source.place)
        for source in fact.sources
    ]
    await connection.executemany(_ADD_SOURCE, sources)


async def restore(connection: Connection, scope: Scope, fact: Fact) -> bool:
    """Write an exported fact; whether there was none of its id or its words."""
    who = (scope.workspace, scope.user)
    version = await _count_up(connection, scope)
    known = (fact.id, fact.is_current, shelf.key_of(fact.text))
    if await connection.fetch(_IS_THERE, *who, *known):
        return False
    if fact.is_current:
        await _add(connection, scope, NewFact(fact=fact), version)
    else:
        await _write(connection, scope, NewFact(fact=fact), version)
    return True


async def remove(connection: Connection, scope: Scope, ids: Sequence[str]) -> int:
    """Remove facts without a trace; return how many there were."""
    await _count_up(connection, scope, purges=True)
    return len(await connection.fetch(_REMOVE, scope.workspace, scope.user, list(ids)))


async def all_ids(connection: Connection, scope: Scope) -> list[str]:
    """Return the ids of all facts, superseded ones too."""
    return [row["id"] for row in await connection.fetch(_IDS, scope.workspace, scope.user)]


async def drop_of_refs(connection: Connection, scope: Scope, refs: Sequence[str]) -> None:
    """Remove what only contents say that go without a trace."""
    await _drop_sources(connection, scope, _DROP_OF_REFS, list(refs))


async def drop_of_session(connection: Connection, scope: Scope) -> int:
    """Remove what was said in a session only; return how many facts went."""
    return await _drop_sources(connection, scope, _DROP_OF_SESSION, scope.session)


async def _drop_sources(
    connection: Connection, scope: Scope, sql: LiteralString, value: object
) -> int:
    touched = await connection.fetch(sql, scope.workspace, scope.user, value)
    if not touched:
        return 0
    version = await _count_up(connection, scope, purges=True)
    numbers = [row["fact"] for row in touched]
    await connection.execute(_TOUCH, numbers, version)
    return len(await connection.fetch(_WITHOUT_SOURCE, numbers))


async def remove_unsound(database: Database, scope: Scope) -> list[Damage]:
    """Remove facts that are not what was stored, and tell of them."""
    rows = await database.fetch(_TEXTS, scope.workspace, scope.user)
    torn = {row["id"]: row["key"] for row in rows if shelf.key_of(row["text"]) != row["key"]}
    if torn:
        await database.transact(lambda connection: remove(connection, scope, list(torn)))
    return [shelf.damage_of(key) for key in torn.values()]
