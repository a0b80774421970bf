"""facts: the shelf of facts on SQLite: its statements, run by the store's writer and readers.

facts: after driver and writer, before originals and sessions, with which facts go. Each function
below the class is a job for a connection, inside of a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import apsw
import msgspec

from holdfast.store import fact_shelf as shelf
from holdfast.store import rules
from holdfast.store.fact_shelf import Fact, FactChanges, FactRow, FactShelf, FactSource, NewFact
from holdfast.store.scope import Scope
from holdfast.store.sqlite.driver import Job
from holdfast.store.sqlite.writer import Readers, Writer

_T = TypeVar("_T")
_COLUMNS = (
    "f.number, f.key, f.id, f.kind, f.text, f.subject, f.said_by, f.tags, f.standing,"
    " f.created_at, f.decay_weight, f.superseded_by"
)
_MINE = "f.workspace = :workspace AND f.owner = :owner"
_SOURCES = (
    "SELECT fact, ref, place, session FROM fact_sources WHERE fact IN"
    " (SELECT value FROM json_each(?)) ORDER BY number"
)


class SqliteFacts(FactShelf):
    """Keeps facts in the file of the store."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._read = readers.read

    async def _write(self, work: Job[_T]) -> _T:
        return await self._writer.submit(work)

    async def add(self, scope: Scope, facts: Sequence[NewFact]) -> list[Fact]:
        """Add facts."""
        shelf.check(facts)
        return await self._write(partial(add, scope=scope, facts=facts))

    async def get(self, scope: Scope, ids: Sequence[str]) -> list[Fact]:
        """Facts by their ids."""
        return await self._read(partial(get, scope=scope, ids=ids))

    async def latest(
        self, scope: Scope, *, kind: str = "", tag: str = "", limit: int = 100, current: bool = True
    ) -> list[Fact]:
        """The facts said last."""
        asked = {"kind": kind, "tag": tag, "limit": shelf.limited(limit), "current": current}
        return await self._read(partial(_latest, scope=scope, asked=asked))

    async def before(self, scope: Scope, ids: Sequence[str]) -> list[Fact]:
        """The facts whose place these took."""
        return await self._read(
            partial(
                _select,
                scope=scope,
                where="f.superseded_by <> '' AND f.superseded_by IN"
                " (SELECT value FROM json_each(:ids)) ORDER BY f.id",
                ids=json.dumps(list(ids)),
            )
        )

    async def page(self, scope: Scope, after: str = "", limit: int = shelf.PAGE) -> list[Fact]:
        """All facts by their ids."""
        return await self._read(partial(page, scope=scope, after=after, limit=limit))

    async def remove(self, scope: Scope, ids: Sequence[str]) -> int:
        """Remove facts without a trace."""
        return await self._writer.remove(partial(remove, scope=scope, ids=ids))

    async def changes(self, scope: Scope, since: int = 0) -> FactChanges:
        """What happened since a count."""
        return await self._read(partial(_changes, scope=scope, since=since))

    async def confirm(self, scope: Scope, ids: Sequence[str], counter: int) -> list[Fact] | None:
        """Facts by their ids, if nothing has changed."""

        def work(db: apsw.Connection) -> list[Fact] | None:
            return get(db, scope, ids) if _counts(db, scope)[0] == counter else None

        return await self._read(work)


# --- reading -------------------------------------------------------------------------------------


def get(db: apsw.Connection, scope: Scope, ids: Sequence[str]) -> list[Fact]:
    """Facts by their ids, in that order."""
    where = "f.id IN (SELECT value FROM json_each(:ids))"
    return shelf.ordered(_select(db, scope, where, ids=json.dumps(list(ids))), ids)


def page(db: apsw.Connection, scope: Scope, after: str, limit: int) -> list[Fact]:
    """Facts behind an id."""
    where = "f.id > :after ORDER BY f.id LIMIT :limit"
    return _select(db, scope, where, after=after, limit=shelf.limited(limit))


def _latest(db: apsw.Connection, scope: Scope, asked: dict[str, object]) -> list[Fact]:
    return _select(
        db,
        scope,
        ":kind IN ('', f.kind) AND (NOT :current OR f.superseded_by = '')"
        " AND (:tag = '' OR EXISTS (SELECT 1 FROM json_each(f.tags) WHERE value = :tag))"
        " AND (:session = '' OR EXISTS (SELECT 1 FROM fact_sources AS s"
        " WHERE s.fact = f.number AND s.session = :session))"
        " ORDER BY f.created_at DESC, f.id LIMIT :limit",
        session=scope.session,
        **asked,
    )


