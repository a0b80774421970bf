"""dates: what "yesterday" or "next month" mean, written beside the words.

dates: after clauses. The words stay as they were said; behind them stands the day, the week, the
month or the year that they mean, reckoned from when they were said: `yesterday [7 May 2023]`.
English only; in other languages nothing is added. Times are taken in UTC.
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
"""Of a quoted turn that are read."""
_LONGEST_LINE = 4_000
"""Of a quoted turn that is read: RE2's wrapper takes quadratic time in a line that is not ASCII."""
_CODE_BEFORE, _CODE_BEHIND = "./\\$@#=-`\"'{<", '/\\=-`"({<'
"""Characters right beside a word that make it code or a quoted value."""
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
    said = _day_of(at)
    if said is None or "[" in text:  # brackets of the text's own: ours could not be told from them
        return text
    notes = list(_notes(text, said))
    if not notes and _VAGUE.search(text):
        return f"{text} [said {told(said)}]"
    return _with_notes(text, notes)


def resolve_dates(text: str, at: float | None, year: int | None = None) -> str:
    """Return a quoted turn with the date behind each relative one, in brackets.

    Nothing else changes: without these brackets the text is the original. A date in `year` is
    written without it. Only prose is read: in code, a quotation or a table `today` is no date, and
    whoever copies code from a turn must not copy our brackets.
    """
    said = _day_of(at)
    if said is None:
        return text
    notes: list[_Note] = []
    # RE2 takes UTF-8: a lone surrogate becomes one question mark, so places stay.
    readable = text[:_MOST_CHARACTERS].encode("utf-8", "replace").decode()
    for start, line in prose_lines(readable):
        if len(line) > _LONGEST_LINE:
            continue
        ticks = end = 0
        for note in _notes(line, said, year):
            ticks += line.count("`", end, note.start)
            end = note.start
            if ticks % 2 == 0 and not _is_code(line, note):
                notes.append(_Note(start + note.start, start + note.end, note.meant))
    return _with_notes(text, notes)


class _Note(NamedTuple):
    """A relative date in a text and what it means."""

    start: int
    end: int
    meant: str


def _notes(text: str, said: date, year: int | None = None) -> Iterator[_Note]:
    for match in _RELATIVE.finditer(text):
        if meant := _meant(match.groups(), said):
            # A year alone has no space before it, and stays.
            yield _Note(match.start(), match.end(), meant.removesuffix(f" {year}"))


def _with_notes(text: str, notes: Iterable[_Note]) -> str:
    pieces: list[str] = []
    end = 0
    for note in notes:
        pieces += text[end : note.end], f" [{note.meant}]"
        end = note.end
    return "".join([*pieces, text[end:]])


def _is_code(line: str, note: _Note) -> bool:
    """Return whether the words are an identifier, a path or a value: `date.today()`, `"today"`."""
    before, behind = line[note.start - 1 : note.start], line[note.end : note.end + 2]
    return (
        (bool(before) and before in _CODE_BEFORE)
        or (bool(behind) and behind[0] in _CODE_BEHIND)
        or behind == " ="
        or (behind[:1] == "." and behind[1:].isalnum())
    )


def _day_of(at: float | None) -> date | None:
    try:
        return None if at is None else datetime.fromtimestamp(at, UTC).date()
    except (ValueError, OverflowError, OSError):
        return None


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
