"""A SQLite file that is replaced, deleted, moved or truncated while a store is open on it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast.errors import StoreUnavailableError
from holdfast.store import Scope
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite import file as store_file
from tests.store.harness import content

HERE = Scope("ann", "here")
ROOT = Path(__file__).parents[2]
GONE = "deleted, moved or replaced"


def run(path: Path, work: Callable[[SqliteStore], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        store = await SqliteStore.open(path)
        try:
            await work(store)
        finally:
            await store.close()

    asyncio.run(main())


async def read_anew(path: Path) -> bytes | None:
    """Read with separate connections."""
    store = await SqliteStore.open(path)
    try:
        return await store.calibration(HERE)
    finally:
        await store.close()


def beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]


def test_a_backup_in_the_stores_place_is_used_at_once_and_its_old_log_is_not(
    tmp_path: Path,
) -> None:
    path, backup = tmp_path / "store.db", tmp_path / "backup.db"

    async def work(store: SqliteStore) -> None:
        await store.save_calibration(HERE, b"of the backup")
        await store.backup(str(backup))
        await store.save_calibration(HERE, b"later, in the log of the file that was replaced")
        backup.rename(path)
        assert await store.calibration(HERE) == b"of the backup"
        await store.save_calibration(HERE, b"after")
        assert await read_anew(path) == b"after"
        await store.check()

    run(path, work)
    assert asyncio.run(read_anew(path)) == b"after"


def test_a_file_that_was_moved_away_has_all_that_was_acknowledged(tmp_path: Path) -> None:
    path, away, other = tmp_path / "store.db", tmp_path / "away.db", tmp_path / "other.db"

    async def work(store: SqliteStore) -> None:
        await store.save_calibration(HERE, b"acknowledged")
        await store.backup(str(other))
        path.rename(away)
        other.rename(path)
        await store.save_calibration(HERE, b"of the other")
        assert await read_anew(away) == b"acknowledged"

    run(path, work)


def test_every_connection_moves_to_the_new_file(tmp_path: Path) -> None:
    path, backup = tmp_path / "store.db", tmp_path / "backup.db"
    put = content("only in the backup")

    async def work(store: SqliteStore) -> None:
        await asyncio.gather(*(store.stats(HERE) for _ in range(8)))  # all readers are open
        shutil.copy(path, backup)
        await store.put(HERE, [put])
        await store.backup(str(tmp_path / "full.db"))
        (tmp_path / "full.db").rename(path)
        for _ in range(8):
            stats = await asyncio.gather(*(store.stats(HERE) for _ in range(8)))
            assert {each.refs for each in stats} == {1}
        assert await store.session(HERE.of("none")) is None

    run(path, work)


def test_a_deleted_file_is_made_anew_once_it_stays_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"

    async def work(store: SqliteStore) -> None:
        await store.save_calibration(HERE, b"before")
        for file in beside(path):
            file.unlink()
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match=GONE):
                await store.calibration(HERE)
        assert not path.exists()
        monkeypatch.setattr(store_file, "ABSENT_SECONDS", 0.0)
        assert await store.calibration(HERE) is None
        await store.save_calibration(HERE, b"after")
        assert await read_anew(path) == b"after"

    run(path, work)


def test_a_file_that_comes_back_in_time_is_used_as_before(tmp_path: Path) -> None:
    path, away = tmp_path / "store.db", tmp_path / "away.db"

    async def work(store: SqliteStore) -> None:
        await store.save_calibration(HERE, b"before")
        path.rename(away)
        with pytest.raises(StoreUnavailableError, match=GONE):
            await store.save_calibration(HERE, b"meanwhile")
        away.rename(path)
        assert await store.calibration(HERE) == b"before"
        await store.save_calibration(HERE, b"after")
        assert await read_anew(path) == b"after"

    run(path, work)


@pytest.mark.parametrize("size", [0, 100, 4096, 8192])
def test_a_truncated_file_takes_nothing_more_and_is_unavailable_until_it_is_replaced(
    tmp_path: Path, size: int
) -> None:
    path, good = tmp_path / "store.db", tmp_path / "good.db"

    async def work(store: SqliteStore) -> None:
        await store.save_calibration(HERE, b"before")
        checkpoint(path)
        await store.backup(str(good))
        os.truncate(path, size)
        for _ in range(3):
            with pytest.raises(StoreUnavailableError, match=r"damaged|truncated|no store"):
                await store.check()
            with pytest.raises(StoreUnavailableError):
                await store.save_calibration(HERE, b"lost")
            with pytest.raises(StoreUnavailableError):
                await store.calibration(HERE)
        good.rename(path)
        await store.check()
        assert await store.calibration(HERE) == b"before"
        await store.save_calibration(HERE, b"after")

    run(path, work)
    assert asyncio.run(read_anew(path)) == b"after"


def checkpoint(path: Path) -> None:
    """Bring everything from the log into the file."""
    db = apsw.Connection(str(path))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()


def test_a_damaged_file_is_checked_once_and_not_at_every_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, checks = tmp_path / "store.db", 0
    check = store_file.StoreFile._check_integrity

    def counted(self: store_file.StoreFile) -> None:
        nonlocal checks
        checks += 1
        check(self)

    monkeypatch.setattr(store_file.StoreFile, "_check_integrity", counted)

    async def work(store: SqliteStore) -> None:
        await store.save_calibration(HERE, b"before")
        bad = tmp_path / "bad.db"
        bad.write_bytes(b"no database at all" * 1000)
        bad.rename(path)
        for _ in range(5):
            with pytest.raises(StoreUnavailableError):
                await store.calibration(HERE)

    run(path, work)
    assert checks == 1


def test_a_vacuum_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    contents = [content(f"{n} " + os.urandom(20_000).hex()) for n in range(40)]

    async def work(store: SqliteStore) -> None:
        await store.put(HERE, contents)
        checkpoint(path)
        size = path.stat().st_size
        await store.forget(HERE, [each.ref_id for each in contents])
        await store.gc(HERE, grace_seconds=0)
        checkpoint(path)
        assert path.stat().st_size < size
        await store.save_calibration(HERE, b"after")
        assert await store.calibration(HERE) == b"after"

    run(path, work)


_OTHER = """
import asyncio, sys
from holdfast.errors import StoreUnavailableError
from holdfast.store.sqlite import SqliteStore
from tests.store.harness import content
from tests.store.test_sqlite_file import HERE

