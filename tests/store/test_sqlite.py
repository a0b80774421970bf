"""What only SQLite has: a file with rights, a schema with versions, faults of a disk."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast.errors import (
    DamagedContentError,
    RefCollisionError,
    StoreError,
    StoreUnavailableError,
)
from holdfast.store import Store, open_store, transfer
from holdfast.store.opening import check_url
from holdfast.store.sqlite import SqliteStore
from tests.store.harness import (
    HERE,
    OTHER_USER,
    Opener,
    content,
    exported,
    lines_of,
    named,
    noise,
    session,
    turn,
)


def file_of(opener: Opener) -> Path:
    return Path(opener.url.removeprefix("sqlite:///"))


@contextmanager
def raw(path: Path) -> Iterator[apsw.Connection]:
    """The file as any program would open it."""
    db = apsw.Connection(str(path))
    try:
        yield db
    finally:
        db.close()


def change(path: Path, sql: str, *values: Any) -> None:
    with raw(path) as db:
        db.execute(sql, values)


async def filled(store: Store) -> None:
    await store.put(HERE, [content("hello"), content("x" * 5000)])


# Rights.


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_folder_and_files_are_for_their_owner_alone_whatever_the_umask(
    sqlite: Opener, umask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(sqlite)
    monkeypatch.delattr(Path, "chmod")  # private from birth, not made so a moment later

    async def work(store: Store) -> set[int]:
        await filled(store)
        await store.backup(str(path.parent / "copy.db"))
        return {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}

    before = os.umask(umask)
    try:
        modes = sqlite.run(work)
        assert len(list(path.parent.iterdir())) >= 2
    finally:
        os.umask(before)
    assert modes == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_file_that_others_could_read_is_closed_to_them(sqlite: Opener) -> None:
    sqlite.run(filled)
    file_of(sqlite).chmod(0o644)
    sqlite.run(filled)
    assert stat.S_IMODE(file_of(sqlite).stat().st_mode) == 0o600


# Opening.


def test_what_is_stored_is_there_when_opened_again(sqlite: Opener) -> None:
    sqlite.run(filled)

    async def work(store: Store) -> None:
        opened = await store.get(HERE, content("hello").ref_id)
        assert opened is not None
        assert opened.data == b"hello"

    sqlite.run(work)


def test_every_form_of_url_opens_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Opener("sqlite:///here.db").run(filled)

    async def work() -> list[str]:
        urls = ["sqlite:here.db", f"sqlite:///{tmp_path}/here.db", f"SQLITE:{tmp_path}/here.db"]
        found = []
        for url in urls:
            store = await open_store(url)
            assert await store.get(HERE, content("hello").ref_id)
            found.append(store.url)
            await store.close()
        store = await open_store(None, folder=tmp_path / "data")
        await store.close()
        return found

    assert set(asyncio.run(work())) == {f"sqlite:///{tmp_path}/here.db"}
    assert (tmp_path / "data" / "holdfast.db").exists()


@pytest.mark.parametrize(
    "url", ["", "mysql://me:pa55@host/x", "sqlite:", "sqlite://host/x", "/tmp/x.db", "memory:x"]
)
def test_url_that_names_no_store_is_refused_without_its_password(url: str) -> None:
    for refuse in (lambda: asyncio.run(open_store(url)), lambda: check_url(url)):
        with pytest.raises(StoreError) as raised:
            refuse()
        assert raised.value.fix
        assert "pa55" not in str(raised.value)


@pytest.mark.parametrize("url", ["memory:", "MEMORY://", "sqlite:x.db", "postgresql://host/x"])
def test_url_that_names_a_store_is_accepted_before_it_is_opened(url: str) -> None:
    assert check_url(url) is None  # type: ignore[func-returns-value]


def test_missing_driver_names_the_extra() -> None:
    # In a separate process: modules that fail to import would stay half initialised for other
    # tests.
    code = (
        "import asyncio, sys; sys.modules['asyncpg'] = None; from holdfast.store import open_store;"
        "asyncio.run(open_store('postgresql://me:pa55@host/x'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    raised = done.stderr.splitlines()[-1]
    assert raised.startswith("holdfast.errors.StoreError")
    assert "holdfast[postgres]" in raised
    assert "pa55" not in raised


def test_newer_store_is_refused_and_left_alone(sqlite: Opener) -> None:
    sqlite.run(filled)
    change(file_of(sqlite), "PRAGMA user_version = 999")
    with pytest.raises(StoreError, match="newer") as raised:
        sqlite.run(filled)
    assert "Update Holdfast" in raised.value.fix
    with raw(file_of(sqlite)) as db:
        assert db.execute("PRAGMA user_version").get == 999


def test_database_of_another_program_is_refused_and_left_alone(sqlite: Opener) -> None:
    file_of(sqlite).parent.mkdir()
    change(file_of(sqlite), "CREATE TABLE theirs (x)")
    before = file_of(sqlite).read_bytes()
    with pytest.raises(StoreError, match="another program"):
        sqlite.run(filled)
    assert file_of(sqlite).read_bytes() == before


def test_file_that_is_no_database_is_refused_and_left_alone(sqlite: Opener) -> None:
    file_of(sqlite).parent.mkdir()
    file_of(sqlite).write_bytes(b"my diary, not a database " * 100)
    with pytest.raises(StoreError, match="no store") as raised:
        sqlite.run(filled)
    assert raised.value.fix
    assert file_of(sqlite).read_bytes().startswith(b"my diary")


def test_folder_in_the_place_of_the_file_is_a_typed_error(sqlite: Opener) -> None:
    file_of(sqlite).mkdir(parents=True)
    with pytest.raises(StoreUnavailableError):
        sqlite.run(filled)


@pytest.mark.parametrize("kept", [0.02, 0.3, 0.6, 0.9])
def test_truncated_file_gives_typed_errors_and_no_wrong_content(
    sqlite: Opener, kept: float
) -> None:
    made = [content(noise(20_000, n)) for n in range(30)]

    async def fill(store: Store) -> None:
        await store.put(HERE, made)

    sqlite.run(fill)
    data = file_of(sqlite).read_bytes()
    file_of(sqlite).write_bytes(data[: int(len(data) * kept)])
    failures: list[StoreError] = []

    async def read(store: Store) -> None:
        for one in made:
            try:
                opened = await store.get(HERE, one.ref_id)
            except StoreError as error:
                failures.append(error)
            else:
                assert opened is None or opened.data == one.data

    try:
        sqlite.run(read)
    except StoreError as error:
        failures.append(error)
    assert failures
    assert all(error.fix for error in failures)


# Damage.


def damage(opener: Opener, one: str, sql: str = "") -> None:
    sql = sql or "UPDATE contents SET data = zeroblob(length(data)) WHERE sha256 = ?"
    change(file_of(opener), sql, content(one).sha256)


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "UPDATE contents SET data = x'' WHERE sha256 = ?",
        "UPDATE contents SET codec = 1 - codec WHERE sha256 = ?",
        "UPDATE contents SET codec = 77 WHERE sha256 = ?",
        "UPDATE contents SET size = size + 1, data = x'00' || data WHERE sha256 = ?",
        "UPDATE contents SET data = 'text' WHERE sha256 = ?",
    ],
)
@pytest.mark.parametrize("text", ["short", "long " * 2000])
def test_damaged_content_is_set_apart_never_served_and_healed_by_storing_it_again(
    sqlite: Opener, sql: str, text: str
) -> None:
    made = content(text)

    async def fill(store: Store) -> None:
        await store.put(HERE, [made, content("sound")])

    async def look(store: Store) -> None:
        for _ in range(2):
            with pytest.raises(DamagedContentError) as raised:
                await store.get(HERE, made.ref_id)
            assert raised.value.where == made.ref_id
        info = await store.info(HERE, made.ref_id)
        assert info is not None
        assert info.state == "damaged"
        assert [(d.sha256, d.refs) for d in await store.verify(HERE)] == [
            (made.sha256, (made.ref_id,))
        ]
        assert (await store.stats(HERE)).damaged == 1
        assert (await store.audit(HERE))[0].action == "damaged"
        assert await store.get(HERE, content("sound").ref_id)
        lines = await exported(store, HERE)
        await store.put(OTHER_USER, [made])
        opened = await store.get(HERE, made.ref_id)
        assert opened is not None
        assert opened.data == made.data
        assert await store.verify(HERE) == []
        twin = await open_store("memory:")
        await twin.restore(HERE, lines_of(lines))
        lost = await twin.info(HERE, made.ref_id)
        assert lost is not None
        assert lost.state == "removed"

    sqlite.run(fill)
    damage(sqlite, text, sql)
    sqlite.run(look)


def test_damaged_message_is_never_served(sqlite: Opener) -> None:
    async def fill(store: Store) -> None:
        await store.add_turn(HERE, turn(1, [b"m"]), session(), named(b"m"))

    async def look(store: Store) -> None:
        with pytest.raises(DamagedContentError):
            await store.messages(HERE, list(named(b"m")))
        assert [d.refs for d in await store.verify(HERE)] == [()]
        await store.add_turn(HERE, turn(2, [b"m"]), session(), named(b"m"))
        assert await store.messages(HERE, list(named(b"m"))) == named(b"m")

    sqlite.run(fill)
    damage(sqlite, "m")
    sqlite.run(look)


# Names.


def test_second_content_of_a_name_is_refused_whole_and_digits_that_fit_two_are_not_guessed(
    sqlite: Opener,
) -> None:
    sqlite.run(filled)
    new = content("new")
    forged = new.sha256[:16] + "0" * 48
    for table in ("contents", "refs"):
        change(file_of(sqlite), f"UPDATE {table} SET sha256 = ? WHERE id = 1", forged)
    change(file_of(sqlite), "UPDATE refs SET ref_id = ? WHERE id = 1", new.ref_id)

    async def work(store: Store) -> None:
        with pytest.raises(RefCollisionError):
            await store.put(HERE, [content("beside"), new])
        assert await store.info(HERE, content("beside").ref_id) is None
        longer = content("new", ref_id=f"ref:log:{new.sha256[:20]}")
        await store.put(HERE, [longer])
        for name in (longer.ref_id, new.sha256):
            opened = await store.get(HERE, name)
            assert opened is not None
            assert opened.data == b"new"
        info = await store.info(HERE, new.ref_id)
        assert info is not None
        assert info.sha256 == forged
        with pytest.raises(RefCollisionError):
            await store.get(HERE, f"content_{new.sha256[:16]}")

    sqlite.run(work)


def test_look_ups_use_an_index(sqlite: Opener) -> None:
    """Observed from inside: SQLite's counters of steps would show a table scan."""
    sqlite.run(filled)
    ref = content("hello").ref_id
    slow: list[str] = []

    def watch(db: apsw.Connection) -> None:
        def seen(_: apsw.Cursor, sql: str, values: Any) -> bool:
            if sql.startswith("SELECT"):
                with raw(file_of(sqlite)) as beside:
                    plan = [
                        str(row[3]) for row in beside.execute(f"EXPLAIN QUERY PLAN {sql}", values)
                    ]
                # `h` are the hashes that were asked for.
                slow.extend(
                    f"{step}: {sql}" for step in plan if step[:5] == "SCAN " and step[5:7] != "h "
                )
                slow.extend(f"{step}: {sql}" for step in plan if "TEMP B-TREE" in step)
            return True

        db.exec_trace = seen

    async def work(store: Store) -> None:
        assert isinstance(store, SqliteStore)
        await store._readers.read(watch)
        for scope in (HERE, HERE.of("")):
            await store.get(scope, ref)
            await store.get(scope, content("hello").sha256)
            await store.refs(scope, before=ref)
            await store.refs(scope, kind="log", before=ref)
            await store.turns(scope)
            await store.sessions(scope)
            await store.audit(scope)
            await store.messages(scope, ["a", "b"])
        await store._readers.read(
            lambda db: db.execute("SELECT * FROM audit ORDER BY entry").fetchall()
        )

    sqlite.run(work)
    assert [step.partition(":")[0] for step in slow] == [
        "SCAN audit",
        "USE TEMP B-TREE FOR ORDER BY",
    ]


