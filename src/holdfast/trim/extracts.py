"""Leave parts of a text out in place: whole lines stay as they are, a line says what is missing.

extracts: after excerpts; knows text, not messages. What is kept stands byte for byte, so that an
agent can copy from it. The fences around a pasted file and the line that names it always stay:
without them the lines of one file would read as those of another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from holdfast.condense.spans import counted, cut
from holdfast.document.pasted import Span, fenced_blocks
from holdfast.voice import CUT, set_in

PART = 300
"""Most characters of a part. With less the lines that say what is missing take more of the room."""
_LONG_LINES = 200
"""Average characters of a line from which on a text is parted between sentences."""
_LONGEST_LABEL = 200


class Part(NamedTuple):
    """A stretch of a text that is left out or kept as one."""

    start: int
    stop: int
    label: str = ""
    """The line that names the file it is of."""
    stays: bool = False

    @property
    def size(self) -> int:
        """How many characters it has."""
        return self.stop - self.start


def parts_of(text: str, free: Sequence[Span] | None = None) -> list[Part]:
    """Part a text from end to end; with `free`, only what is inside these spans may be left out."""
    parts: list[Part] = []
    at = 0
    for start, stop, label in _free_stretches(text, [Span(0, len(text))] if free is None else free):
        if at < start:
            parts.append(Part(at, start, stays=True))
        parts.extend(Part(*span, label) for span in _cut(text, start, stop))
        at = stop
    if at < len(text):
        parts.append(Part(at, len(text), stays=True))
    return parts


def without(text: str, parts: Sequence[Part], gone: Collection[int], tokens: float) -> str:
    """A text without some of its parts, by their index; `tokens` is what these had together."""
    written: list[str] = []
    is_first = True
    for is_gone, run in groupby(range(len(parts)), key=lambda n: n in gone):
        numbers = list(run)
        stretch = text[parts[numbers[0]].start : parts[numbers[-1]].stop]
        if not is_gone:
            written.append(set_in(stretch))
            continue
        missing = f"{_amount(stretch)} left out"
        if is_first:
            all_gone = "".join(text[parts[n].start : parts[n].stop] for n in sorted(gone))
            missing += (
                f". Shortened to fit the context window: {_amount(all_gone)} of {_amount(text)}, "
                f"about {tokens:,.0f} tokens, are missing"
            )
        is_first = False
        break_before = "" if not written or written[-1].endswith("\n") else "\n"
        break_behind = "\n" if numbers[-1] + 1 < len(parts) else ""
        written.append(f"{break_before}{CUT}{missing} …]{break_behind}")
    return "".join(written)


def left_out(messages: int, tokens: float) -> str:
    """Return the line that stands in the place of messages."""
    amount = f"{counted(messages, 'message')}, about {tokens:,.0f} tokens,"
    return f"{CUT}{amount} left out to fit the context window …]"


def _amount(stretch: str) -> str:
    lines = stretch.count("\n") + (not stretch.endswith("\n"))
    return counted(lines, "line") if lines > 2 else f"{len(stretch):,} characters"


def _cut(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    lines = text.count("\n", start, stop) + 1
    by = "sentence" if stop - start > _LONG_LINES * lines else "line"
    return cut(text, start, stop, PART, by=by)


def _free_stretches(text: str, free: Sequence[Span]) -> Iterator[tuple[int, int, str]]:
    """What may be left out, with the label of the fenced block that it is in."""
    blocks = fenced_blocks(text)
    edges: list[tuple[int, int, str]] = []
    at = 0
    for block in blocks:
        label = _label_before(text, block.start)
        edges.append((at, label.start, ""))
        edges.append((block.start, block.stop, text[label.start : label.stop].strip()))
        at = _line_end(text, block.stop)
    edges.append((at, len(text), ""))
    for span in free:
        for start, stop, label in edges:
            first, last = max(start, span.start), min(stop, span.stop)
            if first < last:
                yield first, last, label


def _label_before(text: str, inside: int) -> Span:
    """The line before the opening fence, or only the fence if that line is empty or long."""
    fence = text.rfind("\n", 0, inside - 1) + 1
    start = text.rfind("\n", 0, max(0, fence - 1)) + 1
    is_name = 0 < fence - start <= _LONGEST_LABEL
    return Span(start if is_name else fence, fence)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1
