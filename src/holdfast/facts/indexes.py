"""indexes: the indexes of all scopes that were asked, as far as memory allows; never out of date.

indexes: after index, before ledger. An index knows the count of changes up to which it has heard;
the store confirms an answer only if that is still its count. So an answer is right, whoever wrote
in the meantime, in this process or in another.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

from holdfast.facts.question import Hit, Question, spoken
from holdfast.models.protocol import Embedder
from holdfast.store import Scope, Store
from holdfast.store.fact_shelf import Fact, NewFact

if TYPE_CHECKING:
    from holdfast.facts.index import FactIndex

MOST_ROWS = 500_000
"""Facts of all indexes together, some 0.7 KB each with vectors; those asked last stay. One scope
alone may have more."""
_AT_ONCE = 2_000
"""Changes that are taken over between two other tasks; with more, an index is built in a thread."""
_TRIES = 5


class Indexes:
    """The indexes of the scopes of one store."""

    def __init__(self, store: Store, embedder: Embedder | None) -> None:
        self._store = store
        self.embedder = embedder
        self._indexes: OrderedDict[tuple[str, str], FactIndex] = OrderedDict()

    @property
    def rows(self) -> int:
        """Facts that are held in memory, of all scopes."""
        return sum(index.rows for index in self._indexes.values())

    def with_vector(self, fact: Fact) -> NewFact:
        """A fact with its vector, if there is an embedder."""
        if self.embedder is None:
            return NewFact(fact=fact)
        from holdfast.search.vectors import quantised  # noqa: PLC0415 - see above

        (vector,) = quantised(self.embedder.embed([spoken(fact.text, fact.said_by)]))
        return NewFact(fact=fact, embedder=self.embedder.name, vector=vector.tobytes())

    async def search(self, scope: Scope, question: Question) -> list[tuple[Hit, Fact, FactIndex]]:
        """The best current facts of a scope, as they are in the store now."""
        for _ in range(_TRIES):
            index = await self._known(scope)
            hits = index.search(question)
            facts = await self._store.facts.confirm(scope, [hit.id for hit in hits], index.counter)
            if facts is not None:
                break
            await self._refresh(scope, index)
        else:  # others write all the time: what is current of what was found is still right
            facts = await self._store.facts.get(scope, [hit.id for hit in hits])
        current = {fact.id: fact for fact in facts if fact.is_current}
        return [(hit, current[hit.id], index) for hit in hits if hit.id in current]

    async def _known(self, scope: Scope) -> FactIndex:
        key = (scope.workspace, scope.user)
        index = self._indexes.get(key)
        if index is None:
            return await self._build(scope)
        self._indexes.move_to_end(key)
        return index

    async def _build(self, scope: Scope) -> FactIndex:
        from holdfast.facts.index import FactIndex  # noqa: PLC0415 - numpy takes 80 ms to load

        changes = await self._store.facts.changes(scope)
        index = FactIndex(self.embedder)
        if len(changes.rows) > _AT_ONCE:
            await asyncio.to_thread(index.apply, changes.rows)
        else:
            index.apply(changes.rows)
        index.counter = changes.counter
        self._indexes[(scope.workspace, scope.user)] = index
        while len(self._indexes) > 1 and self.rows > MOST_ROWS:
            self._indexes.popitem(last=False)
        return index

    async def _refresh(self, scope: Scope, index: FactIndex) -> None:
        since = index.counter
        changes = await self._store.facts.changes(scope, since)
        is_worn = index.rows > 2 * len(index) + _AT_ONCE
        if since == 0 or is_worn or len(changes.rows) > _AT_ONCE:
            await self._build(scope)
        elif index.counter == since:  # else another task has taken it over meanwhile
            index.apply(changes.rows, changes.ids)
            index.counter = changes.counter
