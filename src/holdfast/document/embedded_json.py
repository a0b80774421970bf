"""Find and decode the JSON inside a text, whatever it is wrapped in.

Tools wrap results as JSON lines, JSON inside a JSON string, Markdown fences, prose around JSON, or
Python's `repr`. Paths start at `$`, the outermost value, and continue into strings that hold JSON:
`$.content[0].text.items[3]`. A dense JSON text is decoded only at its start, because Python needs
56 bytes for `[]` and 200 for `{"a":1}`, forty times the text's size; `windows` reads the rest in
parts.
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
"""Texts up to this length are decoded completely: at sixty times their size, twelve megabytes."""
HEAD = 16_000
"""Characters of a dense text that are decoded."""
_LONG = 100
"""Strings longer than this are scanned for signs that separate no values: prose or a table."""

# Linear: an unclosed string is a single match to the end of the text.
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
_CLOSING = {"[": "]", "{": "}"}


def is_dense(text: str, start: int, end: int) -> bool:
    """Return whether the JSON in a span is long and has a value every few characters."""
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
    """Decode the first values of a dense text: cut after a member, and close the containers."""
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
"""Nesting depth to which strings are searched for JSON; real wrappers are shallow."""
WORTH_OPENING = 40
"""Shorter strings are never searched for JSON."""
FEW = 24
"""Larger containers hold data and are not treated as wrappers."""
_AROUND = 2_000
"""Maximum characters of prose before the JSON and after it."""
_JSON_SHARE = 0.6
"""JSON below this share of a text is an illustration rather than the content."""
_MOST_TRIES = 4
"""Maximum brackets in the leading prose that are tried as the start of JSON."""

_LINE_OPENING = re.compile(r"^[ \t]*+([\[{])", re.MULTILINE)
_WORD_OPENING = re.compile(r"[\s:=>`(]([\[{])(?=\s*+[\[{\"'\d\]}(-]|\s*+[ntfNTF])")
_raw_decode = json.JSONDecoder(strict=False).raw_decode
_checker = msgspec.json.Decoder(msgspec.Raw)
"""Validates JSON without building values."""
_SPACE = " \t\r\n"
_MARK = "\ufeff"
"""Byte order mark, which some servers on Windows write before their JSON."""


def read(text: str) -> Document | None:
    """Return the JSON document of a text; None if the text is not mainly JSON."""
    begin = 1 if text.startswith(_MARK) else 0
    sign = text[begin : begin + 200].lstrip(_SPACE)[:1]
    if sign in ("{", "["):
        return (
            _plain_json(text, begin)
            or _json_lines(text, begin)
            or _python(text, begin)
            or _json_in_prose(text)
        )
    if sign == '"':
        return _in_string(text, begin)
    return _json_in_prose(text)


def inside(document: Document, start: int, end: int) -> Document | None:
    """Return the JSON document inside a string of a document; None if there is none."""
    if start not in document.inner:
        string_text = document.string(start, end)
        document.inner[start] = _embedded(string_text) if string_text else None
    return document.inner[start]


class _UnwrappedValue(NamedTuple):
    """A value in which strings that hold JSON are replaced by their decoded value."""

    value: Any
    around: tuple[str, ...]
    """Text around the JSON inside these strings."""
    is_whole: bool


def _unwrap(value: Any, *prose: str) -> _UnwrappedValue:
    around, is_whole = [*prose], True

    def opened(value: Any, level: int) -> Any:
        nonlocal is_whole
        if type(value) is str:
            embedded = _embedded(value) if len(value) >= WORTH_OPENING else None
            if embedded is None:
                return value
            around.extend(embedded.around)
            is_whole = is_whole and embedded.is_whole
            return embedded.value
        if level == OPEN_LEVELS or not isinstance(value, (dict, list)) or len(value) > FEW:
            return value
        if isinstance(value, list):
            return [opened(item, level + 1) for item in value]
        return {key: opened(item, level + 1) for key, item in value.items()}

    return _UnwrappedValue(opened(value, 0), tuple(around), is_whole)


def _embedded(text: str) -> Document | None:
    """Return the JSON of a string value. JSON lines in a string count as text for a reader."""
    if "{" not in text and "[" not in text:
        return None
    sign = text[:200].lstrip(_SPACE)[:1]
    if sign in ("{", "["):
        return _plain_json(text, 0) or _python(text, 0) or _json_in_prose(text)
    return None if sign == '"' else _json_in_prose(text)


def _plain_json(text: str, begin: int) -> Document | None:
    """Parse a text that is JSON and nothing else."""
    start = len(text) - len(text[begin:].lstrip(_SPACE))
    end = len(text.rstrip(_SPACE))
    try:
        value, is_whole = _decode(text, start, end)
    except UNREADABLE:
        return None
    opened = _unwrap(value)
    is_whole = is_whole and opened.is_whole
    return Document(
        text, opened.value, start=start, end=end, around=opened.around, is_whole=is_whole
    )


def _decode(text: str, start: int, end: int) -> tuple[Any, bool]:
    """Decode the JSON in a span; return whether it is complete, which a dense text's is not."""
    if end - start <= LARGE:
        return decoder.decode(text[start:end]), True
    _checker.decode(text[start:end])
    if text[start] in "[{" and is_dense(text, start, end):
        return head_of(text, start, end), False
    return decoder.decode(text[start:end]), True


