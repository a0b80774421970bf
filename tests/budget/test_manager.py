"""The manager: every request counts once, and none is allowed past a limit."""

from __future__ import annotations

import copy
import json
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import count, read
from holdfast.budget import (
    Allowance,
    LimitSummary,
    Overhead,
    TokenBudgetManager,
    Usage,
    book,
)
from holdfast.errors import BudgetExceededError, SettingsError
from holdfast.tokens import Calibration, TokenCount
from tests.budget.made import counted
from tests.budget.test_usage import MALFORMED

BODY = {"model": "gpt-4o", "messages": [{"role": "user", "content": "How are you today?"}]}


# --- what was used -----------------------------------------------------------------------------


def test_new_ledger_is_empty_and_exact() -> None:
    budget = TokenBudgetManager(input_limit=100).budget
    assert budget.input == Allowance(100, 0, approximate=False)
    assert (budget.input.remaining, budget.output.remaining) == (100, None)


def test_usage_adds_up_over_turns_and_providers() -> None:
    manager = TokenBudgetManager(input_limit=1000, output_limit=100, total_limit=1050)
    assert manager.track_usage("openai:gpt-4o", {"prompt_tokens": 100, "completion_tokens": 10})
    assert manager.track_usage("claude:opus", {"input_tokens": 200, "output_tokens": 20})
    assert manager.track_usage("claude:opus", {"input_tokens": 300, "output_tokens": 30})
    budget = manager.budget
    assert (budget.input.used, budget.output.used, budget.total.used) == (600, 60, 660)
    assert (budget.input.remaining, budget.output.remaining, budget.total.remaining) == (
        400,
        40,
        390,
    )
    assert not budget.total.approximate
    first, second = manager.snapshot().providers
    assert (first.provider, first.requests, first.input, first.output) == (
        "claude:opus",
        2,
        500,
        50,
    )
    assert (second.provider, second.requests) == ("openai:gpt-4o", 1)


def test_what_was_not_reported_is_approximate() -> None:
    manager = TokenBudgetManager()
    manager.track_usage("p", 100)
    budget = manager.budget
    assert (budget.input.approximate, budget.output.approximate) == (False, True)
    assert budget.total.approximate


def test_retry_of_a_request_counts_once_and_the_last_report_wins() -> None:
    manager = TokenBudgetManager()
    for tokens in (100, 130, 120):
        manager.track_usage("p", Usage(tokens, 5), request_id="r1")
    assert manager.budget.total.used == 125
    assert manager.snapshot().providers[0].requests == 1


def test_retry_at_another_provider_moves_there() -> None:
    manager = TokenBudgetManager()
    manager.track_usage("p", Usage(100, 5), request_id="r1")
    manager.track_usage("q", Usage(110, 5), request_id="r1")
    (only,) = manager.snapshot().providers
    assert (only.provider, only.requests, only.input) == ("q", 1, 110)


def test_requests_without_an_id_each_count() -> None:
    manager = TokenBudgetManager()
    for _ in range(3):
        manager.track_usage("p", 100)
    assert manager.budget.input.used == 300


def test_report_takes_the_place_of_an_estimate_and_never_the_other_way() -> None:
    manager = TokenBudgetManager()
    manager.track_usage("p", counted(90), request_id="r1")
    assert manager.budget.input == Allowance(None, 90, approximate=True)
    manager.track_usage("p", Usage(100, 7), request_id="r1")
    assert manager.budget.input == Allowance(None, 100, approximate=False)
    manager.track_usage("p", counted(90), request_id="r1")
    assert manager.budget.input == Allowance(None, 100, approximate=False)
    assert not manager.budget.total.approximate


def test_stream_that_reports_its_sides_one_after_the_other_keeps_both() -> None:
    manager = TokenBudgetManager()
    manager.track_usage("claude:opus", {"input_tokens": 100, "output_tokens": 1}, "r1")
    manager.track_usage("claude:opus", {"output_tokens": 50}, "r1")
    assert (manager.budget.input.used, manager.budget.output.used) == (100, 50)
    assert not manager.budget.total.approximate


def test_report_of_nothing_does_not_wipe_an_estimate() -> None:
    manager = TokenBudgetManager()
    manager.track_usage("p", counted(90), request_id="r1")
    assert not manager.track_usage("p", {"prompt_tokens": 0, "completion_tokens": 0}, "r1")
    assert manager.budget.input.used == 90


