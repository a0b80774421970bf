"""Equal requests at the same time: one is sent, and the others wait for its answer.

Works within one process: workers of a proxy each send one. Nobody waits twice: if the first answer
cannot be stored, all others are sent at once.
"""

from __future__ import annotations

import asyncio


class Flights:
    """The requests that are under way, by what makes them equal."""

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Future[bool]] = {}

    def begin(self, key: str) -> bool:
        """Return whether the caller is the first; then it must call `end`."""
        if key in self._under_way:
            return False
        self._under_way[key] = asyncio.get_running_loop().create_future()
        return True

    async def joined(self, key: str) -> bool:
        """Wait for the one under way; whether its answer was kept."""
        flight = self._under_way.get(key)
        return flight is not None and await asyncio.shield(flight)

    def end(self, key: str, *, kept: bool) -> None:
        """Tell all who wait."""
        flight = self._under_way.pop(key, None)
        if flight is not None and not flight.done():
            flight.set_result(kept)
