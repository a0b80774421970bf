"""Relative dates in quoted turns: their date is added after them, and nothing else changes."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.facts.dates import insert_dates

SAID = date(2023, 4, 29)
AT = datetime(2023, 4, 29, 13, 30, tzinfo=UTC).timestamp()
OURS = re.compile(r" \[(?:week(?:end)? of )?(?:\d{1,2} )?(?:[A-Z][a-z]+ )?\d{4}\]")


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("I ran three days ago.", "I ran three days ago [26 April]."),
        ("It began two years ago", "It began two years ago [2021]"),
        ("We met five months ago", "We met five months ago [November 2022]"),
        ("yesterday's match", "yesterday's [28 April] match"),
        ("Last week", "Last week [week of 17 April]"),
        ("[a photo] We left yesterday", "[a photo] We left yesterday [28 April]"),
        ("yesterday [1 May 2020]", "yesterday [28 April] [1 May 2020]"),
        ("one\ntwo today\n", "one\ntwo today [29 April]\n"),
        ("lone \udc80 and today", "lone \udc80 and today [29 April]"),
    ],
)
def test_the_date_stands_behind_the_words(text: str, resolved: str) -> None:
    assert insert_dates(text, AT, 2023) == resolved


@pytest.mark.parametrize(
    "text",
    [
        "```\ntoday\n```",
        "run `today --now` first",
        "x = date.today()",
        "today = 3",
        'the key is "today"',
        "see logs/today/errors",
        "    today",
        "> today, they wrote",
        "[shares an image: the beach last week]",
        "today_total and today.isoformat",
    ],
)
def test_code_and_quotations_stay_as_they_are(text: str) -> None:
    assert insert_dates(text, AT, 2023) == text


@pytest.mark.parametrize("at", [None, float("inf"), float("nan"), 1e300, -1e300])
def test_without_a_day_nothing_is_added(at: float | None) -> None:
    assert insert_dates("yesterday", at) == "yesterday"


WORDS = st.sampled_from(
    [
        *("yesterday", "today's", "last week", "three days ago", "next Friday", "two years ago"),
        *("a", "é", "[", "]", " [x]", "`", "```", "\n", "    ", "- ", ".", "=", "\ud800", "\u2028"),
    ]
)
TEXTS = st.lists(st.one_of(WORDS, st.text(max_size=3))).map(" ".join)


@given(text=TEXTS, day=st.dates(date(1970, 1, 2), date(2100, 1, 1)))
def test_without_our_brackets_the_turn_is_the_original(text: str, day: date) -> None:
    text = re.sub(r"\d", "", text)  # no bracket of the text's own looks like ours
    at = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
    resolved = insert_dates(text, at)
    assert OURS.sub("", resolved) == text
    assert insert_dates(text, at) == resolved


@given(days=st.integers(1, 999), day=st.dates(date(1980, 1, 1), date(2100, 1, 1)))
def test_days_are_counted_from_when_it_was_said(days: int, day: date) -> None:
    at = datetime(day.year, day.month, day.day, 23, 59, tzinfo=UTC).timestamp()
    date_then = day - timedelta(days)
    written = f"{date_then.day} {calendar.month_name[date_then.month]}"
    with_year = written if date_then.year == day.year else f"{written} {date_then.year}"
    assert insert_dates(f"{days} days ago", at, day.year) == f"{days} days ago [{with_year}]"
    assert insert_dates(f"{days} days ago", at) == f"{days} days ago [{written} {date_then.year}]"