def _select(db: apsw.Connection, scope: Scope, where: str, **values: Any) -> list[Fact]:
    """Whole facts; what is not what was stored is as good as missing."""
    rows = list(
        db.execute(
            f"SELECT {_COLUMNS} FROM facts AS f WHERE {_MINE} AND {where}",  # noqa: S608 - constants
            {"workspace": scope.workspace, "owner": scope.user, **values},
        )
    )
    sources: dict[int, list[FactSource]] = {}
    for number, *said in db.execute(_SOURCES, (json.dumps([row[0] for row in rows]),)):
        sources.setdefault(number, []).append(FactSource(*said))
    return [
        _fact(row, sources[row[0]])
        for row in rows
        if row[0] in sources and row[1] == shelf.key_of(row[4])
    ]


def _fact(row: Sequence[Any], sources: Sequence[FactSource]) -> Fact:
    _, _, fact_id, kind, text, subject, said_by, tags, standing, created_at, decay, after = row
    return Fact(
        id=fact_id,
        kind=kind,
        text=text,
        sources=tuple(sources),
        subject=subject,
        said_by=said_by,
        tags=tuple(json.loads(tags)),
        standing=bool(standing),
        created_at=created_at,
        decay_weight=decay,
        superseded_by=after,
    )


def _counts(db: apsw.Connection, scope: Scope) -> tuple[int, int]:
    row = db.execute(
        "SELECT counter, purged FROM fact_counters WHERE workspace = ? AND owner = ?",
        (scope.workspace, scope.user),
    ).fetchone()
    return row or (0, 0)


def _changes(db: apsw.Connection, scope: Scope, since: int) -> FactChanges:
    counter, purged = _counts(db, scope)
    who = (scope.workspace, scope.user)
    rows = db.execute(
        "SELECT id, kind, text, subject, said_by, tags, standing, created_at, decay_weight,"
        " superseded_by, (SELECT json_group_array(DISTINCT session) FROM fact_sources"
        " WHERE fact = f.number), embedder, vector FROM facts AS f"
        " WHERE workspace = ? AND owner = ? AND version > ? AND (? OR superseded_by = '')",
        (*who, since, since),
    )
    facts = [
        FactRow._make(row)._replace(
            tags=tuple(json.loads(row[5])) if row[5] != "[]" else (),
            standing=bool(row[6]),
            sessions=tuple(json.loads(row[10])),
        )
        for row in rows
    ]
    ids = None
    if purged > since > 0:
        left = db.execute("SELECT id FROM facts WHERE workspace = ? AND owner = ?", who)
        ids = frozenset(fact_id for (fact_id,) in left)
    return FactChanges(counter, facts, ids)


# --- writing -------------------------------------------------------------------------------------


def add(db: apsw.Connection, scope: Scope, facts: Sequence[NewFact]) -> list[Fact]:
    """Add facts, each merged with what is there and in the place of what it supersedes."""
    named = get(db, scope, shelf.named(facts))
    shelf.check_current(facts, [fact for fact in named if fact.is_current])
    version = _count_up(db, scope)
    return get(db, scope, [_add(db, scope, new, version) for new in facts])


def _add(db: apsw.Connection, scope: Scope, new: NewFact, version: int) -> str:
    same = _select(
        db, scope, "f.superseded_by = '' AND f.key = :key", key=shelf.key_of(new.fact.text)
    )
    fact, superseded = shelf.settled(new, same[0] if same else None, _current(db, scope, new))
    for fact_id in superseded:
        db.execute(
            "UPDATE facts SET superseded_by = ?, version = ?"
            " WHERE workspace = ? AND owner = ? AND id = ?",
            (fact.id, version, scope.workspace, scope.user, fact_id),
        )
    _write_fact(db, scope, msgspec.structs.replace(new, fact=fact), version)
    return fact.id


def _current(db: apsw.Connection, scope: Scope, new: NewFact) -> list[Fact]:
    """The current facts of a subject, and those that are named; most have and name none."""
    named = get(db, scope, new.supersedes) if new.supersedes else []
    if new.fact.subject:
        of_subject = "f.superseded_by = '' AND f.subject <> '' AND f.subject = :subject"
        named += _select(db, scope, of_subject, subject=new.fact.subject)
    return [fact for fact in named if fact.is_current]


