"""Stack traces: the error, its cause, and the frames at both ends.

Recognises Python, Java, JavaScript, C#, Go, Rust, Ruby and PHP, if each frame is on a line.

The patterns use `re`, because nearly every line matches and RE2 takes ten times as long for each.
They are linear: each is anchored to the start of a line, and its repeats have at most 300
characters, are possessive, or are at its end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.severity import alert_lines, places
from holdfast.condense.source import Source
from holdfast.condense.spans import both_ends, counted, cut, head, passages_of, quote, where

kind = "stack_trace"

SNIFFED = 8000
"""Bytes of the beginning that are looked at."""
FRAMES = 4
"""Frames quoted from either end."""
THROWN = 20
"""Maximum number of quoted errors."""

_FRAME = re.compile(
    r"^\s{0,12}(?:File \"[^\"\n]{1,300}+\", line \d"
    r"|at [^\n(]{1,300}(?:\([^)\n]{0,300}+\)|:\d)"
    r"|from [^\n:]{1,300}+:\d++:in "
    r"|#\d++ [^\n]{1,300}\(\d++\): "
    r"|\d++: ++(?:0x[0-9a-f]++ - )?[\w:<>{}]"
    r"|goroutine \d++ \[|[^\s:]{1,300}\.(?:go|rs|rb|py|js|ts):\d)",
    re.MULTILINE,
)
_THROWN = re.compile(
    r"^(?:Traceback \(most recent call last\):|(?:Caused by: |Exception in thread |Uncaught )?"
    r"[\w.$]{0,200}(?:Error|Exception|Exit|Interrupt|Warning|Fault)\b(?:: [^\n]*)?$|panic: [^\n]*"
    r"|thread '[^'\n]*' panicked at [^\n]*|fatal error: [^\n]*|PHP Fatal error:[^\n]*"
    r"|Caused by: [^\n]*|Unhandled [eE]xception[^\n]*|Exception in thread [^\n]*)",
    re.MULTILINE,
)


def sniff(source: Source) -> float:
    """By how many of the first lines are frames, if something was thrown."""
    first = head(source, SNIFFED)
    lines = first.count("\n") + 1
    frames = sum(1 for _ in _FRAME.finditer(first))
    if frames < 2 or not _THROWN.search(first):
        return 0.0
    return 0.9 if frames / lines >= 0.25 else 0.0


def condense(source: Source) -> Condensed:
    """Return the quoted errors, the places of other errors, and the frames at both ends."""
    text = source.text
    causes = (match for match in _THROWN.finditer(text) if not match[0].startswith("Traceback"))
    thrown, _ = both_ends(causes, THROWN, 1)
    starts = (frame.start() for frame in _FRAME.finditer(text))
    frames, count = both_ends(starts, FRAMES, FRAMES)
    # Python prints the last error at the end, other languages the first one at the beginning: show
    # both.
    order = [*thrown[-1:], *thrown[:-1]]
    notes = [
        Note("alert", quote(match[0], 400), where(source, *match.span()))
        for match in order[:THROWN]
    ]
    if lines := alert_lines(source):
        notes.append(Note("alert", f"errors are named in {places(lines)}"))
    for start in frames:
        line = source.line_at(start)
        notes.append(Note("sample", quote(source.lines(line, line)), f"lines {line}-{line}"))
    last = f": {quote(order[0][0], 120)}" if order else ""
    return Condensed(
        title=f"Stack trace, {counted(count, 'frame')}{last}",
        unit="lines",
        total=source.line_count,
        notes=tuple(notes),
    )


def passages(source: Source) -> Sequence[Passage]:
    """Its lines in blocks."""
    return passages_of(source, cut(source.text, 0, len(source.text), 800, by="line"))
