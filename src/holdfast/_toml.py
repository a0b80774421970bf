"""Parse a TOML document into its values and the line of each top-level key.

The standard library's parser gives no positions, so the text is split into statements (`key =
value` or `[table]`), and each is parsed alone to learn which key it sets.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator

# Linear: possessive, and an unclosed string is one token instead of one per quote.
_TOKEN = re.compile(
    r"""
      "{3} (?: \\. | "{1,2}+ (?!") | [^"\\]++ )*+ "{0,5}+    # multi-line string
    | '{3} (?: '{1,2}+ (?!') | [^']++ )*+ '{0,5}+            # multi-line literal string
    | " (?: \\. | [^"\\\n]++ )*+ "?       # string
    | ' [^'\n]*+ '?                       # literal string
    | \# [^\n]*+                          # comment
    | (?P<open> [\[{] )
    | (?P<close> [\]}] )
    | (?P<newline> \n )
    | [^"'\#\[\]{}\n]+
    """,
    re.VERBOSE | re.DOTALL,
)
_ENDLESS_KEY = re.compile(r"(?:\.[^.\n,=]*){101}")
_POSITION = re.compile(r" \(at (?:line (?P<line>\d+), column \d+|end of document)\)$")


class TomlError(ValueError):
    """The text is not TOML."""

    def __init__(self, reason: str, line: int | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        """The line with the error; None if the parser did not state it."""


def parse(text: str) -> dict[str, object]:
    """Return the document's values; raise `TomlError` with the line of the error."""
    if endless := _ENDLESS_KEY.search(text):
        # The parser's memory grows with the square of a dotted key's parts.
        line = text.count("\n", 0, endless.start()) + 1
        raise TomlError("a key has more than 100 parts", line)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        position = _POSITION.search(message)
        if position is None:
            raise TomlError(message, None) from None
        last_line = text.count("\n") + 1
        raise TomlError(message[: position.start()], int(position["line"] or last_line)) from None
    except (ValueError, RecursionError):
        # Python, not TOML, refuses numbers of thousands of digits and very deep nesting.
        raise TomlError("a number is too long or a value nested too deeply", None) from None


def key_lines(text: str) -> dict[str, int]:
    """Map each top-level key of a valid document to the first line that sets it."""
    lines: dict[str, int] = {}
    inside_table = False
    for line, statement in _statements(text.replace("\r\n", "\n")):
        is_header = statement.startswith("[")
        if is_header or not inside_table:
            for name in tomllib.loads(statement):
                lines.setdefault(name, line)
        inside_table = inside_table or is_header
    return lines


def literal(value: object) -> str:
    """Write a plain value as TOML: as JSON writes it, but tables as TOML's inline tables."""
    if isinstance(value, dict) and value:
        entries = (f"{json.dumps(key)} = {literal(entry)}" for key, entry in value.items())
        return f"{{ {', '.join(entries)} }}"
    return json.dumps(value, ensure_ascii=False)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each statement: cut at line breaks outside strings and brackets."""
    start = depth = 0
    line = 1
    for token in _TOKEN.finditer(text + "\n"):
        depth += bool(token["open"]) - bool(token["close"])
        if token["newline"] and depth == 0:
            raw = text[start : token.start()]
            if statement := raw.strip():
                yield line, statement
            line += raw.count("\n") + 1
            start = token.end()
