"""Lines with errors and warnings: their numbers and severities.

Searches for words that people write, in any format: a line that only mentions an error is found
too, and ranked lower.

The patterns use `re`, because most run on the first few hundred characters of each line, where RE2
takes three times as long. They are linear: only the last one has an unbounded repeat, and it runs
on the match of another.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from heapq import nsmallest
from itertools import compress, count, pairwise
from typing import Literal

from holdfast.condense.source import Source
from holdfast.condense.spans import counted
from holdfast.document.steps import lines_in_steps

Rank = Literal[0, 1, 2, 3]
"""3: an error. 2: a warning. 1: something that only mentions one. 0: neither."""

_STEMS = (
    b"error", b"fail", b"fatal", b"exception", b"warn", b"critical", b"panic", b"traceback",
    b"severe", b"denied", b"refused", b"emerg", b"abort", b"segfault", b"violation",
    b"unauthorized", b"vulnerab", b"err!",
)  # fmt: skip
_GRAVE = re.compile(
    r"error|fail|fatal|exception|critical|panic|traceback|severe|denied|refused|emerg|abort"
    r"|segfault|violation|unauthorized|vulnerab|err!|\" 5\d\d ",
    re.IGNORECASE,
)
_SERVER_ERROR = re.compile(rb"\" 5\d\d ")  # in the log of a web server
_WARN = re.compile(r"warn", re.IGNORECASE)
_NOT_NAME = re.compile(r"[^a-zA-Z]+")
# Each begins with a letter of a small set, by which the engine skips most of a line.
_LEVELS = (
    re.compile(
        r"(?:TRACE|DEBUG|FINE|VERBOSE|INFO|NOTICE|WARN(?:ING)?|ERR(?:OR)?|FATAL|CRIT(?:ICAL)?"
        r"|SEVERE|EMERG(?:ENCY)?|ALERT|PANIC|FAILURE)(?!\w)"
    ),
    re.compile(
        r"[\[<](?:trace|debug|info|notice|warn(?:ing)?|err(?:or)?|fatal|crit(?:ical)?|emerg|alert)"
        r"(?=[\]>])",
        re.IGNORECASE,
    ),
    re.compile(r"(?:level|severity|lvl)\"?[=:] ?\"?[a-zA-Z]{1,12}(?!\w)"),
)
_LETTER = re.compile(r"[\d:. -]{10,40} ([VDIWEF])[ /]")
_LETTERS = {"V": "VERBOSE", "D": "DEBUG", "I": "INFO", "W": "WARN", "E": "ERROR", "F": "FATAL"}
_CALM = {"TRACE", "DEBUG", "FINE", "VERBOSE", "INFO", "NOTICE"}


def level(line: str) -> str:
    """The level a line of a log names near its beginning, in capitals; empty if it names none."""
    if letter := _LETTER.match(line):
        return _LETTERS[letter[1]]
    for pattern in _LEVELS:
        for match in pattern.finditer(line, 0, 200):
            before = line[max(match.start() - 1, 0) : match.start()]
            if not (before.isalnum() or before == "_"):
                return _NOT_NAME.split(match[0])[-1].upper()
    return ""


def rank(line: str, named: str) -> Rank:
    """How grave a line is: by the level it names, else by its words."""
    if named in _CALM:
        return 1 if _GRAVE.search(line) or _WARN.search(line) else 0
    if named.startswith("WARN"):
        return 2
    if named or _GRAVE.search(line):
        return 3
    return 2 if _WARN.search(line) else 0


def alert_lines(source: Source) -> array[int]:
    """Return the numbers of all lines with a word of error or warning, counted from 1."""
    numbers = array("I")  # a set of a million lines takes sixty megabytes
    first = 1
    for piece in lines_in_steps(source.data):
        alerting = _alerts_in(piece)
        numbers.extend(compress(count(first), alerting))
        first += len(alerting)
    return numbers


def _alerts_in(lines: bytes) -> bytearray:
    """Return a 1 for each line that warns, and a 0 for each other."""
    text = lines.lower()  # only ASCII letters change, so lines stay where they are
    alerting = bytearray(text.count(b"\n") + (not text.endswith(b"\n")))
    for stem in _STEMS:
        line, position = 0, 0
        at = text.find(stem)
        while at >= 0:
            line += text.count(b"\n", position, at)
            alerting[line] = 1
            # The rest of the line adds nothing.
            position = text.find(b"\n", at)
            if position < 0:
                break
            at = text.find(stem, position)
    line, position = 0, 0
    for status in _SERVER_ERROR.finditer(text):
        line += text.count(b"\n", position, status.start())
        position = status.start()
        alerting[line] = 1
    return alerting


def numbers_of(flags: bytearray) -> array[int]:
    """The places of all that are set, in four bytes each."""
    return array("I", compress(range(len(flags)), flags))


def ranges(numbers: Sequence[int], most: int = 12) -> str:
    """Return line numbers as at most `most` ranges, joining the nearest: `12, 40-44, 310`.

    Every number is in one of them, so that opening all ranges shows every line.
    """
    steps = ((before - after, before, after) for before, after in pairwise(numbers))
    gaps = nsmallest(most - 1, (step for step in steps if step[0] < -1))
    firsts = [*numbers[:1], *sorted(after for _, _, after in gaps)]
    lasts = [*sorted(before for _, before, _ in gaps), *numbers[-1:]]
    return ", ".join(
        str(first) if first == last else f"{first}-{last}"
        for first, last in zip(firsts, lasts, strict=True)
    )


def places(lines: Sequence[int], most: int = 12) -> str:
    """How many lines there are, and all their places."""
    joined = ranges(lines, most)
    return f"{counted(len(lines), 'line')}, at {joined}"
