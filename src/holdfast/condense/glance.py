"""The notes that every citation shows first: the beginning and the outcome of a content.

In this order: whether a tool had truncated the content, and where the full text is; exit codes;
verdicts; the last and the first informative line. Equal lines are shown once, and of many the last
and the failed ones, so that a hundred thousand verdicts need no more space than two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import re2  # type: ignore[import-untyped]

from holdfast.condense.condenser import Note
from holdfast.condense.cutting import first_break, shortened
from holdfast.condense.marks import Mark, earlier_cuts, exit_codes, saved_places, verdicts
from holdfast.condense.pieces import scalar
from holdfast.condense.source import Source, once
from holdfast.condense.spans import LONG_LINE, lines_where, without_colours
from holdfast.document import step as child_path

_SHOWN_CHARS = 300
"""A longer line is quoted from its beginning, or from its mark on."""
_END_CHARS = 160
"""Maximum characters of the first and the last line, which are shown for every content."""
_LOOKED_AT = 40
"""Lines at either end that are searched for an informative one: rules and closing tags are skipped.
"""
_LINES_AT_END = 2
_FEW = 24
"""Larger JSON containers hold rows, whose values are not the outcome of the content."""
_LEVELS = 4
_MOST_VALUES = 200
_TEXT_SHARE = 0.25
"""A string of a smaller share is a value among others, not the output that JSON was put around."""
_WORD_CHARS = 40
_MARKUP_BYTES = 20_000
"""Bytes of a page that are searched for the words of its first line: a page can be one line of
megabytes, with a tag in every three bytes."""

_SAYS_SOMETHING = re2.compile(rb"[0-9A-Za-z\x80-\xff]")
_TAGS = re2.compile(rb"<[/!?]?[A-Za-z][^<>]*>")
_PAGE = re2.compile(rb"(?i)\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype html|html|head|body)\b")
_ZERO = re2.compile(
    rb"(?i)\b(?:code|status|value|exit|exited|rc|returncode)\W{1,6}(?:with )?\W?0\b"
)
_BAD = re2.compile(rb"(?i)fail|error|abort|cancel|timed|vulnerab|\bkilled")
_NONE_BAD = re2.compile(
    rb"(?i)\b(?:0|no) (?:tests? )?(?:fail|error|vulnerab)|(?:fail\w*|errors?): +0\b"
)
_EXIT_KEYS = frozenset(("exitcode", "returncode", "exitstatus", "rc"))
_CUT_KEYS = frozenset(("truncated", "istruncated", "outputtruncated", "wastruncated"))
_VERDICT_KEYS = frozenset(("verdict", "outcome", "conclusion", "status", "success", "passed", "ok"))
_SAVED_KEYS = frozenset(("outputfile", "outputpath", "savedto", "fulloutputpath", "logfile"))


class Glance(msgspec.Struct, frozen=True):
    """The notes that are shown before all others."""

    notes: tuple[Note, ...]
    """The most important first."""
    outcomes: tuple[Note, ...]
    """Notes about the end or the truncation of the content, without its first and last lines."""
    is_cut: bool
    """Whether a tool or client reports that it had truncated the content."""

    @property
    def stored(self) -> str:
        """Return a note on the original for the first line of a citation; empty if complete."""
        return "truncated by the tool" if self.is_cut else ""


class _Text(msgspec.Struct, frozen=True):
    """A text of the content: all of it, or a string in its JSON."""

    data: bytes
    path: str = ""
    """The string's path; empty if it is the whole content."""


@once
def glance(source: Source) -> Glance:
    """What to show of a content at first."""
    document = source.document
    texts = [_Text(without_colours(source).data)]
    values: list[Note] = []
    if document is not None and document.form == "json":
        texts, values = _in_json(document.value, round(len(source.data) * _TEXT_SHARE))
    notes = [note for note in values if note.text.startswith(_CUT_SIGN)]
    is_cut = bool(notes)
    for text in texts:
        cuts = _notes(text, _ends_of(earlier_cuts(text.data)))
        is_cut = is_cut or bool(cuts)
        notes += cuts
    searches: tuple[Callable[[bytes], list[Mark]], ...] = (_saved, _exits, _verdicts)
    for search in searches:
        notes += [note for text in texts for note in _notes(text, search(text.data))]
    notes += [note for note in values if note not in notes]
    outcomes = tuple(_distinct(notes))
    for text in texts:
        notes += _outer_lines(text)
    return Glance(tuple(_distinct(notes)), outcomes, is_cut)


def _distinct(notes: list[Note]) -> Iterator[Note]:
    """Yield each line once: the last line may be the verdict, a truncation note a path."""
    texts: set[str] = set()
    for note in notes:
        if note.text and note.text not in texts:
            texts.add(note.text)
            yield note


# --- which marks are shown -----------------------------------------------------------------------


def _ends_of(marks: list[Mark]) -> list[Mark]:
    return marks if len(marks) < 2 else [marks[0], marks[-1]]


def _saved(data: bytes) -> list[Mark]:
    return _ends_of(saved_places(data))[::-1]


def _exits(data: bytes) -> list[Mark]:
    """The last exit code that is not 0, and the last one."""
    marks = exit_codes(data)
    bad = [mark for mark in marks if not _ZERO.search(data[mark.begin : mark.end])]
    return [*bad[-1:], *marks[-1:]]


def _verdicts(data: bytes) -> list[Mark]:
    """The last verdict, the last bad one, and the one before the last."""
    marks = verdicts(data)
    bad = [mark for mark in marks if _is_bad(data[mark.begin : mark.end])]
    return [*marks[-1:], *bad[-1:], *marks[-2:-1]]


