"""The sender of a request, in the client's own ids.

identity: before session. The proxy reads these values from headers and bodies: see
surfaces/proxy/client_ids.py and engine/side_requests.py.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from holdfast.store.records import ClientKey


class Sender(NamedTuple):
    """The client that sent a request, according to the request; every field may be empty."""

    client: str = ""
    """The program, such as `claude-code`."""
    session: str = ""
    """The client's own id of its session."""
    agent: str = ""
    """The client's own id of the subagent that asks."""
    purpose: str = ""
    """The purpose of a side request, such as `title`; empty for a conversation."""

    @property
    def key(self) -> ClientKey:
        """Which conversation of the client it is; two empty ids if the client sends none."""
        return self.session, self.agent


UNKNOWN = Sender()


class OpenRequest(Protocol):
    """A request that may still be on its way."""

    @property
    def is_open(self) -> bool:
        """Whether the client still waits for its answer."""
