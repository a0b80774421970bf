"""Parse numbers with their sign, unit, currency and month.

`30 ms` differs from `30 s`, `-5 °C` from `5 °C` and `5 May` from `5 June`, although the digits are
equal. Only the listed units are known; in `5 users` the number stands alone. Digits of every script
are accepted, and the work is linear.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Container
from functools import cache
from typing import NamedTuple

_SPELLINGS = """\
ns nanosecond nanoseconds
µs μs us microsecond microseconds
ms msec millisecond milliseconds
s sec secs second seconds
min mins minute minutes
h hr hrs hour hours
day days
week weeks
month months
year years
B byte bytes
bit bits
kB KB kilobyte kilobytes
MB megabyte megabytes
GB gigabyte gigabytes
TB terabyte terabytes
PB petabyte petabytes
KiB kibibyte kibibytes
MiB mebibyte mebibytes
GiB gibibyte gibibytes
TiB tebibyte tebibytes
mm millimeter millimeters millimetre millimetres
cm centimeter centimeters centimetre centimetres
m meter meters metre metres
km kilometer kilometers kilometre kilometres
mi mile miles
ft foot feet
mg milligram milligrams
g gram grams
kg kilogram kilograms
t ton tons tonne tonnes
°C celsius
°F fahrenheit
Hz hertz
kHz kilohertz
MHz megahertz
GHz gigahertz
W watt watts
kW kilowatt kilowatts
MW megawatt megawatts
% percent pct
$ USD dollar dollars
€ EUR euro euros
£ GBP
¥ JPY yen
hundred hundreds
thousand thousands
million millions
billion billions bn
trillion trillions
am AM
pm PM
年
月
日
時 时
分
秒
円
元
万 萬
億 亿
"""
_MONTHS = (
    "January February March April May June July August September October November December".split()
)
_UNITS = {
    spelling: line.split()[0] for line in _SPELLINGS.splitlines() for spelling in line.split()
}
# Long enough to be unambiguous in any case. `mb` has two meanings, and `may` is a verb.
_WORDS = {spelling.lower(): unit for spelling, unit in _UNITS.items() if len(spelling) > 3}
_UNITS |= {spelling: month for month in _MONTHS for spelling in (month, month[:3])}
_UNITS["Sept"] = "September"

_FIGURE = re.compile(r"(\d{1,3}(?:,\d{3})++(?:\.\d++)?+|\d++(?:\.\d++)?+)([^\W\d_]{1,12})?")
_AFTER = re.compile(
    r"[ \u00a0\u202f]?"
    r"(%|°[ \u00a0]?[CF]|[$€£¥年月日時时分秒円元万萬億亿]|[^\W\d_]{1,12}+(?![^\W_]))"
)
# The minus sign of a number, not the hyphen of a range, an option or a word.
_MINUS = re.compile(r"(?<![\w.)\]%$€£¥-])-(?=[$€£¥]?\Z)|(?<=[$€£¥])-\Z")
_CURRENCY = re.compile(r"([$€£¥])[ \u00a0]?-?\Z")
_MONTH = re.compile(r"(?<![^\W_])([^\W\d_]{3,9})\.?[ \u00a0]\Z")
_CONTEXT_CHARACTERS = 14
"""Characters examined before a number: the longest month with its period, and a sign."""
_WORDS_OF_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
}
_WORDS_OF_NUMBERS |= {
    word: str(number)
    for number, word in zip(
        range(30, 100, 10), "thirty forty fifty sixty seventy eighty ninety".split(), strict=True
    )
}
_WORDS_OF_NUMBERS |= {word.capitalize(): value for word, value in _WORDS_OF_NUMBERS.items()}


class Figure(NamedTuple):
    """A number as written in a text."""

    value: str
    """The number in canonical form with its sign: `1,200.50` becomes `1200.5`."""
    marks: tuple[str, ...] = ()
    """The unit, currency and month beside it, in canonical form."""


def ascii_digits(text: str) -> str:
    """Return a text with digits and their signs in ASCII; all offsets stay equal."""
    return text if text.isascii() else text.translate(_in_ascii())


@cache
def _in_ascii() -> dict[int, str]:
    """Return a translation of all decimal digits (１٣７) and their signs to ASCII."""
    digits = {
        code: str(unicodedata.decimal(chr(code)))
        for code in range(128, sys.maxunicode + 1)
        if unicodedata.category(chr(code)) == "Nd"
    }
    return digits | {ord("−"): "-", ord("－"): "-", ord("％"): "%", ord("，"): ",", ord("．"): "."}  # noqa: RUF001


def number(text: str) -> str | None:
    """Return a number in canonical form; None if the text is not exactly one number."""
    figure = _FIGURE.fullmatch(text)
    return None if figure is None or figure[2] else _canonical(figure[1])


def figure_at(
    text: str, start: int, stop: int, wanted: Container[str] | None = None
) -> Figure | None:
    """Return the number that a word states, in digits or letters, with its unit and month.

    If `wanted` is given, only numbers in it are parsed with their unit and month.
    """
    word = text[start:stop]
    value, joined = _WORDS_OF_NUMBERS.get(word), None
    if value is None:
        digits = _FIGURE.fullmatch(word) if word[:1].isdigit() else None
        if digits is None:
            return None
        value, joined = _canonical(digits[1]), digits[2]
        if joined and unit_of(joined) is None:
            return None  # `5x` and `3rd` are words
    if wanted is not None and value not in wanted and f"-{value}" not in wanted:
        return Figure(value)
    before = text[max(0, start - _CONTEXT_CHARACTERS) : start]
    marks = {
        unit_of(joined) if joined else _unit_after(text, stop),
        _currency(before),
        _month(before),
    }
    if _MINUS.search(before) and value != "0":
        value = f"-{value}"
    return Figure(value, tuple(sorted(mark for mark in marks if mark)))


def _unit_after(text: str, stop: int) -> str | None:
    unit = _AFTER.match(text, stop)
    return unit_of(unit[1]) if unit else None


def _currency(before: str) -> str | None:
    sign = _CURRENCY.search(before)
    return sign[1] if sign else None


def _month(before: str) -> str | None:
    name = _MONTH.search(before)
    unit = unit_of(name[1]) if name else None
    return unit if unit in _MONTHS else None


def unit_of(spelling: str) -> str | None:
    """Return the canonical unit, currency or month of a word; None if it is none of these."""
    spelling = spelling.replace(" ", "").replace("\u00a0", "")
    return _UNITS.get(spelling) or _WORDS.get(spelling.lower()) if spelling else None


def spellings_of(unit: str) -> list[str]:
    """Return all spellings of a unit."""
    return [spelling for spelling, canonical in _UNITS.items() if canonical == unit]


def _canonical(digits: str) -> str:
    integer, _, fraction = digits.replace(",", "").partition(".")
    fraction = fraction.rstrip("0")
    integer = integer.lstrip("0") or "0"
    return f"{integer}.{fraction}" if fraction else integer
