"""The provider's cache for the untouched request: each rule separately."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.vendor_cache import (
    CallTokens,
    Lives,
    Policy,
    Prefixes,
    asked_call,
    asked_position,
    expected_call,
    policy_of,
)
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
NONE: Lives = frozenset()
BOTH: Lives = SHORT | LONG


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
    ("call", "behind"),
    [
        (CallTokens(input=1_000), 0),
        (CallTokens(input=1_000, cached=600), 400),
        (CallTokens(input=1_000, written=700), 300),
        (CallTokens(input=1_000, cached=600, written=300), 100),
        (CallTokens(input=1_000, cached=700, written=500), 0),
    ],
)
def test_behind_the_last_mark_is_what_was_neither_read_nor_written(
    call: CallTokens, behind: int
) -> None:
    assert call.behind_marks == behind


def test_what_is_behind_the_last_mark_would_not_have_been_cached_either() -> None:
    sent = CallTokens(input=5_000, cached=3_000, written=1_500)
    prefixes = Prefixes(asked_known=9_500, known=3_000)
    assert asked_call(10_000, sent, prefixes, MARKED, SHORT) == CallTokens(
        input=10_000, cached=9_500, written=0
    )
    shorter = Prefixes(asked_known=8_000, known=3_000)
    assert asked_call(10_000, sent, shorter, MARKED, SHORT) == CallTokens(
        input=10_000, cached=8_000, written=1_500
    )


def test_marked_parts_would_have_been_written_though_of_ours_nothing_was() -> None:
    call = asked_call(10_000, CallTokens(input=500), Prefixes(), MARKED, SHORT)
    assert (call.cached, call.written, call.written_hour) == (0, 10_000, 0)


@pytest.mark.parametrize(("written", "expected"), [(0, 0), (1_000, 6_000)])
def test_a_provider_that_caches_unasked_charges_for_writing_only_if_it_says_so(
    written: int, expected: int
) -> None:
    sent = CallTokens(input=5_000, cached=3_000, written=written)
    prefixes = Prefixes(asked_known=4_000, known=3_000)
    assert asked_call(10_000, sent, prefixes, UNASKED, NONE).written == expected


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
    lives: Lives, written: int, hour: int, expected: int
) -> None:
    sent = CallTokens(input=1_000, cached=0 if written else 1, written=written, written_hour=hour)
    policy = Policy(1_024, marked=bool(lives) or bool(written))
    call = asked_call(10_000, sent, Prefixes(), policy, lives)
    assert call.written_hour == expected


@pytest.mark.parametrize(("known", "read"), [(1_023, 8_000), (1_024, 0), (1_025, 0)])
def test_a_beginning_just_long_enough_to_be_cached_that_was_not_found_was_gone(
    known: int, read: int
) -> None:
    prefixes = Prefixes(asked_known=8_000, known=known, broken=True)
    assert asked_call(10_000, CallTokens(input=5_000), prefixes, UNASKED, NONE).cached == read


@pytest.mark.parametrize(("idle", "read"), [(299.0, 8_000), (300.0, 8_000), (300.5, 0)])
def test_a_mark_lives_to_its_last_second(idle: float, read: int) -> None:
    prefixes = Prefixes(asked_known=8_000, idle_seconds=idle, broken=True)
    sent = CallTokens(input=5_000, written=5_000)
    assert asked_call(10_000, sent, prefixes, MARKED, SHORT).cached == read


def test_less_was_known_of_the_asked_request_than_of_ours() -> None:
    prefixes = Prefixes(asked_known=100, known=3_000)
    sent = CallTokens(input=5_000, cached=500)
    assert asked_call(10_000, sent, prefixes, UNASKED, NONE).cached == 16


# --- positions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (0, 0),
        (1_000, 1_000),  # inside of the system text
        (2_000, 2_000),
        (6_000, 22_000),  # halfway through the previous request
        (10_000, 42_000),
        (9_500, 42_000),  # reports and counts differ by a few percent
        (15_000, 71_000),  # halfway through the new messages
        (20_000, 100_000),
    ],
)
def test_a_place_in_the_sent_request_corresponds_to_one_in_the_asked(
    position: int, expected: int
) -> None:
    prefixes = Prefixes(frame=2_000, asked_frame=2_000, known=10_000, asked_known=42_000)
    assert asked_position(position, 100_000, CallTokens(input=20_000), prefixes) == expected


counts = st.integers(0, 200_000)


@given(counts, counts, counts, counts, counts, counts, counts)
def test_no_position_is_outside_of_the_asked_request(
    position: int, asked: int, sent: int, frame: int, asked_frame: int, known: int, asked_known: int
) -> None:
    prefixes = Prefixes(frame=frame, asked_frame=asked_frame, known=known, asked_known=asked_known)
    call = CallTokens(input=sent)
    assert 0 <= asked_position(min(position, sent), asked, call, prefixes) <= asked


# --- what is expected where nobody reports --------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "idle", "policy", "lives", "expected"),
    [
        (8_000, 0.0, UNASKED, NONE, CallTokens(input=9_000, cached=8_000)),
        (1_000, 0.0, UNASKED, NONE, CallTokens(input=9_000)),
        (8_000, 3_601.0, UNASKED, NONE, CallTokens(input=9_000)),
        (8_000, 0.0, None, NONE, CallTokens(input=9_000)),
        (8_000, 0.0, MARKED, NONE, CallTokens(input=9_000)),
        (8_000, 0.0, MARKED, SHORT, CallTokens(input=9_000, cached=8_000, written=1_000)),
        (8_000, 301.0, MARKED, SHORT, CallTokens(input=9_000, written=9_000)),
        (8_000, 301.0, MARKED, LONG,
         CallTokens(input=9_000, cached=8_000, written=1_000, written_hour=1_000)),
    ],
)  # fmt: skip
def test_a_request_is_expected_to_be_cached_by_the_rules_of_its_provider(
    known: int, idle: float, policy: Policy | None, lives: Lives, expected: CallTokens
) -> None:
    assert expected_call(9_000, known, Prefixes(idle_seconds=idle), policy, lives) == expected


def test_a_short_request_is_not_cached() -> None:
    assert expected_call(900, 800, Prefixes(), MARKED, SHORT) == CallTokens(input=900)


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


def test_output_alone_is_paid() -> None:
    report = {"prompt_tokens": 0, "completion_tokens": 100}
    usage = used(report, predicted=0, untouched=0)
    assert usage.cost == float(100 * GPT.output / M)
    assert Decimal(str(usage.cost)) > 0
