"""listening: a connection that hears what others notify, for as long as the server is there.

after database, before queue. It knows nothing of jobs. Whoever waits looks by himself from time to
time, so that a connection that cannot be had is a delay and no failure.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from holdfast.store.postgres import failures
from holdfast.store.postgres.database import Connection, Database


class Listening:
    """Rings when somebody notifies a channel."""

    def __init__(self, database: Database, channel: str, ring: Callable[[], None]) -> None:
        self._database = database
        self._channel = channel
        self._ring = ring
        self._connection: Connection | None = None

    async def begin(self) -> bool:
        """Listen, or go on listening; after the server was gone, anew. Whether it just began."""
        if self.is_open:
            return False
        await self.end()
        with suppress(*failures.DRIVER_ERRORS):
            connection = await self._database.borrow()
            self._connection = connection
            await connection.add_listener(self._channel, self._heard)
            # Whoever waits on a connection that ends would hear nothing until the time is over.
            connection.add_termination_listener(self._heard)
            return True
        return False

    @property
    def is_open(self) -> bool:
        """Whether what is notified now is heard."""
        with suppress(*failures.DRIVER_ERRORS):  # one that has ended is the pool's, and says so
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
