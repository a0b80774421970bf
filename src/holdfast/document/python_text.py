"""Parse values in Python's notation: `[{'rate': Decimal('5.49'), 'seen': None}]`.

Tools written in Python return the `repr` of their rows. A single pass stops at the first unknown
token, so that the work is linear, and evaluates nothing. Members are spans of the original text,
and any value can be converted to JSON.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.document.json_text import UNREADABLE, Document, Member, decoder

_LOOKS_PYTHON = re.compile(r"[\[({]\s{0,9}'|[\[({,:]\s{0,9}(?:None|True|False|Decimal)\b")
# Deeper nesting is rejected: it could not be decoded, and only attacks contain it.
_DEEPEST = 500
_LOOKED_AT = 4_000
"""Number of characters in which notation unique to Python must occur."""

# Possessive: an unclosed string is scanned once, not once per escape.
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
    """A container that is not closed yet."""

    opening: str
    start: int
    key: _Key | None
    """The key whose value this container is."""
    members: list[Member]


class _Tree(NamedTuple):
    """The result of one pass."""

    end: int
    containers: dict[tuple[int, int], Sequence[Member]]
    """The members of each container, by its span."""
    json: str


class PythonDocument(Document):
    """Values in Python's notation."""

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
        """Return the kind of a value; tuples are arrays."""
        if self.text[start] == "(":
            return "array"
        if self.text[start] in "'bru" and self.text[end - 1] in "'\"":
            return "string"
        return super().kind(start, end)

    def string(self, start: int, end: int) -> str | None:
        """Return the text of a string value; None if the value is not a string."""
        if self.kind(start, end) != "string":
            return None
        return _string_value(self.text[start:end])

    def json(self, start: int, end: int) -> str:
        """Return a value as JSON."""
        tree = _parse(f"[{self.text[start:end]}]", 0)
        return tree.json[1:-1] if tree else "null"

    def _take_apart(self, start: int, end: int) -> list[Member]:  # noqa: ARG002
        return []  # the pass found every container


def read_python(text: str, at: int = 0) -> PythonDocument | None:
    """Return the Python value at an offset of a text; None if there is none."""
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
    """Parse one container up to its closing bracket."""
    return _Parser(text).read(at)


class _Parser:
    """A single pass over a text that ends at the first token outside the grammar."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.containers: dict[tuple[int, int], Sequence[Member]] = {}
        self.json: list[str] = []
        self.stack: list[_Container] = []
        self.key: _Key | None = None
        """The key whose value comes next."""
        self.wants_value = True

    def read(self, at: int) -> _Tree | None:
        while token := _TOKEN.match(self.text, at):
            kind = token.lastgroup
            if kind == "comma":
                next_at = self._comma(token)
            elif kind == "open":
                next_at = self._open(token)
            elif kind == "close":
                next_at = self._close(token)
            else:
                next_at = self._scalar(token)
            if next_at is None:
                return None
            at = next_at
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
        if self.json[-1] == ",":  # `(1,)`, and a trailing comma
            self.json.pop()
        self.json.append("}" if container.opening == "{" else "]")
        self.containers[container.start, end] = container.members
        if self.stack:
            self._add(container.key, container.start, end)
        return end

    def _scalar(self, token: re.Match[str]) -> int | None:
        scalar_end = self.wants_value and self.stack and _scalar_json(self.text, token)
        if not scalar_end:
            return None
        scalar, end = scalar_end
        start = token.start(token.lastgroup)  # type: ignore[arg-type] # each alternative has a name
        if not self._lacks_key():
            self.json.append(scalar)
            self._add(self.key, start, end)
            return end
        colon = _TOKEN.match(self.text, end)
        if colon is None or colon.lastgroup != "colon":
            return None
        text = self.text[start:end]
        self.key = _Key(_string_value(text) if token.lastgroup == "text" else text, start)
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


def _scalar_json(text: str, token: re.Match[str]) -> tuple[str, int] | None:
    """Return a scalar as JSON with its end offset; None if the token is not a scalar."""
    if token.lastgroup == "text":
        return quoted(_string_value(token["text"])), token.end()
    if token.lastgroup == "number":
        return token["number"].removeprefix("+"), token.end()
    word = token["word"]
    if word is None:  # a colon in the wrong place
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
    """Return a call as JSON: `Decimal('5.49')` as a number, dates in ISO format, others as text."""
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


def _string_value(written: str) -> str:
    """Return the text of a string literal, without quotes, prefix and escapes."""
    text = written[written.index(written[-1]) + 1 : -1]
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    if len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    return _PLAIN.get(code, code)


def quoted(text: str) -> str:
    """Return a text as a JSON string."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return msgspec.json.encode(text.encode("utf-8", "replace").decode()).decode()
