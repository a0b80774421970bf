"""A file opened by many at once, before it is there and while it is in use.

Once by hand, with the other process coming in before each single statement; and once for real. The
real processes live through all rounds and start each one at a barrier: processes started anew for
every file come one after the other, and rarely meet.
"""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.synchronize import Barrier
from pathlib import Path

import apsw
import pytest

from holdfast.store import open_store
from holdfast.store.sqlite.driver import connect, migrate, prepare
from tests.store.harness import HERE, content

PROCESSES = 8
STORES = 2
"""Stores that each process opens at once."""


@contextmanager
def another_process_before_statement(place: int, path: Path) -> Iterator[list[int]]:
    """Let a second opening run as far as it may, right before one statement of the first."""
    run: list[int] = []

    def before_each(_cursor: object, _sql: str, _bindings: object) -> bool:
        run.append(len(run))
        if len(run) - 1 == place:
            apsw.connection_hooks.remove(watch)
            try:
                # A second opener would wait for the lock; here the first must continue meanwhile.
                with suppress(apsw.BusyError):
                    migrate(path, busy_seconds=0.0)
            finally:
                apsw.connection_hooks.append(watch)
        return True

    def watch(connection: apsw.Connection) -> None:
        connection.exec_trace = before_each

    apsw.connection_hooks.append(watch)
    try:
        yield run
    finally:
        apsw.connection_hooks.remove(watch)


def test_another_process_may_make_the_file_before_any_statement_of_an_opening(
    tmp_path: Path,
) -> None:
    for place in itertools.count():
        path = tmp_path / f"{place}.db"
        path.touch()
        with another_process_before_statement(place, path) as run:
            migrate(path, busy_seconds=1.0)
        migrate(path, busy_seconds=0.0)  # whole, and not locked
        if place >= len(run):
            assert place > 1, "there were statements to come before"
            return


def write_at_once(path: Path) -> None:
    """Exit with an error if another process writes."""
    db = apsw.Connection(str(path))
    try:
        db.execute("BEGIN IMMEDIATE")
    finally:
        db.close()


def test_preparing_a_file_in_use_leaves_its_users_their_locks(tmp_path: Path) -> None:
    """A process that closes any descriptor of a file loses all the locks that it has on it."""
    path = tmp_path / "holdfast.db"
    prepare(path)
    user = connect(path, busy_seconds=1.0)
    user.execute("BEGIN EXCLUSIVE")
    prepare(path)
    other = multiprocessing.get_context("spawn").Process(target=write_at_once, args=(path,))
    other.start()
    other.join()
    user.close()
    assert other.exitcode == 1


def file_of_round(folder: Path, number: int) -> Path:
    return folder / f"{number}" / "holdfast.db"


def open_each_round(folder: Path, rounds: int, process: int, barrier: Barrier) -> None:
    async def open_and_put(path: Path, store_number: int) -> None:
        store = await open_store(f"sqlite:///{path}")
        await store.put(HERE, [content(f"of process {process}, store {store_number}")])
        await store.close()

    async def play(path: Path) -> None:
        await asyncio.gather(*(open_and_put(path, number) for number in range(STORES)))

    try:
        for number in range(rounds):
            barrier.wait()
            asyncio.run(play(file_of_round(folder, number)))
    except BaseException:
        barrier.abort()  # the others would wait for this one for ever
        raise


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [12, pytest.param(500, marks=pytest.mark.campaign)])
def test_many_may_open_a_fresh_file_at_once(tmp_path: Path, rounds: int) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["holdfast.store.sqlite", "tests.store.harness"])
    barrier = context.Barrier(PROCESSES)
    processes = [
        context.Process(target=open_each_round, args=(tmp_path, rounds, number, barrier))
        for number in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    for number in range(rounds):
        db = apsw.Connection(str(file_of_round(tmp_path, number)))
        assert db.execute("SELECT count(*) FROM refs").get == PROCESSES * STORES
        # Two migrations, one over the other, would lose what keeps the file small.
        assert db.execute("PRAGMA auto_vacuum").get == 2
        assert db.execute("PRAGMA journal_mode").get == "wal"
        db.close()
