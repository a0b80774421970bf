"""Daily use: fitting calls are admitted, even concurrently, and no reservation remains."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import StoreConflictError
from holdfast.store import Scope, Store, open_store
from holdfast.store.usage_ledger import Amount, DayUse, Reservation, admits
from tests.store.harness import HERE, OTHER_USER, OTHER_WORKSPACE, Opener

LIMITS = Amount(100, 0.0)
LATER = 1_000.0


def call(token: str, tokens: int, *, day: int = 7, least: int = 0) -> Reservation:
    return Reservation(
        token=token, day=day, most=Amount(tokens), least=Amount(least), expires_at=LATER
    )


async def use_of(store: Store, scope: Scope = HERE, day: int = 7) -> DayUse:
    return await store.ledger.day_use(scope, day)


def test_of_many_at_once_only_those_go_that_fit_together(opener: Opener) -> None:
    async def work(store: Store) -> None:
        calls = [call(str(n), 30) for n in range(30)]
        answers = await asyncio.gather(
            *(store.ledger.reserve(HERE, one, LIMITS, 0.0) for one in calls)
        )
        admitted = [one for one, (ok, _) in zip(calls, answers, strict=True) if ok]
        assert len(admitted) == 3
        use = await use_of(store)
        assert (use.used, use.reserved, use.open_calls) == (Amount(), Amount(90), 3)
        for one in admitted:
            await store.ledger.settle(HERE, one, Amount(10, 0.5))
        use = await use_of(store)
        assert (use.used, use.open_calls) == (Amount(30, 1.5), 0)

    opener.run(work)


def test_processes_on_one_store_admit_together_what_fits(opener: Opener) -> None:
    if opener.kind == "memory":
        pytest.skip("a memory has one process")

    async def work(store: Store) -> None:
        other = await open_store(opener.url)
        try:
            stores = (store, other)
            answers = await asyncio.gather(
                *(
                    stores[n % 2].ledger.reserve(HERE, call(str(n), 30), LIMITS, 0.0)
                    for n in range(20)
                )
            )
            assert sum(admitted for admitted, _ in answers) == 3
        finally:
            await other.close()

    opener.run(work)


def test_neither_tokens_nor_dollars_of_others_count(opener: Opener) -> None:
    spent = {
        OTHER_USER: Amount(11, 0.5),
        HERE: Amount(),
        OTHER_WORKSPACE: Amount(13, 2.5),
        Scope("bob", "red"): Amount(17, 4.5),
    }

    async def work(store: Store) -> None:
        for scope, amount in spent.items():
            if amount != Amount():
                await store.ledger.reserve(scope, call("t", 20), LIMITS, 0.0)
                await store.ledger.settle(scope, call("t", 20), amount)
                await store.ledger.reserve(scope, call("open", amount.tokens), LIMITS, 0.0)
        for scope, amount in spent.items():
            use = await use_of(store, scope)
            assert (use.used, use.reserved) == (amount, Amount(amount.tokens))

    opener.run(work)


def test_a_token_that_is_open_is_refused_and_counts_once(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.ledger.reserve(HERE, call("same", 10), LIMITS, 0.0)
        with pytest.raises(StoreConflictError, match="reservation"):
            await store.ledger.reserve(HERE, call("same", 20), LIMITS, 0.0)
        use = await use_of(store)
        assert (use.reserved, use.open_calls) == (Amount(10), 1)
        await store.ledger.settle(HERE, call("same", 10), Amount(5))
        admitted, _ = await store.ledger.reserve(HERE, call("same", 20), LIMITS, 0.0)
        assert admitted

    opener.run(work)


def test_another_tenant_has_a_day_of_its_own(opener: Opener) -> None:
    async def work(store: Store) -> None:
        mine = call("same", 90)
        assert (await store.ledger.reserve(HERE, mine, LIMITS, 0.0))[0]
        for scope in (OTHER_USER, OTHER_WORKSPACE):
            assert await use_of(store, scope) == DayUse()
            theirs = call("same", 90, least=90)
            assert (await store.ledger.reserve(scope, theirs, LIMITS, 0.0))[0]
            await store.ledger.renew(scope, "same", LATER + 1)
            await store.ledger.settle(scope, theirs, Amount(50))
        assert (await use_of(store)).reserved == Amount(90)
        await store.ledger.settle(HERE, mine, Amount(5))
        assert (await use_of(store)).used == Amount(5)
        for scope in (OTHER_USER, OTHER_WORKSPACE):
            assert (await use_of(store, scope)).used == Amount(50)

    opener.run(work)


def test_what_a_process_left_when_it_died_counts_with_its_least(opener: Opener) -> None:
    async def work(store: Store) -> None:
        lost, held = call("lost", 40, least=4), call("held", 40, least=4)
        assert (await store.ledger.reserve(HERE, lost, LIMITS, 0.0))[0]
        assert (await store.ledger.reserve(HERE, held, LIMITS, 0.0))[0]
        await store.ledger.renew(HERE, "held", LATER * 2)
        assert (await use_of(store)).reserved == Amount(80)
        next_call = call("next", 1)
        assert (await store.ledger.reserve(HERE, next_call, LIMITS, LATER))[0]
        use = await use_of(store)
        assert (use.used, use.reserved, use.open_calls) == (Amount(4), Amount(41), 2)
        await store.ledger.settle(HERE, next_call, Amount())
        # It was only slow: its use above the minimum is added, once.
        await store.ledger.settle(HERE, lost, Amount(10))
        await store.ledger.settle(HERE, held, Amount(1))
        assert (await use_of(store)).used == Amount(11)

    opener.run(work)


def test_a_day_begins_with_nothing_used_and_late_answers_belong_to_their_own(
    opener: Opener,
) -> None:
    async def work(store: Store) -> None:
        evening = call("evening", 100, day=7)
        assert (await store.ledger.reserve(HERE, evening, LIMITS, 0.0))[0]
        assert await use_of(store, day=8) == DayUse()
        await store.ledger.settle(HERE, evening, Amount(100))
        assert await use_of(store, day=8) == DayUse()
        assert (await use_of(store, day=7)).used == Amount(100)

    opener.run(work)


@given(
    limit=st.integers(1, 50),
    calls=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=30),
    ends=st.lists(st.integers(0, 29), max_size=30),
)
def test_a_day_exceeds_its_limit_by_less_than_one_call(
    limit: int, calls: list[tuple[int, int]], ends: list[int]
) -> None:
    """Calls use at most their reservation, and end in any order."""
    used, largest = 0, 0
    under_way: list[tuple[int, int]] = []
    for number, (one, other) in enumerate(calls):
        most, actual = max(one, other), min(one, other)
        use = DayUse(
            used=Amount(used),
            reserved=Amount(sum(reserved for reserved, _ in under_way)),
            open_calls=len(under_way),
        )
        if admits(use, Amount(most), Amount(limit)):
            under_way.append((most, actual))
            largest = max(largest, actual)
        if under_way and number < len(ends):
            used += under_way.pop(ends[number] % len(under_way))[1]
    used += sum(actual for _, actual in under_way)
    assert used < limit + max(largest, 1)


def test_tenants_with_the_same_token_neither_renew_nor_expire_one_another(opener: Opener) -> None:
    tenants = (HERE, OTHER_USER, OTHER_WORKSPACE)

    async def open_calls(store: Store) -> list[int]:
        return [(await use_of(store, scope)).open_calls for scope in tenants]

    async def work(store: Store) -> None:
        for scope in tenants:
            await store.ledger.reserve(scope, call("same", 30, least=5), LIMITS, 0.0)
        await store.ledger.renew(HERE, "same", LATER + 500)
        await store.ledger.reserve(HERE, call("new", 30), LIMITS, LATER + 1)
        assert await open_calls(store) == [2, 1, 1]
        for scope in tenants[1:]:
            _, use = await store.ledger.reserve(scope, call("new", 30), LIMITS, LATER + 1)
            assert (use.used, use.open_calls) == (Amount(5), 0), "it was renewed by another"
        assert await open_calls(store) == [2, 1, 1]
        assert (await use_of(store)).used == Amount()

    opener.run(work)
