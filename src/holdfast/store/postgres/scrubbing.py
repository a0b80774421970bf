"""Overwriting of removed rows in the tables' files.

PostgreSQL keeps a deleted row in its page until VACUUM, which frees the space without overwriting
it. Only VACUUM FULL rewrites a table with its TOAST table and indexes; it locks the table
meanwhile. So after a removal small tables are rewritten at once, and large ones only on request.
The server's write-ahead log, its archives and its replicas are out of reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any, LiteralString

import asyncpg  # type: ignore[import-untyped]

from holdfast.errors import StoreError
from holdfast.store.postgres.database import Connection, ConnectionPool

TABLES = (
    "contents", "refs", "uses", "sessions", "turns", "messages", "links", "calibrations", "audit",
    "summaries", "jobs", "quotas", "remembered", "facts", "fact_sources", "answers", "journal",
    "tools",
)  # fmt: skip
"""All that hold anything of a user."""
OF_REFS = (
    "contents", "refs", "uses", "summaries", "jobs", "facts", "fact_sources", "answers",
)  # fmt: skip
"""Those from which records go with a ref."""
SMALL_BYTES = 64_000_000
"""A table of this size is written anew within about a second, for which requests may wait."""
_LOCK_SECONDS = 1
"""Seconds to wait for a table's lock: other statements queue for as long."""
_TRIES = 5
_SNAPSHOT_SECONDS = 5.0
"""Seconds to wait for transactions that still see the removed rows, which would be copied."""
_PAUSE_SECONDS = 0.05
_WHOLE_SECONDS = 3600.0

COUNT: LiteralString = """
INSERT INTO holdfast.removals AS r (id, number) VALUES (1, 1)
ON CONFLICT (id) DO UPDATE SET number = r.number + 1
"""
REMOVALS: LiteralString = "SELECT coalesce(max(number), 0) AS number FROM holdfast.removals"
_SIZE: LiteralString = "SELECT pg_total_relation_size($1::text::regclass)"
_SEEN_BY_OTHERS: LiteralString = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  AND (age(backend_xmin) >= $1 OR age(backend_xid) >= $1)
"""


class TableScrubber:
    """Rewrites tables after removals, several removals at once."""

    def __init__(self, database: ConnectionPool) -> None:
        self._database = database
        self._touched: set[str] = set()
        self._left: set[str] = set()
        """Tables in which something may be left."""
        self._work: asyncio.Task[None] | None = None

    def begin(self, tables: Iterable[str]) -> None:
        """Write these tables anew soon; nobody waits for it."""
        self._touched |= set(tables)
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._touched:
            tables, self._touched = self._touched, set()
            try:
                work = partial(_scrub, tables=tables, most=SMALL_BYTES)
                self._left |= await self._database.outside(work)
            except StoreError:
                self._left |= tables

    async def wait(self) -> bool:
        """Wait for started work; return whether no removed bytes are left."""
        if self._work is not None:
            await asyncio.wait([self._work])
        return not self._left

    async def scrub(self, tables: Iterable[str], *, whole: bool) -> bool:
        """Write tables anew, large ones only with `whole`; return whether all were."""
        await self.wait()
        requested, self._left = {*tables, *self._left}, set()
        most = None if whole else SMALL_BYTES
        try:
            work = partial(_scrub, tables=requested, most=most)
            self._left = await self._database.outside(work)
        except StoreError:
            self._left = requested
        return not self._left


async def _scrub(connection: Connection, tables: Iterable[str], most: int | None) -> set[str]:
    """Write tables anew; return those in which something may be left."""
    unfinished: set[str] = set()
    await connection.execute(f"SET lock_timeout = '{_LOCK_SECONDS}s'")
    try:
        is_seen = await _is_seen_by_others(connection)
        for table in sorted(tables):
            name = f"holdfast.{table}"
            is_small = most is None or await connection.fetchval(_SIZE, name) <= most
            if not is_small:
                await _vacuum(connection, f"VACUUM {name}")
                unfinished.add(table)
            elif not await _vacuum(connection, f"VACUUM (FULL) {name}") or is_seen:
                unfinished.add(table)
    finally:
        await connection.execute("RESET lock_timeout")
    return unfinished


async def _vacuum(connection: Connection, statement: str) -> bool:
    for _ in range(_TRIES):
        try:
            await connection.execute(statement, timeout=_WHOLE_SECONDS)
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            continue
        return True
    return False


async def _is_seen_by_others(connection: Connection) -> bool:
    """Wait for earlier transactions; return whether some are still open."""
    loop = asyncio.get_running_loop()
    now: Any = await connection.fetchval("SELECT pg_current_xact_id()::text")
    stop = loop.time() + _SNAPSHOT_SECONDS
    while True:
        age = await connection.fetchval("SELECT age(($1::text)::xid)", str(int(now) % 2**32))
        if not await connection.fetchval(_SEEN_BY_OTHERS, age):
            return False
        if loop.time() > stop:
            return True
        await asyncio.sleep(_PAUSE_SECONDS)
