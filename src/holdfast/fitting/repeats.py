"""The lines of a result that the model sees already in an earlier result.

Works on lines, not on requests. Agents read a file again after an edit, run a test again, list a
folder again: the result repeats most lines. Lines are identified by hashes, so that each earlier
result takes eight bytes a line and no text; the caller compares the lines themselves. Time is
linear in the lines of the new result, and in those of the earlier ones.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import NamedTuple

LEAST_RUN = 400
"""Minimum characters of a run: the line that replaces it has some 40 tokens."""
LONGEST = 200_000
"""Maximum characters of a result that is compared: a longer one has no room whole anyway."""
_EDGE = 24
"""Characters of a run that are shown again at either end, in whole lines: text copied across the
boundary then comes from one place, and the reader knows where the run begins. On recorded coding
agents the measure sees 0.09 needs a conversation without, and 0.05 with it."""
_TELLING = 8
"""Minimum characters of a line that identifies a run: blank lines and braces are everywhere."""
_BACK = 2
"""Lines before the first identifying one that may belong to a run."""
_INSIDE = 1
"""Separates the hash of part of a line from that of a whole line."""

Hashes = Sequence[int]
"""A number for each line of a text."""
Source = tuple[int, int]
"""An earlier result: the place of its message, and which of that message's results it is."""


class Repeat(NamedTuple):
    """Consecutive lines that are in an earlier result too; counted from 0."""

    start: int
    stop: int
    source: Source
    at: int
    """Index of the first of them there."""


def hashes(text: str) -> Hashes:
    """Return a number for each line; none for a text that is too long to compare.

    Python's own, which differ from one process to the next: nobody can write lines that share one.
    """
    if len(text) > LONGEST:
        return array("q")
    end = line_end(text)
    return numbers(text.split(end), end)


def numbers(lines: Iterable[str], end: str) -> Hashes:
    """Return a number for each line of a text with this line end.

    Others where they end with two signs: a tab that JSON writes as such is not what those two signs
    are in a program, and who looks for a line would find part of one.
    """
    own = map(hash, lines)
    return array("q", own if end == "\n" else (number ^ _INSIDE for number in own))


def line_end(text: str) -> str:
    """Return the line end of a text.

    For a single line, such as JSON around a shell's output, return the escaped line end: Gemini's
    results are all like that.
    """
    return "\n" if "\n" in text else "\\n"


def telling(lines: Sequence[str], own: Hashes) -> set[int]:
    """Return the numbers of the lines that identify a run."""
    return {number for line, number in zip(lines, own, strict=True) if len(line) >= _TELLING}


Places = Mapping[int, Source]
"""By the number of a line: the last earlier result with it."""


def repeats(
    lines: Sequence[str], own: Hashes, places: Places, hashes_of: Callable[[Source], Hashes]
) -> list[Repeat]:
    """Return the runs of lines that are in earlier results, in order and without overlaps.

    `own` are the numbers of the lines.
    """
    positions: dict[Source, dict[int, int]] = {}
    runs: list[Repeat] = []
    line = floor = 0
    while line < len(own):
        source = places.get(own[line])
        if source is None:
            line += 1
            continue
        source_hashes = hashes_of(source)
        if source not in positions:  # of equal lines the last counts
            positions[source] = {h: at for at, h in enumerate(source_hashes) if h in places}
        run = _run(own, line, floor, source_hashes, positions[source][own[line]])
        run = run._replace(source=source)
        inner = _without_edges(run, lines)
        if sum(len(words) + 1 for words in lines[inner.start : inner.stop]) >= LEAST_RUN:
            runs.append(inner)
            floor = run.stop
        # Runs that start within a short run are even shorter and end at the same place: continue
        # after it, so that no line is compared again and again.
        line = run.stop
    return runs


def _without_edges(run: Repeat, lines: Sequence[str]) -> Repeat:
    """Return a run without the lines at its ends that show how its neighbours continue it."""
    start, stop = run.start, run.stop
    if start > 0:
        start += _edge(lines[start:stop])
    if stop < len(lines):
        stop -= _edge(lines[stop - 1 : start - 1 : -1] if start else lines[stop - 1 :: -1])
    return run._replace(start=start, stop=max(start, stop), at=run.at + start - run.start)


def _edge(lines: Iterable[str]) -> int:
    """Return the number of lines, nearest first, that make an edge."""
    characters = accumulate(len(line.strip()) for line in lines)
    return 1 + sum(1 for _ in takewhile(lambda number: number < _EDGE, characters))


def _run(own: Hashes, line: int, floor: int, others: Hashes, at: int) -> Repeat:
    back = 0
    most = min(_BACK, line - floor, at)
    while back < most and own[line - back - 1] == others[at - back - 1]:
        back += 1
    length = 1
    most = min(len(own) - line, len(others) - at)
    while length < most and own[line + length] == others[at + length]:
        length += 1
    return Repeat(line - back, line + length, (0, 0), at - back)
