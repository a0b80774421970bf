"""Locate the members of JSON arrays and objects in a text.

Nothing is rewritten: a part is a span of the text, so `1.10` stays `1.10` and keys keep their
order. Containers are split into members one level at a time, on demand. Spans count from the start
of the complete text, including prose around the JSON.
"""

from __future__ import annotations

import bisect
import json
import re
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, overload

import msgspec

Form = Literal["json", "lines", "embedded", "python"]
"""The notation of the values: plain JSON, one value per line, JSON in prose, or Python's."""

# These are matched at one position only and are possessive, so each is linear.
_GAP = re.compile(r"[\s,]*+")
_SPACE = " \t\r\n,"
_COLON = re.compile(r"\s*+:\s*+")
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
# Elements whose containers hold no containers are split with a regular expression: decoding them,
# even temporarily, takes thirty times as much memory as `1,`.
_IN_FLAT = r'(?:[^\[\]{}"]++|"(?:[^"\\]++|\\.)*+")*+'
_FLAT = re.compile(
    rf'[^\s,\[\]{{}}"]++|"(?:[^"\\]++|\\.)*+"|\[{_IN_FLAT}\]|\{{{_IN_FLAT}\}}', re.DOTALL
)
_FLAT_ELEMENTS = re.compile(rf"[\s,]*+(?:(?:{_FLAT.pattern})[\s,]*+)*+", re.DOTALL)
_FLAT_PAIR = re.compile(rf'"(?:[^"\\]++|\\.)*+"\s*+:\s*+({_FLAT.pattern})', re.DOTALL)
_FLAT_PAIRS = re.compile(rf"[\s,]*+(?:(?:{_FLAT_PAIR.pattern})[\s,]*+)*+", re.DOTALL)
_LARGE = 64_000
"""From this many characters on, the members of a flat object are stored as offsets only."""
# Smaller containers are split again on each access: caching a row of ten members takes forty times
# its memory.
_SMALL = 2_000
SIGNS = 24
"""A container with a comma per this many characters holds very many small values."""
# Linear: an unclosed string is one token to the end of the text. A pattern that requires the
# closing quote would start again at each quote inside.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
_NAME = re.compile(r"[A-Za-z_$][\w$-]*")
_read = json.JSONDecoder(strict=False).decode
UNREADABLE = (ValueError, RecursionError)
"""Exceptions that JSON decoders raise for invalid or too deeply nested text."""


class Number(str):
    """A number with a fraction or exponent, as written: `1.10` stays `1.10`."""

    __slots__ = ()


decoder = msgspec.json.Decoder(float_hook=Number)
"""Decodes values and keeps every number as written."""


class Member(NamedTuple):
    """An element of an array, or a key of an object with its value."""

    name: str | int
    start: int
    """Offset of the element; for a key, of its opening quote."""
    value: int
    """Offset of the value."""
    end: int
    """End offset of the value."""


class ArrayElements(Sequence[Member]):
    """The elements of an array, at eight bytes each; a list of `Member` takes 190."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, starts: Sequence[int], ends: Sequence[int]) -> None:
        self._starts = starts
        self._ends = ends

    def first(self, count: int) -> ArrayElements:
        """Return the first `count` elements."""
        return ArrayElements(self._starts[:count], self._ends[:count])

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[Member]:
        return map(Member, range(len(self)), self._starts, self._starts, self._ends)

    @overload
    def __getitem__(self, index: int) -> Member: ...
    @overload
    def __getitem__(self, index: slice) -> list[Member]: ...
    def __getitem__(self, index: int | slice) -> Member | list[Member]:
        numbers = range(len(self))
        if isinstance(index, slice):
            starts = self._starts[index]
            return list(map(Member, numbers[index], starts, starts, self._ends[index]))
        at = numbers[index]
        return Member(at, self._starts[at], self._starts[at], self._ends[at])


class ObjectMembers(Sequence[Member]):
    """The members of a large object, at twelve bytes each; names stay in the text."""

    __slots__ = ("_ends", "_starts", "_text", "_values")

    def __init__(
        self, text: str, starts: Sequence[int], values: Sequence[int], ends: Sequence[int]
    ) -> None:
        self._text = text
        self._starts = starts
        self._values = values
        self._ends = ends

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> Member: ...
    @overload
    def __getitem__(self, index: slice) -> list[Member]: ...
    def __getitem__(self, index: int | slice) -> Member | list[Member]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        start, value = self._starts[index], self._values[index]
        quoted = self._text[start : self._text.rindex('"', start, value) + 1]
        name = _read(quoted) if "\\" in quoted else quoted[1:-1]
        return Member(name, start, value, self._ends[index])


class Node(NamedTuple):
    """A value's path and span."""

    path: str
    start: int
    end: int


