"""Tables in the documentation, read back: where they stand, their origin, their cells."""

from __future__ import annotations

import re
from itertools import chain, takewhile

import msgspec

from benchmarks import figures

ROOT = figures.ROOT
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A Markdown table: its cells without marks, and its lines in the page, from 1 on."""

    page: str
    lines: tuple[int, int]
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, name: str) -> list[tuple[str, str]]:
        """Each row's label with its cell below a heading."""
        at = self.head.index(name)
        return [(row[0], row[at]) for row in self.rows]

    def row(self, label: str) -> list[tuple[str, str]]:
        """Each heading with its cell in the row of a label."""
        (row,) = (row for row in self.rows if row[0] == label)
        return list(zip(self.head, row, strict=True))[1:]

    def origin(self) -> str:
        """Return commit and day of the figures, by the record of the section the table is in."""
        lines = (ROOT / "docs" / self.page).read_text("utf-8").splitlines()
        start = self.lines[0]
        is_outside = re.compile(r"#|<!-- end of figures -->")
        above = takewhile(lambda line: not is_outside.match(line), reversed(lines[:start]))
        below = takewhile(lambda line: not line.startswith("#"), lines[start:])
        for match in map(figures.MARK.match, chain(above, below)):
            if match:
                return figures.load()[match[1]].stamp()
        raise LookupError(f"docs/{self.page}:{self.lines[0]}: the table's section has no record")


def tables(page: str) -> list[Table]:
    """All tables of a page below docs/."""
    lines = (ROOT / "docs" / page).read_text("utf-8").splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith("|--")]
    return [_table(page, lines, start) for start in starts]


def table(page: str, heading: str, label: str) -> Table:
    """The one table of a page that has this heading and a row of this label."""
    candidates = [
        each
        for each in tables(page)
        if heading in each.head and any(row[0] == label for row in each.rows)
    ]
    if len(candidates) != 1:
        raise LookupError(
            f"docs/{page} has {len(candidates)} tables with the heading {heading!r} and a row "
            f"{label!r}: name the table anew in benchmarks/page.py"
        )
    return candidates[0]


def number(cell: str, part: int = 0) -> float | None:
    """The first number in a cell, or in one of its parts between slashes; None if there is none."""
    parts = cell.split("/")
    match = _NUMBER.search(parts[part]) if part < len(parts) else None
    return float(match[0].replace(",", "")) if match else None


def _table(page: str, lines: list[str], start: int) -> Table:
    end = start + 1
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    rows = tuple(_cells(line) for line in lines[start + 1 : end])
    return Table(page=page, lines=(start, end), head=_cells(lines[start - 1]), rows=rows)


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip().strip("*`") for cell in line.strip().strip("|").split("|"))
