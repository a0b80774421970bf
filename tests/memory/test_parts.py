"""Pieces, dates and questions: small tables of cases."""

from __future__ import annotations

import itertools
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cite import count
from holdfast.memory.dates import spans_in, without_dates
from holdfast.memory.passages import shorten_heading
from holdfast.memory.pieces import RUN_TOKENS, split_pieces
from holdfast.memory.question import read_question
from holdfast.search.words import terms_of

MONDAY = date(2023, 5, 8)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("on 2023-05-07", "2023-05-07", "2023-05-07"),
        ("on 7 May", "2023-05-07", "2023-05-07"),
        ("the 7th of May, 2022", "2022-05-07", "2022-05-07"),
        ("May 7, 2022", "2022-05-07", "2022-05-07"),
        ("March-15-2024", "2024-03-15", "2024-03-15"),
        ("in February 2024", "2024-02-01", "2024-02-29"),
        ("in June", "2023-06-01", "2023-06-30"),
        ("yesterday", "2023-05-07", "2023-05-07"),
        ("last Friday", "2023-05-05", "2023-05-05"),
        ("next Friday", "2023-05-12", "2023-05-12"),
        ("last Monday", "2023-05-01", "2023-05-01"),
        ("last week", "2023-05-01", "2023-05-07"),
        ("this weekend", "2023-05-13", "2023-05-14"),
        ("last month", "2023-04-01", "2023-04-30"),
        ("last year", "2022-01-01", "2022-12-31"),
        ("three days ago", "2023-05-05", "2023-05-05"),
        ("2 weeks ago", "2023-04-21", "2023-04-27"),
        ("in 2021", "2021-01-01", "2021-12-31"),
    ],
)
def test_a_date_is_resolved_against_when_it_was_said(text: str, first: str, last: str) -> None:
    (span,) = spans_in(f"It was {text}, I think.", MONDAY.toordinal())
    assert [date.fromordinal(day).isoformat() for day in span] == [first, last]


@pytest.mark.parametrize(
    "text", ["31 April", "May I come?", "version 2023.5", "9999 years ago", "no date at all"]
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert spans_in(text, MONDAY.toordinal()) == []


def test_no_text_breaks_the_calendar() -> None:
    for text in ("999 years ago", "last year", "next month", "last week"):
        for day in (1, date.max.toordinal()):
            assert all(first <= last for first, last in spans_in(text, day))


def test_a_question_is_taken_apart() -> None:
    question = read_question(
        "What did Caroline's sister paint on 7 May 2023?", ["Caroline", "user"], MONDAY.toordinal()
    )
    assert question.speakers == {"Caroline"}
    assert question.about == tuple(terms_of(["sister", "paint"]))
    assert set(question.full) > set(question.about)
    assert len(question.days) == 1
    assert "Caroline" not in question.text
    assert without_dates("on 7 May 2023?").split() == ["on", "?"]


def test_roles_are_no_names() -> None:
    question = read_question("What can the user do?", ["user", "assistant"], MONDAY.toordinal())
    assert not question.speakers


@given(st.text(st.sampled_from("ab .!?\n-日"), max_size=3000))
def test_pieces_hold_all_of_a_text_and_each_is_short(text: str) -> None:
    pieces = split_pieces(text, count(text), count)
    assert "".join(text[piece.start : piece.end] for piece in pieces) == text
    if len(pieces) > 1:
        assert all(piece.tokens <= max(RUN_TOKENS, 900) for piece in pieces)


def test_the_year_stands_above_the_first_day_of_each() -> None:
    days = ["[8 May 2023]", "[25 May 2023]", "[1 Jan 2024]", "[2 Jan 2024]"]
    headings = [shorten_heading(above, day) for above, day in itertools.pairwise(["", *days])]
    assert headings == ["[8 May 2023]", "[25 May]", "[1 Jan 2024]", "[2 Jan]"]
