"""Lanes: tenants take turns, nobody is forgotten, and no slot is lost to one who leaves."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.workers import Workers, WorkLimits, work_for
from holdfast.workers.lanes import FairLane, current_tenant

LONG = 2_000_000
"""Bytes of a task for the lane of long ones."""


async def order_of(requests: list[str], slots: int = 1, reserve: int = 0) -> list[str]:
    """Return the order in which waiting tasks of tenants get the slots of a busy lane."""
    lane = FairLane(slots, reserve=reserve)
    for n in range(slots):
        await lane.enter(f"busy {n}")
    order: list[str] = []

    async def task(tenant: str) -> None:
        await lane.enter(tenant)
        order.append(tenant)
        lane.leave(tenant)

    tasks = []
    for tenant in requests:
        tasks.append(asyncio.create_task(task(tenant)))
        await asyncio.sleep(0)
    for n in range(slots):
        lane.leave(f"busy {n}")
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
        await lane.enter("many")
        second = asyncio.create_task(lane.enter("many"))
        await asyncio.sleep(0)
        assert not second.done()
        await lane.enter("one")
        assert lane.running == 2
        lane.leave("many")
        await second
        lane.leave("many")
        lane.leave("one")
        assert lane.running == 0

    asyncio.run(main())


def test_a_client_that_leaves_the_queue_takes_no_slot_with_it() -> None:
    async def main() -> None:
        lane = FairLane(1)
        await lane.enter("a")
        gone = asyncio.create_task(lane.enter("b"))
        last = asyncio.create_task(lane.enter("c"))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        lane.leave("a")
        await last
        lane.leave("c")
        # The slot is given and its task cancelled in the same step of the loop.
        await lane.enter("a")
        unlucky = asyncio.create_task(lane.enter("b"))
        await asyncio.sleep(0)
        lane.leave("a")
        unlucky.cancel()
        await asyncio.gather(unlucky, return_exceptions=True)
        assert lane.running == lane.waiting == 0

    asyncio.run(main())


def test_a_thread_waits_for_a_slot_only_as_long_as_it_may() -> None:
    lane = FairLane(1)
    assert lane.enter_in_thread("a")
    assert not lane.enter_in_thread("b", 0)
    lane.leave("a")
    assert lane.enter_in_thread("b", 0)
    lane.leave("b")
    assert lane.running == lane.waiting == 0


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
