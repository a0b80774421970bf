"""The deadline of store work on a request's path, and the circuit breaker; without wall time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from holdfast.errors import StoreUnavailableError
from holdfast.store import deadline
from holdfast.store.deadline import (
    PROBE_SECONDS,
    REQUEST_SECONDS,
    Breaker,
    StoreBudget,
    store_deadline,
    without_deadline,
)


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time advances when nothing is ready: each timer fires exactly."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        timers = self._scheduled  # type: ignore[attr-defined]
        waiting = [timer.when() for timer in timers if not timer.cancelled()]
        if not self._ready and waiting:  # type: ignore[attr-defined]
            self._now = max(self._now, min(waiting))
        super()._run_once()  # type: ignore[misc]


def run(work: Callable[[Clock], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=Clock) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, Clock)
        runner.run(work(loop))


class Store:
    """A store that answers after some seconds, or never."""

    def __init__(self) -> None:
        self.breaker = Breaker("here")
        self.breaker.check = self.ask
        self.seconds = 0.0
        self.asked = 0
        self.abandoned = 0

    async def ask(self) -> None:
        self.breaker.admit()
        self.asked += 1
        answer = asyncio.ensure_future(asyncio.sleep(self.seconds))
        await self.breaker.run(answer, self._abandon)

    def _abandon(self) -> None:
        self.abandoned += 1


NEVER = 1e6


def test_all_operations_of_a_request_share_one_deadline() -> None:
    async def work(loop: Clock) -> None:
        store = Store()
        store.seconds = REQUEST_SECONDS * 0.4
        with store_deadline():
            await store.ask()
            await asyncio.sleep(100)  # background work costs a request nothing
            await store.ask()
            began = loop.time()
            with pytest.raises(StoreUnavailableError):
                await store.ask()
        assert loop.time() - began == pytest.approx(REQUEST_SECONDS * 0.2)
        assert store.abandoned == 1

    run(work)


def test_operations_at_the_same_time_are_charged_once() -> None:
    async def work(_: Clock) -> None:
        store = Store()
        store.seconds = REQUEST_SECONDS * 0.9
        with store_deadline():
            await asyncio.gather(*(store.ask() for _ in range(5)))

    run(work)


class BoundStore(Store):
    """A store whose operations are futures of another thread, as SQLite's are."""

    async def ask(self) -> None:
        self.breaker.admit()
        self.asked += 1
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        timer = loop.call_later(self.seconds, answer.set_result, None)
        self.breaker.bound(answer, self._abandon)
        try:
            await answer
        finally:
            timer.cancel()


@pytest.mark.parametrize("kind", [Store, BoundStore])
def test_operations_one_after_the_other_and_beside_each_other_end_at_one_deadline(
    kind: type[Store],
) -> None:
    async def work(loop: Clock) -> None:
        store = kind()
        with store_deadline():
            store.seconds = REQUEST_SECONDS * 0.25
            await store.ask()
            began = loop.time()
            store.seconds = NEVER
            first = asyncio.ensure_future(store.ask())
            await asyncio.sleep(REQUEST_SECONDS * 0.5)
            second = asyncio.ensure_future(store.ask())
            for operation in (first, second):
                with pytest.raises(StoreUnavailableError):
                    await operation
                assert loop.time() - began == pytest.approx(REQUEST_SECONDS * 0.75)
        assert store.abandoned == 2

    run(work)


def test_after_the_deadline_nobody_waits_and_nothing_is_asked_until_a_probe_succeeds() -> None:
    async def work(loop: Clock) -> None:
        store = Store()
        store.seconds = NEVER
        with store_deadline(), pytest.raises(StoreUnavailableError):
            await store.ask()
        for _ in range(3):
            began, asked = loop.time(), store.asked
            with store_deadline(), pytest.raises(StoreUnavailableError):
                await store.ask()
            assert loop.time() == began
            assert store.asked == asked
        store.seconds = 0.0
        await asyncio.sleep(PROBE_SECONDS * 2)
        assert not store.breaker.is_open
        with store_deadline():
            await store.ask()

    run(work)


