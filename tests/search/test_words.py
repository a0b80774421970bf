"""Words as searches compare them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.answer_cache import reading
from holdfast.search import words
from holdfast.search.stems import EndingRule, Stemmer, stem
from holdfast.search.words import fact_terms, fold, number_of, terms_of, words_of


def test_words_are_compared_without_endings_or_case() -> None:
    same = [("Painting", "painted"), ("Caroline's", "Caroline"), ("RUNS", "runs")]
    for one, other in same:
        assert terms_of(words_of(one)) == terms_of(words_of(other))
    assert terms_of(["the", "of"]) == []
    assert len(terms_of(words_of("日本語"))) == 2


def test_a_long_word_is_remembered_by_its_beginning_alone() -> None:
    first, second = ("a" * length for length in (1_000_000, 900_000))
    for cache, read in ((words._fact_forms, fact_terms), (words._numbers, _terms_in)):
        cache.cache_clear()
        assert read(first) == read(second)
        assert cache.cache_info().currsize == 1


def _terms_in(text: str) -> list[int]:
    return terms_of(words_of(text))


def test_a_fact_of_stop_words_alone_keeps_them() -> None:
    assert fact_terms("to be or to be") == ["to", "be", "or"]
    assert fact_terms("to be in Rome, Rome") == ["rom"]


def test_facts_have_the_words_of_turns() -> None:
    text = "Ann painted 12 bowls in Kyoto"
    assert [number_of(form) for form in fact_terms(text)] == terms_of(words_of(text))


@pytest.mark.parametrize(
    ("word", "of_search", "of_question"),
    [
        ("running", "run", "run"),
        ("falling", "fal", "fall"),
        ("movies", "mov", "movy"),
        ("movie", "movi", "movy"),
        ("classes", "class", "class"),
        ("added", "add", "ad"),
        ("payment", "pay", "payment"),
        ("colours", "colour", "color"),
        ("bus", "bus", "bus"),
    ],
)
def test_a_search_drops_more_endings_than_the_comparison_of_questions(
    word: str, of_search: str, of_question: str
) -> None:
    assert (stem(word), reading.stem(word)) == (of_search, of_question)


def test_in_each_step_the_first_ending_that_applies_is_replaced() -> None:
    shorten = Stemmer(
        (EndingRule("ies", "y", min_letters=2), EndingRule("s")),
        (EndingRule("y", needs_vowel=True),),
    )
    assert [shorten(word) for word in ("berries", "ties", "cries", "")] == [
        "berr",
        "tie",
        "cry",
        "",
    ]


@given(st.text())
def test_folding_keeps_every_place(text: str) -> None:
    assert len(fold(text + "\u0130")) == len(text) + 1
