"""A pool of connections, and transactions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, LiteralString, TypeVar

import asyncpg  # type: ignore[import-untyped]

from holdfast.errors import StoreError, StoreUnavailableError
from holdfast.store.deadline import REQUEST_SECONDS, Breaker, has_deadline
from holdfast.store.postgres import failures, text
from holdfast.store.postgres.address import without_password

CONNECTIONS = 10
REQUEST_CONNECTIONS = 5
"""Connections for work that a request waits for, beside the others. They are apart because the
server itself ends their statements at the deadline; and a record that waits for a lock keeps none
of them."""
_CONNECT_SECONDS = 10.0
_STATEMENT_SECONDS = 300.0
_CLOSE_SECONDS = 10.0
_REQUEST_SETTINGS = {
    # An abandoned statement would wait for its lock, and hold its other locks, without end.
    "lock_timeout": f"{REQUEST_SECONDS * 1000:.0f}",
    "statement_timeout": f"{REQUEST_SECONDS * 1000:.0f}",
}
_MOST_TRIES = 8
_NOT_FINISHED = "the connection was lost while PostgreSQL was about to commit"

Result = TypeVar("Result")
Connection = Any
"""A connection of asyncpg, which comes without types."""
Work = Callable[[Connection], Awaitable[Result]]


# The mode that every write takes: it waits for whoever keeps writers or readers out of a table.
_LOCK_TABLES: LiteralString = """
LOCK TABLE holdfast.contents, holdfast.refs, holdfast.uses, holdfast.sessions, holdfast.turns,
    holdfast.messages, holdfast.calibrations, holdfast.audit, holdfast.links, holdfast.secrets,
    holdfast.answers, holdfast.journal, holdfast.daily_usage, holdfast.reservations
IN ROW EXCLUSIVE MODE
"""


class _Attempt:
    """The connection that a piece of work uses at the moment."""

    connection: Connection | None = None

    def abandon(self) -> None:
        """Drop the connection without a word to the server, which may be frozen."""
        if self.connection is not None:
            with suppress(*failures.DRIVER_ERRORS):  # the work has just ended
                self.connection.terminate()


class ConnectionPool:
    """A database with a connection pool."""

    def __init__(self, pool: Any, request_pool: Any, url: str) -> None:
        self._pool = pool
        self._request_pool = request_pool
        """For work with a deadline: see store/deadline.py."""
        self._closed = False
        self._breaker = Breaker(url)
        self._breaker.check = self.check
        self.url = url
        """Without a password."""

    async def check(self) -> None:
        """Raise unless the tables that requests need can be read and written."""
        await self.transact(lambda connection: connection.execute(_LOCK_TABLES))

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
        """Return a connection for longer use; the caller releases it before `close`."""
        self._check_open()
        return await self._pool.acquire()

    async def give_back(self, connection: Connection) -> None:
        """Let others use a borrowed connection."""
        with suppress(*failures.DRIVER_ERRORS):
            await self._pool.release(connection)

    async def close(self) -> None:
        """Wait for running work and close every connection; repeated calls do nothing."""
        if self._closed:
            return
        self._closed = True
        self._breaker.close()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):  # a frozen server takes no leave
                await self._request_pool.close()
                await self._pool.close()
        except failures.DRIVER_ERRORS as error:
            self._request_pool.terminate()
            self._pool.terminate()
            raise failures.explain(error, self.url) from None

    async def _run(self, work: Work[Result], isolation: str | None) -> Result:
        self._check_open()
        self._breaker.admit()
        if not has_deadline():
            return await self._try(self._pool, work, isolation, _Attempt())
        attempt = _Attempt()
        task = asyncio.create_task(self._try(self._request_pool, work, isolation, attempt))
        return await self._breaker.run(task, attempt.abandon)

    async def _try(
        self, pool: Any, work: Work[Result], isolation: str | None, attempt: _Attempt
    ) -> Result:
        """Do some work, again if others were in its way or the connection was stale."""
        for tries_left in reversed(range(_MOST_TRIES)):
            connected = finished = False
            try:
                async with pool.acquire() as connection:
                    connected = True
                    attempt.connection = connection
                    if isolation is None:
                        return await work(connection)
                    async with connection.transaction(isolation=isolation):
                        result = await work(connection)
                        finished = True
            except failures.DRIVER_ERRORS as error:
                # A pool notices that its server is gone only when it uses a connection. After a
                # commit was sent, its outcome is unknown.
                stale = connected and not finished and failures.lost(error)
                if stale:
                    await pool.expire_connections()
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


async def connect(url: str, connections: int = CONNECTIONS) -> ConnectionPool:
    """Connect to the database, with pools of at most `connections` connections."""
    safe_url = without_password(url)
    pool = _pool(url, connections, _STATEMENT_SECONDS, {})
    on_requests = min(connections, REQUEST_CONNECTIONS)
    request_pool = _pool(url, on_requests, REQUEST_SECONDS, _REQUEST_SETTINGS)
    try:
        await pool
        await request_pool
        async with pool.acquire():
            return ConnectionPool(pool, request_pool, safe_url)
    except ValueError:  # the driver's own for a URL is one, too
        pool.terminate()
        fix = "Write postgresql://user:password@host/database; escape what is special in URLs."
        raise StoreError("the URL of PostgreSQL cannot be read", where=safe_url, fix=fix) from None
    except failures.DRIVER_ERRORS as error:
        pool.terminate()
        raise failures.explain(error, safe_url) from None


def _pool(url: str, connections: int, statement_seconds: float, settings: dict[str, str]) -> Any:
    return asyncpg.create_pool(
        url,
        min_size=0,
        max_size=connections,
        timeout=_CONNECT_SECONDS,
        command_timeout=statement_seconds,
        init=_prepare,
        reset=_leave_as_it_is,
        server_settings={"application_name": "holdfast", "synchronous_commit": "on", **settings},
    )


async def _prepare(connection: Connection) -> None:
    await connection.set_type_codec(
        "text", schema="pg_catalog", encoder=text.encode, decoder=text.decode, format="binary"
    )


async def _leave_as_it_is(_: Connection) -> None:
    """Do nothing: our state never outlives a transaction, so connections need no reset."""
