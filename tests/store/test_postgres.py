"""What only PostgreSQL has: a server that may be away, a pool, migrations, foreign text."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import StoreError, StoreUnavailableError
from holdfast.store.postgres import text
from holdfast.store.postgres.address import without_password
from holdfast.store.postgres.database import Database, connect
from holdfast.store.postgres.migrate import migrate, scripts
from tests.store.postgres_server import Server

PASSWORD = "correct-horse"


def with_database(url: str, work: Callable[[Database], Awaitable[Any]], **options: Any) -> Any:
    async def main() -> Any:
        database = await connect(url, **options)
        try:
            return await work(database)
        finally:
            await database.close()

    return asyncio.run(main())


def refused(url: str) -> StoreError:
    """The error of opening a URL that cannot be opened."""
    with pytest.raises(StoreError) as raised:
        asyncio.run(connect(url))
    assert PASSWORD not in "".join(traceback.format_exception(raised.value))
    return raised.value


# Addresses.


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@db.example/x", "postgresql://me@db.example/x"),
        ("postgresql://me@db.example:5433/x", "postgresql://me@db.example:5433/x"),
        ("postgresql://db.example:5433/x", "postgresql://db.example:5433/x"),
        ("postgresql://me:s@ec/r?e#t@db.example/x", "postgresql://me@db.example/x"),
        ("postgresql://:secret@/x?host=/tmp", "postgresql://@/x?host=/tmp"),
        ("postgresql:///x?password=secret&host=/tmp", "postgresql:///x?host=/tmp"),
        ("postgresql:///x?host=/tmp&PASSWORD=secret", "postgresql:///x?host=/tmp"),
        ("postgresql:///x?sslpassword=secret", "postgresql:///x"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


@given(st.text(st.characters(codec="ascii"), min_size=8).filter(lambda s: s not in "@db.example/x"))
def test_no_password_however_odd_is_shown(password: str) -> None:
    assert without_password(f"postgresql://me:{password}@db.example/x") == (
        "postgresql://me@db.example/x"
    )


# Text.


@given(st.text(st.characters(exclude_categories=()), max_size=50))
def test_any_text_survives_and_its_bytes_are_good_for_postgresql(value: str) -> None:
    data = text.encode(value)
    assert text.decode(data) == value
    assert b"\0" not in data
    data.decode("utf-8")


@given(*[st.text(st.sampled_from("\0\ud800\uffff0d8f\x00a"), max_size=12)] * 2)
def test_two_texts_never_become_one(one: str, other: str) -> None:
    assert (text.encode(one) == text.encode(other)) == (one == other)


def test_text_travels_through_the_server_unchanged(postgres_url: str) -> None:
    values = ["", "plain", "zero \0 inside", "lone \ud83d surrogate", "\uffff0000", "💡é"]

    async def echo(database: Database) -> list[str]:
        return [(await database.fetch("SELECT $1::text AS v", value))[0]["v"] for value in values]

    assert with_database(postgres_url, echo) == values


# Connections.


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{PASSWORD}@127.0.0.1:1/x",
        f"postgresql://me:{PASSWORD}@/x?host=/nowhere",
        f"postgresql://me:{PASSWORD}@no-such-host.invalid/x",
    ],
)
def test_a_server_that_cannot_be_reached_is_unavailable(url: str) -> None:
    error = refused(url)
    assert isinstance(error, StoreUnavailableError)
    assert error.fix


@pytest.mark.parametrize(
    "url", [f"postgresql://me:{PASSWORD}/@h/x", f"postgresql://me:{PASSWORD}@[h"]
)
def test_an_address_that_cannot_be_read_is_refused(url: str) -> None:
    assert "URL" in refused(url).what


def test_a_wrong_password_is_told_from_an_absent_server(
    postgres_server: Server, postgres_url: str
) -> None:
    name = postgres_url.partition("?")[0].rpartition("/")[2]
    sql = f"CREATE ROLE guarded LOGIN PASSWORD 'right-{PASSWORD}'"
    asyncio.run(postgres_server.execute(sql))
    try:
        error = refused(postgres_server.url(name, "guarded", f"wrong-{PASSWORD}"))
        assert "login" in error.what
        good = postgres_server.url(name, "guarded", f"right-{PASSWORD}")
        shown = with_database(good, _shown)
        assert PASSWORD not in shown
        with pytest.raises(StoreUnavailableError, match="may not"):
            with_database(good, migrate)
    finally:
        asyncio.run(postgres_server.execute("DROP ROLE guarded"))


async def _shown(database: Database) -> str:
    return f"{database.url} {database!r} {vars(database)!r}"


def test_a_database_that_does_not_exist_is_named_as_the_cause(postgres_server: Server) -> None:
    assert "database" in refused(postgres_server.url("nothing_here")).what


def test_a_database_without_unicode_is_refused(postgres_server: Server) -> None:
    sql = "CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0"
    asyncio.run(postgres_server.execute(sql))
    try:
        with pytest.raises(StoreError, match="Unicode"):
            with_database(postgres_server.url("plain"), migrate)
    finally:
        asyncio.run(postgres_server.execute("DROP DATABASE plain"))


def test_a_read_only_database_is_unavailable(postgres_url: str) -> None:
    url = f"{postgres_url}&default_transaction_read_only=on"
    with pytest.raises(StoreUnavailableError, match="read-only"):
        with_database(url, migrate)


def test_the_pool_never_opens_more_connections_than_it_may(postgres_url: str) -> None:
    async def many(database: Database) -> int:
        sql = "SELECT pg_backend_pid() AS pid, pg_sleep(0.01)"
        rows = await asyncio.gather(*(database.fetch(sql) for _ in range(12)))
        return len({row[0]["pid"] for row in rows})

    assert 1 <= with_database(postgres_url, many, connections=3) <= 3


def test_a_pool_outlives_its_server(postgres_server: Server, postgres_url: str) -> None:
    async def work(database: Database) -> None:
        await asyncio.gather(*(database.fetch("SELECT pg_sleep(0.01)") for _ in range(4)))
        postgres_server.kill()
        try:
            with pytest.raises(StoreUnavailableError):
                await database.fetch("SELECT 1")
        finally:
            postgres_server.start()
        rows = await asyncio.gather(*(database.fetch("SELECT 1 AS one") for _ in range(4)))
        assert [row[0]["one"] for row in rows] == [1] * 4

    with_database(postgres_url, work)


def test_work_is_done_again_on_a_new_connection_when_the_old_one_was_cut(
    postgres_server: Server, postgres_url: str
) -> None:
    cut: list[int] = []

    async def half_done(connection: Any) -> int:
        await connection.execute("INSERT INTO counted VALUES (1)")
        if not cut:
            cut.append(pid := await connection.fetchval("SELECT pg_backend_pid()"))
            await postgres_server.execute(f"SELECT pg_terminate_backend({pid}, 10000)")
        await connection.execute("INSERT INTO counted VALUES (2)")
        return 7

    async def work(database: Database) -> list[int]:
        await database.transact(lambda c: c.execute("CREATE TABLE counted (n int)"))
        assert await database.transact(half_done) == 7
        return [row["n"] for row in await database.fetch("SELECT n FROM counted ORDER BY n")]

    assert with_database(postgres_url, work) == [1, 2]


def test_writers_that_lock_each_other_out_both_finish(postgres_url: str) -> None:
    async def work(database: Database) -> list[int]:
        await database.transact(
            lambda c: c.execute("CREATE TABLE t (id int, n int); INSERT INTO t VALUES (1,0),(2,0)")
        )
        both_hold_one = asyncio.Barrier(2)
        first_time = [True, True]

        async def add(first: int, second: int) -> None:
            async def steps(connection: Any) -> None:
                await connection.execute("UPDATE t SET n = n + 1 WHERE id = $1", first)
                if first_time[first - 1]:
                    first_time[first - 1] = False
                    await both_hold_one.wait()
                await connection.execute("UPDATE t SET n = n + 1 WHERE id = $1", second)

            await database.transact(steps)

        await asyncio.gather(add(1, 2), add(2, 1))
        return [row["n"] for row in await database.fetch("SELECT n FROM t ORDER BY id")]

    assert with_database(postgres_url, work) == [2, 2]


def test_the_words_of_the_server_stay_out_of_errors(postgres_url: str) -> None:
    with pytest.raises(StoreError) as raised:
        with_database(postgres_url, lambda d: d.fetch("SELECT 'top secret'::integer"))
    told = "".join(traceback.format_exception(raised.value)[-2:])
    assert "22P02" in str(raised.value)
    assert "invalid input" not in told
    assert raised.value.__suppress_context__


def test_a_closed_store_says_so(postgres_url: str) -> None:
    async def work(database: Database) -> None:
        await database.close()
        with pytest.raises(StoreError, match="closed"):
            await database.fetch("SELECT 1")

    with_database(postgres_url, work)  # closes it a second time


# Migrations.


def test_tables_are_made_once_by_many_who_open_at_the_same_time(postgres_url: str) -> None:
    async def main() -> list[Any]:
        opened = await asyncio.gather(*(connect(postgres_url, 2) for _ in range(6)))
        try:
            await asyncio.gather(*map(migrate, opened))
            return await opened[0].fetch("SELECT number FROM holdfast.migrations ORDER BY number")
        finally:
            await asyncio.gather(*(database.close() for database in opened))

    assert [row["number"] for row in asyncio.run(main())] == sorted(scripts())


def test_a_store_of_a_newer_version_is_left_alone(postgres_url: str) -> None:
    async def work(database: Database) -> None:
        await migrate(database)
        newer = "INSERT INTO holdfast.migrations (number) VALUES (9999)"
        await database.transact(lambda c: c.execute(newer))
        with pytest.raises(StoreError, match="newer"):
            await migrate(database)

    with_database(postgres_url, work)


def test_a_migration_that_fails_leaves_nothing_behind(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = scripts() | {9000: "CREATE TABLE holdfast.half (n int); SELECT 1/0;"}
    monkeypatch.setattr("holdfast.store.postgres.migrate.scripts", lambda: broken)

    async def work(database: Database) -> Any:
        with pytest.raises(StoreError):
            await migrate(database)
        return (await database.fetch("SELECT to_regnamespace('holdfast') IS NULL AS gone"))[0][
            "gone"
        ]

    assert with_database(postgres_url, work)


def test_the_server_of_the_tests_has_vectors(postgres_server: Server, postgres_url: str) -> None:
    async def main() -> Any:
        await postgres_server.execute("CREATE EXTENSION vector", postgres_url)
        return await postgres_server.execute(
            "SELECT '[1,0]'::vector <-> '[1,2]' AS d", postgres_url
        )

    assert asyncio.run(main())[0]["d"] == 2.0
