"""What the vendor's cache would have held of the untouched request: each part of it by itself."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from holdfast.engine.vendor_cache import Beginning, Bill, Life, Policy, policy_of, untouched_bill
from holdfast.tokens.prices import bundled
from tests.engine.test_accounting import (
    GPT,
    LONG,
    NOW,
    OPUS,
    SHORT,
    M,
    anthropic,
    dollars,
    openai,
    used,
)

UNASKED = Policy(1_024)
MARKED = Policy(1_024, marked=True)
NONE: frozenset[Life] = frozenset()
BOTH: frozenset[Life] = SHORT | LONG


def price_of(model: str) -> Policy | None:
    price = bundled().price(model, at=datetime.fromtimestamp(NOW, UTC))
    assert price is not None
    return policy_of(price)


def test_claude_caches_by_marks_whoever_sells_it_and_bedrock_whatever_it_sells() -> None:
    assert price_of("google:claude-sonnet-4-5") == MARKED
    assert price_of("anthropic:claude-sonnet-4-5") == MARKED
    assert price_of("bedrock:amazon.nova-pro-v1:0") == MARKED
    assert price_of("openai:gpt-5") == UNASKED
    assert price_of("google:gemini-2.5-flash") == Policy(2_048)


@pytest.mark.parametrize(
    ("bill", "behind"),
    [
        (Bill(input=1_000), 0),
        (Bill(input=1_000, cached=600), 400),
        (Bill(input=1_000, written=700), 300),
        (Bill(input=1_000, cached=600, written=300), 100),
        (Bill(input=2_000, cached=1_200, written=600, calls=2), 100),
        (Bill(input=1_000, cached=700, written=500), 0),
    ],
)
def test_behind_the_last_mark_is_what_was_neither_read_nor_written(bill: Bill, behind: int) -> None:
    assert bill.behind == behind


def test_what_is_behind_the_last_mark_would_not_have_been_cached_either() -> None:
    sent = Bill(input=5_000, cached=3_000, written=1_500)
    before = Beginning(untouched=9_500, sent=3_000)
    assert untouched_bill(10_000, before, sent, MARKED, SHORT) == Bill(
        input=10_000, cached=9_500, written=0
    )
    shorter = Beginning(untouched=8_000, sent=3_000)
    assert untouched_bill(10_000, shorter, sent, MARKED, SHORT) == Bill(
        input=10_000, cached=8_000, written=1_500
    )


def test_marked_parts_would_have_been_written_though_of_ours_nothing_was() -> None:
    bill = untouched_bill(10_000, Beginning(), Bill(input=500), MARKED, SHORT)
    assert (bill.cached, bill.written, bill.written_hour) == (0, 10_000, 0)


@pytest.mark.parametrize(("written", "expected"), [(0, 0), (1_000, 6_000)])
def test_a_vendor_that_caches_unasked_charges_for_writing_only_if_it_says_so(
    written: int, expected: int
) -> None:
    sent = Bill(input=5_000, cached=3_000, written=written)
    before = Beginning(untouched=4_000, sent=3_000)
    assert untouched_bill(10_000, before, sent, UNASKED, NONE).written == expected


@pytest.mark.parametrize(
    ("lives", "written", "hour", "expected"),
    [
        (LONG, 1_000, 0, 10_000),  # asked for an hour
        (SHORT, 1_000, 1_000, 1_000),  # asked for less: no more than was reported
        (BOTH, 1_000, 400, 400),
        (NONE, 1_000, 1_000, 10_000),  # not asked, and all that was written was for an hour
        (NONE, 1_000, 400, 400),
        (NONE, 0, 0, 0),
    ],
)
def test_for_an_hour_is_what_was_asked_for_or_all_that_was_seen(
    lives: frozenset[Life], written: int, hour: int, expected: int
) -> None:
    sent = Bill(input=1_000, cached=0 if written else 1, written=written, written_hour=hour)
    policy = Policy(1_024, marked=bool(lives) or bool(written))
    bill = untouched_bill(10_000, Beginning(), sent, policy, lives)
    assert bill.written_hour == expected


@pytest.mark.parametrize(("known", "read"), [(1_023, 6_977), (1_024, 0), (1_025, 0)])
def test_a_beginning_just_long_enough_to_be_cached_that_was_not_found_was_gone(
    known: int, read: int
) -> None:
    before = Beginning(untouched=8_000, sent=known)
    assert untouched_bill(10_000, before, Bill(input=5_000), UNASKED, NONE).cached == read


def test_what_was_not_reported_does_not_say_that_the_cache_was_cold() -> None:
    sent = Bill(input=5_000, reported=False)
    before = Beginning(untouched=8_000, sent=2_000)
    assert untouched_bill(10_000, before, sent, UNASKED, NONE).cached == 6_000
    usage = used(None, predicted=5_000, untouched=10_000, untouched_before=8_000, sent_before=2_000)
    instead = dollars((6_000, GPT.cached), (4_000, GPT.input))
    assert usage.saved_cost == float(instead - dollars((5_000, GPT.input)))


@pytest.mark.parametrize(("idle", "read"), [(299.0, 8_000), (300.0, 8_000), (300.5, 0)])
def test_a_mark_lives_to_its_last_second(idle: float, read: int) -> None:
    before = Beginning(untouched=8_000, idle_seconds=idle)
    sent = Bill(input=5_000, written=5_000)
    assert untouched_bill(10_000, before, sent, MARKED, SHORT).cached == read


def test_less_was_known_of_the_untouched_request_than_of_ours() -> None:
    before = Beginning(untouched=100, sent=3_000)
    sent = Bill(input=5_000, cached=500)
    assert untouched_bill(10_000, before, sent, UNASKED, NONE).cached == 0


# --- the sums around it ---------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "failed"), [(200, False), (302, False), (400, True)])
def test_from_400_on_a_call_has_failed(status: int, failed: bool) -> None:
    assert used(openai(1_000), status=status, predicted=1_000, untouched=1_000).failed is failed


def test_more_written_than_was_left_is_all_that_was_left() -> None:
    report = {
        "prompt_tokens": 1_000,
        "prompt_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 700},
    }
    usage = used(report, predicted=1_000, untouched=1_000)
    assert (usage.cached, usage.cache_written) == (600, 400)


def test_new_input_beside_what_is_written_for_an_hour_is_paid_too() -> None:
    usage = used(
        anthropic(3_000, cached=100, written=1_000, hour=1_000),
        model="claude-opus-4-5",
        predicted=4_100,
        untouched=4_100,
        cache_lives=LONG,
    )
    expected = dollars((3_000, OPUS.input), (100, OPUS.cached), (1_000, OPUS.hour))
    assert usage.cost == float(expected)


def test_parts_of_several_calls_add_up() -> None:
    from holdfast.engine.accounting import _part  # noqa: PLC0415 - only its sum is promised

    for total in (0, 1, 7, 100):
        parts = [_part(total, n, 3) for n in range(3)]
        assert sum(parts) == total
        assert max(parts) - min(parts) <= 1


def test_output_alone_is_paid() -> None:
    report = {"prompt_tokens": 0, "completion_tokens": 100}
    usage = used(report, predicted=0, untouched=0)
    assert usage.cost == float(100 * GPT.output / M)
    assert Decimal(str(usage.cost)) > 0