async def main():
    store = await SqliteStore.open(sys.argv[1])
    print("open", flush=True)
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        await store.put(HERE, [content(line)])
        print(line, flush=True)
    await store.close()

asyncio.run(main())
"""


def test_two_processes_that_find_their_file_replaced_lose_nothing_to_each_other(
    tmp_path: Path,
) -> None:
    path, backup = tmp_path / "store.db", tmp_path / "backup.db"
    command = [sys.executable, "-c", _OTHER, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as other:
        stdin, stdout = other.stdin, other.stdout
        assert stdin
        assert stdout

        def put_there(words: str) -> None:
            stdin.write(f"{words}\n")
            stdin.flush()
            assert stdout.readline() == f"{words}\n"

        async def work(store: SqliteStore) -> None:
            await store.save_calibration(HERE, b"before")
            assert stdout.readline() == "open\n"
            put_there("before")
            for number in range(5):
                await store.backup(str(backup))
                backup.rename(path)
                for turn in range(3):
                    if number % 2 or turn:
                        await store.put(HERE, [content(f"here {number} {turn}")])
                    put_there(f"there {number} {turn}")
                    await store.put(HERE, [content(f"here {number} {turn} again")])
            stdin.close()
            other.wait()

        run(path, work)

    async def look(store: SqliteStore) -> None:
        for number in range(5):
            for turn in range(3):
                for words in (f"there {number} {turn}", f"here {number} {turn} again"):
                    assert await store.get(HERE, content(words).ref_id), words
        assert await store.verify(HERE) == []

    run(path, look)
    db = apsw.Connection(str(path))
    assert db.execute("PRAGMA integrity_check").get == "ok"
    db.close()


def test_threads_that_find_their_file_replaced_at_the_same_time_move_on_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, backup, moves = tmp_path / "store.db", tmp_path / "backup.db", 0
    open_checked = store_file.StoreFile._open_checked

    def counted(self: store_file.StoreFile, *args: Any) -> None:
        nonlocal moves
        moves += 1
        open_checked(self, *args)

    monkeypatch.setattr(store_file.StoreFile, "_open_checked", counted)

    async def work(store: SqliteStore) -> None:
        for number in range(20):
            await store.put(HERE, [content(f"before {number}")])
            await store.backup(str(backup))
            backup.rename(path)
            reads = [store.stats(HERE) for _ in range(8)]
            looks = [store.session(HERE.of("none")) for _ in range(8)]
            writes = [store.put(HERE, [content(f"after {number} {n}")]) for n in range(8)]
            await asyncio.gather(*reads, *looks, *writes)
            assert moves == number + 1
        assert (await store.stats(HERE)).refs == 20 * 9

    run(path, work)


def test_a_write_into_a_file_that_is_moved_before_its_commit_is_not_acknowledged(
    tmp_path: Path,
) -> None:
    """SQLite commits into the moved file, where nobody will look for it."""
    path = tmp_path / "store.db"

    def move_away(db: apsw.Connection) -> None:
        db.execute("CREATE TABLE late (x)")
        path.rename(tmp_path / "away.db")

    async def work(store: SqliteStore) -> None:
        with pytest.raises(StoreUnavailableError, match=GONE):
            await store._writer.submit(move_away)

    run(path, work)


def test_connections_wait_for_a_lock_as_long_as_the_store_was_told(tmp_path: Path) -> None:
    async def main() -> None:
        store = await SqliteStore.open(tmp_path / "store.db", busy_seconds=0.25)
        try:
            for run_job in (store._write, store._readers.read):
                assert await run_job(lambda db: db.pragma("busy_timeout")) == 250
        finally:
            await store.close()

    asyncio.run(main())
