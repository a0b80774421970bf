"""The arrays of scopes that were asked lately, in a bounded memory, and always as the store is.

held: after arrays. Before each use the store is asked how often the scope changed: what others
added is added, and after a removal all is read again. So two processes on one file stay right.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from weakref import WeakValueDictionary

from holdfast.memory.arrays import ScopeArrays
from holdfast.memory.indexing import maker_of
from holdfast.models.protocol import Embedder
from holdfast.store import Scope
from holdfast.store.turn_shelf import MOST_AT_ONCE, Changes, TurnShelf

MOST_BYTES = 256_000_000
"""Of all scopes together: 500,000 turns of a dialogue, with vectors."""
MOST_TURNS = 300_000
"""Of one scope: of a larger one only what shares words with a question is looked at."""


class HeldArrays:
    """Arrays by user and workspace, the least used of which go when there are too many."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._held: OrderedDict[tuple[str, str], tuple[Changes, ScopeArrays]] = OrderedDict()
        self._reading: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return sum(arrays.nbytes for _, arrays in self._held.values())

    async def of(self, shelf: TurnShelf, scope: Scope, embedder: Embedder | None) -> ScopeArrays:
        """The arrays of a scope as its turns are now."""
        key = (scope.workspace, scope.user)
        # One at a time: two who add to the same arrays would add twice.
        lock = self._reading.setdefault(key, asyncio.Lock())
        async with lock:
            changes = await shelf.changes(scope)
            known, arrays = self._held.get(key, (Changes(), None))
            maker = maker_of(embedder)
            if arrays is None or arrays.maker != maker or known.removed != changes.removed:
                arrays = ScopeArrays(maker, 0 if embedder is None else embedder.dimensions)
                known = Changes(-1, changes.removed)
            if known.added != changes.added:
                await _catch_up(shelf, scope, arrays)
            self._held[key] = (changes, arrays)
            self._held.move_to_end(key)
            self._shrink()
            return arrays

    def _shrink(self) -> None:
        while len(self._held) > 1 and self.nbytes > self._most_bytes:
            self._held.popitem(last=False)


async def _catch_up(shelf: TurnShelf, scope: Scope, arrays: ScopeArrays) -> None:
    """Add what was remembered since the arrays were built."""
    while True:
        part = await shelf.indexed(scope, after=arrays.last_place, limit=10 * MOST_AT_ONCE)
        arrays.add(part)
        if len(part) < 10 * MOST_AT_ONCE:
            return
