"""Parse tables in text: delimiter-separated values, and tables drawn with characters.

Drawn tables are those of `psql`, `mysql` and Markdown. Rows count from 1 without the header and
record their lines, so that the `rows 11-12` of a citation can be opened.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar, overload

_T = TypeVar("_T")

_SEPARATORS = ",\t;|"
_SNIFFED_RECORDS = 40
"""Records examined before the complete text is read."""
_FEWEST = 3
_SNIFFED_CHARS = 64_000
_NAME = re.compile(r"[^\W\d][^\n\r]{0,63}|#|")
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}|\d{2}:\d{2}|https?://")
_CELL_CHARS = 1 << 27
_RECORDS_PER_MARK = 64
"""One record offset is stored per this many records."""
_EMPTY_LINES = re.compile(r"(?:\r?\n)*+")
_RULE = re.compile(r"\s*+[+|]?:?-{2,}+:?(?:\s*+[+|]\s*+:?-{2,}+:?)*+\s*+[+|]?\s*+")
_HEAD_LINES = 12
"""Number of first lines in which a drawn table has its rule."""
_HEAD_CHARS = 20_000
_DRAWN_SHARE = 0.6
"""A Markdown text below this share of rows is prose with a table rather than a table."""

# the default limit rejects a text that happens to contain one quote
csv.field_size_limit(_CELL_CHARS)


class Table:
    """Rows of cells and the lines that contain them."""

    def __init__(
        self,
        style: str,
        separator: str,
        names: Sequence[str],
        rows: Sequence[list[str]],
        lines: tuple[Sequence[int], Sequence[int]],
    ) -> None:
        self.style = style
        """`separated`, `markdown`, or `drawn` for the output of database shells."""
        self.separator = separator
        self.columns = _unique([name.strip() for name in names])
        self.rows = rows
        self._firsts, self._lasts = lines
        self.others: Sequence[tuple[int, str]] = ()
        """Lines of a drawn table that are not rows: `(3 rows)`, `Time: 0.5 ms`, an error."""

    def lines(self, first: int, last: int) -> tuple[int, int]:
        """Return the 1-based lines of the 0-based rows `first` to `last`."""
        return self._firsts[first], self._lasts[last]


class Records(Sequence[list[str]]):
    """The records of a separated text, parsed again on each access.

    A list of records takes seventy times the memory of `1,2`; here one offset per 64 records is
    stored.
    """

    def __init__(self, text: str, separator: str) -> None:
        self._text = text
        self._separator = separator
        self._marks = array("I")
        self._count = 0

    def add(self, start: int) -> None:
        """Add a record that starts at an offset."""
        if self._count % _RECORDS_PER_MARK == 0:
            self._marks.append(start)
        self._count += 1

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[list[str]]:
        return self._from(0)

    @overload
    def __getitem__(self, index: int) -> list[str]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[str]]: ...
    def __getitem__(self, index: int | slice) -> list[str] | list[list[str]]:
        if isinstance(index, slice):
            chosen = range(len(self))[index]
            run = (
                list(islice(self._from(min(chosen)), max(chosen) - min(chosen) + 1))
                if chosen
                else []
            )
            return [run[at - min(chosen)] for at in chosen]
        return next(self._from(range(len(self))[index]))

    def _from(self, index: int) -> Iterator[list[str]]:
        start = self._marks[index // _RECORDS_PER_MARK] if self._count else len(self._text)
        # Stop at the last record: a million empty lines may follow it.
        stop = self._count - index // _RECORDS_PER_MARK * _RECORDS_PER_MARK
        return islice(self._records(start), index % _RECORDS_PER_MARK, stop)

    def _records(self, start: int) -> Iterator[list[str]]:
        lines = _Lines(self._text, start)
        for record in csv.reader(lines, delimiter=self._separator):
            if record:
                yield record
            lines.skip_empty()


class _DrawnLines(Sequence[_T]):
    """Lines of a drawn table, read on access; eight bytes are stored for each."""

    def __init__(self, text: str, read: Callable[[int, str], _T]) -> None:
        self._text = text
        self._read = read
        self.numbers = array("I")
        self._starts = array("I")

    def add(self, number: int, start: int) -> None:
        self.numbers.append(number)
        self._starts.append(start)

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> list[_T]: ...
    def __getitem__(self, index: int | slice) -> _T | list[_T]:
        if isinstance(index, slice):
            return [self[at] for at in range(len(self))[index]]
        start = self._starts[index]
        end = self._text.find("\n", start)
        line = self._text[start : end if end >= 0 else len(self._text)]
        return self._read(self.numbers[index], line)


def read_table(text: str) -> Table | None:
    """Return the table that a text consists of; None if it is not a table."""
    if text[:200].lstrip("\ufeff \t\r\n")[:1] in ("{", "[", "<", ""):
        return None
    return _drawn_table(text) or _separated_table(text)


# --- delimiter-separated values -------------------------------------------------------------------


def _separated_table(text: str) -> Table | None:
    begin = 1 if text.startswith("\ufeff") else 0
    head = list(islice(_head_lines(text[begin:_SNIFFED_CHARS], len(text)), _SNIFFED_RECORDS))
    separator = _separator(head)
    if not separator:
        return None
    lines = _Lines(text, begin)
    reader = csv.reader(lines, delimiter=separator)
    names: list[str] = []
    records = Records(text, separator)
    # Four bytes per row: a pair in a list takes thirty times that, and a row may have four bytes.
    firsts, lasts = array("I"), array("I")
    last, start, skipped = 0, begin, 0
    try:
        for record in reader:
            if record and names:
                records.add(start)
                firsts.append(last + 1)
                lasts.append(reader.line_num + skipped)
            names = names or record
            skipped += lines.skip_empty()
            last, start = reader.line_num + skipped, lines.at
    except csv.Error:
        return None
    return Table("separated", separator, names, records, (firsts, lasts))


class _Lines:
    """A file-like iterator over lines that tracks the offset of the next line."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self.at = at

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        begin = self.at
        if begin >= len(self._text):
            raise StopIteration
        end = self._text.find("\n", begin) + 1
        self.at = end if end > 0 else len(self._text)
        return self._text[begin : self.at]

    def skip_empty(self) -> int:
        """Skip the empty lines that follow and return their number.

        Call it only between records: inside quotes, an empty line is part of a value.
        """
        begin = self.at
        if self._text[begin : begin + 1] not in ("\n", "\r"):
            return 0
        empty = _EMPTY_LINES.match(self._text, begin)
        self.at = empty.end() if empty is not None else begin
        return self._text.count("\n", begin, self.at)