def _is_bad(line: bytes) -> bool:
    return bool(_BAD.search(line)) and not _NONE_BAD.search(line)


# --- how they are shown --------------------------------------------------------------------------


def _notes(text: _Text, marks: list[Mark]) -> list[Note]:
    return [_note(text, mark.begin, mark.end) for mark in marks]


def _note(text: _Text, begin: int, end: int, most: int = _SHOWN_CHARS) -> Note:
    """The line of a mark; of a long line what begins at the mark."""
    start = text.data.rfind(b"\n", 0, begin) + 1
    stop = text.data.find(b"\n", end)
    stop = len(text.data) if stop < 0 else stop
    place = text.path or _place(text.data, start, stop)
    if stop - start > _SHOWN_CHARS:
        start = _beginning(text.data, start, begin)
    return Note("key", _shown(text.data[start:stop], most), place)


def _beginning(data: bytes, start: int, begin: int) -> int:
    """Where to begin a quote so that the mark is in it with a few words before."""
    low = max(start, begin - _SHOWN_CHARS // 3)
    before = data[low:begin].decode("utf-8", "replace")
    return begin - len(before[first_break(" " + before, 1, len(before) + 1) - 1 :].encode())


def _shown(line: bytes, most: int) -> str:
    words = " ".join(line[: 8 * most].decode("utf-8", "replace").split())
    return shortened(words, most, goes_on=len(line) > 8 * most)


def _place(data: bytes, start: int, stop: int) -> str:
    if stop - start > LONG_LINE:  # opening the whole line would help nobody
        first = len(data[:start].decode("utf-8", "replace"))
        return f"characters {first}-{first + len(data[start:stop].decode('utf-8', 'replace'))}"
    number = data.count(b"\n", 0, start) + 1
    return lines_where(number, number)


def _outer_lines(text: _Text) -> Iterator[Note]:
    """Yield the last informative line, the first, and the one before the last."""
    if text.path and b"\n" not in text.data:
        return
    is_page = bool(_PAGE.match(text.data))
    last = list(_from_end(text.data))
    for begin, end in [*last[:1], *_from_start(text.data), *last[1:]]:
        note = _note(text, begin, end, _END_CHARS)
        if is_page:  # of a page its words are read, not its markup
            stop = min(end, begin + _MARKUP_BYTES)
            note = Note(
                "key", _shown(_TAGS.sub(b" ", text.data[begin:stop]), _END_CHARS), note.where
            )
        yield note


def _from_start(data: bytes) -> Iterator[tuple[int, int]]:
    begin = 0
    for _ in range(_LOOKED_AT):
        end = data.find(b"\n", begin)
        end = len(data) if end < 0 else end
        if _says(data[begin : min(end, begin + LONG_LINE)]):
            yield begin, end
            return
        begin = end + 1
        if begin >= len(data):
            return


def _from_end(data: bytes) -> Iterator[tuple[int, int]]:
    end = len(data)
    count = 0
    for _ in range(_LOOKED_AT):
        begin = data.rfind(b"\n", 0, end) + 1
        if _says(data[begin : min(end, begin + LONG_LINE)]):
            yield begin, end
            count += 1
        end = begin - 1
        if end < 0 or count == _LINES_AT_END:
            return


def _says(line: bytes) -> bool:
    return bool(_SAYS_SOMETHING.search(_TAGS.sub(b"", line)))


# --- JSON ----------------------------------------------------------------------------------------

_CUT_SIGN = "truncated: "


def _in_json(value: Any, least: int) -> tuple[list[_Text], list[Note]]:
    """Return the texts in a JSON answer, and the fields next to them that report its outcome."""
    texts: list[_Text] = []
    notes: list[Note] = []
    for path, key, item in _near_top(value):
        name = key.replace("_", "").replace("-", "").lower()
        if name in _CUT_KEYS and item is True:
            notes.append(Note("key", f"{_CUT_SIGN}true", path))
        elif _is_outcome(name, path) and isinstance(item, int | str) and _is_word(item):
            notes.append(Note("key", scalar(item), path))
        elif name in _SAVED_KEYS and isinstance(item, str) and 0 < len(item) < _SHOWN_CHARS:
            notes.append(Note("key", item, path))
        elif isinstance(item, str) and len(item) >= least:
            texts.append(_Text(item.encode("utf-8", "replace"), path))
    return texts, notes


def _is_outcome(name: str, path: str) -> bool:
    return name in _EXIT_KEYS or (name in _VERDICT_KEYS and path.count(".") == 1)


def _is_word(item: int | str) -> bool:
    return 0 < len(str(item)) <= _WORD_CHARS


def _near_top(value: Any) -> Iterator[tuple[str, str, Any]]:
    """The scalars of a wrapper with their paths and keys; what holds rows is passed over."""
    waiting: list[tuple[str, str, Any, int]] = [("$", "", value, 0)]
    visited = 0
    while waiting and visited < _MOST_VALUES:
        path, key, item, level = waiting.pop()
        visited += 1
        if not isinstance(item, dict | list):
            yield path, key, item
        elif level < _LEVELS and len(item) <= _FEW:
            steps = item.items() if isinstance(item, dict) else enumerate(item)
            children = [(child_path(path, step), step, child) for step, child in steps]
            waiting += [
                (place, step if isinstance(step, str) else key, child, level + 1)
                for place, step, child in reversed(children)
            ]
