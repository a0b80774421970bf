"""Test runs: the failed tests with their reasons, and the runner's summary.

Recognises pytest, unittest, jest, go test and cargo, and the text around them in recorded runs. A
failure extends from its headline to the runner's next mark; short ones are quoted completely, of
long ones the lines with the reason.

The marks use `re`, because a run may have one in every line and RE2 takes ten times as long for
each. They are linear: anchored to the start of a line, with repeats that have at most 300
characters, are possessive, or are at their end. Summary lines use RE2: such a line has many
possible starts and ends, and backtracking would try all pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec
import re2  # type: ignore[import-untyped]

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.severity import alert_lines, places
from holdfast.condense.source import Source, once
from holdfast.condense.spans import (
    LONGEST,
    Span,
    both_ends,
    counted,
    cut,
    line_spans,
    passages_of,
    quote,
    until_next,
    where,
    without_colours,
)

kind = "test_output"

SNIFFED = 40_000
"""Bytes of the end that are looked at: there runners sum up, though others may speak after them."""
WHOLE = 700
"""Maximum characters of a failure that is quoted completely."""
TELLING = 12
"""Maximum number of quoted lines of a longer failure."""
FAILURES = 30
"""Maximum number of quoted failures; all are listed with their places."""
NAMES = 250
"""Approximate number of characters for names in the list of failures."""
SUMS = 6
"""Maximum number of the runner's last summary lines."""
SECTIONS = 12
"""Maximum number of the runner's named sections."""
BLOCK = 600
"""Characters of a passage of lines that are no failure."""

_MARK = re.compile(
    r"^(?:=++ (?P<section>[^=\n]{1,200}) =++\r?$"
    r"|_{3,}+ (?P<pytest>[^\n]{1,300}?) _{3,}+\r?$"
    r"|={60,}+\r?\n(?P<unittest>(?:FAIL|ERROR): [^\n]*)"
    r"|(?P<ran>-{60,}+\r?\nRan \d)"
    r"| {0,12}--- FAIL: (?P<go>[^\n]*)"
    r"| {2}● (?P<jest>[^\n]*)"
    r"|---- (?P<cargo>[^\n]{1,300}) std(?:out|err) ----"
    r"|(?P<other>=== RUN|--- PASS|PASS\b|FAIL\b|ok {2}\t|failures:|Test Suites:|Tests:|test result:"
    r"|[+] : '?>>>>> ))",
    re.MULTILINE,
)
_SUMMARY = re2.compile(
    r"(?m)^(?:=+ (?P<pytest>[^\n=]*?\b(?:\d+ (?:passed|failed|errors?|skipped|deselected|xfailed"
    r"|warnings?)|no tests ran)\b[^\n=]* in [\d.:]+ ?s[^\n=]*) =+\r?$"
    r"|(?P<quiet>\d+ (?:passed|failed)\b[^\n]* in [\d.]+s[^\n]*)$"
    r"|(?P<unittest>Ran \d+ tests? in [^\n]*\n\s*(?:OK|FAILED)[^\n]*)"
    r"|(?P<jest>(?:Test Suites|Tests): +\d[^\n]*)"
    r"|(?P<cargo>test result: [^\n]*)"
    r"|(?P<go>(?:ok  |FAIL)\t\S+\t[^\n]*))"
)
_FAILED = re.compile(
    r"^(?:(?:FAILED|ERROR) (?=\S{1,300}?(?:::|\.py))[^\n]*+|test [^\n]{1,300} \.\.\. FAILED"
    r"|[^\n]{1,300} \.\.\. (?:FAIL|ERROR)|FAIL +\S+\.[^\n]*| {1,12}[✕✗] [^\n]*"
    r"|not ok \d[^\n]*)\r?$",
    re.MULTILINE,
)
_TELLING = re.compile(
    r"E\s|>\s|\s*File \"|\S+:\d+: \w|\w*(?:Error|Exception|Failure|panic)\b"
    r"|\s*(?:left|right|[Ee]xpected|[Rr]eceived|got)\b.*:"
)
_HINTS = (
    b" passed", b" failed", b" error", b" tests ran", b" skipped", b" deselected", b" xfailed",
    b" warning", b"Ran ", b"test result: ", b"Tests: ", b"FAIL\t", b"ok  \t",
)  # fmt: skip


class TestFailure(msgspec.Struct, frozen=True):
    """A test that failed, or could not be run."""

    name: str
    span: Span


def sniff(source: Source) -> float:
    """By the line in which a runner sums up."""
    if source.data[:1] == b"{":
        return 0.0
    end = source.data[-SNIFFED:]
    return 0.95 if any(_SUMMARY.search(line) for line in _last_hints(end)) else 0.0


def _last_hints(data: bytes) -> Iterator[str]:
    """The last lines in which a runner might sum up, each with the beginning of what follows."""
    # Searching backwards is slow, so it is done only for marks that occur.
    for hint in (hint for hint in _HINTS if hint in data):
        at = len(data)
        for _ in range(8):
            at = data.rfind(hint, 0, at)
            if at < 0:
                break
            start = data.rfind(b"\n", max(at - 400, 0), at) + 1
            yield without_colours(Source(data[start : at + 300])).text


