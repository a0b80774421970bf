"""Fixtures for the tests of all stores."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from tests.store.harness import ChangeTable, Opener, has_postgres
from tests.store.postgres_server import (
    postgres_server,
    postgres_store_url,
    postgres_url,
    shared_postgres_url,
)

__all__ = ["postgres_server", "postgres_store_url", "postgres_url", "shared_postgres_url"]

KINDS = ["memory", "sqlite", *(["postgres"] if has_postgres() else [])]


@pytest.fixture(params=KINDS)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store, of each kind in turn."""
    match request.param:
        case "sqlite":
            return f"sqlite:///{tmp_path}/store/holdfast.db"
        case "postgres":
            return str(request.getfixturevalue("postgres_store_url"))
        case _:
            return "memory:"


@pytest.fixture
def opener(store_url: str) -> Opener:
    return Opener(store_url)


@pytest.fixture
def sqlite(tmp_path: Path) -> Opener:
    return Opener(f"sqlite:///{tmp_path}/store/holdfast.db")


@pytest.fixture
def change_table(store_url: str, request: pytest.FixtureRequest) -> ChangeTable:
    """Change rows bypassing the store; a store in memory is skipped."""
    kind = Opener(store_url).kind
    if kind == "memory":
        pytest.skip("nobody else can reach into memory")

    async def change(table: str, assignment: str, where: str) -> None:
        statement = f"UPDATE {{}}{table} SET {assignment} WHERE {where}"
        if kind == "sqlite":
            db = apsw.Connection(store_url.removeprefix("sqlite:///"))
            db.execute(statement.format(""))
            db.close()
        else:
            server = request.getfixturevalue("postgres_server")
            await server.execute(statement.format("holdfast."), store_url)

    return change
