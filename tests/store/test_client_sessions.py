"""The client's own session id on the record of a session, on every kind of store."""

from __future__ import annotations

import json
from contextlib import closing
from importlib import resources
from pathlib import Path

import apsw
import msgspec
import pytest

from holdfast.store import Store
from holdfast.store.postgres.migrate import scripts
from holdfast.store.sqlite.driver import APPLICATION_ID
from tests.store.harness import HERE, OTHER_USER, Opener, exported, lines_of, session, turn

OURS = ("id-1", "")
SUBAGENT = ("id-1", "agent-7")


async def _add(store: Store, name: str, client: tuple[str, str], at: float = 1.0) -> None:
    record = session(
        name, head="h", updated_at=at, client_session=client[0], client_agent=client[1]
    )
    await store.add_turn(HERE.of(name), turn(1), record, {})


def test_a_record_keeps_who_sent_it_and_what_for(opener: Opener) -> None:
    record = session(
        client="claude-code", client_session="id-1", client_agent="agent-7", purpose="title"
    )

    async def work(store: Store) -> None:
        await store.add_turn(HERE, turn(1), record, {})
        assert await store.session(HERE) == record
        assert await store.sessions(HERE) == [record]

    opener.run(work)


def test_of_sessions_with_one_head_that_of_the_client_is_found(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await _add(store, "plain", ("", ""), 9.0)
        await _add(store, "ours", OURS, 1.0)
        await _add(store, "sub", SUBAGENT, 2.0)
        await _add(store, "other", ("id-2", ""), 8.0)

        async def name_of(client: tuple[str, str] | None) -> str | None:
            record = await store.session_with_head(HERE, ["h9", "h"], client=client)
            return None if record is None else record.session

        assert await name_of(OURS) == "ours"
        assert await name_of(SUBAGENT) == "sub"
        assert await name_of(("", "")) == "plain"
        assert await name_of(("id-3", "")) is None
        assert await name_of(("id-2", "agent-7")) is None
        assert await name_of(None) == "plain", "of any client: the one last used"

    opener.run(work)


def test_an_id_finds_nothing_of_another_user(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await _add(store, "ours", OURS)
        assert await store.session_with_head(OTHER_USER, ["h"], client=OURS) is None

    opener.run(work)


def test_ids_move_with_an_export(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await _add(store, "sub", SUBAGENT)
        await store.restore(OTHER_USER, lines_of(await exported(store, HERE)))
        record = await store.session_with_head(OTHER_USER, ["h"], client=SUBAGENT)
        assert record is not None
        assert record == await store.session(HERE.of("sub"))

    opener.run(work)


def test_a_file_from_before_there_were_ids_is_brought_up_to_date(sqlite: Opener) -> None:
    file = Path(sqlite.url.removeprefix("sqlite:///"))
    file.parent.mkdir()
    folder = resources.files("holdfast.store.sqlite") / "migrations"
    old = json.loads(msgspec.json.encode(session("old", head="h")))
    for name in ("client", "client_session", "client_agent", "purpose"):
        del old[name]
    with closing(apsw.Connection(str(file))) as db:
        for number in range(1, 14):
            db.execute((folder / f"{number:04}.sql").read_text("utf-8"))
        db.execute(
            "INSERT INTO sessions (workspace, owner, session, head, updated_at, record)"
            " VALUES (?, ?, 'old', 'h', 1.0, ?)",
            (HERE.workspace, HERE.user, json.dumps(old)),
        )
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA user_version = 13")
    sqlite.run(_old_and_new_are_found)


def test_a_database_from_before_there_were_ids_is_brought_up_to_date(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres = Opener(postgres_url)
    earlier = {number: script for number, script in scripts().items() if number < 15}
    with monkeypatch.context() as patched:
        patched.setattr("holdfast.store.postgres.migrate.scripts", lambda: earlier)

        async def before(store: Store) -> None:
            await store.save_calibration(HERE, b"learnt")

        postgres.run(before)

    async def work(store: Store) -> None:
        await _add(store, "old", ("", ""))
        await _old_and_new_are_found(store)

    postgres.run(work)


async def _old_and_new_are_found(store: Store) -> None:
    await _add(store, "new", OURS, 2.0)
    for client, name in ((("", ""), "old"), (OURS, "new"), (None, "new")):
        record = await store.session_with_head(HERE, ["h"], client=client)
        assert record is not None
        assert record.session == name


def test_sessions_of_one_client_session_are_listed(opener: Opener) -> None:
    async def work(store: Store) -> None:
        for n, client in enumerate((("", ""), OURS, SUBAGENT, ("id-2", ""), OURS)):
            await _add(store, f"s{n}", client, float(n))
        listed = await store.sessions(HERE, client_session="id-1")
        assert [record.session for record in listed] == ["s4", "s2", "s1"]
        page = await store.sessions(HERE, limit=1, before="s4", client_session="id-1")
        assert [record.session for record in page] == ["s2"]
        assert await store.sessions(OTHER_USER, client_session="id-1") == []
        assert len(await store.sessions(HERE)) == 5

    opener.run(work)


def test_a_client_session_counts_once_and_its_side_requests_not_at_all(opener: Opener) -> None:
    async def work(store: Store) -> None:
        for n, client in enumerate((("", ""), ("", ""), OURS, SUBAGENT, OURS, ("id-2", ""))):
            await _add(store, f"s{n}", client, float(n))
        for n, client in enumerate((("", ""), OURS, ("id-3", ""))):
            record = session(
                f"side{n}", client_session=client[0], client_agent=client[1], purpose="title"
            )
            await store.add_turn(HERE.of(record.session), turn(1), record, {})
        assert (await store.stats(HERE)).sessions == 4
        assert (await store.stats(HERE)).turns == 9

    opener.run(work)


def test_an_id_in_two_workspaces_is_two_client_sessions(opener: Opener) -> None:
    scopes = [msgspec.structs.replace(HERE, workspace=name) for name in ("blue", "green")]

    async def work(store: Store) -> None:
        for scope in scopes:
            for name in ("one", "two"):
                record = session(name, client_session="id-1")
                await store.add_turn(scope.of(name), turn(1), record, {})
        assert [(await store.stats(scope)).sessions for scope in scopes] == [1, 1]
        assert (await store.across.stats(scopes)).sessions == 2

    opener.run(work)
