"""Checks of records that are derived from contents; fresh statistics of tables."""

from __future__ import annotations

from contextlib import suppress
from typing import LiteralString

from holdfast.errors import StoreError
from holdfast.store.postgres import answers, tools
from holdfast.store.postgres.database import Database
from holdfast.store.records import Damage
from holdfast.store.scope import Scope

_NEVER_LOOKED_AT: LiteralString = (
    "SELECT 1 FROM pg_class WHERE oid = 'holdfast.refs'::regclass AND reltuples < 0"
)
_LOOK: LiteralString = (
    "ANALYZE holdfast.contents, holdfast.refs, holdfast.uses, holdfast.messages, holdfast.audit"
)


async def look_at_once(database: Database) -> None:
    """Let PostgreSQL look at tables that it never looked at: until then it plans for empty ones.

    It does so by itself, but only after a minute; a first import has grown by then.
    """
    with suppress(StoreError):  # the data is stored, and only slower to find
        if await database.fetch(_NEVER_LOOKED_AT):
            await database.fetch(_LOOK)


async def verify(database: Database, scope: Scope) -> list[Damage]:
    """Read the derived records, and remove damaged ones."""
    async with database.snapshot() as connection:
        unsound_answers = await answers.unsound(connection, scope)
        unsound_tools = await tools.unsound(connection, scope)
    damages = await tools.remove(database, scope, unsound_tools)
    return damages + await answers.remove(database, scope, unsound_answers)
