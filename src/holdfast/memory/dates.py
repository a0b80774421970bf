"""Dates in a text, as days. Relative dates are resolved against the day of the turn.

A day is its ordinal since 0001-01-01, as in Python's `date`. A question may mean a span ("in May
2023", "last week"). English only: texts in other languages have no dates here and are recalled by
their words.
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
_DATE = re2.compile(
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
"""Maximum characters of a text that are searched for dates."""


class DaySpan(NamedTuple):
    """The first and the last day of a date or period."""

    first: int
    last: int


def day_of(at: float) -> int:
    """Return the UTC day of a timestamp; times outside the calendar get its first or last day."""
    try:
        return datetime.fromtimestamp(at, UTC).date().toordinal()
    except (ValueError, OverflowError, OSError):
        return date.max.toordinal() if at > 0 else date.min.toordinal()


def spans_in(text: str, said_on: int) -> list[DaySpan]:
    """Return the days that the dates in a text mean, in text order."""
    return [span for span, _, _ in _matches(text, said_on)]


def without_dates(text: str) -> str:
    """Return a text without its dates, which give the time of a question but not its topic."""
    parts, end = [], 0
    for _, start, stop in _matches(text, date(2000, 1, 1).toordinal()):
        parts.append(text[end:start])
        end = stop
    return " ".join([*parts, text[end:]])


def _matches(text: str, said_on: int) -> list[tuple[DaySpan, int, int]]:
    spans = []
    for match in _DATE.finditer(text[:_MOST_CHARACTERS]):
        try:
            span = _span(match.groups(), date.fromordinal(said_on))
        except (ValueError, OverflowError):  # 31 April, or a year before 1
            continue
        if span is not None:
            spans.append((span, match.start(), match.end()))
    return spans


def _span(groups: tuple[str | None, ...], said_day: date) -> DaySpan | None:
    """Return the days that the groups of a `_DATE` match mean."""
    parts = [group.lower() if group else "" for group in groups]
    y1, m1, d1, d2, m2, y2, m3, d3, y3, *later_groups = parts
    if y1:
        return _day(int(y1), int(m1), int(d1))
    if d2 or d3:
        return _day(int(y2 or y3 or said_day.year), _MONTHS[m2 or m3], int(d2 or d3))
    m4, y4, m5, *relative = later_groups
    if m4 or m5:
        return _month(int(y4 or said_day.year), _MONTHS[m4 or m5])
    return _relative(relative, said_day)


def _relative(parts: list[str], said_day: date) -> DaySpan | None:
    word, which, weekday, near, unit, count, counted, year = parts
    if word:
        return _named_day(word, said_day)
    if weekday:
        return _weekday(which, _WEEKDAYS[weekday], said_day)
    if unit:
        return _period(near, unit, said_day)
    if counted:
        return _ago(_COUNTS.get(count) or int(count), counted, said_day)
    return _span_of_year(int(year))


def _day(year: int, month: int, day: int) -> DaySpan:
    number = date(year, month, day).toordinal()
    return DaySpan(number, number)


def _month(year: int, month: int) -> DaySpan:
    first = date(year, month, 1)
    return DaySpan(first.toordinal(), first.toordinal() + calendar.monthrange(year, month)[1] - 1)


def _named_day(word: str, said_day: date) -> DaySpan:
    shift = {"yesterday": -1, "last night": -1, "the other day": -2, "tomorrow": 1}.get(word, 0)
    number = said_day.toordinal() + shift
    return DaySpan(number, number)


def _weekday(which: str, weekday: int, said_day: date) -> DaySpan:
    back = (said_day.weekday() - weekday) % 7 or 7
    number = said_day.toordinal() + (7 - back if which in ("next", "this") else -back)
    return DaySpan(number, number)


def _period(near: str, unit: str, said_day: date) -> DaySpan:
    shift = {"last": -1, "this": 0, "next": 1}[near]
    if unit == "year":
        return _span_of_year(said_day.year + shift)
    if unit == "month":
        months = said_day.year * 12 + said_day.month - 1 + shift
        return _month(months // 12, months % 12 + 1)
    monday = said_day - timedelta(days=said_day.weekday()) + timedelta(weeks=shift)
    first = monday.toordinal() + (5 if unit == "weekend" else 0)
    return DaySpan(first, monday.toordinal() + 6)


def _span_of_year(year: int) -> DaySpan:
    return DaySpan(date(year, 1, 1).toordinal(), date(year, 12, 31).toordinal())


def _ago(count: int, unit: str, said_day: date) -> DaySpan:
    middle = said_day.toordinal() - count * _UNIT_DAYS[unit]
    slack = {"day": 0, "week": 3, "month": 15, "year": 180}[unit]
    return DaySpan(middle - slack, middle + slack)
