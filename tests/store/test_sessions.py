"""Sessions, turns, messages, usage and calibration, on every store."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from holdfast.errors import StoreConflictError, StoreError
from holdfast.store import Store
from holdfast.store.records import Trail, TurnUsage
from holdfast.store.refs import digest
from tests.store.harness import HERE, Opener, content, named, session, turn


def test_turn_session_and_messages_are_stored_together(opener: Opener) -> None:
    odd = "é \ud800 \0 🙂"
    first = turn(1, [b"hello"], warnings=(odd,))
    record = session(title=odd, turns=1, updated_at=5.0)

    async def work(store: Store) -> None:
        assert await store.session(HERE) is None
        await store.add_turn(HERE, first, record, named(b"hello"))
        assert await store.session(HERE) == record
        assert await store.turns(HERE) == [first]
        wanted = [digest(b"hello"), digest(b"frame"), digest(b"unknown")]
        assert await store.messages(HERE, wanted) == named(b"hello")

    opener.run(work)


def test_turns_come_in_order_and_in_pages(opener: Opener) -> None:
    async def work(store: Store) -> None:
        made = [turn(number) for number in range(1, 13)]
        for one in made:
            await store.add_turn(HERE, one, session(turns=one.number), {})
        assert await store.turns(HERE) == made
        assert await store.turns(HERE, after=3, limit=4) == made[3:7]
        assert await store.turns(HERE, after=12) == []
        assert await store.turns(HERE.of("s2")) == []

    opener.run(work)


def test_second_turn_of_a_number_is_a_conflict_and_changes_nothing(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.add_turn(HERE, turn(1), session(), {})
        late = turn(1, [b"late"], model="other")
        with pytest.raises(StoreConflictError):
            await store.add_turn(HERE, late, session(title="late"), named(b"late"))
        with pytest.raises(StoreError, match="gap"):
            await store.add_turn(HERE, turn(3), session(title="late"), {})
        assert await store.turns(HERE) == [turn(1)]
        assert await store.session(HERE) == session()
        assert await store.messages(HERE, [digest(b"late")]) == {}

    opener.run(work)


def test_of_many_who_add_the_same_turn_one_wins(opener: Opener) -> None:
    async def work(store: Store) -> None:
        tries = [turn(1, model=f"model {n}") for n in range(8)]
        outcomes = await asyncio.gather(
            *(store.add_turn(HERE, one, session(), {}) for one in tries), return_exceptions=True
        )
        assert sum(outcome is None for outcome in outcomes) == 1
        assert sum(isinstance(outcome, StoreConflictError) for outcome in outcomes) == 7
        assert await store.turns(HERE) == [tries[outcomes.index(None)]]

    opener.run(work)


def test_calls_about_a_session_need_one_and_it_must_be_the_records(opener: Opener) -> None:
    nowhere = HERE.of("")

    async def work(store: Store) -> None:
        for call in (
            store.add_turn(nowhere, turn(1), session(""), {}),
            store.add_turn(HERE, turn(1), session("s2"), {}),
            store.add_turn(HERE, turn(1), session(), {digest(b"a"): b"b"}),
            store.close_session(nowhere),
            store.delete_session(nowhere),
        ):
            with pytest.raises(StoreError):
                await call
        assert await store.sessions(nowhere) == []

    opener.run(work)


@pytest.mark.parametrize("large", [b"", b"x" * 200_000], ids=["at once", "in a thread"])
def test_one_message_that_is_not_what_its_hash_says_refuses_the_turn(
    opener: Opener, large: bytes
) -> None:
    right = named(b"one", b"two", large)

    async def work(store: Store) -> None:
        for wrong in right:
            with pytest.raises(StoreError, match="hash of a message"):
                await store.add_turn(HERE, turn(1), session(), right | {wrong: b"other bytes"})
        assert await store.turns(HERE) == []
        assert await store.messages(HERE, list(right)) == {}

    opener.run(work)


def test_message_that_another_user_stored_is_not_gained_by_naming_it(opener: Opener) -> None:
    thief = msgspec.structs.replace(HERE, user="bob")
    wanted = digest(b"mine")

    async def work(store: Store) -> None:
        await store.add_turn(HERE, turn(1, [b"mine"]), session(), named(b"mine"))
        await store.add_turn(thief, turn(1, [b"mine"]), session(), {})
        assert await store.messages(thief, [wanted]) == {}

    opener.run(work)


def test_message_is_there_for_a_later_session_that_names_it_alone(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.add_turn(HERE, turn(1, [b"m"]), session(), named(b"m"))
        await store.add_turn(HERE.of("s2"), turn(1, [b"m"]), session("s2"), {})
        await store.delete_session(HERE)
        assert await store.messages(HERE, [digest(b"m")]) == {digest(b"m"): b"m"}
        await store.delete_session(HERE.of("s2"))
        assert await store.messages(HERE, [digest(b"m")]) == {}

    opener.run(work)


def test_sessions_last_used_come_first_in_pages(opener: Opener) -> None:
    async def work(store: Store) -> None:
        used = {"a": 5.0, "b": 9.0, "c": 5.0, "d": 1.0}
        for name, at in used.items():
            await store.add_turn(HERE.of(name), turn(1), session(name, updated_at=at), {})
        order = [record.session for record in await store.sessions(HERE)]
        assert order == ["b", "c", "a", "d"]
        page = await store.sessions(HERE, limit=2, before="b")
        assert [record.session for record in page] == ["c", "a"]
        assert await store.sessions(HERE, before="d") == []
        with pytest.raises(StoreError, match="go on"):
            await store.sessions(HERE, before="nobody")

    opener.run(work)


def test_session_is_found_by_the_first_head_that_an_open_one_has(opener: Opener) -> None:
    async def work(store: Store) -> None:
        for name, head, at in (
            ("a", "h1", 1.0),
            ("b", "h2", 2.0),
            ("c", "h2", 3.0),
            ("d", "", 4.0),
        ):
            record = session(name, head=head, updated_at=at)
            await store.add_turn(HERE.of(name), turn(1), record, {})

        async def found(*heads: str) -> str | None:
            record = await store.session_with_head(HERE, heads)
            return None if record is None else record.session

        assert await found("h9", "h2", "h1") == "c"
        assert await found("h1", "h2") == "a"
        assert await found("") is None
        assert await found() is None
        await store.close_session(HERE.of("c"))
        assert await found("h2") == "b"
        await store.close_session(HERE.of("b"))
        assert await found("h2", "h1") == "a"

    opener.run(work)


def test_session_and_the_length_of_its_journal_are_seen_at_one_look(opener: Opener) -> None:
    async def work(store: Store) -> None:
        here = HERE.of("a")
        assert await store.session_beside(here, "put back") == (None, 0)
        await store.journal.append(here, "put back", [b"one", b"two"])
        await store.journal.append(here, "another", [b"three"])
        assert await store.session_beside(here, "put back") == (None, 2)
        record = session("a")
        await store.add_turn(here, turn(1), record, {})
        assert await store.session_beside(here, "put back") == (record, 2)
        assert await store.session_beside(HERE.of("b"), "put back") == (None, 0)
        await store.delete_session(here)
        assert await store.session_beside(here, "put back") == (None, 0)

    opener.run(work)


def test_deleted_session_takes_its_turns_and_what_only_it_used(opener: Opener) -> None:
    alone, shared, free = content("alone"), content("shared"), content("free")

    async def work(store: Store) -> None:
        await store.put(HERE, [alone, shared, free])
        await store.put(HERE.of("s2"), [shared])
        await store.put(HERE.of(""), [free])
        await store.add_turn(HERE, turn(1, [b"m"]), session(), named(b"m"))
        assert await store.delete_session(HERE) == 1
        assert await store.info(HERE, alone.ref_id) is None
        assert await store.get(HERE.of("s2"), shared.ref_id)
        assert await store.get(HERE.of("s2"), free.ref_id)
        assert await store.session(HERE) is None
        assert await store.turns(HERE) == []
        assert await store.messages(HERE, [digest(b"m")]) == {}
        assert await store.delete_session(HERE) == 0
        await store.add_turn(HERE, turn(1), session(), {})

    opener.run(work)


def test_bytes_that_are_message_and_content_outlive_either(opener: Opener) -> None:
    both = content("both")

    async def work(store: Store) -> None:
        await store.put(HERE.of("s2"), [both])
        await store.add_turn(HERE, turn(1, [b"both"]), session(), named(b"both"))
        await store.forget(HERE, [both.ref_id])
        assert await store.messages(HERE, [both.sha256]) == {both.sha256: b"both"}
        await store.put(HERE.of("s2"), [both])
        await store.delete_session(HERE)
        assert await store.messages(HERE, [both.sha256]) == {}
        assert await store.get(HERE.of("s2"), both.ref_id)

    opener.run(work)


def test_usage_is_summed_by_model_session_and_day(opener: Opener) -> None:
    def used(number: int, model: str, at: float, cost: float | None) -> object:
        usage = TurnUsage(
            predicted=1, untouched=2, input=3, cached=4, output=5,
            expansions=6, expansion_tokens=7, cost=cost, saved_cost=cost,
        )  # fmt: skip
        return turn(number, model=model, started_at=at, usage=usage)

    async def work(store: Store) -> None:
        for scope, one in (
            (HERE, used(1, "m1", 86_399.0, 0.5)),
            (HERE, used(2, "m2", 86_400.0, None)),
            (HERE.of("s2"), used(1, "m1", 90_000.0, 0.25)),
        ):
            record = session(scope.session)
            await store.add_turn(scope, one, record, {})  # type: ignore[arg-type]
        everywhere = HERE.of("")
        (m1, m2) = await store.usage(everywhere)
        assert (m1.name, m1.turns, m1.cost, m1.saved_cost) == ("m1", 2, 0.75, 0.75)
        assert (m1.predicted, m1.untouched, m1.input, m1.cached) == (2, 4, 6, 8)
        assert (m1.output, m1.expansions, m1.expansion_tokens) == (10, 12, 14)
        assert (m2.name, m2.turns, m2.cost) == ("m2", 1, 0.0)
        by_day = await store.usage(everywhere, by="day")
        assert [(d.name, d.turns) for d in by_day] == [("1970-01-01", 1), ("1970-01-02", 2)]
        by_session = await store.usage(everywhere, by="session")
        assert [(s.name, s.turns) for s in by_session] == [("s1", 2), ("s2", 1)]
        assert [t.turns for t in await store.usage(everywhere, since=86_400.0)] == [1, 1]
        assert [t.name for t in await store.usage(HERE.of("s2"))] == ["m1"]
        assert [t.name for t in await store.usage(HERE.of("s2"), by="session")] == ["s2"]

    opener.run(work)


def test_what_was_learnt_is_kept_as_it_was_saved(opener: Opener) -> None:
    async def work(store: Store) -> None:
        assert await store.calibration(HERE) is None
        for data in (b"\0\xff", b"", b"second"):
            await store.save_calibration(HERE, data)
            assert await store.calibration(HERE.of("any")) == data

    opener.run(work)


def test_long_conversation_is_stored_as_changes(opener: Opener) -> None:
    async def work(store: Store) -> None:
        said: list[bytes] = []
        for number in range(1, 41):
            fresh = [f"question {number}".encode(), f"answer {number}".encode()]
            trail = Trail(len(said), tuple(map(digest, fresh)))
            said += fresh
            one = turn(number, sent=trail)
            await store.add_turn(HERE, one, session(), {digest(data): data for data in fresh})
        rebuilt: list[str] = []
        for one in await store.turns(HERE):
            assert one.sent is not None
            rebuilt = rebuilt[: one.sent.shared] + list(one.sent.added)
        found = await store.messages(HERE, rebuilt)
        assert [found[sha256] for sha256 in rebuilt] == said

    opener.run(work)
