"""LangGraph: a persistent `BaseStore` in the engine's store.

It is LangGraph's `InMemoryStore` with every write in a journal of the engine's scope first, so that
it answers exactly like the reference. Writes of other processes are read before each batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from holdfast.extras import missing_extra

try:
    from langgraph.store.base import (
        GetOp,
        IndexConfig,
        Item,
        Op,
        PutOp,
        Result,
        SearchOp,
        TTLConfig,
    )
    from langgraph.store.memory import InMemoryStore
except ImportError as error:
    raise missing_extra("langgraph", error) from error

from holdfast.engine import Holdfast
from holdfast.errors import StoreConflictError, StoreError
from holdfast.integrations._host import Host
from holdfast.settings import Settings
from holdfast.store import Scope

_Key = tuple[tuple[str, ...], str]


class _Write(msgspec.Struct, frozen=True, omit_defaults=True):
    """A journal entry: a value that was put, refreshed, or (without a value) deleted."""

    namespace: tuple[str, ...]
    key: str
    at: float
    value: Any = None
    vectors: dict[str, list[float]] = {}
    minutes: float | None = None
    """Its time to live in minutes."""
    refreshes: bool = False
    """Whether it only renews the time to live."""


class HoldfastStore(InMemoryStore):
    """LangGraph's store over the engine: pass it as `store=` to a graph or an agent."""

    __slots__ = ("_clock", "_journal", "_lives", "_next", "host", "ttl_config")
    supports_ttl = True

    def __init__(
        self,
        store: Host | Holdfast | str | None = None,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        name: str = "langgraph",
        settings: Settings | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Keep values in the store at a URL under `name`; `index` is LangGraph's own."""
        super().__init__(index=index)
        self.host = (
            store if isinstance(store, Host) else Host(store, settings=settings, scope=scope)
        )
        self.ttl_config = ttl
        self._journal = name
        self._next = 1
        self._lives: dict[_Key, tuple[float, float]] = {}
        """Time to live in seconds and expiry time of each value."""
        self._clock: Callable[[], float] = time.time

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do all reads, then all writes."""
        ops = list(ops)
        return self.host.run(lambda engine: self._batch(engine, ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do all reads, then all writes."""
        ops = list(ops)
        return await self.host.wait(lambda engine: self._batch(engine, ops))

    async def _batch(self, engine: Holdfast, ops: list[Op]) -> list[Result]:
        while True:
            await self._catch_up(engine)
            results, puts, searches = self._prepare_ops(ops)
            self._batch_search(searches, await self._aembed_search_queries(searches), results)
            writes = await self._writes(puts) + self._refresh_writes(ops, results)
            if not writes or await self._append(engine, writes):
                return results

    async def _append(self, engine: Holdfast, writes: list[_Write]) -> bool:
        """Append writes to the journal and apply them; return whether no process was first."""
        try:
            entries = [msgspec.json.encode(write) for write in writes]
        except (TypeError, ValueError) as error:
            raise StoreError(
                "a value is not JSON", where=self._journal, fix="Put dictionaries of JSON values."
            ) from error
        journals = engine.store.journal
        try:
            self._next = await journals.append(
                engine.scope, self._journal, entries, expect=self._next
            )
        except StoreConflictError:
            return False
        for entry in entries:
            self._apply(msgspec.json.decode(entry, type=_Write))
        return True

    async def _catch_up(self, engine: Holdfast) -> None:
        journals = engine.store.journal
        for entry in await journals.read(engine.scope, self._journal, self._next - 1):
            self._apply(msgspec.json.decode(entry.data, type=_Write))
            self._next = entry.sequence + 1
        now = self._clock()
        for namespace, key in [name for name, (_, until) in self._lives.items() if until <= now]:
            self._remove(namespace, key)

    # --- writes ----------------------------------------------------------------------------------

    async def _writes(self, puts: dict[_Key, PutOp]) -> list[_Write]:
        vectors: dict[_Key, dict[str, list[float]]] = {}
        texts = self._extract_texts(puts)
        if texts and self.embeddings is not None:
            embedded = await self.embeddings.aembed_documents(list(texts))
            for places, vector in zip(texts.values(), embedded, strict=True):
                for namespace, key, path in places:
                    vectors.setdefault((namespace, key), {})[path] = vector
        now = self._clock()
        return [
            _Write(ns, key, now, op.value, vectors.get((ns, key), {}), op.ttl)
            for (ns, key), op in puts.items()
        ]

    def _refresh_writes(self, ops: list[Op], results: list[Result]) -> list[_Write]:
        """Return the writes that renew the time to live of values that were read."""
        items: dict[_Key, None] = {}
        for op, result in zip(ops, results, strict=True):
            if isinstance(op, GetOp | SearchOp) and op.refresh_ttl:
                items_read: Any = result if isinstance(result, list) else [result]
                items |= {(i.namespace, i.key): None for i in items_read if isinstance(i, Item)}
        now = self._clock()
        return [
            _Write(*name, now, minutes=self._lives[name][0] / 60, refreshes=True)
            for name in items
            if name in self._lives
        ]

    def _apply(self, write: _Write) -> None:
        namespace, key = write.namespace, write.key
        if write.value is None and not write.refreshes:
            self._remove(namespace, key)
            return
        if write.refreshes and key not in self._data[namespace]:
            return
        if not write.refreshes:
            at = datetime.fromtimestamp(write.at, UTC)
            self._data[namespace][key] = Item(
                value=write.value, key=key, namespace=namespace, created_at=at, updated_at=at
            )
            if write.vectors:
                self._vectors[namespace][key] |= write.vectors
        self._lives.pop((namespace, key), None)
        if write.minutes is not None:
            seconds = write.minutes * 60
            self._lives[namespace, key] = (seconds, write.at + seconds)

    def _remove(self, namespace: tuple[str, ...], key: str) -> None:
        self._data[namespace].pop(key, None)
        self._vectors[namespace].pop(key, None)
        self._lives.pop((namespace, key), None)
