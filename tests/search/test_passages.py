"""Ranking passages by a question."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.condense.condenser import Passage
from holdfast.search.passages import rank
from holdfast.search.query import terms


def passages(*texts: str) -> list[Passage]:
    return [Passage(text, f"paragraph {number}") for number, text in enumerate(texts, 1)]


def best(question: str, *texts: str) -> str:
    ranked = rank(question, passages(*texts))
    return texts[ranked[0].index] if ranked else ""


ROWS = [
    json.dumps({"service": f"svc-{n}", "port": 8000 + n, "maxTokens": n, "owner": f"u{n}@ex.org"})
    for n in range(200)
]

CASES = [
    ("What is the port of service svc-41?", ROWS, ROWS[41]),
    ("svc-4", ["svc-41", "svc-4"], None),
    ("who runs port 8123", ROWS, ROWS[123]),
    ("what does u77@ex.org own", ROWS, ROWS[77]),
    ("which row has max tokens 55", ROWS, ROWS[55]),
    ("Why did the connection fail?", ["all is well", "2 connections failed: refused"], None),
    ("retries of the queue", ["the queue is long", "retry 3 of the queue"], None),
    ("parse config file", ["def read(path)", "def parseConfigFile(path)"], None),
    ("parse_config", ["config, then parse", "def parse_config(path)"], None),
    ("where is src/app/main.py", ["src app main py", "see src/app/main.py:14"], None),
    ("https://example.org/a?b=1", ["https://example.org/a", "https://example.org/a?b=1"], None),
    ('say "out of memory"', ["memory of a day out", "killed: out of memory"], None),
    ("total of 1,000", ["total 100", "total 1000"], None),
    ("total of 1000", ["total 100", "total 1,000"], None),
    ("ÉCOLE", ["lycée", "une école"], None),
    ("端口是什么", ["这是名字", "端口 8080"], None),
    ("dog in the yard", ["a dogma", "'two dogs'"], None),
    ("dog in the yard", ["a dogma", "the dogs' food"], None),
    ("who bakes bread", ["the bakery", "the baker's oven"], None),
    ("user id of Ann", ["user guide", '{"user_id": 7, "name": "Ann"}'], None),
]


@pytest.mark.parametrize(("question", "texts", "answer"), CASES, ids=[case[0] for case in CASES])
def test_the_passage_that_answers_comes_first(
    question: str, texts: list[str], answer: str | None
) -> None:
    assert best(question, *texts) == (answer or texts[-1])


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("port", "an important report"),
        ("port", "portfolio"),
        ("80", "8080 and 180"),
        ("", "anything"),
        ("???", "anything"),
        ("words", ""),
    ],
)
def test_what_only_looks_alike_is_no_match(question: str, text: str) -> None:
    assert rank(question, passages(text)) == []


def test_terms_that_stand_together_beat_the_same_terms_apart() -> None:
    apart = "memory is fine. " + "x " * 60 + "The disk is out."
    close = "The disk is full and its memory is fine. " + "x " * 60
    assert best("disk memory", apart, close) == close


def test_a_term_in_every_passage_still_finds_them_in_their_order() -> None:
    ranked = rank("error", passages(*["error here"] * 50))
    assert [entry.index for entry in ranked] == list(range(50))


def test_a_question_of_stop_words_is_taken_at_its_word() -> None:
    assert best("to be", "nothing", "to be or not") == "to be or not"


def test_a_long_question_has_a_bounded_number_of_terms() -> None:
    assert len(terms(" ".join(f"word{n}x" for n in range(5000)))) <= 64


@given(st.text(max_size=80), st.lists(st.text(max_size=80), max_size=12))
def test_any_question_ranks_any_passages_best_first_and_always_the_same(
    question: str, texts: list[str]
) -> None:
    ranked = rank(question, passages(*texts))
    assert [entry.score for entry in ranked] == sorted((e.score for e in ranked), reverse=True)
    assert all(entry.score > 0 for entry in ranked)
    assert len({entry.index for entry in ranked}) == len(ranked)
    assert rank(question, passages(*texts)) == ranked


@given(st.lists(st.sampled_from(["Ann", "port", "1.10", "a_b", "x"]), min_size=1, max_size=6))
def test_a_text_answers_the_question_that_quotes_it(words: list[str]) -> None:
    text = " ".join(words)
    assert [entry.index for entry in rank(f'"{text}"', passages("nothing", text))] == [1]
