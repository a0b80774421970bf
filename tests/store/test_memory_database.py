"""The store in memory, where it differs from a file: no disk, no threads."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from pathlib import Path

import apsw
import pytest

from holdfast.errors import StoreError, StoreUnavailableError
from holdfast.store import open_store
from holdfast.store.opening import open_memory
from holdfast.store.sqlite import SqliteStore
from tests.store.everything import fill
from tests.store.harness import (
    HERE,
    OTHER_USER,
    Clock,
    content,
    exported,
    named,
    noise,
    session,
    turn,
)

SECRET = noise(3_000)  # which is not compressed: its bytes would be in a file as they are


def test_stores_are_independent_and_their_keys_differ() -> None:
    async def main() -> None:
        one, other = open_memory(), await open_store("memory:")
        await one.put(HERE, [content("a")])
        assert await other.refs(HERE) == []
        assert await one.secret() == await one.secret() != await other.secret()
        assert one.url == other.url == "memory:"
        await one.close()
        await other.put(HERE, [content("b")])
        assert len(await other.refs(HERE)) == 1

    asyncio.run(main())


def test_a_closed_store_refuses_and_may_be_closed_again() -> None:
    async def main() -> None:
        store = open_memory()
        await store.close()
        await store.close()
        for call in (store.put(HERE, [content("a")]), store.session(HERE), store.refs(HERE)):
            with pytest.raises(StoreUnavailableError, match="closed"):
                await call

    asyncio.run(main())


def test_no_call_waits_for_another_thread() -> None:
    """A small call costs only its SQL: it must wake neither a thread nor the event loop."""

    async def main() -> None:
        store, threads = open_memory(), threading.active_count()
        calls = [
            lambda: store.put(HERE, [content("a")]),
            lambda: store.get(HERE, content("a").ref_id),
            lambda: store.info(HERE, content("a").ref_id),
            lambda: store.add_turn(HERE, turn(1, [b"m"]), session(), named(b"m")),
            lambda: store.session(HERE),
            lambda: store.turns(HERE),
            store.close,
        ]
        for call in calls:
            with pytest.raises(StopIteration):
                call().send(None)  # it ends without having waited once
        assert threading.active_count() == threads

    asyncio.run(main())


def test_event_loops_of_several_threads_share_a_store() -> None:
    store = open_memory()
    failures: list[BaseException] = []

    async def work(number: int) -> None:
        scope = HERE.of(f"s{number}")
        for turn_number in range(1, 40):
            said = f"{number} {turn_number}".encode()
            record = session(scope.session, updated_at=float(turn_number))
            await store.add_turn(scope, turn(turn_number, [said]), record, named(said))
            await store.put(scope, [content(said)])
            assert (await store.get(scope, content(said).ref_id)) is not None

    def run(number: int) -> None:
        try:
            asyncio.run(work(number))
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    stats = asyncio.run(store.stats(HERE))
    assert (stats.turns, stats.refs) == (4 * 39, 4 * 39)


def test_a_job_that_fails_changes_nothing_and_harms_no_later_one() -> None:
    async def main() -> None:
        store = SqliteStore.in_memory()

        def fails(db: apsw.Connection) -> None:
            db.execute("UPDATE removals SET number = 77")
            next(iter(()))

        with pytest.raises(RuntimeError, match="StopIteration"):
            await store._write(fails)
        with pytest.raises(StoreError):
            await store._write(lambda db: db.execute("SELECT * FROM nowhere").get)
        assert await store.removals() == 0
        await store.put(HERE, [content("a")])

    asyncio.run(main())


def test_a_backup_opens_as_a_store_of_its_own_without_what_was_erased(tmp_path: Path) -> None:
    path, clock = tmp_path / "copy.db", Clock()

    async def main() -> None:
        store = open_memory(clock=clock)
        await fill(store, HERE, lambda place: f"{place}!")
        await store.put(OTHER_USER, [content(SECRET)])
        await store.erase(OTHER_USER)
        await store.backup(str(path))
        with pytest.raises(StoreError, match="there is a file of that name"):
            await store.backup(str(path))
        copy = await open_store(f"sqlite:///{path}", clock=clock)
        try:
            assert await exported(copy, HERE) == await exported(store, HERE)
            await copy.put(HERE, [content("later")])
            assert await store.info(HERE, content("later").ref_id) is None
        finally:
            await copy.close()

    asyncio.run(main())
    assert [file.name for file in tmp_path.iterdir() if file.name != path.name] == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert SECRET[:64] not in path.read_bytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_a_copy() -> None:
    store = open_memory()
    asyncio.run(store.put(HERE, [content("a")]))
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            asyncio.run(store.put(HERE, [content("b")]))
            status = 0 if len(asyncio.run(store.refs(HERE))) == 2 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert len(asyncio.run(store.refs(HERE))) == 1