def _head_lines(text: str, whole: int) -> Iterator[str]:
    """Yield the lines of a text's start; omit the last line if the text was cut."""
    begin = 0
    while (end := text.find("\n", begin) + 1) > 0:
        yield text[begin:end]
        begin = end
    if begin < len(text) and whole <= _SNIFFED_CHARS:
        yield text[begin:]


def _separator(lines: list[str]) -> str:
    """Return the separator that splits all lines equally; an empty string if none does."""
    for separator in _SEPARATORS:
        if not lines or separator not in lines[0]:
            continue
        try:
            records = [record for record in csv.reader(lines, delimiter=separator) if record]
        except csv.Error:
            continue
        if len(records) > _FEWEST and _is_table(records[: _SNIFFED_RECORDS - 1]):
            return separator
    return ""


def _is_table(records: list[list[str]]) -> bool:
    names = records[0]
    if len(names) < 2 or not all(_NAME.fullmatch(name.strip()) for name in names):
        return False
    if any(_STAMP.search(name) for name in names) or sum(map(bool, names)) < len(names) - 1:
        return False
    if any(set(name.strip()) <= set("-:+ ") for name in records[1]):
        return False  # a rule under the header means a drawn table
    return sum(len(record) == len(names) for record in records) >= 0.9 * len(records)


def _unique(names: list[str]) -> list[str]:
    counts: dict[str, int] = {}
    unique = []
    for number, name in enumerate(names, 1):
        base = name or f"column {number}"
        counts[base] = counts.get(base, 0) + 1
        unique.append(base if counts[base] == 1 else f"{base} ({number})")
    return unique


# --- drawn tables ------------------------------------------------------------------------------


def _drawn_table(text: str) -> Table | None:
    head = list(islice(text[:_HEAD_CHARS].split("\n"), _HEAD_LINES + 1))
    drawing = _column_names(head)
    if drawing is None:
        return None
    names, style = drawing
    rows = _DrawnLines(text, lambda _, line: _cells(line))
    other_lines = _DrawnLines(text, lambda number, line: (number, line.strip()))
    number = start = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        number, line = number + 1, text[start:end]
        cells = _cells(line)
        if len(cells) == len(names) and cells != names and _is_row(line, len(names)):
            rows.add(number, start)
        elif line.strip() and cells != names and not _RULE.fullmatch(line):
            other_lines.add(number, start)
        start = end + 1
    if not rows or (
        style == "markdown" and len(rows) < _DRAWN_SHARE * (len(rows) + len(other_lines))
    ):
        return None
    table = Table(style, "|", names, rows, (rows.numbers, rows.numbers))
    table.others = other_lines
    return table


def _is_row(line: str, width: int) -> bool:
    return ("|" in line or width == 1) and not _RULE.fullmatch(line)


def _column_names(lines: list[str]) -> tuple[list[str], str] | None:
    """Return the column names beside the first rule with bars, and the style."""
    for index, line in enumerate(lines):
        is_drawn = "+" in line
        if not (is_drawn or "|" in line) or not _RULE.fullmatch(line):
            continue
        above = index - 1 if index and "|" in lines[index - 1] else index + 1
        if not is_drawn and above > index:
            continue  # a Markdown header precedes its rule
        if above < len(lines) and "|" in lines[above]:
            names = _cells(lines[above])
            if len(set(names)) == len(names) and all(names):
                return names, "drawn" if is_drawn else "markdown"
    return None


def _cells(line: str) -> list[str]:
    text = line.strip()
    if text.startswith("|"):
        text = text[1:].removesuffix("|")
    return [cell.strip() for cell in text.split("|")]
