"""Annotate relative dates with the dates they mean.

The words stay as they are, followed by the day, week, month or year that they mean, resolved
against the time of the message: `yesterday [7 May 2023]`. English only, times in UTC.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import re2  # type: ignore[import-untyped]

from holdfast.facts.clauses import prose_lines

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
    r")(?:['\x{2019}]s)?\b"
)
_DAYS = {
    "day before yesterday": -2,
    "yesterday": -1,
    "last night": -1,
    "tomorrow": 1,
    "day after tomorrow": 2,
}
_MOST_YEARS = 100
_MOST_CHARACTERS = 20_000
"""Maximum characters of a quoted turn that are read."""
_LONGEST_LINE = 4_000
"""Maximum length of a line that is read: RE2's wrapper takes quadratic time on lines that are not
ASCII."""
_CODE_BEFORE, _CODE_AFTER = "./\\$@#=-`\"'{<", '/\\=-`"({<'
"""Characters next to a word that make it code or a quoted value."""
# Expressions that depend on the date of the message but have no exact date: the date is added.
_VAGUE = re2.compile(
    r"(?i)\b(?:on the \d{1,2}(?:st|nd|rd|th)|recently|lately|the other day|soon|these days"
    r"|nowadays|currently|right now|so far"
    r"|(?:on|since|until|by|every other) (?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|later this (?:week|month|year)|earlier this (?:week|month|year)|this (?:summer|winter|spring"
    r"|fall|autumn|season)|last (?:summer|winter|spring|fall|autumn|season))\b"
)


def annotate_dates(text: str, at: float | None) -> str:
    """Return a text with the dates that its relative dates mean; unchanged without a time."""
    said_day = _day_of(at)
    # the reader could not tell our brackets from the text's own
    if said_day is None or "[" in text:
        return text
    notes = list(_notes(text, said_day))
    if not notes and _VAGUE.search(text):
        return f"{text} [said {format_date(said_day)}]"
    return _with_notes(text, notes)


def insert_dates(text: str, at: float | None, year: int | None = None) -> str:
    """Return a quoted turn with the date after each relative one, in brackets.

    Nothing else changes: without these brackets the text is the original. A date in `year` is
    written without its year. Only prose is annotated: in code, a quotation or a table `today` is no
    date, and a model that copies code from a turn must not copy our brackets.
    """
    said_day = _day_of(at)
    if said_day is None:
        return text
    notes: list[_Note] = []
    # RE2 takes UTF-8. A lone surrogate becomes one question mark, so that offsets stay.
    readable = text[:_MOST_CHARACTERS].encode("utf-8", "replace").decode()
    for start, line in prose_lines(readable):
        if len(line) > _LONGEST_LINE:
            continue
        ticks = end = 0
        for note in _notes(line, said_day, year):
            ticks += line.count("`", end, note.start)
            end = note.start
            if ticks % 2 == 0 and not _is_code(line, note):
                notes.append(_Note(start + note.start, start + note.end, note.date_text))
    return _with_notes(text, notes)


class _Note(NamedTuple):
    """A relative date in a text and the date it means."""

    start: int
    end: int
    date_text: str


def _notes(text: str, said_day: date, year: int | None = None) -> Iterator[_Note]:
    for match in _RELATIVE.finditer(text):
        if date_text := _resolve(match.groups(), said_day):
            # A year on its own has no space before it, so that it is kept.
            yield _Note(match.start(), match.end(), date_text.removesuffix(f" {year}"))


def _with_notes(text: str, notes: Iterable[_Note]) -> str:
    pieces: list[str] = []
    end = 0
    for note in notes:
        pieces += text[end : note.end], f" [{note.date_text}]"
        end = note.end
    return "".join([*pieces, text[end:]])


def _is_code(line: str, note: _Note) -> bool:
    """Return whether the words are an identifier, a path or a value: `date.today()`, `"today"`."""
    before, after = line[note.start - 1 : note.start], line[note.end : note.end + 2]
    return (
        (bool(before) and before in _CODE_BEFORE)
        or (bool(after) and after[0] in _CODE_AFTER)
        or after == " ="
        or (after[:1] == "." and after[1:].isalnum())
    )


def _day_of(at: float | None) -> date | None:
    try:
        return None if at is None else datetime.fromtimestamp(at, UTC).date()
    except (ValueError, OverflowError, OSError):
        return None


def _resolve(groups: tuple[str | None, ...], said_day: date) -> str:
    day, which_day, weekday, which, unit, count, counted, direction = (
        group.lower() if group else "" for group in groups
    )
    try:
        if day:
            return format_date(said_day + timedelta(_DAYS.get(day, 0)))
        if weekday:
            return _weekday(which_day, _WEEKDAYS.index(weekday[:3]), said_day)
        if unit:
            return _period(which, unit, said_day)
        number = _COUNTS[count] if count in _COUNTS else int(count)
        sign = -1 if direction == "ago" else 1
        return _STEPS[counted](said_day, sign * number)
    except (ValueError, OverflowError):
        return ""


def format_date(day: date) -> str:
    """Return a day as facts show it: "7 May 2023"."""
    return f"{day.day} {calendar.month_name[day.month]} {day.year}"


def _weekday(which: str, weekday: int, said_day: date) -> str:
    """Resolve a weekday: `last` is before today, `next` after it, `this` the nearest to come."""
    ahead = (weekday - said_day.weekday()) % 7
    if which in ("last", "this past"):
        return format_date(said_day + timedelta(ahead - 7))
    # On a Monday, "next Friday" may mean this week's Friday or the one after it.
    if which == "next":
        return (
            f"week of {format_date(said_day + timedelta(7 - said_day.weekday()))}"
            if 0 < ahead < 7 and (weekday > said_day.weekday())
            else format_date(said_day + timedelta(ahead or 7))
        )
    return format_date(said_day + timedelta(ahead))


def _period(which: str, unit: str, said_day: date) -> str:
    step = {"last": -1, "this past": -1, "this": 0, "next": 1}[which]
    if unit == "weekend":
        saturday = said_day + timedelta(5 - said_day.weekday() + 7 * step)
        if which in ("last", "this past") and said_day.weekday() >= 5:
            saturday = said_day + timedelta(5 - said_day.weekday() - 7)
        return f"weekend of {format_date(saturday)}"
    return _STEPS[unit](said_day, step)


def _weeks(said_day: date, step: int) -> str:
    return f"week of {format_date(said_day + timedelta(7 * step - said_day.weekday()))}"


def _months(said_day: date, step: int) -> str:
    years, month = divmod(said_day.month - 1 + step, 12)
    return f"{calendar.month_name[month + 1]} {said_day.year + years}"


def _years(said_day: date, step: int) -> str:
    return str(said_day.year + step) if abs(step) <= _MOST_YEARS else ""


_STEPS: dict[str, Callable[[date, int], str]] = {
    "day": lambda said, step: format_date(said + timedelta(step)),
    "week": _weeks,
    "month": _months,
    "year": _years,
}
