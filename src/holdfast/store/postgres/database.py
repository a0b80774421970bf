"""database: a pool of connections, and transactions that happen whole or not at all.

after failures and text, before migrations. It knows nothing of what is stored.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, LiteralString, TypeVar

import asyncpg  # type: ignore[import-untyped]

from holdfast.errors import StoreError, StoreUnavailableError
from holdfast.store.postgres import failures, text
from holdfast.store.postgres.address import without_password

CONNECTIONS = 10
_CONNECT_SECONDS = 10.0
_STATEMENT_SECONDS = 300.0
_MOST_TRIES = 8
_NOT_FINISHED = "the connection was lost while PostgreSQL was about to commit"

Result = TypeVar("Result")
Connection = Any
"""A connection of asyncpg, which comes without types."""
Work = Callable[[Connection], Awaitable[Result]]


class Database:
    """A database behind a URL."""

    def __init__(self, pool: Any, url: str) -> None:
        self._pool = pool
        self._closed = False
        self.url = url
        """Without a password."""

    async def fetch(self, sql: LiteralString, *values: object) -> list[Any]:
        """The rows of one statement, which is a transaction by itself and may be repeated."""
        rows = await self._run(lambda connection: connection.fetch(sql, *values), None)
        return list(rows)

    async def transact(self, work: Work[Result]) -> Result:
        """Do the work inside a transaction, again if others were in its way."""
        return await self._run(work, "read_committed")

    async def outside(self, work: Work[Result]) -> Result:
        """Do work that cannot run inside a transaction, such as VACUUM; it may be repeated."""
        return await self._run(work, None)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """A connection that sees the database as it is now, for as long as the block lasts."""
        self._check_open()
        try:
            async with (
                self._pool.acquire() as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                yield connection
        except failures.DRIVER_ERRORS as error:
            raise failures.explain(error, self.url) from None

    async def borrow(self) -> Connection:
        """A connection for longer; whoever borrows it gives it back before the end."""
        self._check_open()
        return await self._pool.acquire()

    async def give_back(self, connection: Connection) -> None:
        """Let others use a borrowed connection."""
        with suppress(*failures.DRIVER_ERRORS):
            await self._pool.release(connection)

    async def close(self) -> None:
        """Wait for what is under way and close every connection; twice is once."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._pool.close()
        except failures.DRIVER_ERRORS as error:
            raise failures.explain(error, self.url) from None

    async def _run(self, work: Work[Result], isolation: str | None) -> Result:
        self._check_open()
        for tries_left in reversed(range(_MOST_TRIES)):
            connected = finished = False
            try:
                async with self._pool.acquire() as connection:
                    connected = True
                    if isolation is None:
                        return await work(connection)
                    async with connection.transaction(isolation=isolation):
                        result = await work(connection)
                        finished = True
            except failures.DRIVER_ERRORS as error:
                # A pool notices only by using them that its connections are those of a server
                # that is gone. Once a commit was sent, nobody knows if it happened.
                stale = connected and not finished and failures.lost(error)
                if stale:
                    await self._pool.expire_connections()
                if tries_left and (stale or isinstance(error, failures.OVERTAKEN)):
                    continue
                raise self._explained(error, finished) from None
            else:
                return result
        raise AssertionError("the last try returns or raises")

    def _explained(self, error: BaseException, finished: bool) -> StoreError:
        if finished and failures.lost(error):
            fix = "Repeat the call: what was stored is not stored twice."
            return StoreUnavailableError(_NOT_FINISHED, where=self.url, fix=fix)
        return failures.explain(error, self.url)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store is closed", where=self.url, fix="Open it again.")


async def connect(url: str, connections: int = CONNECTIONS) -> Database:
    """A pool of at most that many connections to the database behind the URL."""
    shown = without_password(url)
    pool = asyncpg.create_pool(
        url,
        min_size=0,
        max_size=connections,
        timeout=_CONNECT_SECONDS,
        command_timeout=_STATEMENT_SECONDS,
        init=_prepare,
        reset=_leave_as_it_is,
        server_settings={"application_name": "holdfast", "synchronous_commit": "on"},
    )
    try:
        await pool
        async with pool.acquire():
            return Database(pool, shown)
    except ValueError:  # the driver's own for a URL is one, too
        pool.terminate()
        fix = "Write postgresql://user:password@host/database; escape what is special in URLs."
        raise StoreError("the URL of PostgreSQL cannot be read", where=shown, fix=fix) from None
    except failures.DRIVER_ERRORS as error:
        pool.terminate()
        raise failures.explain(error, shown) from None


async def _prepare(connection: Connection) -> None:
    await connection.set_type_codec(
        "text", schema="pg_catalog", encoder=text.encode, decoder=text.decode, format="binary"
    )


async def _leave_as_it_is(_: Connection) -> None:
    """Nothing of ours outlives its transaction, so that no reset need travel to the server."""
