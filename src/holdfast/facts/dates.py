"""dates: what "yesterday" or "next month" mean, written beside the words.

dates: beside words. The words stay as they were said; behind them stands the day, the week, the
month or the year that they mean, reckoned from when they were said: `yesterday [7 May 2023]`.
English only; in other languages nothing is added. Times are taken in UTC.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import re2  # type: ignore[import-untyped]

_COUNTS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
} | {"a": 1, "an": 1, "a couple of": 2}
_NUMBER = r"(\d{1,3}|" + "|".join(sorted(_COUNTS, key=len, reverse=True)) + ")"
_WEEKDAYS = [name.lower()[:3] for name in calendar.day_name]
_DAY = "((?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?)"
_RELATIVE = re2.compile(
    r"(?i)\b(?:"
    r"(day before yesterday|yesterday|last night|today|tonight|this (?:morning|afternoon|evening)"
    r"|day after tomorrow|tomorrow)"
    rf"|(last|this|next|this past|this coming) {_DAY}"
    r"|(last|this|next|this past) (week|weekend|month|year)"
    rf"|{_NUMBER} (day|week|month|year)s? (ago|from now)"
    r")\b"
)
_DAYS = {
    "day before yesterday": -2,
    "yesterday": -1,
    "last night": -1,
    "tomorrow": 1,
    "day after tomorrow": 2,
}
_MOST_YEARS = 100
# What can be reckoned only by who knows when it was said: that is told too.
_VAGUE = re2.compile(
    r"(?i)\b(?:on the \d{1,2}(?:st|nd|rd|th)|recently|lately|the other day|soon|these days"
    r"|nowadays|currently|right now|so far"
    r"|(?:on|since|until|by|every other) (?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|later this (?:week|month|year)|earlier this (?:week|month|year)|this (?:summer|winter|spring"
    r"|fall|autumn|season)|last (?:summer|winter|spring|fall|autumn|season))\b"
)


def with_dates(text: str, at: float | None) -> str:
    """A text with the days that its relative ones mean; without a time, as it is."""
    if at is None or "[" in text:  # brackets of the text's own: ours could not be told from them
        return text
    try:
        said = datetime.fromtimestamp(at, UTC).date()
    except (ValueError, OverflowError, OSError):
        return text
    pieces: list[str] = []
    end = 0
    for match in _RELATIVE.finditer(text):
        meant = _meant(match.groups(), said)
        if meant:
            pieces += text[end : match.end()], f" [{meant}]"
            end = match.end()
    if not pieces and _VAGUE.search(text):
        return f"{text} [said {told(said)}]"
    return "".join([*pieces, text[end:]])


def _meant(groups: tuple[str | None, ...], said: date) -> str:
    day, which_day, weekday, which, unit, count, counted, direction = (
        group.lower() if group else "" for group in groups
    )
    try:
        if day:
            return told(said + timedelta(_DAYS.get(day, 0)))
        if weekday:
            return _weekday(which_day, _WEEKDAYS.index(weekday[:3]), said)
        if unit:
            return _period(which, unit, said)
        number = _COUNTS[count] if count in _COUNTS else int(count)
        sign = -1 if direction == "ago" else 1
        return _STEPS[counted](said, sign * number)
    except (ValueError, OverflowError):
        return ""


def told(day: date) -> str:
    """A day as it is written in a fact."""
    return f"{day.day} {calendar.month_name[day.month]} {day.year}"


def _weekday(which: str, weekday: int, said: date) -> str:
    """`last Friday` is before today, `next Friday` behind it; `this` means the nearest to come."""
    ahead = (weekday - said.weekday()) % 7
    if which in ("last", "this past"):
        return told(said + timedelta(ahead - 7))
    if which == "next":  # said on a Monday, people mean this week's Friday or the one behind it
        return (
            f"week of {told(said + timedelta(7 - said.weekday()))}"
            if 0 < ahead < 7 and (weekday > said.weekday())
            else told(said + timedelta(ahead or 7))
        )
    return told(said + timedelta(ahead))


def _period(which: str, unit: str, said: date) -> str:
    step = {"last": -1, "this past": -1, "this": 0, "next": 1}[which]
    if unit == "weekend":
        saturday = said + timedelta(5 - said.weekday() + 7 * step)
        if which in ("last", "this past") and said.weekday() >= 5:
            saturday = said + timedelta(5 - said.weekday() - 7)
        return f"weekend of {told(saturday)}"
    return _STEPS[unit](said, step)


def _weeks(said: date, step: int) -> str:
    return f"week of {told(said + timedelta(7 * step - said.weekday()))}"


def _months(said: date, step: int) -> str:
    years, month = divmod(said.month - 1 + step, 12)
    return f"{calendar.month_name[month + 1]} {said.year + years}"


def _years(said: date, step: int) -> str:
    return str(said.year + step) if abs(step) <= _MOST_YEARS else ""


_STEPS: dict[str, Callable[[date, int], str]] = {
    "day": lambda said, step: told(said + timedelta(step)),
    "week": _weeks,
    "month": _months,
    "year": _years,
}
