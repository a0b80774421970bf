"""Room for what tools answer: 002-28 to 002-35, 002-40."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import SettingsError, StoreError
from holdfast.guard import ContextGuardEvent, OverflowMode, ToolPolicy, ToolReservation
from holdfast.store import Content, Scope, Store, open_store
from holdfast.store.refs import digest, ref_id
from tests.guard.harness import AwaitedHandles, Handles, Told, guard


@pytest.mark.parametrize(("tokens", "ok"), [("999", True), ("1000", True), ("1001", False)])
def test_an_output_that_fills_the_limit_is_taken_and_one_more_token_is_not(
    tokens: str, ok: bool
) -> None:
    it = guard(1000)
    assert it.reserve_tool_output(tokens).ok is ok
    assert it.counters.new == (int(tokens) if ok else 0)


def test_a_taken_output_is_added_to_new() -> None:
    it = guard(1000)
    assert it.reserve_tool_output("600") == ToolReservation(ok=True, tokens=600, text="600")
    assert it.counters.new == 600


def test_two_outputs_of_600_do_not_both_fit_1000() -> None:
    told = Told()
    it = guard(1000, listener=told)
    assert it.reserve_tool_output("600").ok
    assert it.reserve_tool_output("600") == ToolReservation(
        ok=False, tokens=600, reason="token_budget_exceeded"
    )
    assert it.tool_budget_exceeded
    assert it.forced_final_turn_reason == "context"
    (event,) = told.of(ContextGuardEvent)
    assert (event.trigger, event.outcome, event.projected_tokens) == (
        "tool_preflight",
        "forced_final",
        1200,
    )


def test_the_first_refusal_alone_forces_the_final_turn() -> None:
    told = Told()
    it = guard(1000, listener=told)
    for _ in range(3):
        it.reserve_tool_output("1001")
    assert len(told.of(ContextGuardEvent)) == 1


def test_refusals_after_the_first_are_silent_even_when_the_conversation_alone_is_over() -> None:
    told = Told()
    it = guard(1000, current_tokens=2000, listener=told)
    it.reserve_tool_output("1")
    heard = list(told)
    it.reserve_tool_output("1")
    assert told == heard


def test_schema_counts_before_a_tool_as_it_does_before_a_request() -> None:
    it = guard(1000)
    it.set_schema(500)
    assert it.reserve_tool_output("500").ok
    assert not it.reserve_tool_output("1").ok


def test_tools_stop_after_a_refusal_but_internal_ones_never() -> None:
    it = guard(1000, internal_tools=("progress",))
    assert it.can_execute_tool("search")
    it.reserve_tool_output("1001", tool="search")
    assert not it.can_execute_tool("search")
    assert not it.can_execute_tool()
    assert it.can_execute_tool("progress")
    assert it.can_execute_tool("agent__final_report")


def test_output_of_an_internal_tool_is_counted_and_never_refused() -> None:
    it = guard(1000, current_tokens=1000)
    for tool in ("agent__final_report", "agent__progress_report"):
        assert it.reserve_tool_output("50", tool).ok
    assert it.counters.new == 100
    assert not it.tool_budget_exceeded


def test_what_is_still_small_enough_is_taken_after_a_refusal() -> None:
    it = guard(1000)
    assert not it.reserve_tool_output("1001").ok
    assert it.reserve_tool_output("1000").ok


@pytest.mark.parametrize(("policy", "ok"), [("any", False), ("all", True)])
def test_the_policy_says_whether_one_blocked_target_refuses_an_output(
    policy: str, ok: bool
) -> None:
    it = guard(1000, 500, tool_policy=policy)
    assert it.reserve_tool_output("600").ok is ok


def test_all_targets_blocked_refuse_under_either_policy() -> None:
    assert not guard(1000, 500, tool_policy="all").reserve_tool_output("1001").ok


@pytest.mark.parametrize("mode", ["force_final", "best_effort", "raise"])
def test_a_reservation_never_raises_and_raise_mode_forces_nothing(mode: OverflowMode) -> None:
    it = guard(1000, on_overflow=mode)
    assert not it.reserve_tool_output("1001").ok
    assert it.tool_budget_exceeded
    assert it.forced_final_turn_reason == (None if mode == "raise" else "context")


# With a store: 002-35, C43, X08


def test_an_output_that_does_not_fit_is_stored_and_its_handle_reserved() -> None:
    store = Handles(7)
    it = guard(1000, store=store)
    assert it.reserve_tool_output("5000") == ToolReservation(
        ok=True, tokens=7, text="7", stored=True
    )
    assert store.outputs == ["5000"]
    assert it.counters.new == 7
    assert it.forced_final_turn_reason is None


def test_an_output_that_fits_is_not_stored() -> None:
    store = Handles(7)
    assert guard(1000, store=store).reserve_tool_output("1000").text == "1000"
    assert store.outputs == []


def test_output_over_the_byte_limit_is_budgeted_as_its_handle() -> None:
    it = guard(1000, store=Handles(7), tool_response_max_bytes=3)
    assert it.reserve_tool_output("100").text == "100"
    assert it.reserve_tool_output("0100") == ToolReservation(
        ok=True, tokens=7, text="7", stored=True
    )


def test_the_handle_is_returned_even_if_its_reservation_fails() -> None:
    it = guard(1000, current_tokens=995, store=Handles(7))
    assert it.reserve_tool_output("5000") == ToolReservation(
        ok=False, tokens=7, reason="token_budget_exceeded", text="7", stored=True
    )
    assert it.forced_final_turn_reason == "context"


def test_a_failing_store_leaves_the_counters_as_they_were() -> None:
    class Full(Handles):
        def keep(self, output: str) -> None:
            raise StoreError(f"no room for {len(output)} characters")

    it = guard(1000, store=Full(7))
    with pytest.raises(StoreError, match="no room"):
        it.reserve_tool_output("5000")
    assert it.counters.new == 0
    assert not it.tool_budget_exceeded


def test_a_store_may_have_to_be_awaited() -> None:
    store = AwaitedHandles(7)
    it = guard(1000, store=store)
    assert asyncio.run(it.areserve_tool_output("5000")) == ToolReservation(
        ok=True, tokens=7, text="7", stored=True
    )
    assert store.outputs == ["5000"]
    assert it.counters.new == 7


def test_the_store_of_the_engine_serves_as_it_is_documented() -> None:
    async def work() -> None:
        store = await open_store("memory:")
        it = guard(1000, store=StoreOfOutputs(store, Scope()))
        reservation = await it.areserve_tool_output("5000")
        stored = await store.get(Scope(), StoreOfOutputs.ref_of("5000"))
        assert reservation.stored
        assert stored is not None
        assert stored.data == b"5000"
        await store.close()

    asyncio.run(work())


class StoreOfOutputs:
    """Tool outputs in our store; here a handle costs as many tokens as it is long."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self.store = store
        self.scope = scope

    @staticmethod
    def ref_of(output: str) -> str:
        return ref_id("tool", digest(output.encode()))

    def handle(self, output: str) -> str:
        return str(len(self.ref_of(output)))

    async def keep(self, output: str) -> None:
        data = output.encode()
        content = Content(ref_id=self.ref_of(output), kind="tool", sha256=digest(data), data=data)
        await self.store.put(self.scope, [content])