def test_overhead_is_what_counts_said_of_their_parts_once_per_request() -> None:
    manager = TokenBudgetManager()
    estimate = counted(100, system=10, tools=30, formatting=4)
    for number in range(2):
        manager.track_usage("p", estimate, request_id=f"r{number}")
        manager.track_usage("p", estimate, request_id=f"r{number}")
        manager.track_usage("p", Usage(104, 9), request_id=f"r{number}")
    assert manager.budget.overhead == Overhead(20, 60, 8)


def test_requests_too_old_to_correct_stay_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "MOST_REQUESTS", 2)
    manager = TokenBudgetManager()
    for name in ("a", "b", "c"):
        manager.track_usage("p", 10, request_id=name)
    manager.track_usage("p", 11, request_id="c")
    assert manager.budget.input.used == 31
    manager.track_usage("p", 11, request_id="a")
    assert manager.budget.input.used == 42


def test_request_heard_of_lately_can_still_be_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "MOST_REQUESTS", 2)
    manager = TokenBudgetManager()
    for name in ("a", "b", "a", "c"):
        manager.track_usage("p", 10, request_id=name)
    manager.track_usage("p", 11, request_id="a")
    assert manager.budget.input.used == 31


def test_providers_without_end_share_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "MOST_PROVIDERS", 2)
    manager = TokenBudgetManager()
    for number in range(5):
        manager.track_usage(f"p{number}", 10)
    assert {one.provider: one.input for one in manager.snapshot().providers} == {
        "p0": 10,
        "p1": 10,
        book.OTHERS: 30,
    }


@pytest.mark.parametrize("report", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("request_id", [None, "r1"])
def test_malformed_usage_is_refused_counted_and_changes_nothing(
    report: object, request_id: str | None
) -> None:
    manager = TokenBudgetManager(total_limit=1000)
    manager.track_usage("p", Usage(100, 5), request_id="r1")
    before = manager.snapshot()
    assert not manager.track_usage("p", report, request_id)
    after = manager.snapshot()
    assert (after.budget, after.providers) == (before.budget, before.providers)
    assert after.refused == 1
    assert "1 report of usage made no sense" in manager.report().text()


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31m", "x" * 513, None, 5, ["p"]])
def test_malformed_names_are_refused(name: Any) -> None:
    manager = TokenBudgetManager()
    with pytest.raises(SettingsError, match="provider_id"):
        manager.track_usage(name, 5)
    with pytest.raises(SettingsError, match="request_id"):
        manager.reserve("p", 5, name)
    assert manager.budget.total.used == 0


calls = st.lists(
    st.tuples(
        st.sampled_from(["p", "q", "r"]),
        st.integers(-5, 5000) | st.builds(Usage, st.integers(-2, 900), st.integers(-2, 900)),
        st.sampled_from([None, None, "1", "2", "3"]),
    ),
    max_size=30,
)


@given(calls)
def test_used_is_the_sum_of_the_last_reports_and_never_more_than_was_tracked(
    tracked: list[tuple[str, int | Usage, str | None]],
) -> None:
    manager = TokenBudgetManager()
    anonymous, named, most = 0, dict[str, list[int]](), 0
    for provider, usage, request_id in tracked:
        if not manager.track_usage(provider, usage, request_id):
            continue
        given_sides = usage if isinstance(usage, Usage) else Usage(usage)
        sides = [given_sides.input or 0, given_sides.output or 0]
        most += sum(sides)
        if request_id is None:
            anonymous += sum(sides)
            continue
        known = named.setdefault(request_id, [0, 0])
        known[0] = given_sides.input or known[0]
        known[1] = known[1] if given_sides.output is None else given_sides.output
    total = manager.budget.total.used
    assert total == anonymous + sum(map(sum, named.values()))
    assert total <= most
    providers = manager.snapshot().providers
    assert sum(one.input + one.output for one in providers) == total
    assert all(one.requests > 0 and one.input >= 0 and one.output >= 0 for one in providers)


# --- what may be used ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("planned", "kind"),
    [
        (0, None),
        (400, None),
        (401, "input"),
        (Usage(400, 100), None),
        (Usage(400, 101), "output"),
        (Usage(0, 100), None),
        (Usage(500, 500), "input"),
    ],
    ids=str,
)
def test_violation_is_found_before_it_happens_and_equality_is_none(
    planned: int | Usage, kind: str | None
) -> None:
    manager = TokenBudgetManager(input_limit=1000, output_limit=150, total_limit=1150)
    manager.track_usage("p", Usage(600, 50))
    found = manager.check_violation(planned)
    assert (found.kind if found else None) == kind
    assert manager.budget.total.used == 650


