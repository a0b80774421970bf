"""Statistics of fresh tables, by which PostgreSQL plans."""

from __future__ import annotations

from contextlib import suppress
from typing import LiteralString

from holdfast.errors import StoreError
from holdfast.store.postgres.database import ConnectionPool

_NEVER_LOOKED_AT: LiteralString = (
    "SELECT 1 FROM pg_class WHERE oid = 'holdfast.refs'::regclass AND reltuples < 0"
)
_LOOK: LiteralString = (
    "ANALYZE holdfast.contents, holdfast.refs, holdfast.uses, holdfast.messages, holdfast.audit"
)


async def look_at_once(database: ConnectionPool) -> None:
    """Let PostgreSQL look at tables that it never looked at: until then it plans for empty ones.

    It does so by itself, but only after a minute; a first import has grown by then.
    """
    with suppress(StoreError):  # the data is stored, and only slower to find
        if await database.fetch(_NEVER_LOOKED_AT):
            await database.fetch(_LOOK)
