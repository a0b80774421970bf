"""migrate: bring the tables of a database to what this version knows.

after database, before the statements. The files in migrations/ run in the order of their
numbers, all that are missing in one transaction, by one process at a time.
"""

from __future__ import annotations

from importlib import resources
from typing import LiteralString

from holdfast.errors import StoreError
from holdfast.store.postgres.database import Connection, ConnectionPool

_LOCK = 0x_401D_FA57
"""The advisory lock that those who migrate wait for."""

_STATE: LiteralString = """
SELECT current_setting('server_encoding'), to_regclass('holdfast.migrations') IS NOT NULL
"""
_BEGIN: LiteralString = """
CREATE SCHEMA IF NOT EXISTS holdfast;
CREATE TABLE IF NOT EXISTS holdfast.migrations (
    number integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);
"""
_REACHED: LiteralString = "SELECT coalesce(max(number), 0) AS number FROM holdfast.migrations"


def scripts() -> dict[int, str]:
    """The numbered scripts of this version."""
    folder = resources.files("holdfast.store.postgres") / "migrations"
    files = (file for file in folder.iterdir() if file.name.endswith(".sql"))
    return {int(file.name[:4]): file.read_text("utf-8") for file in sorted(files, key=str)}


async def migrate(database: ConnectionPool) -> None:
    """Create or extend the tables.

    Raises:
        StoreError: a newer version made them, or the database is not in UTF-8.
    """
    migrations = scripts()
    ((encoding, begun),) = await database.fetch(_STATE)
    if encoding != "UTF8":
        fix = "Create the database with ENCODING 'UTF8'."
        raise StoreError("the database does not hold Unicode", where=database.url, fix=fix)
    reached = (await database.fetch(_REACHED))[0]["number"] if begun else 0
    if reached < max(migrations):
        await database.transact(lambda connection: _apply_missing(connection, migrations))
    elif reached > max(migrations):
        fix = "Upgrade Holdfast on this machine."
        raise StoreError("a newer Holdfast made this store", where=database.url, fix=fix)


async def _apply_missing(connection: Connection, known: dict[int, str]) -> None:
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
    await connection.execute(_BEGIN)
    reached = await connection.fetchval(_REACHED)
    for number, script in known.items():
        if number > reached:
            await connection.execute(script)
            await connection.execute("INSERT INTO holdfast.migrations (number) VALUES ($1)", number)
