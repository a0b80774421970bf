"""Conversion of asyncpg's errors to ours.

The server's messages are left out, because they may quote stored data. The five characters of the
SQLSTATE are kept, and are enough to look the error up.
"""

from __future__ import annotations

import asyncpg  # type: ignore[import-untyped]

from holdfast.errors import StoreError, StoreUnavailableError

DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
"""All that a call of the driver may raise for reasons outside of our code."""

OVERTAKEN = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.UniqueViolationError,  # somebody added the same since we looked
    asyncpg.InvalidCachedStatementError,  # somebody has changed the tables
)
"""Another transaction was first, and this one was rolled back; a retry sees its result."""

_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.InternalClientError,  # so it calls a connection that ends while nobody uses it
    ConnectionError,
)

_FIXES: tuple[tuple[str, str, str], ...] = (
    ("28", "PostgreSQL refuses the login", "Check the user and the password of the URL."),
    ("3D", "the database does not exist", "Create it, or correct the URL."),
    ("42501", "the user may not do this in the database", "Grant CREATE on the database to it."),
    ("53100", "the disk of PostgreSQL is full", "Make room, then try again."),
    ("53300", "PostgreSQL has no connection left", "Raise max_connections, or close others."),
    ("53", "PostgreSQL has run out of a resource", "Look into the server's log."),
    ("25006", "the database is read-only", "Use the URL of the primary server."),
    ("23505", "other writers were in the way again and again", "Try again."),
    ("40", "other writers were in the way again and again", "Try again."),
    ("55P03", "another process holds a lock", "Try again."),
    ("57", "PostgreSQL stopped the statement", "Try again, or look into the server's log."),
    ("58", "PostgreSQL cannot read or write its files", "Look into the server's log."),
)
"""The beginning of a SQLSTATE, its meaning, and the next step."""


def lost(error: BaseException) -> bool:
    """Whether the connection ended."""
    closed = isinstance(error, asyncpg.InterfaceError) and "closed" in str(error)
    return closed or isinstance(error, _LOST)


def explain(error: BaseException, url: str) -> StoreError:
    """Return a driver's error as one of ours, without the server's message."""
    state = getattr(error, "sqlstate", None) or ""
    for beginning, what, fix in _FIXES:
        if state.startswith(beginning):
            return StoreUnavailableError(f"{what} (SQLSTATE {state})", where=url, fix=fix)
    if lost(error) or isinstance(error, OSError | TimeoutError):
        return StoreUnavailableError(
            "PostgreSQL cannot be reached", where=url, fix="Check that it runs, then try again."
        )
    summary = f"SQLSTATE {state}" if state else type(error).__name__
    return StoreError(f"PostgreSQL refused a statement ({summary})", where=url)
