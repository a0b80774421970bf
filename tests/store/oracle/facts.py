"""The model of stored facts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from holdfast.store import fact_store as shelf
from holdfast.store.fact_store import (
    Fact,
    FactChanges,
    FactFilter,
    FactRow,
    FactSource,
    FactStore,
    NewFact,
)
from holdfast.store.scope import Scope
from holdfast.store.transfer import FactLine
from holdfast.store.turn_store import RememberedTurn


@dataclass(eq=False)
class _Shelf:
    """The facts of one user in one workspace."""

    facts: dict[str, Fact] = field(default_factory=dict)
    vectors: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    current_by_key: dict[str, str] = field(default_factory=dict)
    current_by_subject: dict[str, set[str]] = field(default_factory=dict)
    counter: int = 0
    purged: int = 0
    """The count at which facts were last forgotten."""

    def put(self, fact: Fact) -> None:
        """Write a fact, in the place of an earlier one with its id."""
        self.drop(fact.id)
        self.facts[fact.id] = fact
        self.versions[fact.id] = self.counter
        if fact.is_current:
            self.current_by_key[shelf.key_of(fact.text)] = fact.id
            self.current_by_subject.setdefault(fact.subject, set()).add(fact.id)

    def drop(self, fact_id: str) -> None:
        """Take a fact away, if it is there."""
        fact = self.facts.pop(fact_id, None)
        self.versions.pop(fact_id, None)
        if fact is not None and fact.is_current:
            del self.current_by_key[shelf.key_of(fact.text)]
            self.current_by_subject[fact.subject].discard(fact_id)

    def current(self, new: NewFact) -> list[Fact]:
        """Return the current facts of a subject, and the named ones."""
        of_subject = self.current_by_subject.get(new.fact.subject, set())
        ids = {*new.supersedes, *(of_subject if new.fact.subject else ())}
        facts = [self.facts[fact_id] for fact_id in sorted(ids) if fact_id in self.facts]
        return [fact for fact in facts if fact.is_current]

    def same(self, text: str) -> Fact | None:
        """Return the current fact with the same text."""
        return self.facts.get(self.current_by_key.get(shelf.key_of(text), ""))

    def row(self, fact: Fact) -> FactRow:
        """A fact as an index needs it."""
        embedder, vector = self.vectors.get(fact.id, ("", b""))
        return FactRow(
            *(fact.id, fact.kind, fact.text, fact.subject, fact.said_by, fact.tags),
            *(fact.standing, fact.created_at, fact.decay_weight, fact.superseded_by),
            *(shelf.distinct_sessions(fact.sources), embedder, vector),
        )


class ModelFacts(FactStore):
    """Keeps facts in dictionaries."""

    def __init__(self) -> None:
        self._shelves: dict[tuple[str, str], _Shelf] = {}

    def _of(self, scope: Scope) -> _Shelf:
        return self._shelves.setdefault((scope.workspace, scope.user), _Shelf())

    async def add(self, scope: Scope, facts: Sequence[NewFact]) -> list[Fact]:
        """Add facts."""
        shelf.check(facts)
        here = self._of(scope)
        named = [here.facts[name] for name in shelf.named(facts) if name in here.facts]
        shelf.check_current(facts, [fact for fact in named if fact.is_current])
        here.counter += 1
        ids = [self._add(here, new) for new in facts]
        return shelf.ordered(here.facts.values(), ids)

    def _add(self, here: _Shelf, new: NewFact) -> str:
        fact, superseded = shelf.settled(new, here.same(new.fact.text), here.current(new))
        for fact_id in superseded:
            here.put(msgspec.structs.replace(here.facts[fact_id], superseded_by=fact.id))
        if fact.id not in here.facts:
            here.vectors[fact.id] = (new.embedder, new.vector)
        here.put(fact)
        return fact.id

    async def get(self, scope: Scope, ids: Sequence[str]) -> list[Fact]:
        """Facts by their ids."""
        return self._get(self._of(scope), ids)

    def _get(self, here: _Shelf, ids: Sequence[str]) -> list[Fact]:
        return shelf.ordered((here.facts[name] for name in ids if name in here.facts), ids)

    async def latest(
        self, scope: Scope, *, kind: str = "", tag: str = "", limit: int = 100, current: bool = True
    ) -> list[Fact]:
        """Return the newest facts."""
        which = FactFilter(kind=kind, tag=tag, session=scope.session)
        facts = [
            fact
            for fact in self._of(scope).facts.values()
            if which.takes(fact) and (fact.is_current or not current)
        ]
        facts.sort(key=lambda fact: (-fact.created_at, fact.id))
        return facts[: shelf.limited(limit)]

    async def before(self, scope: Scope, ids: Sequence[str]) -> list[Fact]:
        """The facts whose place these took."""
        facts = (fact for fact in self._of(scope).facts.values() if fact.superseded_by in ids)
        return sorted(facts, key=lambda fact: fact.id)

    async def page(self, scope: Scope, after: str = "", limit: int = shelf.PAGE) -> list[Fact]:
        """All facts by their ids."""
        return [fact for fact in self.of(scope) if fact.id > after][: shelf.limited(limit)]

    def of(self, scope: Scope) -> list[Fact]:
        """All facts of a scope by their ids."""
        return sorted(self._of(scope).facts.values(), key=lambda fact: fact.id)

    async def remove(self, scope: Scope, ids: Sequence[str]) -> int:
        """Remove facts without a trace."""
        here = self._of(scope)
        gone = here.facts.keys() & set(ids)
        self._purge(here, gone)
        return len(gone)

    def _purge(self, here: _Shelf, gone: Iterable[str]) -> None:
        for fact_id in list(gone):
            here.drop(fact_id)
            here.vectors.pop(fact_id, None)
            here.purged = here.counter + 1
        here.counter = max(here.counter, here.purged)

    async def changes(self, scope: Scope, since: int = 0) -> FactChanges:
        """What happened since a count."""
        here = self._of(scope)
        rows = [
            here.row(fact)
            for fact in here.facts.values()
            if here.versions[fact.id] > since and (since or fact.is_current)
        ]
        ids = frozenset(here.facts) if here.purged > since > 0 else None
        return FactChanges(here.counter, rows, ids)

    async def confirm(self, scope: Scope, ids: Sequence[str], counter: int) -> list[Fact] | None:
        """Facts by their ids, if nothing has changed."""
        here = self._of(scope)
        return self._get(here, ids) if here.counter == counter else None

    # --- for the store ---------------------------------------------------------------------------

    def drop_of_ref(self, scope: Scope, ref_id: str) -> None:
        """Remove facts whose only source is a content that is removed without a trace."""
        self._drop_sources(scope, lambda source: source.ref == ref_id)

    def drop_of_session(self, scope: Scope) -> int:
        """Remove facts whose only source is a session; return their number."""
        return self._drop_sources(scope, lambda source: source.session == scope.session)

    def drop_of_turns(self, scope: Scope, turns: Sequence[RememberedTurn]) -> int:
        """Remove facts whose only sources are these turns; return their number."""
        gone = {(turn.session, turn.id) for turn in turns}
        return self._drop_sources(scope, lambda source: (source.session, source.ref) in gone)

    def expire(self, scope: Scope, before: float, kept: Collection[str]) -> int:
        """Remove old facts without a kept session; return their number."""
        here = self._of(scope)
        gone = [
            fact.id
            for fact in here.facts.values()
            if fact.created_at < before
            and not any(source.session in kept for source in fact.sources)
        ]
        self._purge(here, gone)
        return len(gone)

    def _drop_sources(self, scope: Scope, is_gone: Callable[[FactSource], bool]) -> int:
        here, gone = self._of(scope), []
        touched = [fact for fact in here.facts.values() if any(map(is_gone, fact.sources))]
        here.counter += bool(touched)
        for fact in touched:
            left = tuple(source for source in fact.sources if not is_gone(source))
            if left:
                here.put(msgspec.structs.replace(fact, sources=left))
            else:
                gone.append(fact.id)
        self._purge(here, gone)
        return len(gone)

    def restore(self, scope: Scope, line: FactLine) -> bool:
        """Put an exported fact on the shelf; whether there was none of its id or its words."""
        here, fact = self._of(scope), line.fact
        if fact.id in here.facts or (fact.is_current and here.same(fact.text) is not None):
            return False
        here.counter += 1
        if fact.is_current:
            self._add(here, NewFact(fact=fact))
        else:
            here.put(fact)
        return True