def step(path: str, name: str | int) -> str:
    """Return the path of a member: `$.items` and 3 give `$.items[3]`."""
    if isinstance(name, int):
        return f"{path}[{name}]"
    return (
        f"{path}.{name}"
        if _NAME.fullmatch(name)
        else f"{path}[{json.dumps(name, ensure_ascii=False)}]"
    )


class Document:
    """The JSON of a text."""

    def __init__(  # noqa: PLR0913 a text, and what is known of the JSON in it, by name
        self,
        text: str,
        value: Any,
        *,
        start: int,
        end: int,
        form: Form = "json",
        around: tuple[str, ...] = (),
        is_whole: bool = True,
    ) -> None:
        self.text = text
        self.value = value
        """The decoded value, with numbers as written."""
        self.is_whole = is_whole
        """Whether `value` is complete; for very many small values it is only the start (`density`).
        """
        self.form: Form = form
        self.around = around
        """The text before and after the JSON, if there is any."""
        self.root = Node("$", start, end)
        self.inner: dict[int, Document | None] = {}
        """Documents inside strings, by the string's offset; filled by `embedded_json.inside`."""
        self._ascii = text.isascii()
        self._taken_apart: dict[tuple[int, int], Sequence[Member]] = {}

    def __repr__(self) -> str:
        return f"<Document {self.form}, {len(self.text)} characters>"

    def kind(self, start: int, end: int) -> str:  # noqa: ARG002 other writings need both ends
        """Return `array`, `object`, `string` or `scalar` for the value in a span."""
        return {"[": "array", "{": "object", '"': "string"}.get(self.text[start], "scalar")

    def is_container(self, start: int, end: int) -> bool:
        """Return whether the value in a span can have members."""
        return self.kind(start, end) in ("array", "object")

    def members(self, start: int, end: int) -> Sequence[Member]:
        """Return the members of the value in a span, in order; none if it is not a container."""
        members = self._taken_apart.get((start, end))
        if members is None:
            try:
                members = self._take_apart(start, end)
            except RecursionError:  # the caller's stack is deeper than when the text was parsed
                members = []
            if end - start > _SMALL:
                self._taken_apart[start, end] = members
        return members

    def string(self, start: int, end: int) -> str | None:
        """Return the text of a string value; None if the value is not a string."""
        if self.text[start] != '"':
            return None
        value: str = _read(self.text[start:end])
        return value

    def json(self, start: int, end: int) -> str:
        """Return a value as JSON."""
        return self.text[start:end]

    def node_at(self, offset: int) -> Node:
        """Return the innermost value at an offset of the text."""
        node = self.root
        while True:
            members = self.members(node.start, node.end)
            at = bisect.bisect_right(members, offset, key=lambda member: member.start) - 1
            if at < 0 or offset >= members[at].end:
                return node
            member = members[at]
            node = Node(step(node.path, member.name), member.value, member.end)

    # --- splitting containers into members --------------------------------------------------------

    def _take_apart(self, start: int, end: int) -> Sequence[Member]:
        opening = self.text[start]
        if opening == "[":
            return self._elements(start, end)
        return self._keys(start, end) if opening == "{" else []

    def _elements(self, start: int, end: int) -> ArrayElements:
        text, gap, at = self.text, _GAP.match, start + 1
        starts, ends = array("I"), array("I")
        if _FLAT_ELEMENTS.fullmatch(text, start + 1, end - 1):
            for element in _FLAT.finditer(text, start + 1, end - 1):
                starts.append(element.start())
                ends.append(element.end())
            return ArrayElements(starts, ends)
        for raw in msgspec.json.decode(text[start:end], type=list[msgspec.Raw]):
            # checking one character costs a fifth of a match and usually suffices
            if text[at] == ",":
                at += 1
            if text[at] in _SPACE:
                at = gap(text, at).end()  # type: ignore[union-attr] # it matches nothing, too
            starts.append(at)
            at += self._length(raw)
            ends.append(at)
        return ArrayElements(starts, ends)

    def _keys(self, start: int, end: int) -> Sequence[Member]:
        if end - start > _LARGE and _FLAT_PAIRS.fullmatch(self.text, start + 1, end - 1):
            return self._flat_keys(start, end)
        raws = msgspec.json.decode(self.text[start:end], type=dict[str, msgspec.Raw])
        text, gap, colon = self.text, _GAP.match, _COLON.match
        members, at = [], start + 1
        for name, raw in raws.items():
            at = gap(text, at).end()  # type: ignore[union-attr]
            stop = at + len(name) + 2
            if "\\" in name or not text.startswith(f'"{name}"', at):
                key = _STRING.match(text, at)
                if key is None or _read(key[0]) != name:
                    return self._repeated_keys(start, end)
                stop = key.end()
            between = colon(text, stop)
            if between is None:
                return self._repeated_keys(start, end)
            value = between.end()
            stop = value + self._length(raw)
            members.append(Member(name, at, value, stop))
            at = stop
        # Only the last value of a repeated key is decoded, so some text remains unread.
        if text[at:end].strip(" \t\r\n") != "}":
            return self._repeated_keys(start, end)
        return members

    def _flat_keys(self, start: int, end: int) -> ObjectMembers:
        """Return the members of a large object whose containers hold no containers."""
        starts, values, ends = array("I"), array("I"), array("I")
        for pair in _FLAT_PAIR.finditer(self.text, start + 1, end - 1):
            starts.append(pair.start())
            values.append(pair.start(1))
            ends.append(pair.end())
        return ObjectMembers(self.text, starts, values, ends)

    def _repeated_keys(self, start: int, end: int) -> ObjectMembers:
        """Return the members of an object with a repeated key, scanning token by token."""
        starts, values, ends = array("I"), array("I"), array("I")
        at = start + 1
        while (key := _STRING.match(self.text, _GAP.match(self.text, at).end())) is not None:  # type: ignore[union-attr]
            if key.start() >= end:
                break
            value = _COLON.match(self.text, key.end()).end()  # type: ignore[union-attr]
            at = self._value_end(value, end)
            starts.append(key.start())
            values.append(value)
            ends.append(at)
        return ObjectMembers(self.text, starts, values, ends)

    def _value_end(self, start: int, end: int) -> int:
        depth, last = 0, start
        for token in _TOKEN.finditer(self.text, start, end):
            sign = token[0]
            if depth == 0 and sign in (",", "}", "]"):
                return last + len(self.text[last : token.start()].rstrip())
            depth += (sign in "[{") - (sign in "]}")
            last = token.end()
            if depth == 0 and sign != ",":
                return last
        return end

    def _length(self, raw: msgspec.Raw) -> int:
        return len(raw) if self._ascii else len(str(memoryview(raw), "utf-8"))