def _json_lines(text: str, begin: int) -> Document | None:
    """Parse JSON lines; the last line may be truncated."""
    if begin or "\n" not in text.strip():
        return None
    lines = lines_of(text, len(text))
    if len(lines) < 2 or text[lines[0].start] != "{":
        return None
    is_whole = not is_dense(text, 0, len(text))
    rows: list[Any] = []
    line_count = 0
    with suppress(*UNREADABLE):
        # Line by line: a multi-value reader would accept two values on one line, or one on two
        # lines.
        for line in lines:
            if is_whole or line.start < HEAD:
                rows.append(decoder.decode(text[line.start : line.end]))
            else:
                _checker.decode(text[line.start : line.end])
            line_count += 1
    if line_count < max(2, len(lines) - 1):
        return None
    end = len(text) if line_count == len(lines) else lines[line_count - 1].end
    trailing_text = text[end:].strip()
    around = (trailing_text,) if trailing_text else ()
    return LinesDocument(
        text, rows, lines.first(line_count), end=end, around=around, is_whole=is_whole
    )


def _python(text: str, begin: int) -> Document | None:
    """Parse a text that is a single value in Python's notation."""
    document = read_python(text, begin)
    if document is None or text[document.root.end :].strip():
        return None
    document.value, document.around, document.is_whole = _unwrap(document.value)
    return document


def _in_string(text: str, begin: int) -> Document | None:
    """Parse a text that is one JSON string with a document inside."""
    try:
        string_text = decoder.decode(text[begin:])
    except UNREADABLE:
        return None
    inner = _embedded(string_text) if isinstance(string_text, str) else None
    if inner is not None and inner.form == "json":
        inner.form = "embedded"
    return inner


def _json_in_prose(text: str) -> Document | None:
    """Parse JSON or Python's notation with prose around it."""
    for begin in _openings(text):
        document: Document | None = _json_at(text, begin) or read_python(text, begin)
        if document is None or document.root.end - begin < len(text) * _JSON_SHARE:
            continue
        before, after = text[:begin].strip(), text[document.root.end :].strip()
        if len(after) <= _AROUND:
            opened = _unwrap(document.value, *filter(None, (before, after)))
            document.value, document.around = opened.value, opened.around
            document.is_whole = document.is_whole and opened.is_whole
            return document
    return None


def _openings(text: str) -> Iterator[int]:
    """Yield brackets near the start where JSON may begin, those at the start of a line first."""
    at_line = [match.start(1) for match in _LINE_OPENING.finditer(text, 0, _AROUND)]
    in_line = [match.start(1) for match in _WORD_OPENING.finditer(text, 0, _AROUND)]
    yield from list(dict.fromkeys([*at_line[:_MOST_TRIES], *in_line]))[: 2 * _MOST_TRIES]


def _json_at(text: str, begin: int) -> Document | None:
    try:
        end = _end_of(text, begin) if len(text) > LARGE else _raw_decode(text, begin)[1]
        value, is_whole = _decode(text, begin, end)
    except UNREADABLE:
        return None
    return Document(text, value, start=begin, end=end, form="embedded", is_whole=is_whole)


def _end_of(text: str, begin: int) -> int:
    """Return the end of the JSON of a long text, trying only its last brackets.

    A parser that finds the end itself would decode all values, at forty times the text's size.
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
