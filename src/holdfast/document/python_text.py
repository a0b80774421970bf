"""Values as Python prints them: `[{'rate': Decimal('5.49'), 'seen': None}]`.

python_text: after json_text. Tools written in Python answer with the `repr` of their rows. They
are read token by token, in one pass that gives up at the first token it does not know, so that
work is linear whatever the text; nothing is evaluated. Members are spans of the text as it
stands, and a value can be had as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.document.json_text import UNREADABLE, Document, Member, decoder

_LOOKS_PYTHON = re.compile(r"[\[({]\s{0,9}'|[\[({,:]\s{0,9}(?:None|True|False|Decimal)\b")
_DEEPEST = 500
"""Values nested deeper are not read: they could not be decoded, and are made to be slow."""
_LOOKED_AT = 4_000
"""Characters in which something must look as only Python writes it."""

# Possessive: a string that is never closed is read once, not once for each of its escapes.
_STRING = r"""'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+\""""
_TOKEN = re.compile(
    rf"""\s*+(?:(?P<text>[bBrRuU]{{0,2}}+(?:{_STRING}))|(?P<open>[\[({{])|(?P<close>[\])}}])"""
    r"""|(?P<comma>,)|(?P<colon>:)"""
    r"""|(?P<number>[-+]?\d++(?:\.\d++)?+(?:[eE][-+]?\d++)?+(?![\w.]))"""
    r"""|(?P<word>-?[A-Za-z_][\w.]*+))""",
    re.DOTALL,
)
_ARGUMENT = re.compile(rf"""(?:[^()'"]++|{_STRING})*+([()])""", re.DOTALL)
_WORDS = {
    "None": "null",
    "True": "true",
    "False": "false",
    "null": "null",
    "true": "true",
    "false": "false",
    "nan": '"nan"',
    "inf": '"inf"',
    "-inf": '"-inf"',
}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\n": ""}
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
_CLOSING = {"[": "]", "(": ")", "{": "}"}


class _Key(NamedTuple):
    name: str
    start: int


class _Container(NamedTuple):
    """One that is not closed yet."""

    opening: str
    start: int
    key: _Key | None
    """The key of which it is the value."""
    members: list[Member]


class _Tree(NamedTuple):
    """What one pass finds."""

    end: int
    containers: dict[tuple[int, int], Sequence[Member]]
    """The members of each container, by its span."""
    json: str


class PythonDocument(Document):
    """Values that Python printed."""

    def __init__(
        self,
        text: str,
        value: object,
        *,
        start: int,
        end: int,
        containers: dict[tuple[int, int], Sequence[Member]],
        around: tuple[str, ...] = (),
    ) -> None:
        super().__init__(text, value, start=start, end=end, form="python", around=around)
        self._taken_apart = containers

    def kind(self, start: int, end: int) -> str:
        """The same; tuples are arrays."""
        if self.text[start] == "(":
            return "array"
        if self.text[start] in "'bru" and self.text[end - 1] in "'\"":
            return "string"
        return super().kind(start, end)

    def string(self, start: int, end: int) -> str | None:
        """The text that a string value holds."""
        if self.kind(start, end) != "string":
            return None
        return _held(self.text[start:end])

    def json(self, start: int, end: int) -> str:
        """A value as JSON."""
        tree = _parse(f"[{self.text[start:end]}]", 0)
        return tree.json[1:-1] if tree else "null"

    def _take_apart(self, start: int, end: int) -> list[Member]:  # noqa: ARG002 all were found
        return []


def read_python(text: str, at: int = 0) -> PythonDocument | None:
    """The value that Python printed at a place of a text; None if there is none."""
    if _LOOKS_PYTHON.search(text, at, at + _LOOKED_AT) is None:
        return None
    tree = _parse(text, at)
    if tree is None:
        return None
    try:
        value = decoder.decode(tree.json)
    except UNREADABLE:
        return None
    start = tree.end - len(text[at : tree.end].lstrip())
    return PythonDocument(text, value, start=start, end=tree.end, containers=tree.containers)


def _parse(text: str, at: int) -> _Tree | None:
    """Read one container, to its closing bracket."""
    return _Parser(text).read(at)