def lines_of(text: str, end: int) -> ArrayElements:
    """Return the spans of the non-empty lines of a text, without surrounding space."""
    starts, ends = array("I"), array("I")
    at = 0
    while at < end:
        stop = text.find("\n", at, end)
        stop = end if stop < 0 else stop
        line = text[at:stop]
        if value_length := len(line.strip()):
            starts.append(at + len(line) - len(line.lstrip()))
            ends.append(starts[-1] + value_length)
        at = stop + 1
    return ArrayElements(starts, ends)


class LinesDocument(Document):
    """JSON lines, as an array with one element per line."""

    def __init__(
        self,
        text: str,
        value: list[Any],
        lines: ArrayElements,
        *,
        end: int,
        around: tuple[str, ...],
        is_whole: bool = True,
    ) -> None:
        super().__init__(
            text, value, start=0, end=end, form="lines", around=around, is_whole=is_whole
        )
        self._rows = lines

    def kind(self, start: int, end: int) -> str:
        """Return the kind of a value; all lines together are an array."""
        return "array" if (start, end) == self.root[1:] else super().kind(start, end)

    def members(self, start: int, end: int) -> Sequence[Member]:
        """Return the members of a value; those of the root are the lines."""
        if (start, end) == self.root[1:]:
            return self._rows
        return super().members(start, end)

    def json(self, start: int, end: int) -> str:
        """Return a value as JSON; the root as an array."""
        if (start, end) != self.root[1:]:
            return self.text[start:end]
        return "[" + ",".join(self.text[row.value : row.end] for row in self._rows) + "]"
