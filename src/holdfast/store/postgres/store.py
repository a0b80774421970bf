"""The store on PostgreSQL, for many processes and machines at once.

Maps each call to an operation, and reads the clock.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, LiteralString

from holdfast.errors import StoreError
from holdfast.store import rules, transfer
from holdfast.store.deadline import has_deadline, without_deadline
from holdfast.store.operations import moving
from holdfast.store.operations.store import SqlStore
from holdfast.store.postgres import scrubbing, upkeep
from holdfast.store.postgres.database import CONNECTIONS, ConnectionPool, connect
from holdfast.store.postgres.migrate import migrate
from holdfast.store.postgres.queue import PostgresQueue
from holdfast.store.postgres.running import PostgresRunner, run
from holdfast.store.postgres.scrubbing import TableScrubber
from holdfast.store.records import Content
from holdfast.store.scope import Scope

_NEW_KEY: LiteralString = """
INSERT INTO holdfast.secrets (name, data) VALUES ('tenants', $1) ON CONFLICT DO NOTHING
"""
_KEY: LiteralString = "SELECT data FROM holdfast.secrets WHERE name = 'tenants'"

_MANY = 500
"""Number of contents that are found more slowly unless PostgreSQL's statistics include them."""


class PostgresStore(SqlStore):
    """Keeps everything in the schema `holdfast` of a database."""

    def __init__(self, database: ConnectionPool, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._put = 0
        self._scrubber = scrubber = TableScrubber(database)
        runner = PostgresRunner(database, scrubber)
        super().__init__(runner, clock, PostgresQueue(database, runner, clock))
        self._looking: asyncio.Task[None] | None = None
        """Has PostgreSQL look at its tables; held, because a loop holds its tasks weakly."""
        self.url = database.url

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        clock: Callable[[], float] = time.time,
        connections: int = CONNECTIONS,
    ) -> PostgresStore:
        """Connect, and bring the tables up to date.

        Raises:
            StoreUnavailableError: the server cannot be reached, or refuses the login.
            StoreError: the URL cannot be read, or a newer version made the store.
        """
        database = await connect(url, connections)
        try:
            await migrate(database)
        except BaseException:
            await database.close()
            raise
        return cls(database, clock=clock)

    # Contents and refs.

    async def put(self, scope: Scope, contents: Sequence[Content]) -> None:
        """Store originals."""
        await super().put(scope, contents)
        before, self._put = self._put, self._put + len(contents)
        if before < _MANY <= self._put:
            looking = upkeep.look_at_once(self._database)
            if has_deadline():  # it takes longer than a request may wait
                self._looking = asyncio.create_task(looking, context=without_deadline())
            else:
                await looking

    # Upkeep.

    async def check(self) -> None:
        """Raise unless the store can be read and written now."""
        await self._database.check()

    def _scrub_soon(self) -> None:
        self._scrubber.begin(scrubbing.TABLES)

    async def scrub(self, *, whole: bool = False) -> bool:
        """Write the tables anew, so that nothing of removed records is left in their files."""
        return await self._scrubber.scrub(scrubbing.TABLES, whole=whole)

    async def removals(self) -> int:
        """Return how often records were removed for good."""
        return int((await self._database.fetch(scrubbing.REMOVALS))[0]["number"])

    async def export(self, scope: Scope) -> AsyncIterator[bytes]:
        """Every record of the scope as lines of JSON, all of one moment."""
        yield transfer.encode(transfer.Header())
        async with self._database.snapshot() as connection:
            for read in (*moving.LINES, self._jobs.lines):
                after: Any = None
                while True:
                    lines, after = await run(connection, read(scope, after))
                    for line in lines:
                        yield transfer.encode(line)
                    if after is None:
                        break

    async def secret(self) -> bytes:
        """A random key, in the database itself: many machines must agree on it."""
        fresh = secrets.token_bytes(rules.SECRET_BYTES)
        await self._database.fetch(_NEW_KEY, fresh)
        return bytes((await self._database.fetch(_KEY))[0]["data"])

    async def backup(self, path: str) -> None:
        """Not for this store: PostgreSQL has its own tools."""
        raise StoreError(
            "a store on PostgreSQL is backed up by PostgreSQL",
            where=path,
            fix="Run `pg_dump --schema=holdfast`, or use `holdfast store export`.",
        )

    async def close(self) -> None:
        """Finish pending writes and close."""
        if self._looking is not None:
            self._looking.cancel()
        await self.jobs.close()
        await self._scrubber.wait()
        await self._database.close()