def test_total_can_be_broken_when_neither_side_is() -> None:
    manager = TokenBudgetManager(input_limit=1000, output_limit=1000, total_limit=1000)
    found = manager.check_violation(Usage(600, 401))
    assert found is not None
    assert (found.kind, found.limit, found.used, found.planned, found.over) == (
        "total",
        1000,
        0,
        1001,
        1,
    )
    assert found.suggestions[0] == "Make the request or its answer 1 token shorter."


def test_a_planned_count_is_held_against_its_upper_bound() -> None:
    manager = TokenBudgetManager(input_limit=105)
    found = manager.check_violation(counted(100))
    assert found is not None
    assert found.planned == 110


def test_zero_limit_allows_nothing_and_no_limit_everything() -> None:
    blocked = TokenBudgetManager(total_limit=0)
    assert blocked.check_violation(1) is not None
    assert blocked.check_violation(0) is None
    assert TokenBudgetManager().check_violation(Usage(10_000_000, 10_000_000)) is None


@pytest.mark.parametrize(("used", "wanted"), [(150, 0), (100, 5)], ids=["overdrawn", "used up"])
def test_budget_with_nothing_left_allows_nothing_and_suggests_no_trimming(
    used: int, wanted: int
) -> None:
    manager = TokenBudgetManager(input_limit=100)
    manager.track_usage("p", used)
    assert manager.budget.input.remaining == 0
    violation = manager.check_violation(wanted)
    assert violation is not None
    assert "Nothing is left" in violation.suggestions[0]


def test_error_carries_the_numbers_and_what_to_do() -> None:
    manager = TokenBudgetManager(input_limit=1000)
    manager.track_usage("p", 700)
    with pytest.raises(BudgetExceededError) as caught:
        manager.reserve("p", 500, "turn")
    error = caught.value
    assert (error.kind, error.limit, error.used, error.planned) == ("input", 1000, 700, 500)
    assert error.where == "budget.input"
    assert str(error) == (
        "the input budget of 1,000 tokens would be exceeded by 200: 700 used, 500 planned "
        "(at budget.input). Trim the request by at least 200 tokens. "
        'Raise the limit: set_limit("input", 1200).'
    )
    manager.reserve("p", 300, "turn")


def test_what_the_error_suggests_helps() -> None:
    manager = TokenBudgetManager(output_limit=100)
    manager.track_usage("p", Usage(1, 40))
    found = manager.check_violation(Usage(1, 90))
    assert found is not None
    assert "at most 60 tokens" in found.suggestions[0]
    assert manager.check_violation(Usage(1, 60)) is None
    manager.set_limit("output", found.used + found.planned)
    assert manager.check_violation(Usage(1, 90)) is None


def test_limits_can_be_changed_and_taken_away() -> None:
    manager = TokenBudgetManager(total_limit=10)
    assert manager.check_violation(11) is not None
    manager.set_limit("total", 11)
    assert manager.check_violation(11) is None
    manager.set_limit("total", None)
    assert manager.check_violation(10_000) is None


@pytest.mark.parametrize("limit", [-1, True, 1.5, float("nan"), "10"])
def test_limit_that_is_none_is_refused(limit: Any) -> None:
    manager = TokenBudgetManager(total_limit=10)
    with pytest.raises(SettingsError, match=r"budget\.total"):
        manager.set_limit("total", limit)
    assert manager.budget.total.limit == 10
    with pytest.raises(SettingsError, match="kind"):
        manager.set_limit("money", 5)  # type: ignore[arg-type]


limits = st.none() | st.integers(0, 3000)


@given(limits, limits, limits, st.integers(0, 2000), st.integers(0, 2000), st.integers(0, 2000))
def test_what_is_allowed_keeps_every_limit_and_what_is_not_breaks_the_one_named(
    inputs: int | None, outputs: int | None, totals: int | None, used: int, more: int, answer: int
) -> None:
    manager = TokenBudgetManager(input_limit=inputs, output_limit=outputs, total_limit=totals)
    manager.track_usage("p", used)
    found = manager.check_violation(Usage(more, answer))
    after = {"input": used + more, "output": answer, "total": used + more + answer}
    allowed = {"input": inputs, "output": outputs, "total": totals}
    broken = {k for k, limit in allowed.items() if limit is not None and after[k] > limit}
    assert (found is None) == (not broken)
    if found is not None:
        assert found.kind in broken
        assert found.over == after[found.kind] - found.limit > 0