def _write_fact(db: apsw.Connection, scope: Scope, new: NewFact, version: int) -> None:
    """Write a fact, or what may have changed of one with its id."""
    fact = new.fact
    (number,) = db.execute(
        "INSERT INTO facts (workspace, owner, id, kind, text, key, subject, said_by, tags,"
        " standing, created_at, decay_weight, superseded_by, version, embedder, vector)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (workspace, owner, id) DO UPDATE SET subject = excluded.subject,"
        " tags = excluded.tags, standing = excluded.standing, created_at = excluded.created_at,"
        " decay_weight = excluded.decay_weight, superseded_by = excluded.superseded_by,"
        " version = excluded.version RETURNING number",
        (
            *(scope.workspace, scope.user, fact.id, fact.kind, fact.text, shelf.key_of(fact.text)),
            *(fact.subject, fact.said_by, rules.to_json(fact.tags), fact.standing),
            *(fact.created_at, fact.decay_weight, fact.superseded_by, version),
            *(new.embedder, new.vector),
        ),
    ).fetchall()[0]
    db.execute("DELETE FROM fact_sources WHERE fact = ?", (number,))
    db.executemany(
        "INSERT INTO fact_sources (workspace, owner, fact, session, ref, place)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        [
            (scope.workspace, scope.user, number, source.session, source.ref, source.place)
            for source in fact.sources
        ],
    )


def _count_up(db: apsw.Connection, scope: Scope, *, purges: bool = False) -> int:
    row = db.execute(
        "INSERT INTO fact_counters (workspace, owner, counter, purged) VALUES (?1, ?2, 1, ?3)"
        " ON CONFLICT DO UPDATE SET counter = counter + 1,"
        " purged = iif(?3, counter + 1, purged) RETURNING counter",
        (scope.workspace, scope.user, int(purges)),
    ).fetchall()[0]
    return cast(int, row[0])


def remove(db: apsw.Connection, scope: Scope, ids: Iterable[str]) -> int:
    """Remove facts without a trace; how many went."""
    db.execute(
        "DELETE FROM facts WHERE workspace = ? AND owner = ?"
        " AND id IN (SELECT value FROM json_each(?))",
        (scope.workspace, scope.user, json.dumps(list(ids))),
    )
    gone = int(db.changes())
    if gone:
        _count_up(db, scope, purges=True)
    return gone


def all_ids(db: apsw.Connection, scope: Scope) -> list[str]:
    """Return the ids of all facts, superseded ones too."""
    rows = db.execute(
        "SELECT id FROM facts WHERE workspace = ? AND owner = ?", (scope.workspace, scope.user)
    )
    return [fact_id for (fact_id,) in rows]


def restore(db: apsw.Connection, scope: Scope, fact: Fact) -> bool:
    """Write an exported fact; whether there was none of its id or its words."""
    key = shelf.key_of(fact.text)
    where = "f.id = :id OR (:current AND f.superseded_by = '' AND f.key = :key)"
    if _select(db, scope, f"({where})", id=fact.id, current=fact.is_current, key=key):
        return False
    version = _count_up(db, scope)
    if fact.is_current:
        _add(db, scope, NewFact(fact=fact), version)
    else:
        _write_fact(db, scope, NewFact(fact=fact), version)
    return True


def drop_of_ref(db: apsw.Connection, scope: Scope, ref_id: str) -> None:
    """Remove what only a content says that goes without a trace."""
    _drop_sources(db, scope, "ref = ?", ref_id)


def drop_of_session(db: apsw.Connection, scope: Scope) -> int:
    """Remove what was said in a session only; return how many facts went."""
    return _drop_sources(db, scope, "session <> '' AND session = ?", scope.session)


def _drop_sources(db: apsw.Connection, scope: Scope, where: str, value: str) -> int:
    touched = db.execute(
        f"DELETE FROM fact_sources WHERE workspace = ? AND owner = ? AND {where} RETURNING fact",  # noqa: S608
        (scope.workspace, scope.user, value),
    ).fetchall()
    if not touched:
        return 0
    removed = 0
    version = _count_up(db, scope, purges=True)
    for (number,) in touched:
        db.execute("UPDATE facts SET version = ? WHERE number = ?", (version, number))
        db.execute(
            "DELETE FROM facts WHERE number = ?1"
            " AND NOT EXISTS (SELECT 1 FROM fact_sources WHERE fact = ?1)",
            (number,),
        )
        removed += db.changes()
    return removed


def unsound(db: apsw.Connection, scope: Scope) -> dict[str, str]:
    """Facts that are not what was stored: their hashes by their ids."""
    rows = db.execute(
        "SELECT id, key, text FROM facts WHERE workspace = ? AND owner = ?",
        (scope.workspace, scope.user),
    )
    return {fact_id: key for fact_id, key, text in rows if shelf.key_of(str(text)) != key}
