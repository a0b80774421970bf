"""Dates that a text says or means, as days; relative ones are resolved against when it was said.

dates: beside words. A day is its number since 0001-01-01, as Python counts it. A question may mean
a span ("in May 2023", "last week"); a turn says single days, of which a span takes the first and
the last. English only: other languages have no dates here, and are recalled by their words.
"""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import re2  # type: ignore[import-untyped]

_MONTHS = {name.lower(): n for n, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name[:3]: number for name, number in list(_MONTHS.items())} | {"sept": 9}
_WEEKDAYS = {name.lower(): n for n, name in enumerate(calendar.day_name)}
_COUNTS = {
    word: n
    for n, word in enumerate("zero one two three four five six seven eight nine ten".split())
} | {"a": 1, "an": 1, "couple of": 2, "a couple of": 2, "few": 3, "a few": 3}
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}

_MONTH = "(" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"((?:19|20)\d\d)"
_SAID = re2.compile(
    "(?i)"
    + "|".join(
        (
            rf"\b{_YEAR}-(\d\d)-(\d\d)\b",  # 1-3
            rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?\b",  # 4-6
            rf"\b{_MONTH}[\s-]+{_DAY}\b(?:,?[\s-]+{_YEAR}\b)?",  # 7-9
            rf"\b(?:in\s+|during\s+|since\s+|of\s+)?{_MONTH},?\s+(?:of\s+)?{_YEAR}\b",  # 10-11
            rf"\b(?:in|during|since|last|this|next|of)\s+{_MONTH}\b",  # 12
            r"\b(yesterday|today|tonight|tomorrow|the other day|last night)\b",  # 13
            r"\b(last|this|next|past|on)\s+(" + "|".join(_WEEKDAYS) + r")\b",  # 14-15
            r"\b(last|this|next)\s+(week|weekend|month|year)\b",  # 16-17
            r"\b(" + "|".join([*_COUNTS, r"\d{1,3}"]) + r")\s+(day|week|month|year)s?\s+ago\b",
            rf"\bin\s+{_YEAR}\b",  # 20
        )
    )
)
_MOST_CHARACTERS = 20_000
"""Of a text that are read for dates."""


class Span(NamedTuple):
    """Days, the first and the last."""

    first: int
    last: int


def day_of(at: float) -> int:
    """The day of a time, in UTC; times beyond the calendar are on its last or first day."""
    try:
        return datetime.fromtimestamp(at, UTC).date().toordinal()
    except (ValueError, OverflowError, OSError):
        return date.max.toordinal() if at > 0 else date.min.toordinal()


def spans_in(text: str, said_on: int) -> list[Span]:
    """The dates that a text said on a day means, in the order of the text."""
    return [span for span, _, _ in _dated(text, said_on)]


def without_dates(text: str) -> str:
    """A text without what says a date: in a question that tells when, not what."""
    rest, end = [], 0
    for _, start, stop in _dated(text, date(2000, 1, 1).toordinal()):
        rest.append(text[end:start])
        end = stop
    return " ".join([*rest, text[end:]])


def _dated(text: str, said_on: int) -> list[tuple[Span, int, int]]:
    spans = []
    for match in _SAID.finditer(text[:_MOST_CHARACTERS]):
        try:
            span = _span(match.groups(), date.fromordinal(said_on))
        except (ValueError, OverflowError):  # the 31st of April, or a year before the first
            continue
        if span is not None:
            spans.append((span, match.start(), match.end()))
    return spans


def _span(groups: tuple[str | None, ...], said: date) -> Span | None:
    """The days that the groups of `_SAID` mean."""
    parts = [group.lower() if group else "" for group in groups]
    y1, m1, d1, d2, m2, y2, m3, d3, y3, *rest = parts
    if y1:
        return _day(int(y1), int(m1), int(d1))
    if d2 or d3:
        return _day(int(y2 or y3 or said.year), _MONTHS[m2 or m3], int(d2 or d3))
    m4, y4, m5, *relative = rest
    if m4 or m5:
        return _month(int(y4 or said.year), _MONTHS[m4 or m5])
    return _relative(relative, said)


def _relative(parts: list[str], said: date) -> Span | None:
    word, which, weekday, near, unit, count, counted, year = parts
    if word:
        return _named_day(word, said)
    if weekday:
        return _weekday(which, _WEEKDAYS[weekday], said)
    if unit:
        return _period(near, unit, said)
    if counted:
        return _ago(_COUNTS.get(count) or int(count), counted, said)
    return _span_of_year(int(year))


def _day(year: int, month: int, day: int) -> Span:
    number = date(year, month, day).toordinal()
    return Span(number, number)


def _month(year: int, month: int) -> Span:
    first = date(year, month, 1)
    return Span(first.toordinal(), first.toordinal() + calendar.monthrange(year, month)[1] - 1)


def _named_day(word: str, said: date) -> Span:
    shift = {"yesterday": -1, "last night": -1, "the other day": -2, "tomorrow": 1}.get(word, 0)
    number = said.toordinal() + shift
    return Span(number, number)


def _weekday(which: str, weekday: int, said: date) -> Span:
    back = (said.weekday() - weekday) % 7 or 7
    number = said.toordinal() + (7 - back if which in ("next", "this") else -back)
    return Span(number, number)


def _period(near: str, unit: str, said: date) -> Span:
    shift = {"last": -1, "this": 0, "next": 1}[near]
    if unit == "year":
        return _span_of_year(said.year + shift)
    if unit == "month":
        months = said.year * 12 + said.month - 1 + shift
        return _month(months // 12, months % 12 + 1)
    monday = said - timedelta(days=said.weekday()) + timedelta(weeks=shift)
    first = monday.toordinal() + (5 if unit == "weekend" else 0)
    return Span(first, monday.toordinal() + 6)


def _span_of_year(year: int) -> Span:
    return Span(date(year, 1, 1).toordinal(), date(year, 12, 31).toordinal())


def _ago(count: int, unit: str, said: date) -> Span:
    middle = said.toordinal() - count * _UNIT_DAYS[unit]
    slack = {"day": 0, "week": 3, "month": 15, "year": 180}[unit]
    return Span(middle - slack, middle + slack)
