"""Priorities: 40 % quality, 30 % confidence, 15 % recency, 15 % relevance (000-46 to 50)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.allocate import Confidence, ContentItem, ContentState, Quality, compute_priority
from holdfast.allocate.candidates import LEAST_WEIGHT, relative_weights
from holdfast.allocate.item import (
    CONFIDENCE,
    HALF_LIFE_SECONDS,
    MEANING,
    QUALITY,
    WEIGHTS,
    priorities,
    recency,
    relevance,
)

NOW = 1_800_000_000.0
STATE = ContentState(query="", now=NOW)


def source(text: str = "", **more: object) -> ContentItem:
    return ContentItem(source_id="s", content=text, **more)  # type: ignore[arg-type]


def test_the_weights_are_the_documented_ones_and_sum_to_one() -> None:
    assert dict(WEIGHTS) == {
        "quality": 0.40,
        "confidence": 0.30,
        "recency": 0.15,
        "relevance": 0.15,
    }
    assert sum(WEIGHTS.values()) == pytest.approx(1.0)


def test_every_level_has_a_number_and_the_named_ones_are_the_documented_ones() -> None:
    assert set(QUALITY) == set(Quality)
    assert set(CONFIDENCE) == set(Confidence)
    assert [QUALITY[q] for q in (Quality.HIGH, Quality.MEDIUM, Quality.LOW)] == [1.0, 0.7, 0.4]
    assert (CONFIDENCE[Confidence.CONFIRMED], CONFIDENCE[Confidence.HIGH]) == (1.0, 0.9)
    falling = [CONFIDENCE[c] for c in Confidence if c is not Confidence.UNKNOWN]
    assert falling == sorted(falling, reverse=True)


def test_a_good_new_source_on_the_question_has_the_highest_priority() -> None:
    best = source(
        "Canberra is the capital.",
        quality=Quality.HIGH,
        confidence=Confidence.CONFIRMED,
        published=NOW,
    )
    assert compute_priority(best, ContentState(query="Canberra capital", now=NOW)) == 1.0
    nobody_knows = compute_priority(source(), STATE)
    assert nobody_knows == pytest.approx(0.5)


@given(
    quality=st.sampled_from(Quality),
    confidence=st.sampled_from(Confidence),
    published=st.none() | st.floats(),
    content=st.text(max_size=50),
    query=st.text(max_size=30),
)
def test_priorities_lie_between_0_and_1(
    quality: Quality, confidence: Confidence, published: float | None, content: str, query: str
) -> None:
    each = source(content, quality=quality, confidence=confidence, published=published)
    assert 0.0 <= compute_priority(each, ContentState(query=query, now=NOW)) <= 1.0


def test_newer_is_higher_and_no_date_is_between() -> None:
    assert recency(NOW, NOW) == recency(NOW + 99, NOW) == 1.0
    assert recency(NOW - HALF_LIFE_SECONDS, NOW) == pytest.approx(0.5) == recency(None, NOW)
    assert recency(NOW - 10 * HALF_LIFE_SECONDS, NOW) < 0.001


def test_the_time_of_the_call_counts_where_a_state_has_none() -> None:
    assert compute_priority(source(published=0.0), ContentState()) < compute_priority(
        source(published=4e9), ContentState()
    )


def test_rare_terms_of_the_question_count_more_than_common_ones() -> None:
    texts = ["the river Thames", "the river Rhine", "the river Loire", "a lake"]
    scores = relevance("Which river is the Rhine?", texts)
    assert scores[1] == max(scores)
    assert scores[0] == scores[2] > scores[3] == 0.0
    assert relevance("  ", texts) == [0.5] * 4
    assert relevance("???", ["x"]) == [0.0]


class TwoMeanings:
    """An embedder that knows two meanings: of animals, and of all else."""

    def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        return [[1.0, 0.0] if "cat" in t or "feline" in t else [0.0, 0.5] for t in texts]


def test_an_embedder_finds_other_words_for_the_same_thing() -> None:
    texts = ["a feline", "a car"]
    assert relevance("cats", texts) == [0.0, 0.0]
    assert relevance("cats", texts, embedder=TwoMeanings()) == [pytest.approx(MEANING), 0.0]
    near, far = priorities(
        [source("a feline"), source("a car")],
        ContentState(query="cats", now=NOW),
        embedder=TwoMeanings(),
    )
    assert near - far == pytest.approx(MEANING * WEIGHTS["relevance"])


def test_weights_are_told_by_the_spread_of_priorities() -> None:
    close = [source(priority=priority) for priority in (0.50, 0.55, 0.60)]
    assert relative_weights(close) == [
        pytest.approx(weight) for weight in (LEAST_WEIGHT, 0.55, 1.0)
    ]
    assert relative_weights([source(), source()]) == [1.0, 1.0]
    assert relative_weights([]) == []
