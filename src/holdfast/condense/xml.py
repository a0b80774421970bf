"""XML: elements with their attributes and texts.

xml: after spans. Which elements there are and how often, errors, the first records. The parser is
Python's expat: it fetches nothing, and a document that declares entities of its own is refused.
Elements are said as soon as they end, so that depth is no danger and work stays linear.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from xml.parsers import expat

import msgspec

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.once import once
from holdfast.condense.pieces import PASSAGE_CHARS
from holdfast.condense.source import Source
from holdfast.condense.spans import cut, quote, where

kind = "xml"

_OUTLINE_DEPTH = 6
_MOST_PATHS = 2_000
_MOST_NOTES = 30
_MOST_ALERTS = 12
_SAMPLES = 4
_QUOTED_CHARS = 400
_ALERT = re.compile(r"(?i)(?:\w+:)?(?:error|fault|exception|warning|failure)(?:s|message|string)?")
_HTML = re.compile(rb"(?is)\A\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*)*(?:<!doctype\s+html|<html)")
_WIDE = re.compile(r"[^\x00-\x7f]")


class _Read(msgspec.Struct, frozen=True):
    root: str
    count: int
    paths: Counter[str]
    passages: list[Passage]
    alerts: list[Note]


class _Element:
    __slots__ = ("name", "parts", "path", "start", "texts")

    def __init__(self, name: str, path: str, start: int) -> None:
        self.name = name
        self.path = path
        self.start = start
        self.parts: list[tuple[str, int]] = []
        """What it holds, each with where it begins."""
        self.texts: list[str] = []


def sniff(source: Source) -> float:
    """Sure of what parses, if it is no web page."""
    head = source.data[:200].removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] != b"<" or _HTML.match(source.data[:4000].removeprefix(b"\xef\xbb\xbf")):
        return 0.0
    found = _read(source)
    if found is None:
        return 0.0
    return 0.9 if head.startswith(b"<?xml") else 0.75


def condense(source: Source) -> Condensed:
    """Errors, then the elements by how often they are found, then the first records."""
    found = _read(source)
    if found is None:
        return Condensed(title="XML, unreadable", unit="elements", total=0, notes=())
    notes = [*found.alerts]
    notes += [Note("sample", part.text, part.where) for part in found.passages[:_SAMPLES]]
    notes += [Note("outline", text) for text in _levels(found.paths)]
    return Condensed(
        title=f"XML: {found.root[:100]}, {found.count:,} elements",
        unit="elements",
        total=found.count,
        notes=tuple(notes),
    )


def _levels(paths: Counter[str]) -> list[str]:
    """The elements inside each element, with their counts, from the top down."""
    inside: dict[str, list[str]] = {}
    for path, count in sorted(paths.items(), key=lambda entry: entry[0].count("/")):
        parent, _, name = path.rpartition("/")
        inside.setdefault(parent, []).append(f"{name} ({count:,})")
    said = [f"{parent or '/'}: {', '.join(names)}" for parent, names in inside.items()]
    return [quote(text) for text in said[:_MOST_NOTES]]


def passages(source: Source) -> Sequence[Passage]:
    """Elements that are small enough, large ones in parts."""
    found = _read(source)
    return found.passages if found else ()


@once
def _read(source: Source) -> _Read | None:
    return _XmlReader(source).read()


class _Refused(Exception):  # noqa: N818 it never leaves this file
    pass


class _XmlReader:
    """Follows the parser, and says each element when it ends."""

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
        text = source.text
        wide = [] if text.isascii() else [found.start() for found in _WIDE.finditer(text)]
        extra = list(accumulate(len(text[at].encode("utf-8", "replace")) - 1 for at in wide))
        self.wide = [at + more for at, more in zip(wide, [0, *extra], strict=False)]
        self.extra = extra

    def read(self) -> _Read | None:
        data = self.source.text.removeprefix("\ufeff").encode("utf-8", "replace")
        try:
            self.parser.Parse(data, True)
        except (expat.ExpatError, _Refused):
            return None
        return _Read(self.root, self.count, self.paths, self.passages, self.alerts)

    def _refuse(self, *_declared: object) -> None:
        raise _Refused

    def _at(self) -> int:
        """Where the parser is, as an offset into the text."""
        at = self.parser.CurrentByteIndex
        if not self.wide:
            return at
        before = bisect_right(self.wide, at - 1)
        return at - (self.extra[before - 1] if before else 0)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.count += 1
        depth = len(self.stack)
        if not depth:
            self.root = name
        path = self.stack[-1].path if depth else ""
        if depth < _OUTLINE_DEPTH:
            path = f"{path}/{name}" if depth else name
            if path in self.paths or len(self.paths) < _MOST_PATHS:
                self.paths[path] += 1
        element = _Element(name, path, self._at())
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
        if inner and _ALERT.fullmatch(name) and len(self.alerts) < _MOST_ALERTS:
            place = where(self.source, element.start, self._at() + len(name) + 3)
            self.alerts.append(Note("alert", f"{name}: {inner[:_QUOTED_CHARS]}", place))
        if size > PASSAGE_CHARS or not self.stack:
            self._say(element, self._at() + len(name) + 3)
        elif inner:
            simple = len(element.parts) == 1 and bool(words)
            said = f"{name}: {inner}" if simple else f"{name} {{{inner}}}"
            self.stack[-1].parts.append((said, element.start))

    def _say(self, element: _Element, end: int) -> None:
        """Make passages of what an element holds, as few as have room for it."""
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
