"""Calibration: learns a model's overhead quickly, and resists wrong reports."""

from __future__ import annotations

import random
import threading
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import count
from holdfast.errors import StoreError
from holdfast.tokens import Calibration, TokenCount
from holdfast.tokens.calibration import reported_input
from holdfast.tokens.counter import Parts


def counted(tokens: int, *, model: str = "new-model", tools: int = 0) -> TokenCount:
    return TokenCount(
        tokens=tokens,
        upper=tokens * 2,
        accuracy="heuristic",
        parts=Parts(0, tools, tokens - tools, 0),
        model=model,
        family="unknown",
        plain=tokens,
    )


TRUTHS = {
    "a hidden prompt": lambda tokens: tokens + 340,
    "another vocabulary": lambda tokens: round(tokens * 1.31),
    "both": lambda tokens: round(tokens * 1.31) + 340,
    "fewer tokens": lambda tokens: round(tokens * 0.7),
}


@pytest.mark.parametrize("truth", TRUTHS.values(), ids=TRUTHS)
def test_twenty_reports_halve_the_error_of_a_model_never_seen(truth: Any) -> None:
    chance = random.Random(7)
    calibration = Calibration()
    before, after, held = [], [], []
    for number in range(60):
        plain = counted(chance.randint(200, 4000))
        reported = round(truth(plain.tokens) * chance.uniform(0.99, 1.01))
        corrected = calibration.correct(plain)
        if number >= 20:
            before.append(abs(plain.tokens - reported) / reported)
            after.append(abs(corrected.tokens - reported) / reported)
            held.append(corrected.upper >= reported)
        calibration.observe(plain, reported)
    assert median(after) <= median(before) / 2
    assert median(after) < 0.02
    assert all(held)


def test_wrong_reports_do_not_poison_it() -> None:
    chance = random.Random(3)
    calibration = Calibration()
    for number in range(60):
        plain = counted(chance.randint(500, 3000))
        wrong = number % 5 == 0
        calibration.observe(plain, plain.tokens * 9 if wrong else plain.tokens + 100)
    assert calibration.correct(counted(1000)).tokens == 1100


@pytest.mark.parametrize("wrong", [1 / 15, 1 / 3, 3, 9])
def test_two_wrong_reports_in_five_do_not_carry_it_away(wrong: float) -> None:
    chance = random.Random(5)
    calibration = Calibration()
    for number in range(100):
        plain = counted(chance.randint(500, 3000))
        reported = plain.tokens * wrong if number % 5 in (1, 3) else plain.tokens + 100
        calibration.observe(plain, round(reported))
    corrected = calibration.correct(counted(1000))
    assert corrected.tokens == pytest.approx(1100, rel=0.1)
    assert 1100 <= corrected.upper <= 1100 * 2.6


@pytest.mark.parametrize("wrong", [60, 9000])
def test_one_wrong_report_does_not_widen_the_bound(wrong: int) -> None:
    calibration = Calibration()
    for tokens in range(500, 3000, 50):
        calibration.observe(counted(tokens), wrong if tokens == 800 else tokens + 100)
    assert calibration.correct(counted(1000)).upper < 1200


@pytest.mark.parametrize("sizes", [(8, 8, 8, 8, 26), (10, 20, 30, 40, 50, 60), (9,) * 5])
def test_tiny_requests_say_nothing_about_large_ones(sizes: tuple[int, ...]) -> None:
    calibration = Calibration()
    for size in sizes:
        calibration.observe(counted(size), round(size * 1.1) + 3)
    corrected = calibration.correct(counted(74_000))
    assert 74_000 <= corrected.tokens <= 74_100
    assert corrected.upper <= counted(74_000).upper + 100
    # A longer request shows the overhead of another vocabulary.
    for size in (500, 900, 2_000, 4_000, 8_000):
        calibration.observe(counted(size), round(size * 1.1) + 3)
    assert 80_000 <= calibration.correct(counted(74_000)).tokens <= 83_000


def test_a_report_far_below_an_exact_count_is_ignored() -> None:
    """Frameworks that estimate usage by words would let requests overflow the window."""
    calibration = Calibration()
    exact = count({"model": "gpt-4o", "messages": [{"role": "user", "content": "word " * 900}]})
    for _ in range(9):
        calibration.observe(exact, round(exact.plain * 0.4))
    assert calibration.ignored == 9
    assert calibration.correct(exact) == exact


def test_reports_that_confirm_a_count_tighten_its_bound() -> None:
    calibration = Calibration()
    plain = counted(50_000)
    for number in range(40):
        calibration.observe(counted(40_000 + 500 * number), 40_000 + 500 * number)
    corrected = calibration.correct(plain)
    assert corrected.tokens == plain.tokens
    assert plain.tokens < corrected.upper < 1.03 * plain.tokens