# Faults.


def test_full_disk_is_a_typed_error_and_nothing_is_half_written(sqlite: Opener) -> None:
    made = [content(noise(30_000, n)) for n in range(200)]
    acknowledged = []

    async def fill(store: Store) -> None:
        assert isinstance(store, SqliteStore)
        await store.put(HERE, [content("before")])
        await store._write(lambda db: db.execute("PRAGMA max_page_count = 300").get)
        outcomes = await asyncio.gather(
            *(store.put(HERE, made[n : n + 2]) for n in range(0, 200, 2)), return_exceptions=True
        )
        for n, outcome in enumerate(outcomes):
            if outcome is None:
                acknowledged.extend(made[2 * n : 2 * n + 2])
            else:
                assert isinstance(outcome, StoreUnavailableError)
                assert "gc" in outcome.fix
        assert 0 < len(acknowledged) < 200
        assert await store.get(HERE, content("before").ref_id)  # reading continues

    async def look(store: Store) -> None:
        kept = {info.ref_id for info in await store.refs(HERE, limit=999)}
        assert kept == {one.ref_id for one in [*acknowledged, content("before")]}
        assert await store.verify(HERE) == []
        await store.put(HERE, made)  # there is room again
        assert (await store.stats(HERE)).refs == 201

    sqlite.run(fill)
    sqlite.run(look)


