"""What only PostgreSQL has: a server that may be away, a pool, migrations, foreign text."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any, LiteralString

import asyncpg  # type: ignore[import-untyped]
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import (
    DamagedContentError,
    RefCollisionError,
    StoreError,
    StoreUnavailableError,
)
from holdfast.store import Content, Scope
from holdfast.store.operations import contents, originals
from holdfast.store.postgres import failures, text
from holdfast.store.postgres.address import without_password
from holdfast.store.postgres.database import ConnectionPool, connect
from holdfast.store.postgres.migrate import migrate, scripts
from holdfast.store.postgres.queue import PostgresQueue
from holdfast.store.postgres.running import run
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.queue import NewJob
from holdfast.store.statements import load
from tests.store.harness import (
    HERE,
    OTHER_USER,
    OTHER_WORKSPACE,
    content,
    lines_of,
    named,
    noise,
    session,
    turn,
)
from tests.store.postgres_server import Server

PASSWORD = "correct-horse"
REFS = load("originals")


def with_database(
    url: str, work: Callable[[ConnectionPool], Awaitable[Any]], **options: Any
) -> Any:
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

    async def echo(database: ConnectionPool) -> list[str]:
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
    "url",
    [
        f"postgresql://me:{PASSWORD}/@h/x",
        f"postgresql://me:{PASSWORD}@[h",
        f"postgresql://me:{PASSWORD}@h/x?sslmode=perhaps",
    ],
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


async def _shown(database: ConnectionPool) -> str:
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
    async def many(database: ConnectionPool) -> int:
        sql = "SELECT pg_backend_pid() AS pid, pg_sleep(0.01)"
        rows = await asyncio.gather(*(database.fetch(sql) for _ in range(12)))
        return len({row[0]["pid"] for row in rows})

    assert 1 <= with_database(postgres_url, many, connections=3) <= 3


def test_a_pool_outlives_its_server(postgres_server: Server, postgres_url: str) -> None:
    async def work(database: ConnectionPool) -> None:
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

    async def work(database: ConnectionPool) -> list[int]:
        await database.transact(lambda c: c.execute("CREATE TABLE counted (n int)"))
        assert await database.transact(half_done) == 7
        return [row["n"] for row in await database.fetch("SELECT n FROM counted ORDER BY n")]

    assert with_database(postgres_url, work) == [1, 2]


def test_writers_that_lock_each_other_out_both_finish(postgres_url: str) -> None:
    async def work(database: ConnectionPool) -> list[int]:
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
    async def work(database: ConnectionPool) -> None:
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


def test_every_migration_has_a_number_of_its_own() -> None:
    """Two scripts with one number: one of them would never run."""
    folder = resources.files("holdfast.store.postgres") / "migrations"
    names = [file.name for file in folder.iterdir() if file.name.endswith(".sql")]
    assert sorted(scripts()) == list(range(1, len(names) + 1))


def test_a_store_of_a_newer_version_is_left_alone(postgres_url: str) -> None:
    async def work(database: ConnectionPool) -> None:
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

    async def work(database: ConnectionPool) -> Any:
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


# The store.


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(url, **options)
    try:
        yield store
    finally:
        await store.close()


def test_a_store_shows_no_password_and_names_the_tool_for_backups(postgres_url: str) -> None:
    async def main() -> None:
        login = postgres_url.replace("postgres@", f"postgres:{PASSWORD}@")
        async with opened(login) as store:
            assert store.url == postgres_url
            assert PASSWORD not in repr(store)
            with pytest.raises(StoreError, match="pg_dump"):
                await store.backup("/tmp/copy")

    asyncio.run(main())


@asynccontextmanager
async def mid_write(server: Server, url: str, writing: Awaitable[None]) -> AsyncIterator[Any]:
    """A write that has stored its bytes and waits for a lock before it can store its refs."""
    holder = await asyncpg.connect(url)
    try:
        await holder.execute("BEGIN; LOCK TABLE holdfast.uses")
        task = asyncio.ensure_future(writing)
        waiting = "SELECT FROM pg_locks WHERE NOT granted AND relation IS NOT NULL"
        while not await server.execute(waiting):
            assert not task.done()
        yield task
    finally:
        holder.terminate()


def test_a_server_killed_in_mid_write_leaves_nothing_half_written(
    postgres_server: Server, postgres_url: str
) -> None:
    batch = [content(noise(20_000, seed)) for seed in range(20)]

    async def main() -> None:
        async with opened(postgres_url) as store:
            await store.put(HERE, [content("before")])
            async with mid_write(postgres_server, postgres_url, store.put(HERE, batch)) as task:
                await asyncio.to_thread(postgres_server.kill)
                with pytest.raises(StoreUnavailableError):
                    await task
            postgres_server.start()
            assert [info.sha256 for info in await store.refs(HERE)] == [content("before").sha256]
            assert await _contents(store) == 1
            await store.put(HERE, batch)
            assert await _contents(store) == 21

    asyncio.run(main())


async def _contents(store: PostgresStore) -> Any:
    return (await store._database.fetch("SELECT count(*) FROM holdfast.contents"))[0][0]


def test_a_cancelled_write_leaves_nothing_and_the_store_goes_on(
    postgres_server: Server, postgres_url: str
) -> None:
    async def main() -> None:
        async with opened(postgres_url, connections=1) as store:
            putting = store.put(HERE, [content("cancelled")])
            async with mid_write(postgres_server, postgres_url, putting) as task:
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert await store.refs(HERE) == []
            assert await _contents(store) == 0
            await store.put(HERE, [content("after")])
            assert len(await store.refs(HERE)) == 1

    asyncio.run(main())


def test_a_connection_lost_while_committing_is_told_as_what_it_is(
    postgres_server: Server, postgres_url: str
) -> None:
    slow_commit = """
        CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_sleep(600); RETURN NULL; END';
        CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON holdfast.refs
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait();
    """
    committing = "FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE 'COMMIT%'"

    async def main() -> None:
        async with opened(postgres_url) as store, opened(postgres_url) as other:
            await other._database.transact(lambda c: c.execute(slow_commit))
            writing = asyncio.create_task(store.put(HERE, [content("x")]))
            while not await postgres_server.execute(f"SELECT pid {committing}"):
                pass
            await postgres_server.execute(f"SELECT pg_terminate_backend(pid) {committing}")
            with pytest.raises(StoreUnavailableError, match="commit"):
                await writing
            assert await other.refs(HERE) == []

    asyncio.run(main())


def test_content_put_while_others_remove_it_is_never_lost(postgres_url: str) -> None:
    """Users share the bytes; each removes its own ref while others put theirs."""

    async def toil(store: PostgresStore, scope: Scope) -> None:
        for round_ in range(15):
            shared = content(f"shared {round_ % 2} " * 50)
            await store.put(scope, [shared])
            stored = await store.get(scope, shared.ref_id)
            assert stored is not None
            assert stored.data == shared.data
            if round_ % 3:
                assert await store.forget(scope, [shared.ref_id]) == 1
            else:
                await store.close_session(scope)
                await store.gc(scope, grace_seconds=0.0)

    async def main() -> None:
        async with opened(postgres_url) as one, opened(postgres_url) as two:
            users = [Scope(f"user {n}", "blue", "s") for n in range(6)]
            await asyncio.gather(*(toil((one, two)[n % 2], user) for n, user in enumerate(users)))
            ((live,),) = await one._database.fetch(
                "SELECT count(DISTINCT sha256) FROM holdfast.refs WHERE NOT removed"
            )
            assert await _contents(one) == live

    asyncio.run(main())


def test_batches_in_any_order_do_not_wait_for_each_other_in_a_circle(
    postgres_server: Server, postgres_url: str
) -> None:
    low, middle, high = sorted(map(content, "abc"), key=lambda made: made.sha256)
    batches = ([low, middle, high], [high, middle, low])
    held = f"""
        BEGIN;
        INSERT INTO holdfast.contents (workspace, sha256, size, codec, data)
        VALUES ('blue', '{middle.sha256}', 1, 0, 'x');
    """

    async def main() -> None:
        # Without its watch the server lets a circle wait for ever.
        async with opened(f"{postgres_url}&deadlock_timeout=1h") as store:
            holder = await asyncpg.connect(postgres_url)
            await holder.execute(held)
            puts = [asyncio.create_task(store.put(HERE, batch)) for batch in batches]
            while len(await postgres_server.execute("SELECT FROM pg_locks WHERE NOT granted")) < 2:
                assert not any(put.done() for put in puts)
            await holder.close()
            async with asyncio.timeout(60):
                await asyncio.gather(*puts)
            assert await _contents(store) == 3

    asyncio.run(main())


def test_refs_are_listed_in_the_order_they_were_given(postgres_url: str) -> None:
    batch = [content(f"content {n}") for n in range(20)]

    async def main() -> None:
        async with opened(postgres_url) as store:
            await store.put(HERE, batch)
            listed = [info.sha256 for info in await store.refs(HERE)]
            assert listed == [made.sha256 for made in reversed(batch)]

    asyncio.run(main())


def test_of_two_who_add_the_same_turn_one_is_told_of_the_conflict(postgres_url: str) -> None:
    async def main() -> None:
        async with opened(postgres_url) as one, opened(postgres_url) as two:
            for number in range(1, 9):
                calls = (
                    store.add_turn(HERE, turn(number), session(turns=number), named())
                    for store in (one, two)
                )
                outcomes = await asyncio.gather(*calls, return_exceptions=True)
                assert sorted(type(outcome).__name__ for outcome in outcomes) == [
                    "NoneType",
                    "StoreConflictError",
                ]
            assert [kept.number for kept in await one.turns(HERE)] == list(range(1, 9))

    asyncio.run(main())


def test_a_ref_that_two_contents_claim_at_once_is_given_to_one(postgres_url: str) -> None:
    one, other = content("one"), content("other")
    # No two known contents share 16 digits, so the check is given two that do.
    fake = msgspec.structs.replace(other, ref_id=one.ref_id)

    async def main() -> None:
        async with opened(postgres_url) as store:
            claim = store._database.transact

            def put(made: Content) -> Awaitable[None]:
                packed = contents.packed({made.sha256: made.data})
                return claim(lambda c: run(c, originals.store(HERE, [made], packed, 1.0)))

            puts = (put(one), put(fake))
            outcomes = await asyncio.gather(*puts, return_exceptions=True)
            assert sum(isinstance(outcome, RefCollisionError) for outcome in outcomes) == 1
            assert (await store.stats(HERE)).contents == 1

    asyncio.run(main())


def test_what_two_restore_at_the_same_time_is_new_once(postgres_url: str) -> None:
    there = HERE.of("s2")

    async def main() -> None:
        async with opened(postgres_url) as one, opened(postgres_url) as two:
            await one.put(HERE, [content(f"content {n}") for n in range(10)])
            await one.add_turn(HERE, turn(1), session(), named())
            await one.put(there, [content("content 1"), content("more")])
            lines = [line async for line in one.export(HERE)]
            for user in ("bob", "cid", "dan"):
                scope = Scope(user, "red")
                new = await asyncio.gather(
                    *(store.restore(scope, lines_of(lines)) for store in (one, two))
                )
                assert sum(new) == len(lines) - 1  # the first line is the header
                assert len([line async for line in two.export(scope)]) == len(lines)

    asyncio.run(main())


def test_a_store_goes_on_when_a_newer_version_changes_the_tables(postgres_url: str) -> None:
    kept = content("kept")

    async def use(store: PostgresStore) -> None:
        await store.put(HERE, [kept, content("passing")])
        assert await store.forget(HERE, [content("passing").ref_id]) == 1
        assert (await store.get(HERE, kept.ref_id)) is not None
        assert [info.sha256 for info in await store.refs(HERE)] == [kept.sha256]

    async def main() -> None:
        async with opened(postgres_url, connections=1) as store, opened(postgres_url) as newer:
            await use(store)
            sql = "ALTER TABLE holdfast.refs ADD COLUMN later text"
            await newer._database.transact(lambda c: c.execute(sql))
            await use(store)

    asyncio.run(main())


@pytest.mark.parametrize("sql", [REFS.find.postgres[0].sql, REFS.open.postgres[0].sql])
def test_look_ups_read_an_index_however_many_refs_there_are(
    sql: LiteralString, postgres_url: str
) -> None:
    many = """
        INSERT INTO holdfast.refs (workspace, username, sha256, kind, ref_id, size, tokens,
            summary, compressed, meta, flags, created_at, written_at)
        SELECT 'blue', 'ann', encode(sha256(n::text::bytea), 'hex'), 'log', 'ref:log:' || n,
            1, 1, '', '', '{}', '[]', n, n
        FROM generate_series(1, 5000) AS n;
        INSERT INTO holdfast.contents (workspace, sha256, size, codec, data)
        SELECT workspace, sha256, 1, 0, 'x' FROM holdfast.refs;
        ANALYZE holdfast.refs, holdfast.contents;
    """

    async def main() -> str:
        async with opened(postgres_url) as store:
            await store._database.transact(lambda c: c.execute(many))
            low, high = "ab" * 8, "ab" * 8 + "f" * 48
            plan = await store._database.fetch(f"EXPLAIN {sql}", "blue", "ann", low, high, "log")
            return "\n".join(row[0] for row in plan)

    plan = asyncio.run(main())
    assert "Index Scan" in plan
    assert "Seq Scan" not in plan


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (asyncpg.DiskFullError("content"), "full"),
        (asyncpg.OutOfMemoryError("content"), "resource"),
        (asyncpg.ReadOnlySQLTransactionError("content"), "read-only"),
        (asyncpg.DeadlockDetectedError("content"), "writers"),
        (asyncpg.QueryCanceledError("content"), "stopped"),
        (asyncpg.PostgresIOError("content"), "files"),
        (asyncpg.ConnectionDoesNotExistError("content"), "reached"),
        (TimeoutError("content"), "reached"),
        (OSError("content"), "reached"),
    ],
)
def test_what_may_pass_is_unavailable_and_says_what_to_do(error: Exception, word: str) -> None:
    told = failures.explain(error, "postgresql://db/x")
    assert isinstance(told, StoreUnavailableError)
    assert word in told.what
    assert told.fix
    assert "content" not in str(told)


def test_a_login_without_connections_left_is_unavailable(
    postgres_server: Server,
) -> None:
    asyncio.run(postgres_server.execute("CREATE ROLE busy LOGIN CONNECTION LIMIT 0"))
    try:
        error = refused(postgres_server.url(user="busy"))
        assert isinstance(error, StoreUnavailableError)
        assert "connection left" in error.what
    finally:
        asyncio.run(postgres_server.execute("DROP ROLE busy"))


def test_a_worker_of_another_process_is_woken_and_after_a_crash_of_the_server_again(
    postgres_server: Server, postgres_url: str
) -> None:
    async def woken(here: PostgresStore, there: PostgresStore, key: str) -> None:
        assert isinstance(here.jobs, PostgresQueue)
        while not here.jobs._listening.is_open:
            await here.jobs.wait(0.0)
        waiting = asyncio.create_task(here.jobs.wait(600.0))
        await there.jobs.enqueue(Scope(), [NewJob(kind="x", key=key)])
        await asyncio.wait_for(waiting, 30.0)

    async def work() -> None:
        here, there = [await PostgresStore.open(postgres_url) for _ in range(2)]
        await woken(here, there, "first")
        postgres_server.kill()
        postgres_server.start()
        await asyncio.wait_for(here.jobs.wait(600.0), 30.0)  # the end of the connection is heard
        await woken(here, there, "second")
        await here.close()
        await there.close()

    asyncio.run(work())


def test_damage_is_noted_for_whoever_met_it_and_in_its_workspace_only(postgres_url: str) -> None:
    async def main() -> None:
        kept = content("kept")
        async with opened(postgres_url) as store:
            for scope in (HERE, OTHER_USER, OTHER_WORKSPACE):
                await store.put(scope, [kept])
            other = await asyncpg.connect(postgres_url)
            await other.execute("UPDATE holdfast.contents SET data = $1", b"\x00")
            await other.close()
            with pytest.raises(DamagedContentError):
                await store.get(HERE, kept.ref_id)
            noted = [
                [entry.action for entry in await store.audit(scope, limit=9)].count("damaged")
                for scope in (HERE, OTHER_USER, OTHER_WORKSPACE)
            ]
            assert noted == [1, 0, 0]
            elsewhere = await store.info(OTHER_WORKSPACE, kept.ref_id)
            assert elsewhere is not None
            assert elsewhere.state == "fresh"

    asyncio.run(main())


@pytest.mark.parametrize(("connections", "on_requests"), [(1, 1), (3, 3), (5, 5), (12, 5)])
def test_requests_have_no_more_connections_than_were_allowed(
    postgres_url: str, connections: int, on_requests: int
) -> None:
    async def sizes(database: ConnectionPool) -> tuple[int, int]:
        return database._pool.get_max_size(), database._request_pool.get_max_size()

    limits = with_database(postgres_url, sizes, connections=connections)
    assert limits == (connections, on_requests)
