"""Leave parts of a text out: whole lines are kept unchanged, and a line marks each gap.

Knows text, not messages. Kept lines are byte for byte the same, so that an agent can copy from
them. The fences around a pasted file and the line with its name always stay: without them the lines
of one file would read as those of another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from holdfast.condense.spans import counted, cut
from holdfast.document.pasted import TextSpan, fenced_blocks
from holdfast.quoting import CUT, set_in

PART = 300
"""Maximum characters of a part. Smaller parts spend more tokens on the lines that mark gaps."""
_LONG_LINES = 200
"""Average characters of a line above which a text is split between sentences."""
_LONGEST_LABEL = 200


class TextPart(NamedTuple):
    """A span of a text that is left out or kept as one."""

    start: int
    stop: int
    label: str = ""
    """The line with the name of its file."""
    stays: bool = False

    @property
    def size(self) -> int:
        """How many characters it has."""
        return self.stop - self.start


def parts_of(text: str, free: Sequence[TextSpan] | None = None) -> list[TextPart]:
    """Split a text into parts; with `free`, only parts inside these spans can be left out."""
    parts: list[TextPart] = []
    at = 0
    for start, stop, label in _free_stretches(
        text, [TextSpan(0, len(text))] if free is None else free
    ):
        if at < start:
            parts.append(TextPart(at, start, stays=True))
        parts.extend(TextPart(*span, label) for span in _cut(text, start, stop))
        at = stop
    if at < len(text):
        parts.append(TextPart(at, len(text), stays=True))
    return parts


def without(text: str, parts: Sequence[TextPart], gone: Collection[int], tokens: float) -> str:
    """Return a text without the parts with these indexes, which have `tokens` tokens in total."""
    written: list[str] = []
    is_first = True
    for is_gone, run in groupby(range(len(parts)), key=lambda n: n in gone):
        numbers = list(run)
        stretch = TextSpan(parts[numbers[0]].start, parts[numbers[-1]].stop)
        if not is_gone:
            written.append(set_in(text[stretch.start : stretch.stop]))
            continue
        missing = f"{_amount(text, [stretch])} left out"
        if is_first:
            # Neither sorted nor copied: for the parts of 30 MB that is one call of 10 ms, and
            # 25 ms of garbage collection.
            all_gone = [part for n, part in enumerate(parts) if n in gone]
            spans = [TextSpan(0, len(text))]
            missing += (
                f". Shortened to fit the context window: {_amount(text, all_gone)} of "
                f"{_amount(text, spans)}, about {tokens:,.0f} tokens, are missing"
            )
        is_first = False
        break_before = "" if not written or written[-1].endswith("\n") else "\n"
        break_behind = "\n" if numbers[-1] + 1 < len(parts) else ""
        written.append(f"{break_before}{CUT}{missing} …]{break_behind}")
    return "".join(written)


def left_out(messages: int, tokens: float) -> str:
    """Return the line that replaces messages."""
    amount = f"{counted(messages, 'message')}, about {tokens:,.0f} tokens,"
    return f"{CUT}{amount} left out to fit the context window …]"


def _amount(text: str, spans: Sequence[TextSpan | TextPart]) -> str:
    """Return how many lines or characters some spans have, read one after the other.

    They are counted where they are: to join 30 MB in one call held the event loop for 80 ms.
    """
    lines = sum(text.count("\n", span.start, span.stop) for span in spans)
    lines += not text.endswith("\n", spans[-1].start, spans[-1].stop)
    size = sum(span.size for span in spans)
    return counted(lines, "line") if lines > 2 else f"{size:,} characters"


def _cut(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    lines = text.count("\n", start, stop) + 1
    by = "sentence" if stop - start > _LONG_LINES * lines else "line"
    return cut(text, start, stop, PART, by=by)


def _free_stretches(text: str, free: Sequence[TextSpan]) -> Iterator[tuple[int, int, str]]:
    """Yield the spans that can be left out, each with the label of its fenced block."""
    blocks = fenced_blocks(text)
    edges: list[tuple[int, int, str]] = []
    at = 0
    for block in blocks:
        above = _label_before(text, block.start)
        edges.append((at, above.start, ""))
        edges.append((block.start, block.stop, text[above.start : above.stop].strip()))
        at = _line_end(text, block.stop)
    edges.append((at, len(text), ""))
    number = 0
    for span in free:  # both are in order: a message may hold thousands of blocks
        while number < len(edges) and edges[number][0] < span.stop:
            start, stop, label = edges[number]
            first, last = max(start, span.start), min(stop, span.stop)
            if first < last:
                yield first, last, label
            if stop > span.stop:
                break  # the next span may begin in it
            number += 1


def _label_before(text: str, inside: int) -> TextSpan:
    """Return the line before the opening fence, or only the fence if it is empty or long."""
    fence = text.rfind("\n", 0, inside - 1) + 1
    start = text.rfind("\n", 0, max(0, fence - 1)) + 1
    is_name = 0 < fence - start <= _LONGEST_LABEL
    return TextSpan(start if is_name else fence, fence)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1
