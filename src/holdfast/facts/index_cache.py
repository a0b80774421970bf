"""A bounded cache of fact indexes that never returns an outdated answer.

An index has the count of changes that it includes, and the store confirms an answer only if that is
still its count. So answers are right even if this or another process has written in the meantime.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

from holdfast.facts.fact_query import FactHit, FactQuery, strip_speaker
from holdfast.models.protocol import Embedder
from holdfast.store import Scope, Store
from holdfast.store.fact_store import Fact, NewFact

if TYPE_CHECKING:
    from holdfast.facts.fact_index import FactIndex

MOST_ROWS = 500_000
"""Maximum facts of all indexes, about 0.7 KB each with vectors; the least recently used index is
dropped. The last one may have more."""
_AT_ONCE = 2_000
"""Changes applied on the event loop; with more, the index is built in a thread."""
_TRIES = 5


class FactIndexCache:
    """The indexes of the scopes of one store."""

    def __init__(self, store: Store, embedder: Embedder | None) -> None:
        self._store = store
        self.embedder = embedder
        self._indexes: OrderedDict[tuple[str, str], FactIndex] = OrderedDict()

    @property
    def rows(self) -> int:
        """Return the number of rows in memory, over all scopes."""
        return sum(index.rows for index in self._indexes.values())

    def add_vector(self, fact: Fact) -> NewFact:
        """Return a fact with its vector, if there is an embedder."""
        if self.embedder is None:
            return NewFact(fact=fact)
        from holdfast.search.vectors import quantise  # noqa: PLC0415 - see above

        (vector,) = quantise(self.embedder.embed([strip_speaker(fact.text, fact.said_by)]))
        return NewFact(fact=fact, embedder=self.embedder.name, vector=vector.tobytes())

    async def search(self, scope: Scope, query: FactQuery) -> list[tuple[FactHit, Fact, FactIndex]]:
        """Return the best current facts of a scope as the store has them now."""
        for _ in range(_TRIES):
            index = await self._cached(scope)
            hits = index.search(query)
            facts = await self._store.facts.confirm(scope, [hit.id for hit in hits], index.counter)
            if facts is not None:
                break
            await self._refresh(scope, index)
        else:  # other tasks keep writing: of these results, the current ones are still right
            facts = await self._store.facts.get(scope, [hit.id for hit in hits])
        current = {fact.id: fact for fact in facts if fact.is_current}
        return [(hit, current[hit.id], index) for hit in hits if hit.id in current]

    async def _cached(self, scope: Scope) -> FactIndex:
        key = (scope.workspace, scope.user)
        index = self._indexes.get(key)
        if index is None:
            return await self._build(scope)
        self._indexes.move_to_end(key)
        return index

    async def _build(self, scope: Scope) -> FactIndex:
        from holdfast.facts.fact_index import FactIndex  # noqa: PLC0415 - numpy takes 80 ms to load

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
        # otherwise another task has applied the changes in the meantime
        elif index.counter == since:
            index.apply(changes.rows, changes.ids)
            index.counter = changes.counter