# --- reservations ----------------------------------------------------------------------------


def test_reservations_see_each_other() -> None:
    manager = TokenBudgetManager(total_limit=1000)
    manager.reserve("p", 600, "r1")
    with pytest.raises(BudgetExceededError):
        manager.reserve("p", 600, "r2")
    assert manager.budget.total.used == 600
    assert manager.release("r1")
    manager.reserve("p", 600, "r2")


def test_report_takes_the_place_of_a_reservation() -> None:
    manager = TokenBudgetManager(total_limit=1000)
    manager.reserve("p", Usage(600, 300), "r1")
    manager.track_usage("p", Usage(580, 20), "r1")
    assert manager.budget.total == Allowance(1000, 600, approximate=False)
    assert not manager.release("r1")
    assert not manager.release("unheard of")
    assert manager.budget.total.used == 600


def test_retry_does_not_stand_in_its_own_way() -> None:
    manager = TokenBudgetManager(total_limit=1000)
    manager.reserve("p", 900, "r1")
    manager.reserve("p", 950, "r1")
    assert manager.budget.total.used == 950


@pytest.mark.usefixtures("hasty_threads")
def test_threads_together_reserve_no_more_than_there_is() -> None:
    manager, together = TokenBudgetManager(total_limit=1000), threading.Barrier(8)

    def take(worker: int) -> int:
        together.wait()
        taken = 0
        for number in range(20):
            try:
                manager.reserve("p", 30, f"{worker}-{number}")
            except BudgetExceededError:
                continue
            taken += 30
        return taken

    with ThreadPoolExecutor(8) as pool:
        taken = sum(pool.map(take, range(8)))
    assert taken == manager.budget.total.used == 990


@pytest.mark.usefixtures("hasty_threads")
def test_no_report_of_many_threads_is_lost_or_counted_twice() -> None:
    manager, together = TokenBudgetManager(), threading.Barrier(8)

    def report(worker: int) -> None:
        together.wait()
        for number in range(50):
            manager.track_usage("p", Usage(7, 1))
            manager.track_usage(f"q{worker}", Usage(3, 1), request_id=f"shared-{number}")
            manager.track_usage("p", -1)
            snapshot = manager.snapshot()
            of_providers = sum(one.input for one in snapshot.providers)
            assert of_providers == snapshot.budget.input.used

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(report, range(8)))
    snapshot = manager.snapshot()
    assert snapshot.budget.input.used == 8 * 50 * 7 + 50 * 3
    assert snapshot.refused == 400


# --- estimates ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [dict, json.dumps, lambda body: read(json.dumps(body))])
def test_estimate_is_the_count_and_records_nothing(form: Callable[[object], object]) -> None:
    manager = TokenBudgetManager(total_limit=10)
    assert manager.estimate_usage(form(BODY), "openai:gpt-4o").tokens == count(BODY).tokens
    assert manager.budget.total.used == 0


def test_provider_may_have_a_counter_of_its_own() -> None:
    manager = TokenBudgetManager(counters={"mine": lambda _: counted(17)})
    assert manager.estimate_usage(BODY, "mine").tokens == 17
    assert manager.estimate_usage(BODY, "gpt-4o").tokens == count(BODY).tokens


def test_when_a_providers_counter_fails_ours_counts() -> None:
    def broken(_: object) -> Any:
        raise ConnectionError

    manager = TokenBudgetManager(counters={"gpt-4o": broken})
    assert manager.estimate_usage(BODY, "gpt-4o").tokens == count(BODY).tokens


def test_estimates_are_corrected_by_calibration() -> None:
    calibration = Calibration()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(6):
            calibration.observe(count(BODY, model="novel"), 500)
        manager = TokenBudgetManager(calibration=calibration)
        assert manager.estimate_usage(BODY, "novel").tokens == 500


# --- what is said about it -------------------------------------------------------------------


