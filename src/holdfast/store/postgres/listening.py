"""A connection that listens for notifications, as long as the server is there.

Waiting code also polls, so that a missing connection delays it but does not fail it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from holdfast.store.postgres import failures
from holdfast.store.postgres.database import Connection, ConnectionPool


class NotificationListener:
    """Rings when somebody notifies a channel."""

    def __init__(self, database: ConnectionPool, channel: str, ring: Callable[[], None]) -> None:
        self._database = database
        self._channel = channel
        self._ring = ring
        self._connection: Connection | None = None

    async def begin(self) -> bool:
        """Listen, with a new connection after a failure; return whether it has just started."""
        if self.is_open:
            return False
        await self.end()
        with suppress(*failures.DRIVER_ERRORS):
            connection = await self._database.borrow()
            self._connection = connection
            await connection.add_listener(self._channel, self._heard)
            # If the connection ended, waiting code would get no notification before its timeout.
            connection.add_termination_listener(self._heard)
            return True
        return False

    @property
    def is_open(self) -> bool:
        """Whether notifications are received now."""
        # a connection that has ended belongs to the pool, which reports it
        with suppress(*failures.DRIVER_ERRORS):
            return self._connection is not None and not self._connection.is_closed()
        return False

    async def end(self) -> None:
        """Give the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*failures.DRIVER_ERRORS):
                connection.remove_termination_listener(self._heard)
                await connection.remove_listener(self._channel, self._heard)
            await self._database.give_back(connection)

    def _heard(self, *_: object) -> None:
        self._ring()
