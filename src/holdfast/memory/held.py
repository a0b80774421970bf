"""The arrays of scopes that were asked lately, in a bounded memory, and always as the store is.

held: after arrays. Before each use the store is asked how often the scope changed: what others
added is added, and after a removal all is read again. So two processes on one file stay right.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakValueDictionary

from holdfast.models.protocol import Embedder
from holdfast.store import Scope
from holdfast.store.turn_shelf import Changes, TurnShelf

if TYPE_CHECKING:
    from holdfast.memory.arrays import ScopeArrays

MOST_BYTES = 256_000_000
"""Of all scopes together: 500,000 turns of a dialogue, with vectors."""
MOST_TURNS = 300_000
"""Of one scope: of a larger one only what shares words with a question is looked at."""
_AT_ONCE = 5_000
"""Turns that are read and added at once: some 50 ms."""
_ON_LOOP = 100
"""Turns that are added on the spot: that takes less than a millisecond or two."""

T = TypeVar("T")


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

    @asynccontextmanager
    async def of(
        self, shelf: TurnShelf, scope: Scope, embedder: Embedder | None
    ) -> AsyncIterator[ScopeArrays]:
        """The arrays of a scope as its turns are now; nobody adds to them inside the block."""
        # Only who recalls waits for numpy.
        from holdfast.memory.arrays import ScopeArrays  # noqa: PLC0415
        from holdfast.memory.indexing import maker_of  # noqa: PLC0415

        key = (scope.workspace, scope.user)
        # One at a time: two who add to the same arrays would add twice, and who ranks in a thread
        # must not see them grow.
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
            yield arrays

    def _shrink(self) -> None:
        while len(self._held) > 1 and self.nbytes > self._most_bytes:
            self._held.popitem(last=False)


async def _catch_up(shelf: TurnShelf, scope: Scope, arrays: ScopeArrays) -> None:
    """Add what was remembered since the arrays were built."""
    while True:
        part = await shelf.indexed(scope, after=arrays.last_place, limit=_AT_ONCE)
        await off_loop(len(part) > _ON_LOOP, partial(arrays.add, part))
        if len(part) < _AT_ONCE:
            return


async def off_loop(is_long: bool, work: Callable[[], T]) -> T:
    """Do what takes long in a thread, so that others are answered meanwhile."""
    return await asyncio.to_thread(work) if is_long else work()
