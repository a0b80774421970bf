"""XML: elements with their attributes and texts.

Shows the elements with their numbers, errors, and the first records. The parser is Python's expat:
it fetches nothing; documents that declare entities or attributes, or are nested too deeply, are
refused. Elements are written as soon as they end, so that work stays linear. Text before the first
element is skipped character by character: a pattern for it took twice as long for every additional
comment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from xml.parsers import expat

import msgspec

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.pieces import PASSAGE_CHARS
from holdfast.condense.source import Source, once
from holdfast.condense.spans import cut, quote, where

kind = "xml"

_OUTLINE_DEPTH = 6
_DEEPEST = 5_000
"""Elements that may be open at once: each is held until it ends, in fifty times its bytes."""
_MOST_PATHS = 2_000
_MOST_NOTES = 30
_MOST_ALERTS = 12
_SAMPLES = 4
_QUOTED_CHARS = 400
_MOST_PARTS = 2_000
"""Of an element that are held until it ends: a part of ten bytes takes twenty times that."""
_NAME_CHARS = 100
"""Of a name in a path: elements inside one with a name of a megabyte would all repeat it."""
_ALERTS = frozenset(
    f"{name}{ending}"
    for name in ("error", "fault", "exception", "warning", "failure")
    for ending in ("", "s", "message", "string")
)
_LOOKED_AT = 4000
"""Bytes in which a web page must identify itself as one."""


class _Read(msgspec.Struct, frozen=True):
    root: str
    count: int
    paths: Counter[str]
    passages: list[Passage]
    alerts: list[Note]


class _Element:
    __slots__ = ("is_begun", "parts", "path", "start", "texts")

    def __init__(self, path: str, start: int) -> None:
        self.path = path
        self.start = start
        self.parts: list[tuple[str, int]] = []
        """Its parts, each with its offset."""
        self.texts: list[str] = []
        self.is_begun = False
        """Whether its first parts were written before it ended."""


def sniff(source: Source) -> float:
    """Sure of what parses, if it is no web page and has elements inside one another."""
    head = source.data[:_LOOKED_AT].removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] != b"<" or _is_page(head):
        return 0.0
    document = _read(source)
    if document is None:
        return 0.0
    if head.startswith(b"<?xml"):
        return 0.9
    # One element is a wrapper around a text of another kind: Gemini CLI puts <untrusted_context>
    # around all that a command prints, and a log in it was cited as a single long element.
    return 0.75 if document.count > 1 else 0.0


def _is_page(head: bytes) -> bool:
    """Return whether the first element, after a declaration and comments, is that of a web page."""
    at = _behind(head, 0, b"?>") if head.startswith(b"<?xml") else 0
    while head.startswith(b"<!--", at):
        at = _behind(head, at, b"-->")
    first = head[at : at + 100].lower()
    return first.startswith(b"<html") or (
        first.startswith(b"<!doctype") and first[9:].lstrip().startswith(b"html")
    )


def _behind(head: bytes, at: int, end: bytes) -> int:
    """Return the offset after the next occurrence of `end`."""
    closed = head.find(end, at)
    if closed < 0:
        return len(head)
    return len(head) - len(head[closed + len(end) :].lstrip())


def condense(source: Source) -> Condensed:
    """Errors, then the elements by how often they are found, then the first records."""
    document = _read(source)
    if document is None:
        return Condensed(title="XML, unreadable", unit="elements", total=0, notes=())
    notes = [*document.alerts]
    notes += [Note("sample", part.text, part.where) for part in document.passages[:_SAMPLES]]
    notes += [Note("outline", text) for text in _levels(document.paths)]
    return Condensed(
        title=f"XML: {document.root[:100]}, {document.count:,} elements",
        unit="elements",
        total=document.count,
        notes=tuple(notes),
    )


def _levels(paths: Counter[str]) -> list[str]:
    """The elements inside each element, with their counts, from the top down."""
    inside: dict[str, list[str]] = {}
    for path, count in sorted(paths.items(), key=lambda entry: entry[0].count("/")):
        parent, _, name = path.rpartition("/")
        inside.setdefault(parent, []).append(f"{name} ({count:,})")
    levels = [f"{parent or '/'}: {', '.join(names)}" for parent, names in inside.items()]
    return [quote(text) for text in levels[:_MOST_NOTES]]


def passages(source: Source) -> Sequence[Passage]:
    """Elements that are small enough, large ones in parts."""
    document = _read(source)
    return document.passages if document else ()


@once
def _read(source: Source) -> _Read | None:
    return _XmlReader(source).read()


class _Refused(Exception):  # noqa: N818 it never leaves this file
    pass


class _XmlReader:
    """Follows the parser, and writes each element when it ends."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.stack: list[_Element] = []
        self.paths: Counter[str] = Counter()
        self.root = ""
        self.count = 0
        self.passages: list[Passage] = []
        self.alerts: list[Note] = []
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._refuse
        # Expat compares every declared attribute with all before it.
        self.parser.AttlistDeclHandler = self._refuse
        text = source.text.removeprefix("\ufeff")
        self.data = text.encode("utf-8", "replace")
        self.byte, self.character = 0, len(source.text) - len(text)
        """Where the parser was when it was asked last, in the bytes and in the text."""

    def read(self) -> _Read | None:
        try:
            self.parser.Parse(self.data, True)
        except (expat.ExpatError, _Refused):
            return None
        return _Read(self.root, self.count, self.paths, self.passages, self.alerts)

    def _refuse(self, *_declared: object) -> None:
        raise _Refused

    def _at(self) -> int:
        """Where the parser is, as an offset into the text."""
        at = self.parser.CurrentByteIndex
        # The parser only moves forward, so each byte is counted once.
        self.character += len(self.data[self.byte : at].decode("utf-8", "replace"))
        self.byte = max(self.byte, at)
        return self.character

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.count += 1
        depth = len(self.stack)
        if depth == _DEEPEST:
            raise _Refused
        if not depth:
            self.root = name
        path = self.stack[-1].path if depth else ""
        if depth < _OUTLINE_DEPTH:
            short = name[:_NAME_CHARS]
            path = f"{path}/{short}" if depth else short
            if path in self.paths or len(self.paths) < _MOST_PATHS:
                self.paths[path] += 1
        element = _Element(path, self._at())
        element.parts = [(f"{key}: {value}", element.start) for key, value in attributes.items()]
        self.stack.append(element)

    def _text(self, text: str) -> None:
        self.stack[-1].texts.append(text)

    def _end(self, name: str) -> None:
        element = self.stack.pop()
        words = "".join(element.texts).strip()
        if words:
            element.parts.append((words, element.start))
        size = sum(len(part) + 2 for part, _ in element.parts)
        inner = "; ".join(part for part, _ in element.parts) if size <= PASSAGE_CHARS else ""
        if inner and name.rpartition(":")[2].lower() in _ALERTS and len(self.alerts) < _MOST_ALERTS:
            place = where(self.source, element.start, self._at() + len(name) + 3)
            self.alerts.append(Note("alert", f"{name}: {inner[:_QUOTED_CHARS]}", place))
        if size > PASSAGE_CHARS or not self.stack or element.is_begun:
            self._say(element, self._at() + len(name) + 3)
        elif inner:
            simple = len(element.parts) == 1 and bool(words)
            text = f"{name}: {inner}" if simple else f"{name} {{{inner}}}"
            self._add_part(self.stack[-1], text, element.start)

    def _add_part(self, element: _Element, part: str, start: int) -> None:
        element.parts.append((part, start))
        if len(element.parts) == _MOST_PARTS:
            self._say(element, self._at())
            element.parts, element.is_begun = [], True

    def _say(self, element: _Element, end: int) -> None:
        """Cut the parts of an element into as few passages as possible."""
        group: list[str] = []
        first = element.start
        size = 0
        for part, start in element.parts:
            if group and size + len(part) > PASSAGE_CHARS:
                self._add(element, group, first, start)
                group, size, first = [], 0, start
            group.append(part)
            size += len(part) + 2
        if group:
            self._add(element, group, first, end)

    def _add(self, element: _Element, group: list[str], start: int, end: int) -> None:
        text = "; ".join(group)
        place = where(self.source, start, min(max(end, start + 1), len(self.source.text)))
        self.passages.extend(
            Passage(f"{element.path}: {text[a:b]}", place) for a, b in cut(text, 0, len(text), 1200)
        )
