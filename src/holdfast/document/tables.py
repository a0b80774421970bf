"""Tables in text: values apart by commas, tabs, semicolons or bars, or drawn with characters.

tables: beside json_text. Drawn are those of `psql`, `mysql` and Markdown: a rule of dashes under
the header, rows with the same bars, a line each. Rows are counted from 1, without the header; each
knows its lines, so that what a citation calls `rows 11-12` can be opened. Work is linear.
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
_LOOKED_AT = 40
"""Records that are looked at before all are read."""
_FEWEST = 3
_SNIFFED_CHARS = 64_000
_NAME = re.compile(r"[^\W\d][^\n\r]{0,63}|#|")
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}|\d{2}:\d{2}|https?://")
_CELL_CHARS = 1 << 27
_MARKED = 64
"""Of so many records the first has its place held."""
_EMPTY_LINES = re.compile(r"(?:\r?\n)*+")
_RULE = re.compile(r"\s*+[+|]?:?-{2,}+:?(?:\s*+[+|]\s*+:?-{2,}+:?)*+\s*+[+|]?\s*+")
_HEAD_LINES = 12
"""The rule of a drawn table stands in one of so many first lines."""
_HEAD_CHARS = 20_000
_DRAWN_SHARE = 0.6
"""Of a Markdown text less than this is a table with words around it, and no table."""

csv.field_size_limit(_CELL_CHARS)  # the default refuses a text that happens to have one quote


class Table:
    """Rows of cells, and the lines they stand on."""

    def __init__(
        self,
        style: str,
        separator: str,
        names: Sequence[str],
        rows: Sequence[list[str]],
        lines: tuple[Sequence[int], Sequence[int]],
    ) -> None:
        self.style = style
        """`separated`; `drawn` as shells of databases do; `markdown`."""
        self.separator = separator
        self.columns = _unique([name.strip() for name in names])
        self.rows = rows
        self._firsts, self._lasts = lines
        self.others: Sequence[tuple[int, str]] = ()
        """Of a drawn table: lines that are no rows, as `(3 rows)`, `Time: 0.5 ms`, an error."""

    def lines(self, first: int, last: int) -> tuple[int, int]:
        """The lines, counted from 1, of the rows `first` to `last`, counted from 0."""
        return self._firsts[first], self._lasts[last]


class Records(Sequence[list[str]]):
    """The records of a separated text, read anew whenever they are asked for.

    A list of them takes seventy times the room of `1,2`; of these one place in sixty-four is held.
    """

    def __init__(self, text: str, separator: str) -> None:
        self._text = text
        self._separator = separator
        self._marks = array("I")
        self._count = 0

    def add(self, start: int) -> None:
        """Note where the next record begins."""
        if self._count % _MARKED == 0:
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
        start = self._marks[index // _MARKED] if self._count else len(self._text)
        # Not past the last: a million empty lines may stand behind it.
        behind_mark = self._count - index // _MARKED * _MARKED
        return islice(self._records(start), index % _MARKED, behind_mark)

    def _records(self, start: int) -> Iterator[list[str]]:
        lines = _Lines(self._text, start)
        for record in csv.reader(lines, delimiter=self._separator):
            if record:
                yield record
            lines.skip_empty()


class _DrawnLines(Sequence[_T]):
    """Lines of a drawn table, each read when it is asked for; eight bytes are held of it."""

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
    """The table that a text is; None if it is none."""
    if text[:200].lstrip("\ufeff \t\r\n")[:1] in ("{", "[", "<", ""):
        return None
    return _drawn(text) or _separated(text)


# --- separated -----------------------------------------------------------------------------------


def _separated(text: str) -> Table | None:
    begin = 1 if text.startswith("\ufeff") else 0
    head = list(islice(_head_lines(text[begin:_SNIFFED_CHARS], len(text)), _LOOKED_AT))
    separator = _separator(head)
    if not separator:
        return None
    lines = _Lines(text, begin)
    reader = csv.reader(lines, delimiter=separator)
    names: list[str] = []
    records = Records(text, separator)
    # Four bytes for each: a pair in a list takes thirty times that, and a row may be four bytes.
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
    """Lines with their ends, as a file would give them; it knows where the next begins."""

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
        """Go on behind the empty lines that follow; how many they were.

        Only between records: inside of quotes an empty line is part of a value.
        """
        begin = self.at
        if self._text[begin : begin + 1] not in ("\n", "\r"):
            return 0
        empty = _EMPTY_LINES.match(self._text, begin)
        self.at = empty.end() if empty is not None else begin
        return self._text.count("\n", begin, self.at)


def _head_lines(text: str, whole: int) -> Iterator[str]:
    """The lines of a beginning; the last of a cut text is left out."""
    begin = 0
    while (end := text.find("\n", begin) + 1) > 0:
        yield text[begin:end]
        begin = end
    if begin < len(text) and whole <= _SNIFFED_CHARS:
        yield text[begin:]


def _separator(lines: list[str]) -> str:
    """What parts the values, if it parts all lines alike; else ""."""
    for separator in _SEPARATORS:
        if not lines or separator not in lines[0]:
            continue
        try:
            records = [record for record in csv.reader(lines, delimiter=separator) if record]
        except csv.Error:
            continue
        if len(records) > _FEWEST and _is_table(records[: _LOOKED_AT - 1]):
            return separator
    return ""


def _is_table(records: list[list[str]]) -> bool:
    names = records[0]
    if len(names) < 2 or not all(_NAME.fullmatch(name.strip()) for name in names):
        return False
    if any(_STAMP.search(name) for name in names) or sum(map(bool, names)) < len(names) - 1:
        return False
    if any(set(name.strip()) <= set("-:+ ") for name in records[1]):
        return False  # a rule under the header: a drawn table
    return sum(len(record) == len(names) for record in records) >= 0.9 * len(records)


def _unique(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    unique = []
    for number, name in enumerate(names, 1):
        wanted = name or f"column {number}"
        seen[wanted] = seen.get(wanted, 0) + 1
        unique.append(wanted if seen[wanted] == 1 else f"{wanted} ({number})")
    return unique


# --- drawn ---------------------------------------------------------------------------------------


def _drawn(text: str) -> Table | None:
    head = list(islice(text[:_HEAD_CHARS].split("\n"), _HEAD_LINES + 1))
    drawing = _names(head)
    if drawing is None:
        return None
    names, style = drawing
    rows = _DrawnLines(text, lambda _, line: _cells(line))
    others = _DrawnLines(text, lambda number, line: (number, line.strip()))
    number = start = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        number, line = number + 1, text[start:end]
        cells = _cells(line)
        if len(cells) == len(names) and cells != names and _is_row(line, len(names)):
            rows.add(number, start)
        elif line.strip() and cells != names and not _RULE.fullmatch(line):
            others.add(number, start)
        start = end + 1
    if not rows or (style == "markdown" and len(rows) < _DRAWN_SHARE * (len(rows) + len(others))):
        return None
    table = Table(style, "|", names, rows, (rows.numbers, rows.numbers))
    table.others = others
    return table


def _is_row(line: str, width: int) -> bool:
    return ("|" in line or width == 1) and not _RULE.fullmatch(line)


def _names(lines: list[str]) -> tuple[list[str], str] | None:
    """The names of the columns, which stand beside the first rule with bars, and the style."""
    for index, line in enumerate(lines):
        is_drawn = "+" in line
        if not (is_drawn or "|" in line) or not _RULE.fullmatch(line):
            continue
        above = index - 1 if index and "|" in lines[index - 1] else index + 1
        if not is_drawn and above > index:
            continue  # in Markdown the header comes first
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