def test_snapshot_is_immutable_and_does_not_follow_the_manager() -> None:
    manager = TokenBudgetManager(total_limit=100)
    manager.track_usage("p", 10)
    before = manager.snapshot()
    kept = copy.deepcopy(before)
    manager.track_usage("p", 20)
    manager.set_limit("total", 5)
    assert before == kept
    assert before.number < manager.snapshot().number
    for value in (before, before.budget, before.budget.input, before.providers[0]):
        for name in value.__struct_fields__:
            with pytest.raises(AttributeError, match="immutable"):
                setattr(value, name, 0)
    assert hash(before) == hash(kept)


def test_report_reads_as_lines_for_a_person() -> None:
    manager = TokenBudgetManager(input_limit=1000, total_limit=100_000)
    manager.track_usage("claude:opus", counted(500, system=50, tools=100, formatting=6), "r1")
    manager.track_usage("claude:opus", {"input_tokens": 510, "output_tokens": 1200}, "r1")
    manager.track_usage("openai:gpt-4o", counted(350))
    assert manager.report().text() == (
        "                  used         limit          left       percent\n"
        "input             ~860         1,000           140           86%\n"
        "output          ~1,200          none\n"
        "total           ~2,060       100,000        97,940            2%\n"
        "\n"
        "counted in the input: system 50, tools 100, formatting 6\n"
        "claude:opus: 1 request, 510 in, 1,200 out, exact\n"
        "openai:gpt-4o: 1 request, 350 in, 0 out, approximate\n"
        "warning: input is 86% used: 140 of 1,000 tokens are left\n"
    )


def test_report_is_plain_data_and_complete() -> None:
    manager = TokenBudgetManager(input_limit=1000)
    manager.track_usage("p", Usage(900, 5))
    manager.track_usage("p", "nonsense")
    data = json.loads(json.dumps(manager.report().data()))
    assert data == {
        "budget": {
            "input": {
                "limit": 1000,
                "used": 900,
                "approximate": False,
                "remaining": 100,
                "percent": 90,
            },
            "output": {
                "limit": None,
                "used": 5,
                "approximate": False,
                "remaining": None,
                "percent": None,
            },
            "total": {
                "limit": None,
                "used": 905,
                "approximate": False,
                "remaining": None,
                "percent": None,
            },
            "overhead": {"system_messages": 0, "tool_definitions": 0, "formatting": 0},
        },
        "providers": [
            {"provider": "p", "requests": 1, "input": 900, "output": 5, "approximate": False}
        ],
        "refused": 1,
        "warnings": [
            "input is 90% used: 100 of 1,000 tokens are left",
            "1 report of usage made no sense and did not count",
        ],
    }
    assert msgspec.json.decode(msgspec.json.encode(manager.snapshot()))["refused"] == 1


@pytest.mark.parametrize(
    ("used", "warning"),
    [
        (1, ""),
        (799, ""),
        (800, "input is 80% used: 200 of 1,000 tokens are left"),
        (999, "input is 99% used: 1 of 1,000 tokens are left"),
        (1000, "input is used up: all of 1,000 tokens"),
        (1001, "input is over its limit of 1,000 tokens by 1"),
    ],
)
def test_limit_is_warned_about_before_it_is_reached(used: int, warning: str) -> None:
    manager = TokenBudgetManager(input_limit=1000)
    manager.track_usage("p", used)
    warned = (warning,) if warning else ()
    assert manager.info("input") == LimitSummary(used, 1000, warned)
    assert manager.report().warnings == warned
    assert manager.info() == LimitSummary(used, None)


def test_a_completion_is_planned_with_its_answer() -> None:
    manager = TokenBudgetManager(total_limit=1000)
    planned = manager.estimate_completion(BODY, 800, "gpt-4o")
    assert (planned.input, planned.output) == (count(BODY).upper, 800)
    violation = manager.check_violation(manager.estimate_completion(BODY, 1000, "gpt-4o"))
    assert violation is not None
    assert violation.kind == "total"


def test_a_completion_that_was_counted_is_counted_again_only_by_its_providers_own_counter() -> None:
    seen: list[object] = []

    def own(body: object) -> TokenCount:
        seen.append(body)
        return counted(70)

    manager = TokenBudgetManager(counters={"mine": own})
    assert manager.estimate_completion(BODY, 5, "gpt-4o", counted(100)) == Usage(110, 5)
    assert manager.estimate_completion(BODY, 5, "mine", counted(100)) == Usage(77, 5)
    assert seen == [BODY]
