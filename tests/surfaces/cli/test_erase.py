"""`holdfast store erase` and `gc --retain-days`: deleted records, output and confirmation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from holdfast import Holdfast, Settings
from holdfast.store import Scope, Store, open_store
from tests.store.everything import fill
from tests.store.harness import session, turn
from tests.surfaces.harness import Cli

SCRUBBING = "holdfast.store.sqlite.scrubbing"
FOLDER = ".local/share/holdfast"
MARK = "a1b2c3d4e5f6zq7"


def _say(place: str) -> str:
    return f"{place} {MARK}"


@pytest.fixture
def filled(cli: Cli) -> Cli:
    async def work() -> None:
        store = await open_store(None, folder=cli.folder / FOLDER)
        for tenant in ("key-1", "key-2"):
            for name in ("s1", "s2"):
                await fill(store, Scope("local", tenant, name), _say)
        await store.close()

    asyncio.run(work())
    return cli


def _bytes_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in (folder / FOLDER).iterdir())


def _sessions(cli: Cli) -> dict[str, list[str]]:
    async def work() -> dict[str, list[str]]:
        store = await open_store(None, folder=cli.folder / FOLDER)
        listed = {
            scope.workspace: sorted(record.session for record in await store.sessions(scope))
            for scope in await store.scopes()
        }
        await store.close()
        return listed

    return asyncio.run(work())


def test_a_session_of_one_tenant_is_erased_and_the_result_is_json_in_a_pipe(filled: Cli) -> None:
    done = filled("store", "erase", "--session", "s1", "--tenant", "key-1", "--yes")
    assert done.code == 0
    assert done.json["sessions"] == 1
    assert done.json["turns"] == 2
    assert done.json["overwritten"] is True
    assert _sessions(filled) == {"key-1": ["s2"], "key-2": ["s1", "s2"]}


def test_a_session_is_erased_whosever_it_is(filled: Cli) -> None:
    assert filled("store", "erase", "--session", "s1", "--yes").json["sessions"] == 2
    assert _sessions(filled) == {"key-1": ["s2"], "key-2": ["s2"]}
    assert filled("store", "erase", "--session", "s1", "--yes").json["sessions"] == 0


def test_a_tenant_is_erased_and_the_others_stay(filled: Cli) -> None:
    told = filled("store", "erase", "--tenant", "key-1", "--yes", "--output", "table").out
    assert "Erased 2 sessions with 4 requests" in told
    assert _sessions(filled) == {"key-2": ["s1", "s2"]}


def test_no_byte_is_left_when_everything_is_erased(filled: Cli) -> None:
    assert MARK.encode() in _bytes_of(filled.folder)
    assert filled("store", "erase", "--all", "--yes").json["sessions"] == 4
    assert MARK.encode() not in _bytes_of(filled.folder)
    assert _sessions(filled) == {}


@pytest.mark.parametrize(
    "options", [(), ("--all", "--tenant", "key-1"), ("--all", "--session", "s")]
)
def test_what_is_not_clear_is_refused(filled: Cli, options: tuple[str, ...]) -> None:
    done = filled("store", "erase", *options, "--yes")
    assert done.code == 2
    assert "nothing is named to erase" in done.err
    assert len(_sessions(filled)) == 2


def test_nothing_is_erased_where_nobody_can_be_asked(filled: Cli) -> None:
    done = filled("store", "erase", "--all", stdin=b"y\n")
    assert done.code == 2
    assert "--yes" in done.err
    assert len(_sessions(filled)) == 2


@pytest.mark.parametrize(("answer", "is_erased"), [("n", False), ("", False), ("y", True)])
def test_a_person_is_asked_first(
    filled: Cli, monkeypatch: pytest.MonkeyPatch, answer: str, *, is_erased: bool
) -> None:
    asked: list[str] = []

    def confirm(text: str, **_: object) -> bool:
        asked.append(text)
        return answer == "y"

    monkeypatch.setattr("holdfast.surfaces.cli.erase.is_terminal", lambda: True)
    monkeypatch.setattr("typer.confirm", confirm)
    done = filled("store", "erase", "--tenant", "key-1")
    assert asked == ["Erase everything of tenant key-1? This cannot be undone."]
    assert done.code == (0 if is_erased else 1)
    assert ("key-1" in _sessions(filled)) is not is_erased


def test_gc_deletes_what_is_older_than_retain_days(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()

    async def work(store: Store) -> None:
        for name, days in (("old", 100), ("new", 1)):
            record = session(name, updated_at=now - days * 86_400)
            await store.add_turn(Scope("local", "default", name), turn(1), record, {})
        await store.close()

    async def main() -> None:
        await work(await open_store(None, folder=cli.folder / FOLDER))

    asyncio.run(main())
    assert "deleted" not in cli("store", "gc").json
    assert _sessions(cli) == {"default": ["new", "old"]}
    assert cli("store", "gc", "--retain-days", "200").json["deleted"]["sessions"] == 0
    monkeypatch.setenv("HOLDFAST_RETAIN_DAYS", "90")
    assert cli("store", "gc").json["deleted"]["sessions"] == 1
    assert _sessions(cli) == {"default": ["new"]}


@pytest.mark.parametrize("named", [("--tenant", "key-"), ("--session", "s3")])
def test_a_name_that_is_not_there_is_told_and_no_success(
    filled: Cli, named: tuple[str, str]
) -> None:
    done = filled("store", "erase", *named, "--yes")
    assert done.code == 1
    assert "Nothing has that name" in done.err
    assert _sessions(filled) == {"key-1": ["s1", "s2"], "key-2": ["s1", "s2"]}


@contextmanager
def _reader(cli: Cli) -> Iterator[None]:
    """Hold a read transaction open, as a backup in progress does: the log cannot be emptied."""
    db = apsw.Connection(str(cli.folder / FOLDER / "holdfast.db"))
    db.execute("BEGIN")
    assert db.execute("SELECT count(*) FROM sessions").get
    try:
        yield
    finally:
        db.close()


def test_erase_fails_if_bytes_are_left_and_gc_overwrites_them_later(
    filled: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{SCRUBBING}.SECONDS", 0.05)
    with _reader(filled):
        done = filled("store", "erase", "--all", "--yes")
        assert done.code == 1
        assert done.json["sessions"] == 4
        assert done.json["overwritten"] is False
        assert "holdfast store gc --overwrite" in done.err
        again = filled("store", "gc", "--overwrite")
        assert again.code == 1
        assert again.json["overwritten"] is False
        assert "holdfast store gc --overwrite" in again.err
    assert filled("store", "gc", "--overwrite").json["overwritten"] is True
    assert MARK.encode() not in _bytes_of(filled.folder)


def test_gc_overwrites_a_large_file_only_where_it_is_asked_to(
    filled: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def write_anew(_: object) -> bool:
        written.append("file")
        return True

    monkeypatch.setattr(f"{SCRUBBING}.SMALL_BYTES", 0)
    monkeypatch.setattr(f"{SCRUBBING}._write_anew", write_anew)
    assert "overwritten" not in filled("store", "gc").json
    assert written == []
    assert filled("store", "gc", "--overwrite").json["overwritten"] is True
    assert written == ["file"]


def test_a_session_that_has_only_remembered_turns_is_said_to_be_erased(cli: Cli) -> None:
    async def work() -> None:
        settings = Settings(data_dir=str(cli.folder / FOLDER))
        async with Holdfast.open(settings=settings) as engine:
            await engine.remember("alfred", [{"role": "user", "content": "We chose Postgres."}])

    asyncio.run(work())
    erased = cli("store", "erase", "--session", "alfred", "--yes")
    assert erased.code == 0
    assert erased.json["records"] >= 1
    assert "Nothing has that name" not in erased.err
