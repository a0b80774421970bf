"""Tables drawn with characters, as `psql`, `mysql` and `sqlite3` print them.

text_table: after source, before sql_result. A header, a rule of dashes under it, and rows with the
same bars; each row is one line.
"""

from __future__ import annotations

import re
from itertools import islice

import msgspec

from holdfast.condense.source import Source

_RULE = re.compile(r"\s*[+|]?-{2,}(?:[+|]-{2,})*[+|]?\s*")
_HEAD_LINES = 12
"""The rule stands in one of so many first lines."""


class TextTable(msgspec.Struct, frozen=True):
    """The rows of a drawn table."""

    rows: list[dict[str, str]]
    lines: list[int]
    """The line of each row, counted from 1."""
    others: list[tuple[int, str]]
    """Lines that are no rows: `(3 rows)`, `Time: 0.5 ms`, an error."""


def text_table(source: Source) -> TextTable | None:
    """The table of a content, if one is drawn near its beginning."""
    start = list(islice(source.text[:20_000].split("\n"), _HEAD_LINES + 1))
    names = _names(start)
    if names is None:
        return None
    rows: list[dict[str, str]] = []
    numbers: list[int] = []
    others: list[tuple[int, str]] = []
    for number, line in enumerate(source.text.split("\n"), 1):
        cells = _cells(line)
        if len(cells) == len(names) and cells != names and ("|" in line or len(names) == 1):
            rows.append(dict(zip(names, cells, strict=True)))
            numbers.append(number)
        elif line.strip() and not _RULE.fullmatch(line) and cells != names:
            others.append((number, line.strip()))
    return TextTable(rows, numbers, others) if rows else None


def _names(lines: list[str]) -> list[str] | None:
    """The names of the columns: what stands above the first rule that has bars."""
    for index, line in enumerate(lines):
        if "+" not in line or not _RULE.fullmatch(line):
            continue
        above = index - 1 if index and "|" in lines[index - 1] else index + 1
        if above < len(lines) and "|" in lines[above]:
            names = _cells(lines[above])
            if len(set(names)) == len(names) and all(names):
                return names
    return None


def _cells(line: str) -> list[str]:
    text = line.strip()
    if text.startswith("|"):
        text = text[1:].removesuffix("|")
    return [cell.strip() for cell in text.split("|")]
