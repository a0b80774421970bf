"""Facts: the calls on them, and the operations on which other records' operations rely.

Each operation that writes facts increments the counter first. PostgreSQL then locks the counter's
row: of two writers in one scope the second waits, and sees the facts of the first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.store import fact_store, rules
from holdfast.store.fact_store import Fact, FactChanges, FactRow, FactSource, FactStore, NewFact
from holdfast.store.records import Damage
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Row, Rows, Runner, load
from holdfast.store.transfer import PAGE, FactLine, Page

TABLES = ("facts", "fact_sources")

_sql = load("facts")


class SqlFactStore(FactStore):
    """Facts in a database."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def add(self, scope: Scope, facts: Sequence[NewFact]) -> list[Fact]:
        """Add facts."""
        fact_store.check(facts)
        return await self._runner.write(add, scope, facts)

    async def get(self, scope: Scope, ids: Sequence[str]) -> list[Fact]:
        """Return facts by their ids."""
        return await self._runner.fetch(get, scope, ids)

    async def latest(
        self, scope: Scope, *, kind: str = "", tag: str = "", limit: int = 100, current: bool = True
    ) -> list[Fact]:
        """Return the latest facts."""

        def work() -> Operation[list[Fact]]:
            most = fact_store.limited(limit)
            return _facts(
                (yield _sql.latest(scope, kind=kind, tag=tag, current=current, limit=most))
            )

        return await self._runner.fetch(work)

    async def before(self, scope: Scope, ids: Sequence[str]) -> list[Fact]:
        """Return the facts that these facts superseded."""

        def work() -> Operation[list[Fact]]:
            return _facts((yield _sql.replaced_by(scope, ids=ids)))

        return await self._runner.fetch(work)

    async def page(self, scope: Scope, after: str = "", limit: int = fact_store.PAGE) -> list[Fact]:
        """Return facts in the order of their ids."""
        return await self._runner.fetch(page, scope, after, limit)

    async def remove(self, scope: Scope, ids: Sequence[str]) -> int:
        """Remove facts without a trace."""
        return await self._runner.remove(TABLES, remove, scope, ids)

    async def changes(self, scope: Scope, since: int = 0) -> FactChanges:
        """Return what happened since a count."""
        return await self._runner.read(_changes, scope, since)

    async def confirm(self, scope: Scope, ids: Sequence[str], counter: int) -> list[Fact] | None:
        """Return facts by their ids if nothing has changed; None if something has."""

        def work() -> Operation[list[Fact] | None]:
            rows = yield _sql.by_id_unless_changed(scope, ids=ids, counter=counter)
            if confirmed := _facts(rows):
                return fact_store.ordered(confirmed, ids)
            # Either no id exists or the counter has changed.
            current, _ = yield from _counts(scope)
            return [] if current == counter else None

        return await self._runner.fetch(work)


# --- reading -------------------------------------------------------------------------------------


def get(scope: Scope, ids: Sequence[str]) -> Operation[list[Fact]]:
    """Return facts by their ids, in that order."""
    return fact_store.ordered(_facts((yield _sql.by_id(scope, ids=ids))), ids)


def page(scope: Scope, after: str, limit: int) -> Operation[list[Fact]]:
    """Return the facts after an id."""
    return _facts((yield _sql.page(scope, after=after, limit=fact_store.limited(limit))))


def _all_ids(scope: Scope) -> Operation[list[str]]:
    return [fact_id for (fact_id,) in (yield _sql.ids(scope))]


def lines(scope: Scope, after: Any) -> Operation[Page]:
    """Return the exported lines of the facts after an id."""
    facts = yield from page(scope, after or "", PAGE)
    return [FactLine(fact) for fact in facts], facts[-1].id if facts else None


async def verify(runner: Runner, scope: Scope) -> list[Damage]:
    """Remove facts that do not match their hashes, and return the damages."""
    keys = await runner.fetch(_unsound, scope)
    if keys:
        await runner.write(remove, scope, list(keys))
    return [fact_store.damage_of(key) for key in keys.values()]


def _unsound(scope: Scope) -> Operation[dict[str, str]]:
    """Return the hashes of facts that do not match them, by the ids of the facts."""
    rows = yield _sql.texts(scope)
    return {fact_id: key for fact_id, key, text in rows if fact_store.key_of(str(text)) != key}


def _facts(rows: Rows) -> list[Fact]:
    """Return rows as facts, without damaged ones."""
    return [
        _fact(row) for row in rows if row[0] == fact_store.key_of(row[3]) and row[-1] not in _NONE
    ]


_NONE = (None, "[]")
"""An aggregate over no rows."""


def _fact(row: Row) -> Fact:
    _, fact_id, kind, text, subject, said_by, tags, standing, created_at, decay, after, sources = (
        row
    )
    return Fact(
        id=fact_id,
        kind=kind,
        text=text,
        sources=tuple(FactSource(*source) for source in rules.json_list(sources)),
        subject=subject,
        said_by=said_by,
        tags=tuple(json.loads(tags)),
        standing=bool(standing),
        created_at=created_at,
        decay_weight=decay,
        superseded_by=after,
    )


def _counts(scope: Scope) -> Operation[tuple[int, int]]:
    rows = yield _sql.counts(scope)
    return tuple(rows[0]) if rows else (0, 0)


