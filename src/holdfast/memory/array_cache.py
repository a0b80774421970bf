"""A bounded cache of scopes' arrays, brought up to date before each use.

Each use first asks the store how often the scope changed: added turns are appended, and after a
removal the arrays are rebuilt. So two processes that share a database both stay correct.
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
from holdfast.store.turn_store import Changes, TurnStore

if TYPE_CHECKING:
    from holdfast.memory.arrays import ScopeArrays

MOST_BYTES = 256_000_000
"""Maximum bytes of all cached arrays: about 500,000 turns of a dialogue with vectors."""
MOST_TURNS = 300_000
"""Maximum turns of a cached scope. In a larger one only turns that share words with the question
are ranked."""
_AT_ONCE = 5_000
"""Turns read and appended per step: about 50 ms."""
_ON_LOOP = 100
"""Turns appended on the event loop, which takes a millisecond or two."""

T = TypeVar("T")


class ArrayCache:
    """Arrays by user and workspace; the least recently used are dropped when memory runs out."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._arrays: OrderedDict[tuple[str, str], tuple[Changes, ScopeArrays]] = OrderedDict()
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @property
    def nbytes(self) -> int:
        """Return the memory use of all cached arrays in bytes."""
        return sum(arrays.nbytes for _, arrays in self._arrays.values())

    @asynccontextmanager
    async def of(
        self, turns: TurnStore, scope: Scope, embedder: Embedder | None
    ) -> AsyncIterator[ScopeArrays]:
        """Yield the arrays of a scope as of now; nothing is appended to them inside the block."""
        # Imported here so that only recall loads numpy.
        from holdfast.memory.arrays import ScopeArrays  # noqa: PLC0415
        from holdfast.memory.turn_index import index_maker  # noqa: PLC0415

        key = (scope.workspace, scope.user)
        # One task at a time: two tasks would append the same turns twice, and a thread that ranks
        # must not see the arrays grow.
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            changes = await turns.changes(scope)
            cached_changes, arrays = self._arrays.get(key, (Changes(), None))
            maker = index_maker(embedder)
            if arrays is None or arrays.maker != maker or cached_changes.removed != changes.removed:
                arrays = ScopeArrays(maker, 0 if embedder is None else embedder.dimensions)
                cached_changes = Changes(-1, changes.removed)
            if cached_changes.added != changes.added:
                await _catch_up(turns, scope, arrays)
            self._arrays[key] = (changes, arrays)
            self._arrays.move_to_end(key)
            self._shrink()
            yield arrays

    def _shrink(self) -> None:
        while len(self._arrays) > 1 and self.nbytes > self._most_bytes:
            self._arrays.popitem(last=False)


async def _catch_up(turns: TurnStore, scope: Scope, arrays: ScopeArrays) -> None:
    """Append the turns stored since the arrays were last updated."""
    while True:
        part = await turns.indexed(scope, after=arrays.last_place, limit=_AT_ONCE)
        await run_in_thread_if(len(part) > _ON_LOOP, partial(arrays.add, part))
        if len(part) < _AT_ONCE:
            return


async def run_in_thread_if(is_long: bool, work: Callable[[], T]) -> T:
    """Run `work` in a thread if it takes long, so that the event loop can serve other tasks."""
    return await asyncio.to_thread(work) if is_long else work()