def test_a_probe_that_hangs_ends_at_the_deadline_and_the_next_one_may_succeed() -> None:
    async def work(_: Clock) -> None:
        store = Store()
        store.seconds = NEVER
        with store_deadline(), pytest.raises(StoreUnavailableError):
            await store.ask()
        await asyncio.sleep(PROBE_SECONDS * 2)  # the first probe fails
        store.seconds = 0.0
        await asyncio.sleep(REQUEST_SECONDS + PROBE_SECONDS * 2)
        assert not store.breaker.is_open

    run(work)


def test_a_store_with_too_much_to_do_is_not_taken_for_one_that_hangs() -> None:
    async def one(store: Store, seconds: float) -> None:
        store.seconds = seconds
        with store_deadline():
            await store.ask()

    async def work(_: Clock) -> None:
        store = Store()
        slow = asyncio.create_task(one(store, REQUEST_SECONDS * 0.9))
        await asyncio.sleep(0.1)
        with pytest.raises(StoreUnavailableError):
            await one(store, NEVER)
        await slow
        assert not store.breaker.is_open

    run(work)


def test_work_without_a_deadline_waits_even_while_the_breaker_is_open() -> None:
    async def work(loop: Clock) -> None:
        store = Store()
        store.seconds = NEVER
        with store_deadline():
            with pytest.raises(StoreUnavailableError):
                await store.ask()
            store.seconds = REQUEST_SECONDS * 50
            task = asyncio.create_task(store.ask(), context=without_deadline())
        await task
        assert loop.time() >= REQUEST_SECONDS * 50

    run(work)


def test_a_page_has_no_deadline_but_does_not_wait_for_a_store_that_hangs() -> None:
    async def work(loop: Clock) -> None:
        store = Store()
        store.seconds = REQUEST_SECONDS * 50
        with store_deadline(math.inf):
            assert not deadline.has_deadline()
            await store.ask()
            store.breaker.is_open = True
            began = loop.time()
            with pytest.raises(StoreUnavailableError):
                await store.ask()
            assert loop.time() == began

    run(work)


def test_who_is_cancelled_takes_its_operation_along() -> None:
    async def work(_: Clock) -> None:
        store = Store()
        store.seconds = NEVER
        running: list[asyncio.Task[None]] = []

        async def ask() -> None:
            answer = asyncio.create_task(asyncio.sleep(NEVER))
            running.append(answer)
            await store.breaker.run(answer)

        with store_deadline():
            asking = asyncio.create_task(ask())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait({asking, *running})
        assert running[0].cancelled()
        assert not store.breaker.is_open

    run(work)


def test_an_error_of_the_operation_is_that_of_whoever_waits() -> None:
    async def fail() -> None:
        raise KeyError

    async def work(_: Clock) -> None:
        with store_deadline(), pytest.raises(KeyError):
            await Breaker("here").run(asyncio.ensure_future(fail()))

    run(work)


def test_a_probe_of_a_loop_that_has_ended_is_begun_anew_in_the_next() -> None:
    store = Store()

    async def hang(_: Clock) -> None:
        store.seconds = NEVER
        with store_deadline(), pytest.raises(StoreUnavailableError):
            await store.ask()

    async def recover(_: Clock) -> None:
        store.seconds = 0.0
        with store_deadline(), pytest.raises(StoreUnavailableError):
            await store.ask()
        await asyncio.sleep(PROBE_SECONDS * 2)
        assert not store.breaker.is_open

    run(hang)
    run(recover)


def test_a_budget_that_is_spent_leaves_no_time() -> None:
    budget = StoreBudget(deadline.REQUEST_SECONDS)
    assert budget.begin(10.0) == REQUEST_SECONDS
    assert budget.begin(11.0) == REQUEST_SECONDS - 1.0
    budget.end(11.5)
    budget.end(12.0)
    assert budget.begin(20.0) == 0.0