def test_a_store_that_need_not_be_awaited_serves_both_ways() -> None:
    store = Handles(7)
    it = guard(1000, store=store)
    assert asyncio.run(it.areserve_tool_output("5000")) == it.reserve_tool_output("5000")
    assert store.outputs == ["5000", "5000"]


def test_a_store_that_must_be_awaited_is_refused_where_nobody_can_wait() -> None:
    store = AwaitedHandles(7)
    it = guard(1000, store=store)
    assert it.reserve_tool_output("900").ok  # what fits needs no store
    with pytest.raises(SettingsError, match="Await areserve_tool_output"):
        it.reserve_tool_output("5000")
    assert store.outputs == []
    assert it.counters.new == 900


@given(
    limits=st.lists(st.integers(0, 60), min_size=1, max_size=3),
    policy=st.sampled_from(["any", "all"]),
    mode=st.sampled_from(["force_final", "raise", "best_effort"]),
    handle=st.none() | st.integers(0, 12),
    most_bytes=st.none() | st.integers(0, 6),
    outputs=st.lists(
        st.tuples(
            st.builds("{:0{}}".format, st.integers(0, 70), st.integers(1, 8)),
            st.sampled_from(["", "search", "agent__final_report", "agent__progress_report"]),
        ),
        max_size=8,
    ),
)
def test_what_is_taken_is_counted_as_it_stands_and_what_is_stored_is_a_handle(
    limits: list[int],
    policy: ToolPolicy,
    mode: OverflowMode,
    handle: int | None,
    most_bytes: int | None,
    outputs: list[tuple[str, str]],
) -> None:
    store = None if handle is None else Handles(handle)
    it = guard(
        *limits,
        tool_policy=policy,
        on_overflow=mode,
        store=store,
        tool_response_max_bytes=most_bytes,
    )
    for output, tool in outputs:
        stored_before = 0 if store is None else len(store.outputs)
        new_before = it.counters.new
        reservation = it.reserve_tool_output(output, tool)
        assert it.counters.new - new_before == (reservation.tokens if reservation.ok else 0)
        assert reservation.ok is (reservation.reason == "")
        assert store is None or (len(store.outputs) > stored_before) == reservation.stored
        if reservation.stored:
            assert store is not None
            assert reservation.text == store.handle(output)
        else:
            assert reservation.text == (output if reservation.ok else "")


