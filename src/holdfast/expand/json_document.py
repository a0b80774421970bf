"""JSON as it stands in its text: where each member of an array or an object begins and ends.

json_document: after options. Nothing is rewritten: 1.10 stays 1.10 and keys keep their order,
because a part is a span of the text. Containers are taken apart one level at a time, when asked.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import msgspec

_GAP = re.compile(r"[\s,]*")
_COLON = re.compile(r"\s*:\s*")
_STRING = re.compile(r'"(?:[^"\\]+|\\.)*"')
_TOKEN = re.compile(r'"(?:[^"\\]+|\\.)*"|[\[\]{},]')
_NAME = re.compile(r"[A-Za-z_$][\w$-]*")
_read = json.JSONDecoder(strict=False).decode
_MOST_DEPTH = 3
"""How deep the main array is looked for."""


class Member(NamedTuple):
    """An element of an array, or a key of an object with its value."""

    name: str | int
    start: int
    """Where it begins; for a key, the key's quotation mark."""
    value: int
    """Where its value begins."""
    end: int
    """Where its value ends."""


class Node(NamedTuple):
    """A value and its place."""

    path: str
    start: int
    end: int


def step(path: str, name: str | int) -> str:
    """The path of a member."""
    if isinstance(name, int):
        return f"{path}[{name}]"
    return (
        f"{path}.{name}"
        if _NAME.fullmatch(name)
        else f"{path}[{json.dumps(name, ensure_ascii=False)}]"
    )


class Document:
    """A text that is JSON."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._ascii = text.isascii()
        self._known: dict[tuple[int, int], list[Member]] = {}
        start = len(text) - len(text.lstrip(" \t\r\n"))
        self.root = Node("$", start, len(text.rstrip(" \t\r\n")))

    @classmethod
    def read(cls, text: str) -> Document | None:
        """The document, or None if the text is no array or object."""
        if text[:200].lstrip(" \t\r\n")[:1] not in ("{", "["):
            return None
        try:
            msgspec.json.decode(text, type=msgspec.Raw)
        except (ValueError, RecursionError):
            return None
        return cls(text)

    def kind(self, start: int) -> str:
        """`array`, `object`, `string` or `scalar`, of the value that begins here."""
        return {"[": "array", "{": "object", '"': "string"}.get(self.text[start], "scalar")

    def members(self, start: int, end: int) -> list[Member]:
        """The members of the value in this span, in order; none of what is no container."""
        known = self._known.get((start, end))
        if known is None:
            try:
                known = self._take_apart(start, end)
            except RecursionError:  # the caller stands deeper than when the text was read
                known = []
            self._known[start, end] = known
        return known

    def _take_apart(self, start: int, end: int) -> list[Member]:
        opening = self.text[start]
        if opening == "[":
            return self._elements(start, end)
        return self._keys(start, end) if opening == "{" else []

    def _elements(self, start: int, end: int) -> list[Member]:
        text, gap, at = self.text, _GAP.match, start + 1
        found = []
        raws = msgspec.json.decode(text[start:end], type=list[msgspec.Raw])
        for index, raw in enumerate(raws):
            at = gap(text, at).end()  # type: ignore[union-attr] # it matches nothing, too
            stop = at + self._length(raw)
            found.append(Member(index, at, at, stop))
            at = stop
        return found

    def _keys(self, start: int, end: int) -> list[Member]:
        raws = msgspec.json.decode(self.text[start:end], type=dict[str, msgspec.Raw])
        text, gap, colon = self.text, _GAP.match, _COLON.match
        found, at = [], start + 1
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
            found.append(Member(name, at, value, stop))
            at = stop
        # Of a key that stands there twice only the last value was read, so that text is left over.
        if text[at:end].strip(" \t\r\n") != "}":
            return self._repeated_keys(start, end)
        return found

    def _repeated_keys(self, start: int, end: int) -> list[Member]:
        """The members of an object that has a key twice, found sign by sign."""
        found: list[Member] = []
        at = start + 1
        while (key := _STRING.match(self.text, _GAP.match(self.text, at).end())) is not None:  # type: ignore[union-attr]
            value = _COLON.match(self.text, key.end()).end()  # type: ignore[union-attr]
            at = self._value_end(value, end)
            found.append(Member(_read(key[0]), key.start(), value, at))
        return found

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

    def main_array(self, node: Node) -> Node | None:
        """The array that a value is mostly made of, if there is one."""
        for _ in range(_MOST_DEPTH + 1):
            if self.kind(node.start) == "array":
                return node
            inside = [m for m in self.members(node.start, node.end) if self.text[m.value] in "[{"]
            if not inside:
                return None
            largest = max(inside, key=lambda member: member.end - member.value)
            if (largest.end - largest.value) * 2 < node.end - node.start:
                return None
            node = Node(step(node.path, largest.name), largest.value, largest.end)
        return None

    def node_at(self, offset: int) -> Node:
        """The innermost value that a place of the text belongs to."""
        node = self.root
        while True:
            for member in self.members(node.start, node.end):
                if member.start <= offset < member.end:
                    node = Node(step(node.path, member.name), member.value, member.end)
                    break
            else:
                return node

    def string(self, start: int, end: int) -> str | None:
        """The text that a string value holds."""
        if self.text[start] != '"':
            return None
        value: str = _read(self.text[start:end])
        return value