def test_file_locked_by_another_is_a_typed_error_and_usable_once_it_is_free(
    sqlite: Opener,
) -> None:
    sqlite.run(filled)

    async def work() -> None:
        store = await SqliteStore.open(file_of(sqlite), busy_seconds=0.05)
        with raw(file_of(sqlite)) as other:
            other.execute("BEGIN EXCLUSIVE")
            late = [store.put(HERE, [content(f"late {n}")]) for n in range(50)]
            outcomes = await asyncio.gather(*late, return_exceptions=True)
            for outcome in outcomes:
                assert isinstance(outcome, StoreUnavailableError)
                assert "locked" in outcome.what
            assert await store.get(HERE, content("hello").ref_id)  # readers do not wait
            other.execute("ROLLBACK")
        await store.put(HERE, [content("late")])
        assert await store.get(HERE, content("late").ref_id)
        await store.close()

    asyncio.run(work())


def test_file_locked_while_it_is_opened_is_a_typed_error(sqlite: Opener) -> None:
    sqlite.run(filled)
    change(file_of(sqlite), "PRAGMA journal_mode = DELETE")
    with raw(file_of(sqlite)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreUnavailableError, match="locked"):
            asyncio.run(SqliteStore.open(file_of(sqlite), busy_seconds=0.05))


