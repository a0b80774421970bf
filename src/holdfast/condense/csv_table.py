"""Tables of separated values: commas, tabs, semicolons or bars.

csv_table: after rows. The columns once, the rows that tell most. Rows are counted from 1, without
the header.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.once import once
from holdfast.condense.pieces import PASSAGE_CHARS, prose_passages
from holdfast.condense.rows import describe, samples, table_of_columns
from holdfast.condense.source import Source

kind = "csv"

_SEPARATORS = ",\t;|"
_LOOKED_AT = 40
"""Records that are looked at before all are read."""
_FEWEST = 3
_SNIFFED_CHARS = 64_000
_NAME = re.compile(r"[^\W\d][^\n\r]{0,63}|#|")
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}|\d{2}:\d{2}|https?://")
_CELL_CHARS = 1 << 27

csv.field_size_limit(_CELL_CHARS)  # the default refuses a text that happens to have one quote


class _Csv(msgspec.Struct, frozen=True):
    separator: str
    names: list[str]
    records: list[list[str]]
    """Without the header."""
    ragged: list[int]
    """Rows, counted from 0, with fewer or more values than there are names."""


def sniff(source: Source) -> float:
    """Sure of records that all have as many values as the header has names."""
    if source.data[:200].lstrip()[:1] in (b"{", b"[", b"<", b""):
        return 0.0
    head = list(islice(_lines(source.text[:_SNIFFED_CHARS]), _LOOKED_AT))
    return 0.78 if _separator(head) else 0.0


def condense(source: Source) -> Condensed:
    """The columns, and the rows that stand out."""
    found = _read(source)
    if found is None:
        return Condensed(title="Table, unreadable", unit="rows", total=0, notes=())
    table = table_of_columns(found.names, found.records)
    ragged = [
        Note("outline", f"{len(found.ragged):,} rows are longer or shorter than the header")
        for _ in found.ragged[:1]
    ]
    what = "TSV" if found.separator == "\t" else "CSV"
    return Condensed(
        title=f"{what}: {len(found.records):,} rows of {len(found.names):,} columns",
        unit="rows",
        total=len(found.records),
        notes=(*describe(table), *ragged, *samples(table, _place)),
    )


def passages(source: Source) -> Sequence[Passage]:
    """One for each row, its values beside their names."""
    found = _read(source)
    if found is None:
        return list(prose_passages(source.text, f"lines 1-{max(source.line_count, 1)}"))
    made: list[Passage] = []
    names, width = found.names, len(found.names)
    filled = "; ".join(f"{name.replace('%', '%%')}: %s" for name in names)
    for index, record in enumerate(found.records):
        if len(record) == width:
            text = filled % tuple(record)
        else:
            said = [f"{name}: {value}" for name, value in zip(names, record, strict=False)]
            text = "; ".join(said + record[width:])
        if len(text) <= 2 * PASSAGE_CHARS:
            made.append(Passage(text, _place(index)))
        else:
            made.extend(prose_passages(text, _place(index)))
    return made or [Passage(found.separator.join(names), "lines 1-1")]


def _place(index: int) -> str:
    return f"rows {index + 1}-{index + 1}"


def _lines(text: str) -> Iterator[str]:
    """Lines with their ends, as a file would give them; the last of a cut text is left out."""
    begin = 0
    while (end := text.find("\n", begin) + 1) > 0:
        yield text[begin:end]
        begin = end
    if begin < len(text) < _SNIFFED_CHARS:
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


@once
def _read(source: Source) -> _Csv | None:
    text = source.text.removeprefix("\ufeff")
    separator = _separator(list(islice(_lines(text[:_SNIFFED_CHARS]), _LOOKED_AT)))
    if not separator:
        return None
    try:
        records = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error:
        return None
    names = _unique([name.strip() for name in records[0]])
    rows = [record for record in records[1:] if record]
    width = len(names)
    ragged = [index for index, record in enumerate(rows) if len(record) != width]
    return _Csv(separator, names, rows, ragged)


def _unique(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    unique = []
    for number, name in enumerate(names, 1):
        wanted = name or f"column {number}"
        seen[wanted] = seen.get(wanted, 0) + 1
        unique.append(wanted if seen[wanted] == 1 else f"{wanted} ({number})")
    return unique