class _Parser:
    """One pass over a text; a token that the grammar of values does not allow ends it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.containers: dict[tuple[int, int], Sequence[Member]] = {}
        self.json: list[str] = []
        self.stack: list[_Container] = []
        self.key: _Key | None = None
        """Of an object's member whose value comes next."""
        self.wants_value = True

    def read(self, at: int) -> _Tree | None:
        while token := _TOKEN.match(self.text, at):
            sort = token.lastgroup
            if sort == "comma":
                taken = self._comma(token)
            elif sort == "open":
                taken = self._open(token)
            elif sort == "close":
                taken = self._close(token)
            else:
                taken = self._scalar(token)
            if taken is None:
                return None
            at = taken
            if not self.stack:
                return _Tree(at, self.containers, "".join(self.json))
        return None

    def _comma(self, token: re.Match[str]) -> int | None:
        if self.wants_value or not self.stack:
            return None
        self.json.append(",")
        self.wants_value = True
        return token.end()

    def _open(self, token: re.Match[str]) -> int | None:
        if not self.wants_value or self._lacks_key() or len(self.stack) == _DEEPEST:
            return None
        bracket = token["open"]
        self.stack.append(_Container(bracket, token.start("open"), self.key, []))
        self.json.append("{" if bracket == "{" else "[")
        self.key = None
        return token.end()

    def _close(self, token: re.Match[str]) -> int | None:
        if not self.stack or self.key or token["close"] != _CLOSING[self.stack[-1].opening]:
            return None
        container, end = self.stack.pop(), token.end()
        if self.json[-1] == ",":  # `(1,)` and a comma behind the last member
            self.json.pop()
        self.json.append("}" if container.opening == "{" else "]")
        self.containers[container.start, end] = container.members
        if self.stack:
            self._add(container.key, container.start, end)
        return end

    def _scalar(self, token: re.Match[str]) -> int | None:
        written = self.wants_value and self.stack and _written(self.text, token)
        if not written:
            return None
        scalar, end = written
        start = token.start(token.lastgroup)  # type: ignore[arg-type] # each alternative has a name
        if not self._lacks_key():
            self.json.append(scalar)
            self._add(self.key, start, end)
            return end
        colon = _TOKEN.match(self.text, end)
        if colon is None or colon.lastgroup != "colon":
            return None
        text = self.text[start:end]
        self.key = _Key(_held(text) if token.lastgroup == "text" else text, start)
        self.json.append((scalar if scalar[:1] == '"' else quoted(scalar)) + ":")
        return colon.end()

    def _lacks_key(self) -> bool:
        return bool(self.stack) and self.stack[-1].opening == "{" and self.key is None

    def _add(self, key: _Key | None, start: int, end: int) -> None:
        """Add a member to the innermost container."""
        members = self.stack[-1].members
        name, begin = key or (len(members), start)
        members.append(Member(name, begin, start, end))
        self.key, self.wants_value = None, False


def _written(text: str, token: re.Match[str]) -> tuple[str, int] | None:
    """A scalar as JSON, and where it ends; None if it is none."""
    if token.lastgroup == "text":
        return quoted(_held(token["text"])), token.end()
    if token.lastgroup == "number":
        return token["number"].removeprefix("+"), token.end()
    word = token["word"]
    if word is None:  # a colon where none may be
        return None
    if text[token.end() : token.end() + 1] == "(":
        end = _call_end(text, token.end())
        return None if end is None else (_call(word, text[token.end() + 1 : end - 1]), end)
    return (_WORDS[word], token.end()) if word in _WORDS else None


def _call_end(text: str, at: int) -> int | None:
    depth = 0
    while bracket := _ARGUMENT.match(text, at):
        at = bracket.end()
        depth += 1 if bracket[1] == "(" else -1
        if depth == 0:
            return at
    return None


def _call(name: str, arguments: str) -> str:
    """`Decimal('5.49')` is its number, a date is written as ISO does, others as they stand."""
    inner = arguments.strip().strip("'\"")
    if name == "Decimal" and _NUMBER.fullmatch(inner):
        return inner
    if name.endswith(("date", "datetime", "time")):
        return quoted(_iso(name, arguments))
    return quoted(inner if name in ("UUID", "Decimal") else f"{name}({arguments})")


def _iso(name: str, arguments: str) -> str:
    parts = [part.strip() for part in arguments.split(",")]
    if not all(part.isdigit() for part in parts):
        return f"{name}({arguments})"
    padded = [part.zfill(2) for part in parts]
    if name.endswith("datetime") or name.endswith("date"):
        day, clock = "-".join(padded[:3]), padded[3:6]
    else:
        day, clock = "", padded[:3]
    seconds = ":".join(clock) + (f".{parts[6].zfill(6)}" if len(parts) > 6 else "")
    return f"{day} {seconds}".strip()


def _held(written: str) -> str:
    """What a string holds, of its quotes, prefix and escapes."""
    text = written[written.index(written[-1]) + 1 : -1]
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    if len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    return _PLAIN.get(code, code)


def quoted(text: str) -> str:
    """A text as a string of JSON."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return msgspec.json.encode(text.encode("utf-8", "replace").decode()).decode()
