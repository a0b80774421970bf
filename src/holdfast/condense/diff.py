"""Diffs: the files, their numbers of added and removed lines, and the hunks.

Reads the output of git and of `diff -u`; text before the first file, such as a commit message, is
quoted as the head.

The patterns use `re`, because a diff has a match in every few lines and RE2 takes ten times as long
for each. They are linear: each is anchored to the start of a line, and no two of its repeats
overlap.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence

import msgspec

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.source import Source, once
from holdfast.condense.spans import (
    LONGEST,
    Span,
    counted,
    cut,
    head,
    passages_of,
    quote,
    until_next,
    where,
)

kind = "diff"

SNIFFED = 4000
"""Bytes of the beginning that are looked at."""
FILES = 40
"""Maximum number of files that are listed one by one."""
MOST_FILES = 2_000
"""Maximum number of files that are read one by one; the others are counted together, because a
file's change may be a header of 17 bytes, and its record takes twenty times that."""

_FILE = re.compile(r"^(?:diff --git |Index: |--- (?=[^\n]*+\n\+\+\+ ))", re.MULTILINE)
_HUNK = re.compile(r"^@@ -[\d,]++ \+[\d,]++ @@", re.MULTILINE)
_FILE_OR_HUNK = re.compile(rf"{_FILE.pattern}|{_HUNK.pattern}", re.MULTILINE)
_NEW_NAME = re.compile(r"^\+\+\+ (?:b/)?([^\t\r\n]+)", re.MULTILINE)
_OLD_NAME = re.compile(r"^--- (?:a/)?([^\t\r\n]+)", re.MULTILINE)
_GIT_NAME = re.compile(r"diff --git a/(\S+)")
_CHANGE = re.compile(
    r"^(new file|deleted file|rename from|Binary files|GIT binary patch|old mode)", re.MULTILINE
)


class FileDiff(msgspec.Struct, frozen=True):
    """The changes to one file."""

    name: str
    span: Span
    hunks: list[Span]
    added: int
    removed: int
    change: str
    """What else happened to it: `new file`, `deleted file`; empty if nothing did."""
    files: int = 1
    """Number of files it represents: the last record of very many represents all that follow."""


def sniff(source: Source) -> float:
    """By the head of a file's changes and a hunk."""
    beginning = head(source, SNIFFED)
    if beginning.startswith(("diff --git ", "--- a/")):
        return 0.97
    first = _FILE.search(beginning)
    if not first or not (_HUNK.search(beginning, first.end()) or beginning.startswith("commit ")):
        return 0.0
    return 0.9 if first.start() < 1500 else 0.4


def condense(source: Source) -> Condensed:
    """Return the files with their counts, the first hunks, and the text before them."""
    files = parse(source)
    added, removed = sum(f.added for f in files), sum(f.removed for f in files)
    count = sum(f.files for f in files)
    notes = [*_preface(source, files)]
    for file in files[:FILES]:
        notes.append(Note("outline", _described(file), where(source, *file.span)))
    if unlisted := files[FILES:]:
        counts = (
            f"+{sum(file.added for file in unlisted):,} -{sum(file.removed for file in unlisted):,}"
        )
        span = unlisted[0].span[0], unlisted[-1].span[1]
        more = sum(file.files for file in unlisted)
        notes.append(Note("outline", f"{more:,} more files, {counts}", where(source, *span)))
    for file in sorted(files, key=lambda f: -(f.added + f.removed))[:6]:
        for start, end in file.hunks[:1]:
            first_hunk = next(cut(source.text, start, end, 400, by="line"))
            notes.append(
                Note(
                    "sample",
                    f"{file.name}\n{source.text[first_hunk[0] : first_hunk[1]].rstrip()}",
                    where(source, *first_hunk),
                )
            )
    return Condensed(
        title=f"Diff, {counted(count, 'file')}, +{added:,} -{removed:,} lines",
        unit="lines",
        total=source.line_count,
        notes=tuple(notes),
    )


def passages(source: Source) -> Sequence[Passage]:
    """Hunks, each under the name of its file."""
    files = parse(source)
    parts = passages_of(
        source, cut(source.text, 0, files[0].span[0] if files else len(source.text))
    )
    if len(files) > MOST_FILES:  # short ones together
        spans = (
            part for file in files for part in cut(source.text, *file.span, LONGEST, by="line")
        )
        return parts + passages_of(source, spans)
    for file in files:
        starts = [file.span[0], *(start for start, _ in file.hunks[1:])]
        for start, end in until_next(starts, file.span[1]):
            for part in passages_of(source, cut(source.text, start, end, LONGEST, by="line")):
                headed = part.text if start == file.span[0] else f"{file.name}\n{part.text}"
                parts.append(Passage(headed, part.where))
    return parts


@once
def parse(source: Source) -> list[FileDiff]:
    """Every file of a diff."""
    text = source.text
    starts = array("I")
    has_hunk = True  # also of a file that begins with `---`, which can have no second one
    for match in _FILE_OR_HUNK.finditer(text):
        sign = match[0][:3]
        if sign == "@@ ":
            has_hunk = True
        # In what git writes `---` follows inside the same file, before its first hunk.
        elif sign != "---" or has_hunk:
            starts.append(match.start())
            has_hunk = sign == "---"
    firsts = list(starts[: MOST_FILES + 1])
    files = [_file(text, *span) for span in until_next(firsts, len(text))[:MOST_FILES]]
    if len(starts) > MOST_FILES:
        files.append(_rest(text, starts[MOST_FILES], len(starts) - MOST_FILES))
    return files


def _rest(text: str, start: int, count: int) -> FileDiff:
    """All files from a place on, as one."""
    added = text.count("\n+", start) - text.count("\n+++ ", start)
    removed = text.count("\n-", start) - text.count("\n--- ", start)
    name = quote(text[start : start + 600].partition("\n")[0], 150)
    return FileDiff(name, (start, len(text)), [], max(0, added), max(0, removed), "", count)


def _file(text: str, start: int, end: int) -> FileDiff:
    hunks = [name_match.start() for name_match in _HUNK.finditer(text, start, end)]
    header_end = hunks[0] if hunks else end
    new, old = (pattern.search(text, start, header_end) for pattern in (_NEW_NAME, _OLD_NAME))
    name = next(
        (
            name_match[1]
            for name_match in (new, old, _GIT_NAME.match(text, start))
            if name_match and name_match[1] != "/dev/null"
        ),
        "",
    )
    change = _CHANGE.search(text, start, header_end)
    body = text[header_end:end]
    return FileDiff(
        name=quote(name or text[start:header_end], 150),
        span=(start, end),
        hunks=until_next(hunks, end),
        added=body.count("\n+"),
        removed=body.count("\n-"),
        change=change[1] if change else "",
    )


def _described(one: FileDiff) -> str:
    hunks = counted(len(one.hunks), "hunk")
    change = f", {one.change}" if one.change else ""
    return f"{one.name} +{one.added:,} -{one.removed:,}, {hunks}{change}"


def _preface(source: Source, files: Sequence[FileDiff]) -> list[Note]:
    end = files[0].span[0] if files else len(source.text)
    beginning = source.text[: min(end, 500)].strip()
    return [Note("sample", beginning, where(source, 0, min(end, 500)))] if beginning else []
