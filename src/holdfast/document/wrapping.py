"""The JSON that a text holds, in whatever it is wrapped.

wrapping: after json_text and python_text. Tools wrap what they answer: as JSON lines, as JSON
inside a string of JSON, with a sentence before and after it, in a fence of Markdown, or as Python
prints it. `read` finds the values in all of these. Paths begin at `$`, the outermost value found,
and a string that holds JSON counts as that JSON: `$.content[0].text.items[3]`. Each way of
reading is tried once or a few times, so that work is linear.

Whether a JSON text holds so many small values that they are not all held at once. Python takes 56
bytes for `[]` and 200 for `{"a":1}`: a megabyte of them takes forty times its room, whatever is
then said of it. Of such a text the beginning is decoded here; the rest is read in `windows`, a part
at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from holdfast.document.json_text import (
    SIGNS,
    UNREADABLE,
    Document,
    LinesDocument,
    decoder,
    lines_of,
)
from holdfast.document.python_text import read_python

LARGE = 200_000
"""Characters of which all values are always held: at sixty times their size, twelve megabytes."""
HEAD = 16_000
"""Characters of a dense text whose values are held."""
_LONG = 100
"""Strings of more characters are looked into for signs that part no values: prose, a table."""

# Both are linear: a string that is never closed is one match to the end of the text.
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
_CLOSING = {"[": "]", "{": "}"}


def is_dense(text: str, start: int, end: int) -> bool:
    """Whether the JSON in this span is long, and holds a value in every few characters."""
    size = end - start
    if size <= LARGE or _signs(text, start, end) <= size // SIGNS:
        return False
    quoted = sum(
        _signs(text, *string.span())
        for string in _STRING.finditer(text, start, end)
        if string.end() - string.start() > _LONG
    )
    return _signs(text, start, end) - quoted > size // SIGNS


def _signs(text: str, start: int, end: int) -> int:
    return sum(text.count(sign, start, end) for sign in ",[{")


def head_of(text: str, start: int, end: int) -> Any:
    """The values that a dense text begins with: cut behind a member, and closed."""
    opened: list[str] = []
    cut, closing = start + 1, _CLOSING[text[start]]
    for token in _TOKEN.finditer(text, start, end):
        sign = token[0]
        if sign in _CLOSING:
            opened.append(_CLOSING[sign])
        elif sign == ",":
            if token.start() - start > HEAD:
                break
            cut, closing = token.start(), "".join(reversed(opened))
        elif opened and sign == opened[-1]:
            opened.pop()
    return decoder.decode(text[start:cut] + closing)


OPEN_LEVELS = 4
"""How deep strings are looked at for JSON inside; wrappers are shallow."""
WORTH_OPENING = 40
"""Shorter strings are left alone, whatever they hold."""
FEW = 24
"""Larger containers hold data and are no wrappers."""
_AROUND = 2_000
"""Characters of prose that may stand before JSON, and after it."""
_JSON_SHARE = 0.6
"""Below this share of a text, JSON is an illustration, not the content."""
_MOST_TRIES = 4
"""Brackets in the prose before the JSON that may be tried as its beginning."""

_LINE_OPENING = re.compile(r"^[ \t]*+([\[{])", re.MULTILINE)
_WORD_OPENING = re.compile(r"[\s:=>`(]([\[{])(?=\s*+[\[{\"'\d\]}(-]|\s*+[ntfNTF])")
_raw_decode = json.JSONDecoder(strict=False).raw_decode
_checker = msgspec.json.Decoder(msgspec.Raw)
"""Tells JSON from what is none, and makes no value of it."""
_SPACE = " \t\r\n"
_MARK = "\ufeff"
"""Some servers on Windows write a byte order mark before their JSON."""


def read(text: str) -> Document | None:
    """The JSON of a text; None if there is none worth the name."""
    begin = 1 if text.startswith(_MARK) else 0
    sign = text[begin : begin + 200].lstrip(_SPACE)[:1]
    if sign in ("{", "["):
        return _whole(text, begin) or _lines(text, begin) or _python(text, begin) or _within(text)
    if sign == '"':
        return _in_string(text, begin)
    return _within(text)


def inside(document: Document, start: int, end: int) -> Document | None:
    """The JSON that a string of a document holds, if it holds some."""
    if start not in document.inner:
        held = document.string(start, end)
        document.inner[start] = _in_held(held) if held else None
    return document.inner[start]


class _Opened(NamedTuple):
    """A value with the strings near its top that are JSON replaced by what they hold."""

    value: Any
    around: tuple[str, ...]
    """What stands around the JSON in these strings."""
    is_whole: bool


def _unwrapped(value: Any, *prose: str) -> _Opened:
    around, is_whole = [*prose], True

    def opened(value: Any, level: int) -> Any:
        nonlocal is_whole
        if type(value) is str:
            held = _in_held(value) if len(value) >= WORTH_OPENING else None
            if held is None:
                return value
            around.extend(held.around)
            is_whole = is_whole and held.is_whole
            return held.value
        if level == OPEN_LEVELS or not isinstance(value, (dict, list)) or len(value) > FEW:
            return value
        if isinstance(value, list):
            return [opened(item, level + 1) for item in value]
        return {key: opened(item, level + 1) for key, item in value.items()}

    return _Opened(opened(value, 0), tuple(around), is_whole)


def _in_held(text: str) -> Document | None:
    """The JSON of a string; JSON lines in a string are text that a person is to read."""
    if "{" not in text and "[" not in text:
        return None
    sign = text[:200].lstrip(_SPACE)[:1]
    if sign in ("{", "["):
        return _whole(text, 0) or _python(text, 0) or _within(text)
    return None if sign == '"' else _within(text)


def _whole(text: str, begin: int) -> Document | None:
    """A text that is JSON and nothing else."""
    start = len(text) - len(text[begin:].lstrip(_SPACE))
    end = len(text.rstrip(_SPACE))
    try:
        value, is_whole = _decoded(text, start, end)
    except UNREADABLE:
        return None
    opened = _unwrapped(value)
    is_whole = is_whole and opened.is_whole
    return Document(
        text, opened.value, start=start, end=end, around=opened.around, is_whole=is_whole
    )


def _decoded(text: str, start: int, end: int) -> tuple[Any, bool]:
    """The JSON in a span, and whether that is all of it: of a dense text it is the beginning."""
    if end - start <= LARGE:
        return decoder.decode(text[start:end]), True
    _checker.decode(text[start:end])
    if text[start] in "[{" and is_dense(text, start, end):
        return head_of(text, start, end), False
    return decoder.decode(text[start:end]), True


def _lines(text: str, begin: int) -> Document | None:
    """JSON lines; the last may be cut off."""
    if begin or "\n" not in text.strip():
        return None
    lines = lines_of(text, len(text))
    if len(lines) < 2 or text[lines[0].start] != "{":
        return None
    is_whole = not is_dense(text, 0, len(text))
    rows: list[Any] = []
    read = 0
    with suppress(*UNREADABLE):
        # One by one: a reader of lines would take two values on one, or one on two of them.
        for line in lines:
            if is_whole or line.start < HEAD:
                rows.append(decoder.decode(text[line.start : line.end]))
            else:
                _checker.decode(text[line.start : line.end])
            read += 1
    if read < max(2, len(lines) - 1):
        return None
    end = len(text) if read == len(lines) else lines[read - 1].end
    rest = text[end:].strip()
    around = (rest,) if rest else ()
    return LinesDocument(text, rows, lines.first(read), end=end, around=around, is_whole=is_whole)


def _python(text: str, begin: int) -> Document | None:
    """A text that is one value as Python prints it."""
    document = read_python(text, begin)
    if document is None or text[document.root.end :].strip():
        return None
    document.value, document.around, document.is_whole = _unwrapped(document.value)
    return document


def _in_string(text: str, begin: int) -> Document | None:
    """A text that is one string of JSON: what is in it is the document."""
    try:
        held = decoder.decode(text[begin:])
    except UNREADABLE:
        return None
    inner = _in_held(held) if isinstance(held, str) else None
    if inner is not None and inner.form == "json":
        inner.form = "embedded"
    return inner


def _within(text: str) -> Document | None:
    """JSON, or what Python prints, with prose around it."""
    for begin in _openings(text):
        document: Document | None = _json_at(text, begin) or read_python(text, begin)
        if document is None or document.root.end - begin < len(text) * _JSON_SHARE:
            continue
        before, behind = text[:begin].strip(), text[document.root.end :].strip()
        if len(behind) <= _AROUND:
            opened = _unwrapped(document.value, *filter(None, (before, behind)))
            document.value, document.around = opened.value, opened.around
            document.is_whole = document.is_whole and opened.is_whole
            return document
    return None


def _openings(text: str) -> Iterator[int]:
    """Brackets near the beginning that JSON may begin with: those that begin a line first."""
    at_line = [match.start(1) for match in _LINE_OPENING.finditer(text, 0, _AROUND)]
    in_line = [match.start(1) for match in _WORD_OPENING.finditer(text, 0, _AROUND)]
    yield from list(dict.fromkeys([*at_line[:_MOST_TRIES], *in_line]))[: 2 * _MOST_TRIES]


def _json_at(text: str, begin: int) -> Document | None:
    try:
        end = _end_of(text, begin) if len(text) > LARGE else _raw_decode(text, begin)[1]
        value, is_whole = _decoded(text, begin, end)
    except UNREADABLE:
        return None
    return Document(text, value, start=begin, end=end, form="embedded", is_whole=is_whole)


def _end_of(text: str, begin: int) -> int:
    """Where the JSON of a long text ends: at one of the last brackets, for little may follow it.

    A reader that finds the end itself makes values of all, in forty times their room.
    """
    closing = "]" if text[begin] == "[" else "}"
    end = len(text)
    for _ in range(2 * _MOST_TRIES):
        end = text.rfind(closing, max(begin, len(text) - _AROUND - 1), end)
        if end < 0:
            break
        with suppress(*UNREADABLE):
            _checker.decode(text[begin : end + 1])
            return end + 1
    raise ValueError