def test_a_reservation_shows_no_text() -> None:
    assert "secret" not in repr(ToolReservation(ok=True, tokens=1, text="secret"))


# At the same time: 002-28, 002-34, X07


@pytest.mark.parametrize("tokens", [1, 7, 600])
def test_threads_that_reserve_at_once_never_exceed_the_limit_together(tokens: int) -> None:
    workers, each, limit = 8, 200, 1000
    told = Told()
    it = guard(limit, listener=told)
    barrier = threading.Barrier(workers)

    def reserve_many() -> int:
        barrier.wait()
        taken = [it.reserve_tool_output(str(tokens)) for _ in range(each)]
        return sum(found.tokens for found in taken if found.ok)

    with ThreadPoolExecutor(workers) as pool:
        reserved = sum(f.result() for f in [pool.submit(reserve_many) for _ in range(workers)])
    assert reserved == it.counters.new == limit // tokens * tokens
    assert len(told.of(ContextGuardEvent)) == 1


def test_threads_of_every_kind_lose_no_token() -> None:
    workers, each = 4, 300
    it = guard(10**9)
    barrier = threading.Barrier(3 * workers)

    def run(act: str) -> None:
        barrier.wait()
        for _ in range(each):
            if act == "tool":
                it.reserve_tool_output("3")
            elif act == "pending":
                it.add_pending(5)
            else:
                it.commit()

    with ThreadPoolExecutor(3 * workers) as pool:
        futures = [pool.submit(run, act) for act in ("tool", "pending", "commit") * workers]
        for future in futures:
            future.result()
    assert it.evaluate().projected_tokens == workers * each * (3 + 5)


def test_tasks_that_reserve_at_once_see_each_other() -> None:
    it = guard(1000)

    async def tool() -> bool:
        await asyncio.sleep(0)
        return it.reserve_tool_output("600").ok

    async def both() -> list[bool]:
        return list(await asyncio.gather(tool(), tool()))

    assert sorted(asyncio.run(both())) == [False, True]
    assert it.counters.new == 600
