"""Errors of servers and the backoff after them.

Messages are our own words, since a server's may hold anything, including text of a conversation.
The wait doubles after each immediate failure. A server that dies after it has worked is restarted
at once, since most die rarely and a user is waiting.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import mcp_types as types
from mcp import MCPError

from holdfast.errors import HoldfastError, ToolServerError
from holdfast.surfaces.mcp.config import ServerSpec

_FIRST_WAIT = 0.5
_LONGEST_WAIT = 60.0
_STEADY_SECONDS = 30.0
"""A server that ran this long has not failed at once, and its next start does not wait."""


class Backoff:
    """The time until a server may be started again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._not_before = 0.0

    @property
    def seconds(self) -> float:
        """Seconds until a start is allowed; zero or less if it is allowed now."""
        return self._not_before - self._clock()

    def record_start_failure(self) -> float:
        """Record a failed start; return the wait in seconds."""
        return self._wait(_FIRST_WAIT * 2**self._failures)

    def record_death(self, lived_seconds: float) -> None:
        """Record that it ended after it had run."""
        if lived_seconds >= _STEADY_SECONDS:
            self._failures = 0
        self._wait(_FIRST_WAIT * 2**self._failures if self._failures else 0.0)

    def _wait(self, seconds: float) -> float:
        seconds = min(_LONGEST_WAIT, seconds)
        self._failures += 1
        self._not_before = self._clock() + seconds
        return seconds


def unusable(spec: ServerSpec, reason: str) -> ToolServerError:
    """Return the error for a server that is never started."""
    return ToolServerError(
        f"the server {spec.name!r} cannot be used: {reason}",
        fix="Mend its entry in the list of servers.",
        kind="unavailable",
    )


def backing_off(spec: ServerSpec, reason: str, seconds: float) -> ToolServerError:
    """Return the error for a server that may not be started yet."""
    return ToolServerError(
        f"the server {spec.name!r} is not running: {reason}",
        fix=f"It may be tried again in {seconds:.0f} seconds; use another tool meanwhile.",
        kind="unavailable",
        retry_after=round(seconds, 1),
    )


def not_started(spec: ServerSpec, reason: str, seconds: float) -> ToolServerError:
    """Return the error for a server that cannot be started now."""
    return ToolServerError(
        f"the server {spec.name!r} cannot be started: {reason}",
        fix=_entry_to_check(spec),
        kind="unavailable",
        retry_after=seconds,
    )


def _entry_to_check(spec: ServerSpec) -> str:
    if spec.transport == "stdio":
        return (
            f"Check `command` in its entry in the list of servers: {spec.target} must be installed "
            "and on PATH, and start without an error."
        )
    return f"Check `url` in its entry in the list of servers: {spec.target} must answer."


def call_error(spec: ServerSpec, error: MCPError) -> Exception:
    """Return the error of a call: our own for connection failures, the server's otherwise."""
    if error.code == types.CONNECTION_CLOSED:
        return ToolServerError(
            f"the server {spec.name!r} stopped while it worked on this",
            fix="It starts anew with the next call. Look first at what was done already.",
            kind="gone",
        )
    if error.code == types.REQUEST_TIMEOUT:
        return ToolServerError(
            f"the server {spec.name!r} did not answer within {spec.timeout_seconds:.0f} seconds",
            fix="Ask for less, or give it a longer timeout in the list of servers.",
            kind="timeout",
        )
    return error


def start_failure(error: Exception) -> str:
    """Return why a server did not start, without its own words, which may hold anything."""
    if isinstance(error, FileNotFoundError):
        return "its program cannot be found"
    if isinstance(error, OSError):
        return f"its program or address cannot be used ({error.strerror or type(error).__name__})"
    if isinstance(error, HoldfastError):
        return error.what
    if isinstance(error, MCPError):
        ended = error.code == types.CONNECTION_CLOSED
        return "it ended at once" if ended else f"it refused the connection (code {error.code})"
    return f"it could not be spoken to ({type(error).__name__})"