AS_NOBODY = """
import asyncio, os, sys
import holdfast.store.sqlite
from holdfast.errors import StoreUnavailableError
from holdfast.store import Scope, open_store
from tests.store.harness import content

if os.geteuid() == 0:  # whom no rights of a file stop
    os.setegid(65534)
    os.seteuid(65534)

async def main():
    store = await open_store("sqlite:///" + sys.argv[1])
    await store.put(Scope(), [content("x")])

try:
    asyncio.run(main())
except StoreUnavailableError as error:
    print(error.fix)
"""


@pytest.mark.parametrize("with_file", [False, True])
def test_read_only_folder_is_a_typed_error(sqlite: Opener, with_file: bool) -> None:
    root = Path(__file__).parents[2]
    folder = Path(tempfile.mkdtemp(prefix="holdfast-read-only-", dir="/tmp"))
    try:
        if with_file:
            sqlite.run(filled)
            shutil.copy(file_of(sqlite), folder / "holdfast.db")
            (folder / "holdfast.db").chmod(0o444)
        folder.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, str(folder / "holdfast.db")],
            capture_output=True,
            text=True,
            cwd=root,
            check=False,
        )
        assert "write" in done.stdout, done.stderr
        assert [file.name for file in folder.iterdir()] == ["holdfast.db"] * with_file
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


@pytest.mark.parametrize("tokens", [2**63, -(2**70)])
def test_number_that_no_database_holds_is_a_typed_error(sqlite: Opener, tokens: int) -> None:
    async def work(store: Store) -> None:
        with pytest.raises(StoreError, match="number"):
            await store.put(HERE, [content("a"), content("x", tokens=tokens)])
        with pytest.raises(StoreError, match="lacks"):
            await store.add_turn(HERE, turn(1, started_at=float("nan")), session(), {})
        with pytest.raises(StoreError, match="character"):
            await store.put(HERE.of("\ud800"), [content("a")])
        assert await exported(store, HERE) == [transfer.encode(transfer.Header())]

    sqlite.run(work)


def test_cancelled_write_happens_whole_or_not_at_all(sqlite: Opener) -> None:
    made = [[content(f"{n} {part}" * 300) for part in range(5)] for n in range(40)]

    async def work(store: Store) -> None:
        tasks = [asyncio.create_task(store.put(HERE, contents)) for contents in made]
        for number, task in enumerate(tasks):
            await asyncio.sleep(0)
            if number % 2:
                task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        await store.put(HERE, [content("last")])
        for contents, outcome in zip(made, outcomes, strict=True):
            found = [await store.get(HERE, c.ref_id) is not None for c in contents]
            assert len(set(found)) == 1
            assert found[0] or isinstance(outcome, asyncio.CancelledError)

    sqlite.run(work)


