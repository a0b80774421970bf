"""A request as the client sent it.

incoming: after switches and seen, before service.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.surfaces.proxy.routes import Route
from holdfast.surfaces.proxy.seen import RequestSeen
from holdfast.surfaces.proxy.switches import Switches


class Incoming(NamedTuple):
    """A request as the client sent it."""

    route: Route
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    switches: Switches
    seen: RequestSeen

    @property
    def wants_array(self) -> bool:
        """Whether the stream goes out as a JSON array: Gemini's way without `alt=sse`."""
        return self.route.streams and "alt=sse" not in self.query