def _changes(scope: Scope, since: int) -> Operation[FactChanges]:
    counter, purged = yield from _counts(scope)
    facts = [
        FactRow._make(row)._replace(
            tags=tuple(json.loads(row[5])) if row[5] != "[]" else (),
            standing=bool(row[6]),
            sessions=tuple(sorted(rules.json_list(row[10]))),
        )
        for row in (yield _sql.changed(scope, since=since))
    ]
    ids = frozenset((yield from _all_ids(scope))) if purged > since > 0 else None
    return FactChanges(counter, facts, ids)


# --- writing -------------------------------------------------------------------------------------


def add(scope: Scope, facts: Sequence[NewFact]) -> Operation[list[Fact]]:
    """Add facts: merge each with a known one of the same text, and mark superseded facts."""
    version = yield from _count_up(scope)
    named = yield from get(scope, fact_store.named(facts))
    fact_store.check_current(facts, [fact for fact in named if fact.is_current])
    ids = []
    for new in facts:
        ids.append((yield from _add(scope, new, version)))
    return (yield from get(scope, ids))


def _add(scope: Scope, new: NewFact, version: int) -> Operation[str]:
    duplicates = _facts((yield _sql.same(scope, key=fact_store.key_of(new.fact.text))))
    current = yield from _current(scope, new)
    fact, superseded = fact_store.settled(new, duplicates[0] if duplicates else None, current)
    if superseded:
        yield _sql.supersede(scope, ids=superseded, by=fact.id, version=version)
    settled = msgspec.structs.replace(new, fact=fact)
    yield from _write(scope, settled, version, is_known=bool(duplicates))
    return fact.id


def _current(scope: Scope, new: NewFact) -> Operation[list[Fact]]:
    """Return the current facts with the new fact's subject, and the ones it supersedes by id."""
    facts: list[Fact] = []
    if new.supersedes:
        facts += yield from get(scope, new.supersedes)
    if new.fact.subject:
        facts += _facts((yield _sql.of_subject(scope, subject=new.fact.subject)))
    return [fact for fact in facts if fact.is_current]


def _write(scope: Scope, new: NewFact, version: int, *, is_known: bool = False) -> Operation[None]:
    """Write a fact, or update the known fact with its id."""
    fact = new.fact
    ((number,),) = yield _sql.write(
        scope,
        id=fact.id,
        kind=fact.kind,
        text=fact.text,
        key=fact_store.key_of(fact.text),
        subject=fact.subject,
        said_by=fact.said_by,
        tags=rules.to_json(fact.tags),
        standing=fact.standing,
        created_at=fact.created_at,
        decay_weight=fact.decay_weight,
        superseded_by=fact.superseded_by,
        version=version,
        embedder=new.embedder,
        vector=new.vector,
    )
    if is_known:
        yield _sql.clear_sources(scope, fact=number)
    yield _sql.add_source.many(
        scope,
        (
            {"fact": number, "said_in": source.session, "ref": source.ref, "place": source.place}
            for source in fact.sources
        ),
    )


def _count_up(scope: Scope, *, purges: bool = False) -> Operation[int]:
    ((counter,),) = yield _sql.count_up(scope, purges=purges)
    return int(counter)


def remove(scope: Scope, ids: Sequence[str]) -> Operation[int]:
    """Remove facts without a trace; return how many there were."""
    if not ids:
        return 0
    yield from _count_up(scope, purges=True)
    return len((yield _sql.remove(scope, ids=ids)))


def remove_all(scope: Scope) -> Operation[int]:
    """Remove all facts without a trace; return how many there were."""
    return (yield from remove(scope, (yield from _all_ids(scope))))


def restore(scope: Scope, fact: Fact) -> Operation[bool]:
    """Write an exported fact; return whether there was none of its id or its words."""
    version = yield from _count_up(scope)
    key = fact_store.key_of(fact.text)
    if (yield _sql.is_known(scope, id=fact.id, current=fact.is_current, key=key)):
        return False
    if fact.is_current:
        yield from _add(scope, NewFact(fact=fact), version)
    else:
        yield from _write(scope, NewFact(fact=fact), version)
    return True


def drop_of_refs(scope: Scope, refs: Sequence[str]) -> Operation[None]:
    """Remove facts whose only sources are these contents."""
    yield from _remove_without_source(scope, (yield _sql.drop_sources_of_refs(scope, refs=refs)))


def drop_of_turns(scope: Scope, ids_by_session: Mapping[str, Sequence[str]]) -> Operation[int]:
    """Remove facts whose only sources are these turns; return their number."""
    dropped: list[Row] = []
    for session, ids in ids_by_session.items():
        dropped += yield _sql.drop_sources_of_turns(scope, said_in=session, ids=ids)
    return (yield from _remove_without_source(scope, dropped))


def drop_of_session(scope: Scope) -> Operation[int]:
    """Remove facts whose only source is the scope's session; return their number."""
    return (yield from _remove_without_source(scope, (yield _sql.drop_sources_of_session(scope))))


def _remove_without_source(scope: Scope, dropped: Iterable[Row]) -> Operation[int]:
    """Remove facts without a source, and mark the other facts as changed."""
    numbers = [number for (number,) in dropped]
    if not numbers:
        return 0
    version = yield from _count_up(scope, purges=True)
    yield _sql.touch(scope, numbers=numbers, version=version)
    return len((yield _sql.remove_without_source(scope, numbers=numbers)))