def test_a_model_that_changes_is_followed() -> None:
    chance = random.Random(11)
    calibration = Calibration()
    for number in range(130):
        plain = counted(chance.randint(500, 3000))
        calibration.observe(plain, round(plain.tokens * (1.3 if number < 60 else 0.8)))
    assert calibration.correct(counted(1000)).tokens == pytest.approx(800, abs=5)


def test_a_right_count_is_left_alone() -> None:
    calibration = Calibration()
    for tokens in range(100, 2000, 50):
        calibration.observe(counted(tokens), tokens)
    assert calibration.correct(counted(700)).tokens == 700


@pytest.mark.parametrize("usage", [0, -5, 10**9, True, None, "many", {}, {"input_tokens": -3}, 2.5])
def test_absurd_reports_are_ignored_and_counted(usage: Any) -> None:
    calibration = Calibration()
    calibration.observe(counted(1000), usage)
    assert calibration.ignored == 1
    assert calibration.accuracy() == []


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 12, "completion_tokens": 5}, 12),
        ({"usage": {"input_tokens": 12}}, 12),
        ({"input_tokens": 2, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3}, 12),
        ({"usageMetadata": {"promptTokenCount": 12}}, 12),
        ({"prompt_tokens": 12, "cache_read_input_tokens": 7}, 12),
        ({"inputTokens": 10, "cacheReadInputTokens": 2}, 12),
        (12, 12),
    ],
)
def test_usage_is_understood_in_every_dialect(usage: Any, tokens: int) -> None:
    assert reported_input(usage) == tokens


def test_requests_with_and_without_tools_are_learnt_apart() -> None:
    calibration = Calibration()
    for tokens in range(200, 1000, 40):
        calibration.observe(counted(tokens), tokens)
        calibration.observe(counted(tokens, tools=100), tokens + 500)
    assert calibration.correct(counted(600)).tokens == 600
    assert calibration.correct(counted(600, tools=100)).tokens == 1100


def test_models_do_not_learn_from_each_other() -> None:
    calibration = Calibration()
    for tokens in range(200, 1000, 40):
        calibration.observe(counted(tokens, model="a"), tokens * 2)
    assert calibration.correct(counted(500, model="b")).tokens == 500


def test_the_models_that_were_not_heard_of_for_longest_are_forgotten() -> None:
    calibration = Calibration()
    for n in range(1500):
        calibration.observe(counted(100, model=f"model {n}"), 120)
        calibration.observe(counted(100, model="steady"), 150)
    names = {accuracy.model for accuracy in calibration.accuracy()}
    assert len(names) == 1000
    assert names >= {"steady", "model 1499"}
    assert calibration.correct(counted(100, model="steady")).tokens == 150


def test_accuracy_is_reported_over_time() -> None:
    calibration = Calibration()
    for tokens in range(200, 2200, 40):
        calibration.observe(counted(tokens), tokens * 2)
    [accuracy] = calibration.accuracy()
    assert accuracy.observed == 50
    assert accuracy.first_error == accuracy.plain_error == pytest.approx(0.5)
    assert accuracy.corrected_error < 0.01


def test_what_was_learnt_survives_a_restart() -> None:
    calibration = Calibration()
    for tokens in range(200, 1000, 40):
        calibration.observe(counted(tokens), tokens + 77)
    calibration.observe(counted(5), -1)
    again = Calibration.load(calibration.dump())
    assert again.correct(counted(600)).tokens == 677
    assert again.ignored == 1
    assert again.accuracy() == calibration.accuracy()


@given(st.binary(max_size=60))
def test_a_damaged_store_is_a_typed_error(dumped: bytes) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        Calibration.load(dumped)


def test_threads_may_observe_and_correct_at_once() -> None:
    calibration = Calibration()

    def work() -> None:
        for tokens in range(100, 1100, 10):
            calibration.observe(counted(tokens), tokens + 50)
            calibration.correct(counted(tokens))
            calibration.accuracy()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calibration.accuracy()[0].observed == 600
    assert calibration.correct(counted(500)).tokens == 550


@pytest.mark.parametrize("truth", TRUTHS.values(), ids=TRUTHS)
def test_the_parts_of_a_corrected_count_add_up(truth: Any) -> None:
    calibration = Calibration()
    for tokens in range(500, 3000, 50):
        calibration.observe(counted(tokens, tools=tokens // 5), truth(tokens))
    corrected = calibration.correct(counted(1000, tools=200))
    parts = corrected.parts
    assert corrected.tokens == pytest.approx(truth(1000), abs=2)
    assert corrected.tokens == parts.system + parts.tools + parts.messages + parts.formatting
    assert min(parts.tools, parts.messages) > 0


def test_a_corrected_count_says_so() -> None:
    calibration = Calibration()
    body = {"messages": [{"role": "user", "content": "word " * 200}]}
    for _ in range(10):
        plain = count(body, model="gpt-4o")
        calibration.observe(plain, plain.tokens + 60)
    corrected = count(body, model="gpt-4o", calibration=calibration)
    assert corrected.tokens == corrected.plain + 60
    assert "observed usage" in corrected.note
