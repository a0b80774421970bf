"""What providers call the histories that they hold, on every kind of store."""

from __future__ import annotations

import asyncio
from contextlib import closing
from importlib import resources
from pathlib import Path

import apsw
import pytest

from holdfast.errors import StoreError
from holdfast.store import Store, open_store
from holdfast.store.postgres.migrate import scripts
from holdfast.store.sqlite.driver import APPLICATION_ID
from tests.store.harness import (
    HERE,
    OTHER_USER,
    OTHER_WORKSPACE,
    Opener,
    exported,
    lines_of,
    session,
    turn,
)


def test_a_name_leads_to_its_session_and_to_no_other_users(opener: Opener) -> None:
    async def work(store: Store) -> None:
        assert await store.session_linked(HERE, "resp_1") == ""
        await store.link(HERE, ["resp_1", "conv_1"])
        assert await store.session_linked(HERE, "resp_1") == "s1"
        assert await store.session_linked(HERE.of(""), "conv_1") == "s1"
        for other in (OTHER_USER, OTHER_WORKSPACE):
            assert await store.session_linked(other, "resp_1") == ""
        assert await store.session_linked(HERE, "resp_2") == ""

    opener.run(work)


def test_a_name_is_the_latest_sessions_and_noting_it_again_changes_nothing(opener: Opener) -> None:
    odd = "é \ud800 \0 🙂"

    async def work(store: Store) -> None:
        names = ["resp_1", odd] if opener.kind == "postgres" else ["resp_1"]
        for scope in (HERE, HERE, HERE.of("s2")):
            await store.link(scope, names)
        for name in names:
            assert await store.session_linked(HERE, name) == "s2"

    opener.run(work)


def test_a_link_needs_a_session_and_no_names_are_no_links(opener: Opener) -> None:
    async def work(store: Store) -> None:
        with pytest.raises(StoreError):
            await store.link(HERE.of(""), ["resp_1"])
        await store.link(HERE, [])
        assert await store.session_linked(HERE, "") == ""

    opener.run(work)


def test_links_go_with_their_session_and_with_no_other(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.add_turn(HERE, turn(1), session(), {})
        await store.link(HERE, ["resp_1", "resp_2"])
        await store.link(HERE.of("s2"), ["resp_3"])
        await store.close_session(HERE)
        assert await store.session_linked(HERE, "resp_1") == "s1"
        await store.delete_session(HERE)
        assert await store.session_linked(HERE, "resp_1") == ""
        assert await store.session_linked(HERE, "resp_2") == ""
        assert await store.session_linked(HERE, "resp_3") == "s2"

    opener.run(work)


def test_many_link_at_once(opener: Opener) -> None:
    async def work(store: Store) -> None:
        names = [f"resp_{n}" for n in range(20)]
        sessions = [HERE.of(f"s{n}") for n in range(8)]
        await asyncio.gather(*(store.link(scope, names) for scope in sessions))
        last = {await store.session_linked(HERE, name) for name in names}
        assert len(last) == 1, "each call happens whole"

    opener.run(work)


def test_links_outlive_the_process(opener: Opener) -> None:
    if opener.kind == "memory":
        pytest.skip("a store in memory ends with its process")

    async def write(store: Store) -> None:
        await store.link(HERE, ["resp_1"])

    async def read(store: Store) -> None:
        assert await store.session_linked(HERE, "resp_1") == "s1"

    opener.run(write)
    opener.run(read)


def test_a_file_from_before_there_were_links_is_brought_up_to_date(sqlite: Opener) -> None:
    file = Path(sqlite.url.removeprefix("sqlite:///"))
    file.parent.mkdir()
    folder = resources.files("holdfast.store.sqlite") / "migrations"
    with closing(apsw.Connection(str(file))) as db:
        for script in ("0001.sql", "0002.sql"):
            db.execute((folder / script).read_text("utf-8"))
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA user_version = 2")

    async def work(store: Store) -> str:
        await store.add_turn(HERE, turn(1), session(), {})
        await store.link(HERE, ["resp_1"])
        return await store.session_linked(HERE, "resp_1")

    assert sqlite.run(work) == "s1"


def test_a_database_from_before_there_were_links_is_brought_up_to_date(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres = Opener(postgres_url)
    earlier = {number: script for number, script in scripts().items() if number < 3}
    with monkeypatch.context() as patched:
        patched.setattr("holdfast.store.postgres.migrate.scripts", lambda: earlier)

        async def before(store: Store) -> None:
            await store.save_calibration(HERE, b"learnt")

        postgres.run(before)

    async def work(store: Store) -> str:
        await store.link(HERE, ["resp_1"])
        assert await store.calibration(HERE) == b"learnt"
        return await store.session_linked(HERE, "resp_1")

    assert postgres.run(work) == "s1"


def test_links_are_exported_and_restored_once(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.link(HERE, [f"resp_{n:03}" for n in range(120)])
        lines = await exported(store, HERE)
        assert sum(b'"type":"link"' in line for line in lines) == 120
        assert await store.restore(OTHER_USER, lines_of(lines)) == 120
        assert await store.restore(OTHER_USER, lines_of(lines)) == 0
        assert await store.session_linked(OTHER_USER, "resp_119") == "s1"
        await store.link(OTHER_USER.of("mine"), ["resp_000"])
        await store.restore(OTHER_USER, lines_of(lines))
        assert await store.session_linked(OTHER_USER, "resp_000") == "mine", "what is there stays"

    opener.run(work)


def test_a_link_moves_between_kinds_of_stores(opener: Opener, tmp_path: Path) -> None:
    async def work(store: Store) -> None:
        await store.link(HERE, ["resp_1"])
        lines = await exported(store, HERE)
        other = await open_store(f"sqlite:///{tmp_path}/other.db")
        try:
            await other.restore(HERE, lines_of(lines))
            assert await other.session_linked(HERE, "resp_1") == "s1"
            assert await exported(other, HERE) == lines
        finally:
            await other.close()

    opener.run(work)


def test_an_export_of_the_first_version_is_read(opener: Opener) -> None:
    async def work(store: Store) -> None:
        assert await store.restore(HERE, lines_of([b'{"type":"holdfast","version":1}\n'])) == 0

    opener.run(work)
