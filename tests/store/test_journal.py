"""Journals: appended entries, in every store, for one scope and one writer at a time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import DamagedContentError, StoreConflictError, StoreError
from holdfast.store import Store
from holdfast.store.journal import DAMAGE
from tests.store.harness import (
    HERE,
    OTHER_USER,
    OTHER_WORKSPACE,
    ChangeTable,
    Clock,
    Opener,
    exported,
    lines_of,
    session,
    turn,
)
from tests.store.oracle.store import model_store

LONG = b"what was done, " * 400


async def texts(store: Store, name: str = "run", after: int = 0) -> list[bytes]:
    return [entry.data for entry in await store.journal.read(HERE, name, after)]


def test_entries_come_back_in_order_with_their_place_and_time(opener: Opener) -> None:
    async def write(store: Store) -> None:
        assert await store.journal.append(HERE, "run", [b"one", LONG]) == 3
        opener.clock.advance(5)
        assert await store.journal.append(HERE, "run", [b""], expect=3) == 4
        assert await store.journal.append(HERE, "run", []) == 4

    async def check(store: Store) -> None:
        entries = await store.journal.read(HERE, "run")
        start = entries[0].at
        assert [(entry.sequence, entry.data, entry.at - start) for entry in entries] == [
            (1, b"one", 0),
            (2, LONG, 0),
            (3, b"", 5),
        ]
        assert await texts(store, after=2) == [b""]
        assert await texts(store, after=9) == []
        assert await texts(store, "nobody") == []
        assert "what was done" not in repr(entries)

    async def both(store: Store) -> None:
        await write(store)
        await check(store)

    opener.run(both)
    if opener.kind != "memory":  # a memory ends with its process; the others are opened again
        opener.run(check)


def test_of_two_writers_who_go_on_from_one_place_one_is_refused(opener: Opener) -> None:
    async def work(store: Store) -> None:
        place = await store.journal.append(HERE, "run", [b"begun"], expect=1)
        outcomes = await asyncio.gather(
            *(store.journal.append(HERE, "run", [b"x", b"y"], expect=place) for _ in range(4)),
            return_exceptions=True,
        )
        assert [each for each in outcomes if isinstance(each, int)] == [place + 2]
        assert sum(isinstance(each, StoreConflictError) for each in outcomes) == 3
        assert await texts(store) == [b"begun", b"x", b"y"]
        with pytest.raises(StoreConflictError, match="next entry of the journal is 4, not 9"):
            await store.journal.append(HERE, "run", [b"gap"], expect=9)

    opener.run(work)


def test_writers_who_expect_nothing_all_get_a_place(opener: Opener) -> None:
    async def work(store: Store) -> None:
        calls = [store.journal.append(HERE, "run", [b"a", b"b"]) for _ in range(5)]
        assert sorted(await asyncio.gather(*calls)) == [3, 5, 7, 9, 11]
        assert await texts(store) == [b"a", b"b"] * 5  # the entries of one call are adjacent

    opener.run(work)


def test_a_journal_is_seen_in_its_own_scope_alone(opener: Opener) -> None:
    others = (OTHER_USER, OTHER_WORKSPACE, HERE.of("s2"), HERE.of(""))

    async def work(store: Store) -> None:
        for number, scope in enumerate(others):
            await store.journal.append(scope, "run", [b"x"] * (number + 2))
        await store.journal.append(HERE, "run", [b"mine"])
        assert await texts(store) == [b"mine"]
        assert await store.journal.names(HERE) == ["run"]
        assert await store.journal.forget(HERE, "run") == 1
        assert await store.journal.forget(HERE, "run") == 0
        for number, scope in enumerate(others):
            assert len(await store.journal.read(scope, "run")) == number + 2

    opener.run(work)


def test_names_are_listed_by_their_beginning(opener: Opener) -> None:
    async def work(store: Store) -> None:
        for name in ("agent/b", "agent/a", "research/1", "agent_x", "ag%nt/é"):
            await store.journal.append(HERE, name, [b"x"])
        assert await store.journal.names(HERE, "agent/") == ["agent/a", "agent/b"]
        assert await store.journal.names(HERE, "ag%") == ["ag%nt/é"]
        assert len(await store.journal.names(HERE)) == 5
        for name in ("", "x" * 501, "zero\0"):
            with pytest.raises(StoreError, match="key"):
                await store.journal.append(HERE, name, [b"x"])

    opener.run(work)


def test_a_journal_goes_with_its_session_and_its_owner_is_known_by_it(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.journal.append(HERE, "run", [b"x"])
        assert [(scope.user, scope.workspace) for scope in await store.scopes()] == [
            ("ann", "blue")
        ]
        await store.journal.append(HERE.of("s2"), "run", [b"x"])
        await store.add_turn(HERE, turn(1), session(), {})
        await store.delete_session(HERE)
        assert await texts(store) == []
        assert await store.journal.names(HERE.of("s2")) == ["run"]

    opener.run(work)


def test_journals_are_exported_and_restored_once(opener: Opener) -> None:
    async def work(store: Store) -> None:
        for number in range(120):  # more than a page
            await store.journal.append(HERE, "run", [b"%d" % number])
        await store.journal.append(HERE.of(""), "other", [LONG])
        lines = await exported(store, HERE)
        assert await store.restore(HERE, lines_of(lines)) == 0
        assert await store.restore(OTHER_USER, lines_of(lines)) == 121
        assert await exported(store, OTHER_USER) == lines
        assert await store.journal.append(OTHER_USER, "run", [b"on"], expect=121) == 122

    opener.run(work)


def test_a_damaged_entry_is_an_error_and_verify_names_it(
    opener: Opener, change_table: ChangeTable
) -> None:
    async def work(store: Store) -> None:
        await store.journal.append(HERE, "run", [b"one", b"two", b"three"])
        await change_table("journal", "data = 'x'", "sequence = 2")
        with pytest.raises(DamagedContentError) as caught:
            await store.journal.read(HERE, "run")
        assert "two" not in str(caught.value)
        assert await texts(store, after=2) == [b"three"]
        assert [damage.why for damage in await store.verify(HERE)] == [DAMAGE]
        await store.journal.forget(HERE, "run")
        assert await store.verify(HERE) == []

    opener.run(work)


def test_nothing_of_a_forgotten_journal_is_left_in_the_file(sqlite: Opener) -> None:
    secret = b"SECRET-of-journal"  # short, so that it lies in the file as it is

    async def fill(store: Store) -> None:
        await store.journal.append(HERE, "run", [secret, secret])
        await store.journal.append(HERE.of("gone"), "run", [secret])

    async def remove(store: Store) -> None:
        assert await store.journal.forget(HERE, "run") == 2
        await store.delete_session(HERE.of("gone"))

    folder = Path(sqlite.url.removeprefix("sqlite:///")).parent
    sqlite.run(fill)
    assert secret in b"".join(file.read_bytes() for file in folder.iterdir())
    sqlite.run(remove)
    assert secret not in b"".join(file.read_bytes() for file in folder.iterdir())


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["append", "forget", "read"]),
            st.sampled_from(["a", "b"]),
            st.lists(st.binary(max_size=200), max_size=3),
            st.none() | st.integers(1, 5),
        ),
        max_size=12,
    )
)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_store_does_what_the_model_does(
    kind: str,
    steps: list[tuple[str, str, list[bytes], int | None]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async def walk(store: Store) -> list[object]:
        outcomes: list[object] = []
        for act, name, entries, expect in steps:
            try:
                match act:
                    case "append":
                        outcomes.append(
                            await store.journal.append(HERE, name, entries, expect=expect)
                        )
                    case "forget":
                        outcomes.append(await store.journal.forget(HERE, name))
                    case _:
                        outcomes.append(await store.journal.read(HERE, name, expect or 0))
            except StoreConflictError as error:
                outcomes.append(str(error))
        return outcomes

    folder = tmp_path_factory.mktemp("journal")
    url = "memory:" if kind == "memory" else f"sqlite:///{folder}/holdfast.db"
    assert Opener(url).run(walk) == asyncio.run(walk(model_store(Clock())))
