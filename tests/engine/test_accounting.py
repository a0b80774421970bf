"""The cost and savings of turns, in exact dollars computed here from the providers' list prices.

The rates are numbers here, so that a mistake in our prices cannot hide one in our sums.
"""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.engine.bill import (
    ExpansionUsage,
    RequestCounts,
    ReusedAnswer,
    remembered_usage,
    turn_usage,
)
from holdfast.engine.vendor_cache import Lives, Prefixes, cache_lives
from holdfast.store.records import TurnUsage

NOW = 1_800_000_000.0
M = Decimal(1_000_000)
GPT = SimpleNamespace(input=Decimal("1.25"), cached=Decimal("0.125"), output=Decimal(10))
"""gpt-5, dollars per million tokens."""
OPUS = SimpleNamespace(
    input=Decimal(5),
    cached=Decimal("0.5"),
    written=Decimal("6.25"),
    hour=Decimal(10),
    output=Decimal(25),
)
"""claude-opus-4-5: 1.25 times the input for five minutes, twice for an hour."""
FLASH = SimpleNamespace(input=Decimal("0.3"), cached=Decimal("0.03"), output=Decimal("2.5"))
"""gemini-2.5-flash."""

NOTHING_OPENED = ExpansionUsage()
SHORT: Lives = frozenset({"5m"})
LONG: Lives = frozenset({"1h"})
POSITIONS = frozenset(Prefixes.__struct_fields__)