def test_event_loop_runs_on_while_the_store_waits_for_a_lock(sqlite: Opener) -> None:
    sqlite.run(filled)

    async def work() -> None:
        store = await SqliteStore.open(file_of(sqlite))
        with raw(file_of(sqlite)) as other:
            other.execute("BEGIN EXCLUSIVE")
            waiting = asyncio.create_task(store.put(HERE, [content("late")]))
            for _ in range(20):  # each needs the loop and a thread, none the writer
                assert await store.get(HERE, content("hello").ref_id)
            assert not waiting.done()
            other.execute("ROLLBACK")
        await waiting
        await store.close()

    asyncio.run(work())


# Backup.


def test_backup_taken_while_others_write_is_one_whole_state(sqlite: Opener) -> None:
    copy = file_of(sqlite).parent / "copy.db"

    async def work(store: Store) -> int:
        await store.put(HERE, [content(noise(3000, n)) for n in range(100)])
        writing = [store.put(HERE, [content(noise(3000, n))]) for n in range(100, 160)]
        await asyncio.gather(store.backup(str(copy)), *writing)
        with pytest.raises(StoreError, match="of that name"):
            await store.backup(str(copy))
        return (await store.stats(HERE)).refs

    assert sqlite.run(work) == 160

    async def look(store: Store) -> None:
        assert await store.verify(HERE) == []
        assert 100 <= (await store.stats(HERE)).refs <= 160

    Opener(f"sqlite:///{copy}").run(look)


def test_backup_that_fails_leaves_no_file(sqlite: Opener) -> None:
    async def work(store: Store) -> None:
        with pytest.raises(StoreUnavailableError):
            await store.backup(str(file_of(sqlite).parent / "nowhere" / "copy.db"))

    sqlite.run(work)


def test_store_shrinks_when_it_is_cleaned(sqlite: Opener) -> None:
    async def work(store: Store) -> None:
        await store.put(HERE, [content(noise(20_000, n)) for n in range(100)])
        await store.close_session(HERE)
        sqlite.clock.advance(10_000)
        await store.gc(HERE)

    sqlite.run(work)
    assert file_of(sqlite).stat().st_size < 500_000


def test_an_export_holds_what_was_queued_before_it(tmp_path: Path) -> None:
    released = threading.Event()

    async def main() -> None:
        store = await open_store(f"sqlite:///{tmp_path}/store.db")
        assert isinstance(store, SqliteStore)
        try:
            # Holds the writer until an export that does not wait for it has ended.
            holding = store._writer.submit(lambda _: released.wait(0.2))
            queued = asyncio.ensure_future(store.put_summary(HERE, "k", b"queued"))
            await asyncio.sleep(0)
            lines = await exported(store, HERE)
            released.set()
            await asyncio.gather(holding, queued)
        finally:
            await store.close()
        assert any(b'"summary"' in line for line in lines)

    asyncio.run(main())


MADE_WRITABLE = """
import asyncio, importlib.readers, os, sys
from pathlib import Path
import holdfast.store.sqlite
from holdfast.errors import StoreUnavailableError
from holdfast.store import Scope, open_store
from tests.store.harness import content

file = Path(sys.argv[1])

async def attempt(work):
    try:
        await work
        return "done"
    except StoreUnavailableError:
        return "refused"

async def main():
    other = await open_store(f"sqlite:///{file}")  # makes the log, which stays writable
    await other.put(Scope(), [content("x")])
    file.chmod(0o400)
    store = await open_store(f"sqlite:///{file}")
    for mode in (0o400, 0o600):
        file.chmod(mode)
        print(await attempt(store.check()), await attempt(store.put(Scope(), [content("y")])))
    await store.close()
    await other.close()

if os.geteuid() == 0:  # whom no rights of a file stop
    os.chown(file.parent, 65534, 65534)
    os.setegid(65534)
    os.seteuid(65534)
asyncio.run(main())
"""


def test_a_store_that_was_opened_read_only_is_written_once_it_may_be() -> None:
    """A check of the store reports that it is read-only, and no restart is needed.

    The log next to the file must be writable: SQLite keeps a log that it could only read, as long
    as a connection of the process is open.
    """
    with tempfile.TemporaryDirectory(prefix="holdfast-read-only-", dir="/tmp") as folder:
        done = subprocess.run(
            [sys.executable, "-c", MADE_WRITABLE, f"{folder}/store.db"],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.stdout.splitlines() == ["refused refused", "done done"], done.stderr
