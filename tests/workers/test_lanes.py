"""Lanes: tenants take turns, nobody is forgotten, and no slot is lost to one who leaves."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.workers import Workers, WorkLimits, work_for
from holdfast.workers.lanes import FairLane, Slot, current_tenant

LONG = 2_000_000
"""Bytes of a task for the lane of long ones."""


async def order_of(requests: list[str], slots: int = 1, reserve: int = 0) -> list[str]:
    """Return the order in which waiting tasks of tenants get the slots of a busy lane."""
    lane = FairLane(slots, reserve=reserve)
    busy = [await lane.enter(f"busy {n}") for n in range(slots)]
    order: list[str] = []

    async def task(tenant: str) -> None:
        slot = await lane.enter(tenant)
        order.append(tenant)
        slot.release()

    tasks = []
    for tenant in requests:
        tasks.append(asyncio.create_task(task(tenant)))
        await asyncio.sleep(0)
    for slot in busy:
        slot.release()
    await asyncio.gather(*tasks)
    assert lane.running == lane.waiting == 0
    return order


def test_a_tenant_with_one_task_does_not_wait_for_all_of_another() -> None:
    order = asyncio.run(order_of(["many"] * 5 + ["one"]))
    assert order == ["many", "one", "many", "many", "many", "many"]


@given(st.lists(st.sampled_from("abcd"), max_size=30))
@settings(deadline=None, max_examples=60)
def test_no_tenant_gets_a_second_turn_while_another_waits_for_its_first(
    requests: list[str],
) -> None:
    order = asyncio.run(order_of(requests))
    assert Counter(order) == Counter(requests)
    waiting, turns = Counter(requests), Counter[str]()
    for tenant in order:
        turns[tenant] += 1
        waiting[tenant] -= 1
        behind = [turns[other] for other in waiting if waiting[other]]
        assert all(turns[tenant] - 1 <= count for count in behind)


def test_a_reserved_slot_is_for_a_tenant_that_has_nothing_at_work() -> None:
    async def main() -> None:
        lane = FairLane(1, reserve=1)
        first = await lane.enter("many")
        second = asyncio.create_task(lane.enter("many"))
        await asyncio.sleep(0)
        assert not second.done()
        newcomer = await lane.enter("one")
        assert lane.running == 2
        first.release()
        (await second).release()
        newcomer.release()
        assert lane.running == 0

    asyncio.run(main())


def test_a_client_that_leaves_the_queue_takes_no_slot_with_it() -> None:
    async def main() -> None:
        lane = FairLane(1)
        slot = await lane.enter("a")
        gone = asyncio.create_task(lane.enter("b"))
        last = asyncio.create_task(lane.enter("c"))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        slot.release()
        (await last).release()
        # The slot is given and its task cancelled in the same step of the loop.
        slot = await lane.enter("a")
        unlucky = asyncio.create_task(lane.enter("b"))
        await asyncio.sleep(0)
        slot.release()
        unlucky.cancel()
        await asyncio.gather(unlucky, return_exceptions=True)
        assert lane.running == lane.waiting == 0

    asyncio.run(main())


def test_a_thread_waits_for_a_slot_only_as_long_as_it_may() -> None:
    lane = FairLane(1)
    slot = lane.enter_in_thread("a")
    assert slot is not None
    assert lane.enter_in_thread("b", 0) is None
    slot.release()
    slot = lane.enter_in_thread("b", 0)
    assert slot is not None
    slot.release()
    assert lane.running == lane.waiting == 0


def test_a_slot_that_was_released_is_free_once_though_it_is_released_again() -> None:
    lane = FairLane(1)
    first = lane.enter_in_thread("a")
    assert first is not None
    first.release()
    second = lane.enter_in_thread("b")
    first.release()
    assert second is not None
    assert lane.running == 1
    assert lane.enter_in_thread("c", 0) is None


def test_a_slot_whose_task_is_gone_is_free_also_where_nobody_released_it() -> None:
    """A release that failed took the only slot of a lane with it, and all later requests waited."""

    async def main() -> None:
        lane = FairLane(1)
        slot: Slot | None = await lane.enter("a")
        waiting = asyncio.create_task(lane.enter("b"))
        await asyncio.sleep(0)
        assert lane.running == lane.waiting == 1
        slot = None  # noqa: F841 - the task ends without a word
        assert (await waiting).tenant == "b"

    asyncio.run(main())


def test_a_failed_release_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("no slot is released")

    async def main() -> None:
        workers = Workers(WorkLimits(processes=0))
        monkeypatch.setattr(FairLane, "release", refuse)
        done: list[int] = []
        try:
            for n in range(3):
                with suppress(RuntimeError):
                    await workers.off_loop(LONG, lambda n=n: done.append(n))  # type: ignore[misc]
        finally:
            workers.close()
        assert done == [0, 1, 2]

    asyncio.run(main())


def test_a_job_that_is_cancelled_before_it_runs_takes_no_slot_with_it() -> None:
    """The cancelled task was kept, and with it the slot: later jobs waited for ever."""

    async def main() -> None:
        workers = Workers(WorkLimits(processes=0))
        gate = threading.Event()
        threads = workers._threads = ThreadPoolExecutor(1)
        threads.submit(gate.wait, 30)  # all threads are busy
        try:
            task = asyncio.create_task(workers.off_loop(LONG, int))
            while not workers._long_lane.running:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as kept:
                await task
            assert workers._long_lane.running == 0, kept
        finally:
            gate.set()
            workers.close()

    asyncio.run(main())


def test_a_slot_is_lent_while_its_thread_waits_and_is_its_own_afterwards() -> None:
    lane = FairLane(1)
    slot = lane.enter_in_thread("a")
    assert slot is not None
    with slot.lent():
        other = lane.enter_in_thread("b", 0)
        assert other is not None
        other.release()
    assert lane.running == 1
    assert lane.enter_in_thread("b", 0) is None


def test_large_work_of_one_tenant_ends_before_the_queue_of_another() -> None:
    """One tenant's three large requests made another's wait for all three."""
    done: list[str] = []
    begun, gate = threading.Event(), threading.Event()

    def work(name: str) -> None:
        begun.set()
        if name.startswith("many"):
            assert gate.wait(30)
        assert current_tenant() == name.split(maxsplit=1)[0]
        done.append(name)

    async def request(workers: Workers, name: str) -> None:
        work_for(name.split(maxsplit=1)[0])
        await workers.off_loop(LONG, lambda: work(name))
        if name == "one":
            gate.set()

    async def main() -> None:
        workers = Workers(WorkLimits(processes=0))
        try:
            first = [asyncio.create_task(request(workers, f"many {n}")) for n in range(3)]
            await asyncio.to_thread(begun.wait, 30)
            await asyncio.gather(*first, asyncio.create_task(request(workers, "one")))
        finally:
            workers.close()

    asyncio.run(main())
    assert done[0] == "one"
