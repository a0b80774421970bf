"""Killed while a store is made or brought to this version: the next one finds it whole.

A store of the first version is made from the first script and the rows of a store of today, of
which it takes the columns that it has.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from importlib import resources
from pathlib import Path

import apsw
import pytest

from holdfast.store import Scope, Store, open_store
from holdfast.store.postgres.migrate import scripts
from holdfast.store.refs import digest
from holdfast.store.sqlite.driver import APPLICATION_ID
from tests.hardening.births import Nursery, nursery
from tests.hardening.campaign import Campaign, short_and_full
from tests.store.harness import content, noise, session, turn
from tests.store.postgres_server import Server, running_server

SCOPE = Scope("migrating", "test")
CONTENTS = [content(noise(2_000, seed=number)) for number in range(20)]
MESSAGES = [f"message {number}".encode() for number in range(1, 11)]
MOMENT_SECONDS = 0.03
"""How long it takes to open a store, and so how late death may come."""


async def _fill(store: Store) -> None:
    await store.put(SCOPE.of("talk"), CONTENTS)
    for number, message in enumerate(MESSAGES, 1):
        stored = {digest(message): message}
        await store.add_turn(SCOPE.of("talk"), turn(number, [message]), session("talk"), stored)


async def _fault(url: str, *, is_filled: bool) -> str:
    """Return the faults of a store after its migration was killed; empty if there are none."""
    store = await open_store(url)
    try:
        if not is_filled:
            await _fill(store)
        for stored in CONTENTS:
            original = await store.get(SCOPE, stored.ref_id)
            if original is None or original.data != stored.data:
                return f"{stored.ref_id} is lost"
        turns = await store.turns(SCOPE.of("talk"))
        if [number.number for number in turns] != list(range(1, len(MESSAGES) + 1)):
            return f"{len(turns)} turns are left"
        # a record without a table in the first version
        await store.link(SCOPE.of("talk"), ["resp_1"])
        damages = await store.verify(SCOPE)
        return f"damaged: {damages[0]}" if damages else ""
    finally:
        await store.close()


def _killed(mother: Nursery, url: str, chance: random.Random) -> None:
    child = mother.born("opening", url=url)
    time.sleep(chance.random() * MOMENT_SECONDS)  # the moment of death, not a wait for work
    child.kill()


# --- SQLite --------------------------------------------------------------------------------------


def _first_version(folder: Path) -> Path:
    """A file as the first version left it, with something in it."""
    today, old = folder / "today.db", folder / "first.db"

    async def fill() -> None:
        store = await open_store(f"sqlite:///{today}")
        await _fill(store)
        await store.close()

    asyncio.run(fill())
    script = resources.files("holdfast.store.sqlite") / "migrations" / "0001.sql"
    db = apsw.Connection(str(old))
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(script.read_text("utf-8"))
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute("PRAGMA user_version = 1")
    db.execute("ATTACH ? AS today", (str(today),))
    tables = "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    for (table,) in db.execute(tables).fetchall():
        columns = [row[1] for row in db.execute(f"PRAGMA main.table_info({table})")]
        names = ", ".join(columns)
        db.execute(f"DELETE FROM main.{table}")
        db.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM today.{table}")
    db.close()
    return old


def _migrate_on_sqlite(campaign: Campaign, folder: Path, rounds: int) -> None:
    old = _first_version(folder)
    with nursery(folder) as mother:
        for number in campaign.rounds(rounds):
            chance = campaign.chance(number)
            place = folder / f"store{number}"
            place.mkdir()
            file = place / "holdfast.db"
            is_filled = number % 2 == 0
            if is_filled:
                shutil.copy(old, file)
            _killed(mother, f"sqlite:///{file}", chance)
            if wrong := asyncio.run(_fault(f"sqlite:///{file}", is_filled=is_filled)):
                campaign.found(f"round {number}: {wrong}")
            shutil.rmtree(place)


@short_and_full("rounds", 8, 500)
def test_a_store_that_was_being_migrated_is_whole(
    campaign: Campaign, tmp_path: Path, rounds: int
) -> None:
    _migrate_on_sqlite(campaign, tmp_path, rounds)


# --- PostgreSQL ----------------------------------------------------------------------------------


def _migrate_on_postgres(campaign: Campaign, folder: Path, rounds: int) -> None:
    with running_server("on") as server, nursery(folder) as mother:
        for number in campaign.rounds(rounds):
            chance = campaign.chance(number)
            with server.database() as url:
                if number % 2 == 0:
                    asyncio.run(_begin(server, url))
                _killed(mother, url, chance)
                if number % 5 == 4:
                    server.kill()
                    server.start()
                if wrong := asyncio.run(_fault(url, is_filled=False)):
                    campaign.found(f"round {number}: {wrong}")


async def _begin(server: Server, url: str) -> None:
    """The tables of the first version."""
    first = min(scripts())
    begun = "CREATE SCHEMA holdfast; CREATE TABLE holdfast.migrations (number integer PRIMARY KEY,"
    await server.run_script(f"{begun} applied_at timestamptz NOT NULL DEFAULT now())", url)
    await server.run_script(scripts()[first], url)
    await server.run_script(f"INSERT INTO holdfast.migrations (number) VALUES ({first})", url)


@pytest.mark.campaign
def test_stores_that_were_being_migrated_are_whole_on_postgres(
    campaign: Campaign, tmp_path: Path
) -> None:
    _migrate_on_postgres(campaign, tmp_path, 100)