def condense(source: Source) -> Condensed:
    """Return failures with their places, then the runner's summary."""
    source = without_colours(source)
    failed = failures(source)
    sums, _ = both_ends(_SUMMARY.finditer(source.text), 0, SUMS)
    runner = sums[-1].lastgroup if sums else ""
    last = quote(sums[-1][sums[-1].lastgroup or 0], 150) if sums else ""
    notes = [*_listed(source, failed), *_mentions(source, failed)]
    notes += [
        Note("alert", _telling(source, line), where(source, *line.span))
        for line in failed[:FAILURES]
    ]
    for line in sums:
        notes.append(Note("outline", quote(line[line.lastgroup or 0]), where(source, *line.span())))
    notes += _sections(source)
    name = "unittest" if runner == "unittest" else "pytest" if runner == "quiet" else runner
    return Condensed(
        title=f"Test output{f' ({name})' if name else ''}, {counted(source.line_count, 'line')}"
        + (f": {last}" if last else ""),
        unit="lines",
        total=source.line_count,
        notes=tuple(notes),
    )


def passages(source: Source) -> Sequence[Passage]:
    """Each failure, and the other lines in blocks."""
    source = without_colours(source)
    return passages_of(source, _blocks(source))


@once
def failures(source: Source) -> list[TestFailure]:
    """Return every failure, in order."""
    failed = []
    section = name = ""
    start = -1
    for mark in _MARK.finditer(source.text):
        if start >= 0:
            failed.append(TestFailure(name, (start, mark.start())))
        start = -1
        which = mark.lastgroup
        if which == "section":
            section = mark[which]
        elif which in ("unittest", "go", "jest", "cargo") or (
            which == "pytest" and section in ("FAILURES", "ERRORS")
        ):
            name, start = quote(mark[which], 160), mark.start()
    if start >= 0:
        failed.append(TestFailure(name, (start, len(source.text))))
    return failed


def _blocks(source: Source) -> Iterator[Span]:
    done = 0
    for failure in failures(source):
        start, end = failure.span
        yield from cut(source.text, done, start, BLOCK, by="line")
        yield from cut(source.text, start, end, 2 * LONGEST, by="line")
        done = end
    yield from cut(source.text, done, len(source.text), BLOCK, by="line")


def _listed(source: Source, found: Sequence[TestFailure]) -> list[Note]:
    """All failures in one note, with their lines; or the lines in which the runner names them."""
    if not found:
        named, _ = both_ends(_FAILED.finditer(source.text), FAILURES, 0)
        return [
            Note("alert", quote(line[0].strip(), 300), f"lines {number}-{number}")
            for line in named
            if (number := source.line_at(line.start()))
        ]
    names: list[str] = []
    for failure in found:
        names.append(f"{failure.name} ({where(source, *failure.span).removeprefix('lines ')})")
        if sum(map(len, names)) > NAMES:
            break
    text = f"{counted(len(found), 'failure')}, at lines: {', '.join(names)}"
    if unlisted := found[len(names) :]:
        lines = where(source, unlisted[0].span[0], unlisted[-1].span[1])
        text += f", {len(unlisted):,} more in {lines}"
    return [Note("alert", text)]


def _mentions(source: Source, found: Sequence[TestFailure]) -> list[Note]:
    """Where else errors, failures and warnings are spoken of."""
    spans = iter(
        [(source.line_at(failure.span[0]), source.line_at(failure.span[1])) for failure in found]
    )
    first, end = next(spans, (0, 0))
    lines = []
    for line in alert_lines(source):
        while end <= line and (first, end) != (0, 0):
            first, end = next(spans, (0, 0))
        if not first <= line < end:
            lines.append(line)
    if not lines:
        return []
    also = "also " if found else ""
    text = f"errors, failures or warnings are {also}mentioned in {places(lines)}"
    return [Note("alert", text)]


def _telling(source: Source, failure: TestFailure) -> str:
    text = source.text[failure.span[0] : failure.span[1]].strip("\r\n =_-")
    if len(text) <= WHOLE:
        return text
    telling = filter(_TELLING.match, islice(_said(text), 1, None))
    chosen, count = both_ends(telling, TELLING // 2, TELLING // 2)
    if not count:
        chosen, _ = both_ends(_said(text), 0, TELLING)
    return "\n".join([failure.name, *(quote(line) for line in chosen)])


def _said(text: str) -> Iterator[str]:
    """The lines that are not blank."""
    lines = (text[begin:end].rstrip() for begin, end in line_spans(text, 0, len(text)))
    return (line for line in lines if line)


def _sections(source: Source) -> list[Note]:
    """The parts that the runner itself names."""
    named = ((mark.start(), mark["section"]) for mark in _MARK.finditer(source.text))
    sections = list(islice((part for part in named if part[1]), SECTIONS + 1))
    spans = until_next([start for start, _ in sections], len(source.text))
    return [
        Note("outline", name, where(source, *span))
        for (_, name), span in zip(sections[:SECTIONS], spans, strict=False)
    ]