def openai(tokens: int, cached: int = 0, output: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": tokens,
        "completion_tokens": output,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def responses(tokens: int, cached: int = 0, output: int = 0) -> dict[str, Any]:
    return {
        "input_tokens": tokens,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": output,
    }


def gemini(tokens: int, cached: int = 0, output: int = 0) -> dict[str, Any]:
    return {
        "promptTokenCount": tokens,
        "cachedContentTokenCount": cached,
        "candidatesTokenCount": output,
    }


def anthropic(
    new: int, cached: int = 0, written: int = 0, hour: int = 0, output: int = 0
) -> dict[str, Any]:
    return {
        "input_tokens": new,
        "output_tokens": output,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "cache_creation": {
            "ephemeral_5m_input_tokens": written - hour,
            "ephemeral_1h_input_tokens": hour,
        },
    }


def used(
    report: object,
    *,
    model: str = "gpt-5",
    status: int = 200,
    expanded: ExpansionUsage = NOTHING_OPENED,
    **about: Any,
) -> TurnUsage:
    """Return the usage of a turn; its known prefix is given by the names of `Prefixes`."""
    prefixes = Prefixes(**{name: about.pop(name) for name in POSITIONS & about.keys()})
    counted = RequestCounts(prefixes=prefixes, **about)
    return turn_usage(report, counted, expanded, model=model, now=NOW, status=status)


FOLDED: dict[str, Any] = {
    "predicted": 50_000,
    "untouched": 100_000,
    "asked_known": 95_000,
    "broken": True,
}
"""A request that was folded to half its length, so that nothing of it is in the cache."""


def used_of_opus(report: object, **about: Any) -> TurnUsage:
    return used(report, model="claude-opus-4-5", **about)


def dollars(*parts: tuple[int, Decimal]) -> Decimal:
    return sum((tokens * rate for tokens, rate in parts), Decimal(0)) / M


# --- four providers, in exact dollars -------------------------------------------------------------


@pytest.mark.parametrize("report", [openai, responses], ids=["chat", "responses"])
def test_openai_is_billed_for_new_and_cached_input_and_output(report: Any) -> None:
    usage = used(
        report(50_000, cached=47_104, output=300),
        predicted=50_000,
        known=47_150,  # OpenAI rounds cached tokens down to a multiple of 128
        untouched=100_000,
        asked_known=95_000,
    )
    cost = dollars((2_896, GPT.input), (47_104, GPT.cached), (300, GPT.output))
    untouched = dollars((5_000, GPT.input), (95_000, GPT.cached), (300, GPT.output))
    assert cost == Decimal("0.012508")
    assert untouched == Decimal("0.021125")
    assert usage.cost == float(cost)
    assert usage.saved_cost == float(untouched - cost) == 0.008617
    assert (usage.untouched_cached, usage.untouched_output) == (95_000, 300)


def test_anthropic_is_billed_for_reads_and_writes_of_five_minutes_and_of_an_hour() -> None:
    usage = used_of_opus(
        anthropic(200, cached=40_000, written=3_000, hour=1_000, output=400),
        predicted=43_200,
        known=40_000,
        untouched=83_200,
        asked_known=76_000,
        cache_lives=SHORT | LONG,
    )
    cost = dollars(
        (200, OPUS.input),
        (40_000, OPUS.cached),
        (2_000, OPUS.written),
        (1_000, OPUS.hour),
        (400, OPUS.output),
    )
    # The tokens after the last mark are the same; of the 7,000 new ones before it, those that we
    # wrote for an hour would have been written for an hour too.
    untouched = dollars(
        (200, OPUS.input),
        (76_000, OPUS.cached),
        (6_000, OPUS.written),
        (1_000, OPUS.hour),
        (400, OPUS.output),
    )
    assert cost == Decimal("0.0535")
    assert untouched == Decimal("0.0965")
    assert usage.cost == float(cost)
    assert usage.saved_cost == float(untouched - cost) == 0.043


def test_gemini_is_billed_for_new_and_cached_input_and_output() -> None:
    usage = used(
        gemini(20_000, cached=16_000, output=100),
        model="gemini-2.5-flash",
        predicted=20_000,
        known=16_100,
        untouched=60_000,
        asked_known=50_000,
    )
    cost = dollars((4_000, FLASH.input), (16_000, FLASH.cached), (100, FLASH.output))
    untouched = dollars((10_000, FLASH.input), (50_000, FLASH.cached), (100, FLASH.output))
    assert cost == Decimal("0.00193")
    assert usage.cost == float(cost)
    assert usage.saved_cost == float(untouched - cost) == 0.00282


# --- an error of counting saves nothing -----------------------------------------------------------


@pytest.mark.parametrize("reported", [4_700, 6_000, 8_000])
def test_a_count_that_was_wrong_is_no_saving(reported: int) -> None:
    """A tool of 65 tokens was added; that is all the difference, for any count of the provider."""
    usage = used(openai(reported), predicted=6_065, untouched=6_000)
    assert usage.saved == -65
    assert usage.saved_cost == float(-dollars((65, GPT.input)))


def test_what_a_provider_holds_and_bills_is_in_both() -> None:
    assert used(openai(50_000), predicted=500, untouched=600).saved == 100


def test_no_saving_is_claimed_for_what_the_client_would_not_have_sent() -> None:
    """Schemas of 40,000 tokens were set aside that the client defers where it knows the API."""
    usage = used(openai(10_000), predicted=10_000, untouched=60_000, unclaimed=40_000)
    assert (usage.untouched, usage.saved) == (20_000, 10_000)
    assert usage.saved_cost == float(dollars((10_000, GPT.input)))


@pytest.mark.parametrize("asked", [128_000, 128_001, 9_000_000])
def test_no_saving_is_claimed_for_a_request_that_exceeds_the_window(asked: int) -> None:
    opened = ExpansionUsage(calls=1, tokens=1_000, rounds=1)
    reports = [openai(90_000, 2_000, 50), openai(91_000, 90_000, 300)]
    usage = used(reports, predicted=90_000, untouched=asked, expanded=opened, window=128_000)
    assert usage.input == 181_000
    if asked == 128_000:
        assert (usage.overflows, usage.saved) == (False, 128_000 - 181_000)
    else:
        assert (usage.overflows, usage.saved, usage.saved_cost) == (True, 0, 0.0)
        assert (usage.untouched, usage.untouched_output) == (usage.input, usage.output)


def test_an_answer_from_memory_saves_what_would_have_been_sent() -> None:
    counted = RequestCounts(predicted=90_000, untouched=9_000_000, window=128_000, is_exact=True)
    usage = remembered_usage(ReusedAnswer(output=10), counted, model="gpt-5", now=NOW)
    assert (usage.overflows, usage.untouched, usage.saved) == (True, 90_000, 90_000)


# --- the provider's cache -------------------------------------------------------------------------


def test_a_fold_that_broke_the_cache_is_a_cost() -> None:
    usage = used(openai(50_000), **FOLDED)
    cost = dollars((50_000, GPT.input))
    untouched = dollars((5_000, GPT.input), (95_000, GPT.cached))
    assert usage.cost == float(cost) == 0.0625
    assert usage.saved_cost == float(untouched - cost) == -0.044375


def test_a_cache_that_was_cold_for_us_was_cold_for_the_untouched_request() -> None:
    """The provider did not find our prefix in its cache: both requests had expired."""
    for broken in (False, True):
        usage = used(
            openai(50_000),
            predicted=50_000,
            known=47_000,
            untouched=100_000,
            asked_known=95_000,
            broken=broken,
        )
        assert usage.saved_cost == float(dollars((50_000, GPT.input)))


def test_what_we_made_too_short_to_be_cached_says_nothing_about_the_cache() -> None:
    """The untouched request was long enough: it would have been read, and that is no saving."""
    usage = used(openai(900), predicted=900, known=700, untouched=9_000, asked_known=7_000)
    untouched = dollars((2_000, GPT.input), (7_000, GPT.cached))
    assert usage.saved_cost == float(untouched - dollars((900, GPT.input)))


def test_a_cache_of_openai_is_gone_after_an_hour() -> None:
    usage = used(
        openai(50_000),
        **FOLDED,
        idle_seconds=3_601.0,
    )
    assert usage.saved_cost == float(dollars((50_000, GPT.input)))


def test_a_first_request_finds_in_the_cache_the_system_text_of_others() -> None:
    usage = used(
        openai(5_000, cached=2_048),
        predicted=5_000,
        untouched=9_000,
        frame=2_060,
        asked_frame=2_060,
    )
    cost = dollars((2_952, GPT.input), (2_048, GPT.cached))
    untouched = dollars((6_952, GPT.input), (2_048, GPT.cached))
    assert usage.saved_cost == float(untouched - cost)


def test_a_session_that_is_repeated_finds_all_of_itself_in_the_cache() -> None:
    """A new session with the requests of an old one: the untouched ones would be cached too."""
    usage = used_of_opus(
        anthropic(0, cached=12_000),
        predicted=12_000,
        untouched=30_000,
        frame=4_000,
        asked_frame=4_000,
        cache_lives=SHORT,
    )
    assert usage.untouched_cached == 30_000
    assert usage.saved_cost == float(dollars((18_000, OPUS.cached)))


@pytest.mark.parametrize(
    ("model", "untouched", "rates", "cached"),
    [
        ("gpt-5", 1_500, GPT, 1_400),
        ("gpt-5", 1_100, GPT, 0),
        ("gemini-2.5-flash", 2_500, FLASH, 2_400),
        ("gemini-2.5-flash", 2_100, FLASH, 0),
    ],
)
def test_short_beginnings_are_not_cached(
    model: str, untouched: int, rates: SimpleNamespace, cached: int
) -> None:
    usage = used(
        openai(500),
        model=model,
        predicted=500,
        untouched=untouched,
        asked_known=cached or 900,
        broken=True,
    )
    instead = dollars((untouched - cached, rates.input), (cached, rates.cached))
    assert usage.saved_cost == float(instead - dollars((500, rates.input)))


@pytest.mark.parametrize(
    "lives", [frozenset(), SHORT], ids=["nothing is marked", "a gateway ignores marks"]
)
def test_anthropic_caches_nothing_for_both_requests(lives: Lives) -> None:
    usage = used_of_opus(anthropic(50_000), **FOLDED, cache_lives=lives)
    assert usage.saved_cost == float(dollars((50_000, OPUS.input)))


def test_a_fold_on_anthropic_is_written_anew_and_the_untouched_would_have_been_read() -> None:
    usage = used_of_opus(
        anthropic(1_000, written=49_000),
        **FOLDED,
        cache_lives=SHORT,
    )
    cost = dollars((1_000, OPUS.input), (49_000, OPUS.written))
    # 1,000 tokens follow the last mark; 4,000 are new before it.
    untouched = dollars((95_000, OPUS.cached), (4_000, OPUS.written), (1_000, OPUS.input))
    assert usage.cost == float(cost)
    assert usage.saved_cost == float(untouched - cost)
    assert usage.saved_cost < 0


def test_what_the_untouched_request_would_have_written_is_counted() -> None:
    """The first request: all of it is written, at 1.25 times the price.

    So 100,000 tokens that were left out saved $0.63, and not the $0.50 of plain input.
    """
    usage = used_of_opus(
        anthropic(0, written=20_000),
        predicted=20_000,
        untouched=120_000,
        cache_lives=SHORT,
    )
    assert usage.saved_cost == float(dollars((100_000, OPUS.written))) == 0.625


def test_an_hour_in_the_cache_costs_twice_the_input() -> None:
    usage = used_of_opus(
        anthropic(0, written=20_000, hour=20_000),
        predicted=20_000,
        untouched=100_000,
        cache_lives=LONG,
    )
    assert usage.cost == float(dollars((20_000, OPUS.hour)))
    assert usage.saved_cost == float(dollars((80_000, OPUS.hour)))


def test_of_both_lives_an_hour_is_for_what_we_wrote_for_an_hour() -> None:
    """System and tools, which come first and are never folded."""
    usage = used_of_opus(
        anthropic(0, written=20_000, hour=6_000),
        predicted=20_000,
        untouched=100_000,
        cache_lives=SHORT | LONG,
    )
    assert usage.cost == float(dollars((6_000, OPUS.hour), (14_000, OPUS.written)))
    assert usage.saved_cost == float(dollars((80_000, OPUS.written)))


@pytest.mark.parametrize(
    ("lives", "idle", "held"),
    [(SHORT, 299.0, True), (SHORT, 301.0, False), (LONG, 301.0, True), (LONG, 3_601.0, False)],
)
def test_a_marked_part_is_held_as_long_as_it_was_marked_for(
    lives: Lives, idle: float, held: bool
) -> None:
    hour = 50_000 if lives == LONG else 0
    usage = used_of_opus(
        anthropic(0, written=50_000, hour=hour),
        **FOLDED,
        idle_seconds=idle,
        cache_lives=lives,
    )
    rate = OPUS.hour if hour else OPUS.written
    read = 95_000 if held else 0
    untouched = dollars((read, OPUS.cached), (100_000 - read, rate))
    assert usage.saved_cost == float(untouched - dollars((50_000, rate)))


@pytest.mark.parametrize("cached", [0, 4_000])
def test_reads_that_are_reported_prove_a_cache_that_we_do_not_know(cached: int) -> None:
    usage = used(
        openai(5_000, cached=cached),
        model="x-ai:grok-3",
        predicted=5_000,
        known=4_000,
        untouched=9_000,
        asked_known=8_000,
    )
    plain, read = Decimal(3), Decimal("0.75")  # grok-3
    cost = dollars((5_000 - cached, plain), (cached, read))
    held = 8_000 if cached else 0
    untouched = dollars((9_000 - held, plain), (held, read))
    assert usage.saved_cost == float(untouched - cost)


def test_deepseek_says_in_its_own_words_what_it_had_cached() -> None:
    usage = used({"prompt_tokens": 900, "prompt_cache_hit_tokens": 640}, predicted=900, untouched=9)
    assert usage.cached == 640


def test_a_report_that_is_an_object_is_read_as_one_in_json() -> None:
    inside = SimpleNamespace(
        prompt_tokens=900, completion_tokens=1,
        prompt_tokens_details=SimpleNamespace(cached_tokens=640),
    )  # fmt: skip
    usage = used(SimpleNamespace(usage=inside), predicted=900, untouched=9)
    assert (usage.input, usage.cached) == (900, 640)


def test_more_cached_than_there_was_is_all_of_it() -> None:
    usage = used(openai(100, cached=5_000), predicted=100, untouched=200)
    assert (usage.input, usage.cached) == (100, 100)


# --- unchanged, opened, failed, offline, from memory ----------------------------------------------


@pytest.mark.parametrize("cached", [0, 60_000, 95_000])
def test_a_request_that_went_out_as_it_came_saves_nothing_and_costs_nothing_more(
    cached: int,
) -> None:
    """Whatever the provider's cache did, and however far off our count was."""
    usage = used(
        openai(101_234, cached=cached),
        predicted=100_000,
        untouched=100_000,
        asked_known=95_000,
        known=95_000,
    )
    assert (usage.saved, usage.saved_cost) == (0, 0.0)
    assert usage.untouched == usage.input == 101_234
    assert (usage.estimated, usage.assumed, usage.unreported) == (False, False, False)


def test_what_was_opened_is_paid_with_the_prompt_it_was_read_with() -> None:
    """Two hidden calls: the prompt was sent three times, and each call has its report."""
    usage = used(
        [openai(10_000, output=9), openai(11_000, output=11), openai(12_000, output=30)],
        predicted=10_000,
        untouched=40_000,
        expanded=ExpansionUsage(calls=2, tokens=2_000, rounds=2),
    )
    assert usage.saved == 40_000 - 33_000
    cost = dollars((33_000, GPT.input), (50, GPT.output))
    # Without us the model would have written its answer alone, and no calls to open anything.
    untouched = dollars((40_000, GPT.input), (30, GPT.output))
    assert usage.cost == float(cost)
    assert usage.saved_cost == float(untouched - cost)


def test_later_calls_of_an_answer_do_not_tell_what_the_cache_held_before_it() -> None:
    usage = used(
        [openai(10_000), openai(11_000, cached=9_984)],
        predicted=10_000,
        known=9_000,  # and not found by the first call
        untouched=40_000,
        asked_known=35_000,
        expanded=ExpansionUsage(calls=1, tokens=900, rounds=1),
    )
    assert usage.untouched_cached == 0


def test_opening_can_cost_more_than_was_saved() -> None:
    usage = used(
        [openai(10_000), openai(16_000), openai(19_000)],
        predicted=10_000,
        untouched=40_000,
        expanded=ExpansionUsage(3, 5_000, rounds=2),
    )
    assert usage.saved == -5_000
    assert usage.saved_cost == float(-dollars((5_000, GPT.input)))


def test_what_was_opened_is_predicted_where_nothing_is_reported() -> None:
    usage = used(None, predicted=1_000, untouched=4_000, expanded=ExpansionUsage(1, 100, rounds=1))
    assert usage.input == 1_000 + 1_100
    assert usage.saved == 4_000 - 2_100
    assert usage.unreported
    assert usage.estimated


def test_a_call_without_a_report_makes_the_turn_an_estimate() -> None:
    reports = [openai(1_000), {}]
    usage = used(reports, predicted=900, untouched=4_000, expanded=ExpansionUsage(1, 100, rounds=1))
    assert (usage.input, usage.unreported) == (900 + 1_000, True)


def test_calls_are_priced_one_by_one() -> None:
    """gemini-2.5-pro costs twice as much above 200,000 tokens; three calls of 90,000 are below."""
    for reports in (
        [gemini(90_000), gemini(90_000), gemini(90_000, output=30)],
        gemini(270_000, output=30),
    ):
        usage = used(
            reports,
            model="gemini-2.5-pro",
            predicted=90_000,
            untouched=150_000,
            expanded=ExpansionUsage(2, 100, rounds=2),
        )
        assert usage.cost == float(dollars((270_000, Decimal("1.25")), (30, Decimal(10))))


@pytest.mark.parametrize("status", [401, 404, 429, 500, 529])
def test_a_call_that_failed_costs_and_saves_nothing(status: int) -> None:
    usage = used(
        {"error": {"message": "no"}}, status=status, predicted=50_000, untouched=100_000,
        asked_known=95_000,
    )  # fmt: skip
    assert usage == TurnUsage(failed=True, cost=0.0, saved_cost=0.0)
    assert usage.saved == 0


def test_calls_before_the_one_that_failed_were_billed_and_saved_nothing() -> None:
    usage = used(
        [openai(10_000, output=20)], status=429, predicted=10_000, untouched=40_000,
        expanded=ExpansionUsage(1, 500, rounds=1),
    )  # fmt: skip
    cost = dollars((10_000, GPT.input), (20, GPT.output))
    assert (usage.failed, usage.input, usage.untouched) == (True, 10_000, 0)
    assert (usage.cost, usage.saved_cost) == (float(cost), float(-cost))
    assert usage.saved == -10_000
    unreported = used(
        None,
        status=502,
        predicted=10_000,
        untouched=40_000,
        expanded=ExpansionUsage(1, 500, rounds=1),
    )
    assert unreported.input == 10_000


def test_a_client_that_left_is_billed_all_the_same() -> None:
    usage = used(None, status=499, predicted=10_000, untouched=40_000)
    assert not usage.failed
    assert usage.saved == 30_000
    assert usage.cost == float(dollars((10_000, GPT.input)))


def test_without_a_report_both_requests_have_the_cache_that_the_rules_let_expect() -> None:
    usage = used(None, predicted=5_000, known=4_000, untouched=10_000, asked_known=8_000)
    cost = dollars((1_000, GPT.input), (4_000, GPT.cached))
    untouched = dollars((2_000, GPT.input), (8_000, GPT.cached))
    assert usage.cost == float(cost)
    assert usage.saved_cost == float(untouched - cost)


def test_the_offline_model_costs_nothing_and_has_a_list_price_apart() -> None:
    usage = used(
        openai(10_000, output=20),
        predicted=10_000,
        known=8_000,
        untouched=40_000,
        asked_known=30_000,
        billed=False,
    )
    assert usage.saved == 30_000
    assert (usage.cost, usage.saved_cost) == (0.0, None)
    # It has no cache: the list price is that of the requested model, with its rules.
    price = dollars((2_000, GPT.input), (8_000, GPT.cached), (20, GPT.output))
    untouched = dollars((10_000, GPT.input), (30_000, GPT.cached), (20, GPT.output))
    assert usage.demo_cost == float(price)
    assert usage.demo_saved_cost == float(untouched - price)


def test_money_of_a_model_without_a_price_is_unknown_not_zero() -> None:
    usage = used(openai(10_000), model="ollama:qwen3:8b", predicted=10_000, untouched=40_000)
    assert usage.saved == 30_000
    assert (usage.cost, usage.saved_cost, usage.unpriced) == (None, None, True)


@pytest.mark.parametrize(
    ("tokens", "age", "rate"),
    [(900, 5.0, GPT.input), (9_000, 5.0, GPT.cached), (9_000, 3_601.0, GPT.input)],
)
def test_an_answer_from_memory_saves_what_the_cache_would_not_have(
    tokens: int, age: float, rate: Decimal
) -> None:
    """The provider had the same request before: it would have read a long one from its cache."""
    counted = RequestCounts(predicted=tokens, untouched=tokens)
    usage = remembered_usage(ReusedAnswer(50, age), counted, model="gpt-5", now=NOW)
    assert (usage.input, usage.untouched, usage.cost) == (0, tokens, 0.0)
    assert usage.saved_cost == float(dollars((tokens, rate), (50, GPT.output)))


def test_fractions_of_a_billionth_are_rounded_once_for_each_turn() -> None:
    """gemini-2.0-flash-lite: 0.075 dollars a million; one token is 75 billionths."""
    usage = used(gemini(1), model="gemini-2.0-flash-lite", predicted=1, untouched=1)
    assert usage.cost == 7.5e-8


counts = st.integers(0, 300_000)


@given(
    report=st.none()
    | st.builds(openai, counts, counts, counts)
    | st.builds(anthropic, counts, counts, counts, counts)
    | st.lists(st.builds(gemini, counts, counts, counts), max_size=4),
    sides=st.fixed_dictionaries(
        dict.fromkeys(
            ("predicted", "untouched", "asked_known", "known", "frame", "asked_frame"), counts
        )
    ),
    broken=st.booleans(),
    lives=st.sampled_from([frozenset(), SHORT, LONG, SHORT | LONG]),
    model=st.sampled_from(["gpt-5", "claude-opus-4-5", "gemini-2.5-pro", "deepseek:deepseek-chat"]),
    status=st.sampled_from([200, 429, 499, 502]),
    rounds=st.integers(0, 4),
)
def test_savings_follow_from_the_numbers_beside_them(
    report: object,
    sides: dict[str, int],
    broken: bool,
    lives: Lives,
    model: str,
    status: int,
    rounds: int,
) -> None:
    usage = used(
        report,
        model=model,
        status=status,
        expanded=ExpansionUsage(rounds, 100, rounds),
        broken=broken,
        cache_lives=lives,
        **sides,
    )
    assert usage.saved == usage.untouched - usage.input <= usage.untouched
    assert usage.cached + usage.cache_written <= usage.input
    assert usage.cache_written_hour <= usage.cache_written
    assert usage.untouched_cached + usage.untouched_written <= usage.untouched
    assert usage.untouched_written_hour <= usage.untouched_written
    assert usage.cost is not None
    assert usage.saved_cost is not None
    assert usage.cost >= 0
    if usage.failed:
        assert usage.saved_cost == -usage.cost


# --- what the client asked of the provider's cache ------------------------------------------------

MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def marked(**parts: Any) -> Any:
    body = {"model": "claude-opus-4-5", "max_tokens": 9,
            "messages": [{"role": "user", "content": "Hi."}]}  # fmt: skip
    return holdfast.read({**body, **parts}, "anthropic")


def test_marks_are_seen_wherever_they_stand() -> None:
    text = {"type": "text", "text": "Hi."}
    tool = {"name": "t", "input_schema": {"type": "object"}}
    user = {"role": "user", "content": [{**text, **MARK}]}
    assert cache_lives(marked()) == frozenset()
    assert cache_lives(marked(messages=[user])) == SHORT
    assert cache_lives(marked(system=[{**text, **HOUR}])) == LONG
    assert cache_lives(marked(tools=[{**tool, **HOUR}], messages=[user])) == SHORT | LONG
    assert cache_lives(marked(**MARK)) == SHORT


def test_words_about_marks_are_none() -> None:
    said = '{"cache_control": {"type": "ephemeral"}}'
    schema = {"type": "object", "properties": {"cache_control": {"type": "string"}}}
    about = marked(
        messages=[{"role": "user", "content": said}],
        tools=[{"name": "t", "input_schema": schema}],
        system=[{"type": "text", "text": said, "cache_control": None}],
    )
    assert cache_lives(about) == frozenset()


@pytest.mark.parametrize(("rounds", "rate"), [(0, "2.5"), (1, "1.25")])
def test_each_call_has_the_rate_of_its_own_size(rounds: int, rate: str) -> None:
    # gemini-2.5-pro: above 200,000 tokens of one call, its input costs twice as much.
    usage = used(
        gemini(250_000),
        model="gemini-2.5-pro",
        expanded=ExpansionUsage(calls=rounds, rounds=rounds),
        predicted=250_000,
        untouched=250_000,
    )
    assert usage.cost == float(dollars((250_000, Decimal(rate))))
