"""The ledger: search, superseding, forgetting, and text that may not be stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from holdfast.errors import PrivacyError, StoreConflictError, StoreError
from holdfast.facts import Fact, FactFilter, FactIndexCache, Ledger, RankedFact, get_top_facts
from holdfast.facts.fact_index import HALF_LIVES
from holdfast.facts.index_cache import MOST_ROWS
from holdfast.store import Scope, Store, open_store
from holdfast.store.opening import open_memory
from tests.privacy.made import UPPER, run
from tests.store.harness import HERE, OTHER_USER, Clock

T = TypeVar("T")
DAY = 86_400.0


def ledger_of(store: Store, clock: Clock | None = None, scope: Scope = HERE) -> Ledger:
    return Ledger(store, scope, FactIndexCache(store, None), clock=clock or Clock())


def with_ledger(work: Callable[[Ledger], Coroutine[Any, Any, T]]) -> T:
    return asyncio.run(work(ledger_of(open_memory())))


def texts(ranked: list[RankedFact]) -> list[str]:
    return [each.fact.text for each in ranked]


async def noted(ledger: Ledger, *said: str, **more: object) -> list[Fact]:
    return [
        await ledger.add(text, source_ref="m1", **more)  # type: ignore[arg-type]
        for text in said
    ]


def test_the_nearest_facts_come_first_and_at_most_as_many_as_asked() -> None:
    async def work(ledger: Ledger) -> None:
        await noted(
            ledger,
            "Ann: The deadline of the release is 1 May 2026",
            "Ann: I bought a blue bicycle in Utrecht",
            "Bob: The release was delayed by two weeks",
            *(f"Cem: I walked {n} km in the hills" for n in range(40)),
        )
        best = await ledger.top("When is the release deadline?", k=2)
        assert texts(best) == [
            "Ann: The deadline of the release is 1 May 2026",
            "Bob: The release was delayed by two weeks",
        ]
        assert best[0].similarity > best[1].similarity > 0
        assert best[0].score > best[1].score
        assert len(await ledger.top("hills")) == 12
        assert await ledger.top("hills", k=0) == []

    with_ledger(work)


def test_among_the_similar_tags_decide_and_then_recency() -> None:
    async def work(ledger: Ledger) -> None:
        await noted(ledger, "The hall holds 40 chairs", at=5.0)
        await noted(ledger, "The hall holds 50 chairs", at=9.0)
        await noted(ledger, "The hall holds 60 chairs", at=1.0, tags=["Venue"])
        best = await ledger.top("hall chairs", tags=["venue"], now=10.0)
        assert [text[15:17] for text in texts(best)] == ["60", "50", "40"]

    with_ledger(work)


def test_what_decays_faster_is_less_recent() -> None:
    async def work(ledger: Ledger) -> None:
        await noted(ledger, "alpha one", kind="task", at=0.0)
        await noted(ledger, "alpha two", kind="entity", at=0.0)
        await noted(ledger, "alpha three", kind="entity", at=0.0, decay_weight=0.01)
        best = await ledger.top("alpha", now=HALF_LIVES["task"] * 3)
        assert texts(best) == ["alpha two", "alpha one", "alpha three"]

    with_ledger(work)


def test_standing_instructions_come_whatever_is_asked() -> None:
    async def work(ledger: Ledger) -> None:
        await noted(ledger, "User: Always answer in German", standing=True)
        await noted(ledger, *(f"The river is {n} km long" for n in range(50)))
        best = await ledger.top("river km", k=12)
        assert len(best) == 12
        assert "User: Always answer in German" in texts(best)
        await noted(ledger, *(f"User: Never say word {n}" for n in range(50)), standing=True)
        best = await ledger.top("river km", k=12)
        assert sum(each.fact.standing for each in best) == 4

    with_ledger(work)


def test_a_session_limits_what_is_found() -> None:
    async def work(ledger: Ledger) -> None:
        await noted(ledger, "Red one", session="a")
        await noted(ledger, "Red two", session="b", standing=True)
        assert texts(await ledger.top("red", "a")) == ["Red one"]
        assert len(await ledger.top("red")) == 2
        assert [each.text for each in await ledger.latest("b")] == ["Red two"]
        assert [each.text for each in await get_top_facts(ledger, "red", "b", k=1)] == ["Red two"]

    with_ledger(work)


def test_a_superseded_fact_takes_no_place_in_its_session() -> None:
    async def work(ledger: Ledger) -> None:
        source = {"subject": "Deadline", "said_by": "Ann", "session": "a"}
        await noted(ledger, *(f"Walk number {n} was long" for n in range(60)), session="a")
        await noted(ledger, "The deadline is on 1 May in Graz", at=1.0, **source)
        assert len(await ledger.top("deadline", "a", k=1)) == 1  # from here on it is indexed
        await noted(ledger, "It is later", at=2.0, **source)
        best = texts(await ledger.top("Is the deadline on 1 May in Graz?", "a", k=1))
        assert len(best) == 1
        assert "1 May" not in best[0]

    with_ledger(work)


def test_a_newer_value_supersedes_and_contradictions_are_shown() -> None:
    async def work(ledger: Ledger) -> None:
        source = {"subject": "Deadline ", "said_by": "Ann"}
        (old,) = await noted(ledger, "The deadline is 1 May", at=1.0, **source)
        assert (await ledger.top("deadline"))[0].contradicts == ()
        (new,) = await noted(ledger, "The deadline is 2 May", at=2.0, **source)
        source["said_by"] = "Bob"
        (bobs,) = await noted(ledger, "The deadline is 9 May", at=3.0, **source)
        best = {each.fact.id: each.contradicts for each in await ledger.top("deadline")}
        assert best == {new.id: (bobs.id,), bobs.id: (new.id,)}
        assert [each.id for each in await ledger.history(new.id)] == [old.id, new.id]

    with_ledger(work)


def test_a_fact_can_be_put_in_the_place_of_another_once() -> None:
    async def work(ledger: Ledger) -> None:
        (old,) = await noted(ledger, "Ann likes tea", tags=["taste"], kind="entity")
        fresh = await ledger.supersede(old.id, "Ann likes coffee", source_ref="m2")
        assert (fresh.tags, fresh.kind) == (("taste",), "entity")
        assert texts(await ledger.top("what does Ann like?")) == ["Ann likes coffee"]
        for missing_id in (old.id, "nobody"):
            with pytest.raises(StoreConflictError):
                await ledger.supersede(missing_id, "Ann likes milk", source_ref="m3")

    with_ledger(work)


def test_forgetting_shows_first_and_then_removes() -> None:
    async def work(ledger: Ledger) -> None:
        await noted(ledger, "Ann likes tea", "Bob likes tea", "Cem likes rain")
        which = FactFilter(words="TEA")
        assert len(await ledger.forget(which, preview=True)) == 2
        assert len(await ledger.latest()) == 3
        assert len(await ledger.forget(which)) == 2
        assert texts(await ledger.top("likes tea")) == ["Cem likes rain"]
        with pytest.raises(StoreError, match="filter is empty"):
            await ledger.forget(FactFilter())
        assert await ledger.forget([]) == []

    with_ledger(work)


def test_secrets_are_refused_whatever_the_policy() -> None:
    key = "AKIA" + run(16, UPPER)

    async def work(ledger: Ledger) -> None:
        with pytest.raises(PrivacyError, match="aws_access_key"):
            await noted(ledger, f"The key of the store is {key}")
        messages = [{"role": "user", "content": f"I put the key {key} into the vault in Rome."}]
        assert await ledger.extract(messages) == []
        assert await ledger.latest() == []
        (stored,) = await noted(ledger, "Ann's address is ann@firm.example.org")
        assert "ann@firm" in stored.text

    with_ledger(work)


def test_personal_data_is_masked_if_the_policy_says_so() -> None:
    async def work() -> None:
        store = open_memory()
        ledger = Ledger(store, HERE, FactIndexCache(store, None), privacy="mask")
        (stored,) = await noted(ledger, "Ann's address is ann@firm.example.org")
        assert stored.text == "Ann's address is [email masked]"

    asyncio.run(work())


def test_two_processes_on_one_file_see_each_others_facts_at_once(tmp_path: object) -> None:
    async def work() -> None:
        url = f"sqlite:///{tmp_path}/holdfast.db"
        first_store, second_store = [await open_store(url) for _ in range(2)]
        first, second = ledger_of(first_store), ledger_of(second_store)
        (old,) = await noted(first, "Ann lives in Rome", subject="home", at=1.0)
        assert texts(await second.top("Ann")) == ["Ann lives in Rome"]
        await noted(second, "Ann lives in Oslo", subject="home", at=2.0)
        assert texts(await first.top("Ann")) == ["Ann lives in Oslo"]
        await first.forget(FactFilter(words="oslo"))
        assert await second.top("Ann") == []
        assert [each.id for each in await second.history(old.id)] == [old.id]
        await first_store.close()
        await second_store.close()

    asyncio.run(work())


def test_indexes_of_scopes_that_were_asked_long_ago_are_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert MOST_ROWS > 100_000
    monkeypatch.setattr("holdfast.facts.index_cache.MOST_ROWS", 5)

    async def work() -> None:
        store = open_memory()
        indexes = FactIndexCache(store, None)
        ledgers = [Ledger(store, Scope("ann", f"w{n}"), indexes) for n in range(4)]
        for _ in range(2):
            for ledger in ledgers:
                await noted(ledger, "One thing", "Two things", "Three things")
                assert len(await ledger.top("thing")) == 3
                assert indexes.rows <= 6

    asyncio.run(work())


def test_an_index_of_many_changes_is_built_anew_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.facts.index_cache._AT_ONCE", 5)

    async def work() -> None:
        ledger = ledger_of(open_memory())
        for n in range(40):
            await noted(ledger, f"The count is {n}", subject="count", at=float(n))
            assert texts(await ledger.top("count")) == [f"The count is {n}"]
        await noted(ledger, *(f"Number {n}" for n in range(20)))
        assert len(await ledger.top("number", k=30)) == 21

    asyncio.run(work())


def test_nobody_finds_the_facts_of_others() -> None:
    async def work() -> None:
        store = open_memory()
        indexes = FactIndexCache(store, None)
        mine, theirs = Ledger(store, HERE, indexes), Ledger(store, OTHER_USER, indexes)
        (fact,) = await noted(mine, "Ann lives in Rome", standing=True)
        assert await theirs.top("Ann Rome") == []
        assert await theirs.latest() == []
        assert await theirs.history(fact.id) == await theirs.forget([fact.id]) == []
        assert texts(await mine.top("Rome")) == ["Ann lives in Rome"]

    asyncio.run(work())


def test_extracted_facts_have_the_tags_that_were_given() -> None:
    async def work(ledger: Ledger) -> None:
        messages = [
            {"role": "user", "content": "I moved to Oslo last week.", "id": "m1", "at": 1e9}
        ]
        (fact,) = await ledger.extract(messages, session="a", tags=("travel",))
        assert fact.tags == ("travel",)
        assert [each.text for each in await ledger.latest(tag="travel")] == [fact.text]

    with_ledger(work)


def test_facts_of_a_result_have_the_time_that_was_given() -> None:
    async def work(ledger: Ledger) -> None:
        order = '{"order_id": "A-17", "status": "shipped", "total": 40}'
        (fact,) = await ledger.extract(order, source_ref="r1", at=1e9)
        assert fact.created_at == 1e9

    with_ledger(work)
