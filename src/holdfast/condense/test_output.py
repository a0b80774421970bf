"""Test runs: which tests failed and why, what the runner says at the end, and where it all stands.

test_output: after severity and spans. It knows pytest, unittest, jest, go test and cargo, and what
surrounds them in recorded runs. A failure goes from its headline to whatever mark of the runner
comes next; short ones are quoted whole, of long ones the lines that say what went wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.severity import alert_lines, places
from holdfast.condense.source import Source
from holdfast.condense.spans import (
    LONGEST,
    Span,
    counted,
    cut,
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
"""A failure of at most so many characters is quoted whole."""
TELLING = 12
"""At most so many lines are quoted of a longer one."""
FAILURES = 30
"""At most so many failures are quoted; all are listed with their places."""
NAMES = 250
"""About so many characters of the list of failures are names."""
BLOCK = 600
"""Characters of a passage of lines that are no failure."""

_MARK = re.compile(
    r"^(?:=+ (?P<section>[^=\n]{1,200}) =+\r?$"
    r"|_{3,} (?P<pytest>[^\n]{1,300}?) _{3,}\r?$"
    r"|={60,}\r?\n(?P<unittest>(?:FAIL|ERROR): [^\n]*)"
    r"|(?P<ran>-{60,}\r?\nRan \d+)"
    r"| {0,12}--- FAIL: (?P<go>[^\n]*)"
    r"| {2}● (?P<jest>[^\n]*)"
    r"|---- (?P<cargo>[^\n]{1,300}) std(?:out|err) ----"
    r"|(?P<other>=== RUN|--- PASS|PASS\b|FAIL\b|ok {2}\t|failures:|Test Suites:|Tests:|test result:"
    r"|[+] : '?>>>>> ))",
    re.MULTILINE,
)
_SUMMARY = re.compile(
    r"^(?:=+ (?P<pytest>[^\n=]{0,200}?\b(?:\d+ (?:passed|failed|errors?|skipped|deselected|xfailed"
    r"|warnings?)|no tests ran)\b[^\n=]{0,200} in [\d.:]{1,20} ?s[^\n=]{0,100}) =+\r?$"
    r"|(?P<quiet>\d+ (?:passed|failed)\b[^\n]{0,200} in [\d.]+s[^\n]{0,20})$"
    r"|(?P<unittest>Ran \d+ tests? in [^\n]*\n\s*(?:OK|FAILED)[^\n]*)"
    r"|(?P<jest>(?:Test Suites|Tests): +\d[^\n]*)"
    r"|(?P<cargo>test result: [^\n]*)"
    r"|(?P<go>(?:ok  |FAIL)\t\S+\t[^\n]*))",
    re.MULTILINE,
)
_FAILED = re.compile(
    r"^(?:(?:FAILED|ERROR) (?=\S+(?:::|\.py))[^\n]*|test [^\n]{1,300} \.\.\. FAILED"
    r"|[^\n]{1,300} \.\.\. (?:FAIL|ERROR)|FAIL +\S+\.[^\n]*| {1,12}[✕✗] [^\n]*"
    r"|not ok \d[^\n]*)\r?$",
    re.MULTILINE,
)
_TELLING = re.compile(
    r"E\s|>\s|\s*File \"|\S+:\d+: \w|\w*(?:Error|Exception|Failure|panic)\b"
    r"|\s*(?:left|right|[Ee]xpected|[Rr]eceived|got)\b.*:"
)
_HINTS = (
    b" passed", b" failed", b" tests ran", b" skipped", b"Ran ", b"test result: ", b"Tests: ",
    b"FAIL\t", b"ok  \t",
)  # fmt: skip


class Failure(msgspec.Struct, frozen=True):
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
    # Looking backwards is slow, so it is done only for what is there.
    for hint in (hint for hint in _HINTS if hint in data):
        at = len(data)
        for _ in range(8):
            at = data.rfind(hint, 0, at)
            if at < 0:
                break
            start = data.rfind(b"\n", max(at - 400, 0), at) + 1
            yield without_colours(Source(data[start : at + 300])).text


def condense(source: Source) -> Condensed:
    """Failures with their places, then what the runner sums up."""
    source = without_colours(source)
    found = failures(source)
    sums = list(_SUMMARY.finditer(source.text))
    runner = sums[-1].lastgroup if sums else ""
    last = quote(sums[-1][sums[-1].lastgroup or 0], 150) if sums else ""
    notes = [*_listed(source, found), *_mentions(source, found)]
    notes += [
        Note("alert", _telling(source, one), where(source, *one.span)) for one in found[:FAILURES]
    ]
    for one in sums[-6:]:
        notes.append(Note("outline", quote(one[one.lastgroup or 0]), where(source, *one.span())))
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


def failures(source: Source) -> list[Failure]:
    """Every failure, in the order they stand."""
    marks = list(_MARK.finditer(source.text))
    spans = until_next([mark.start() for mark in marks], len(source.text))
    found = []
    section = ""
    for mark, span in zip(marks, spans, strict=True):
        which, name = mark.lastgroup, mark[mark.lastgroup or 0]
        if which == "section":
            section = name
        elif which in ("unittest", "go", "jest", "cargo") or (
            which == "pytest" and section in ("FAILURES", "ERRORS")
        ):
            found.append(Failure(quote(name, 160), span))
    return found


def _blocks(source: Source) -> Iterator[Span]:
    done = 0
    for failure in failures(source):
        start, end = failure.span
        yield from cut(source.text, done, start, BLOCK, by="line")
        yield from cut(source.text, start, end, 2 * LONGEST, by="line")
        done = end
    yield from cut(source.text, done, len(source.text), BLOCK, by="line")


def _listed(source: Source, found: Sequence[Failure]) -> list[Note]:
    """All failures in one note, with their lines; or the lines in which the runner names them."""
    if not found:
        named = [
            (source.line_at(one.start()), one[0].strip()) for one in _FAILED.finditer(source.text)
        ]
        return [
            Note("alert", quote(line, 300), f"lines {number}-{number}")
            for number, line in named[:FAILURES]
        ]
    shown: list[str] = []
    for one in found:
        shown.append(f"{one.name} ({where(source, *one.span).removeprefix('lines ')})")
        if sum(map(len, shown)) > NAMES:
            break
    text = f"{counted(len(found), 'failure')}, at lines: {', '.join(shown)}"
    if rest := found[len(shown) :]:
        text += f", {len(rest):,} more in {where(source, rest[0].span[0], rest[-1].span[1])}"
    return [Note("alert", text)]


def _mentions(source: Source, found: Sequence[Failure]) -> list[Note]:
    """Where else errors, failures and warnings are spoken of."""
    inside: set[int] = set()
    for failure in found:
        first, end = (source.line_at(offset) for offset in failure.span)
        inside.update(range(first, end))
    lines = [line for line in alert_lines(source) if line not in inside]
    if not lines:
        return []
    also = "also " if found else ""
    text = f"errors, failures or warnings are {also}mentioned in {places(lines)}"
    return [Note("alert", text)]


def _telling(source: Source, failure: Failure) -> str:
    text = source.text[failure.span[0] : failure.span[1]].strip("\r\n =_-")
    if len(text) <= WHOLE:
        return text
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    telling = [line for line in lines[1:] if _TELLING.match(line)] or lines[-TELLING:]
    chosen = telling[: TELLING // 2] + telling[TELLING // 2 :][-TELLING // 2 :]
    return "\n".join([failure.name, *(quote(line) for line in chosen)])


def _sections(source: Source) -> list[Note]:
    """The parts that the runner itself names."""
    marks = [mark for mark in _MARK.finditer(source.text) if mark["section"]]
    spans = until_next([mark.start() for mark in marks], len(source.text))
    return [
        Note("outline", mark["section"], where(source, *span))
        for mark, span in list(zip(marks, spans, strict=True))[:12]
    ]
