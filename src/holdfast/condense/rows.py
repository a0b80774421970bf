"""The profile of a table: its columns once, and the most informative rows.

JSON, CSV and SQL provide the columns and rows. Numbers and dates are shown verbatim.

The patterns use `re`, because each runs on one cell or one name. They are linear: anchored to the
start of the cell, without two repeats that can match the same character.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, zip_longest
from typing import Any

import msgspec

from holdfast.condense.condenser import Note
from holdfast.condense.cutting import shortened
from holdfast.condense.pieces import line, scalar
from holdfast.document import Number

_MOST_COLUMNS = 40
_LISTED_VALUES = 8
"""A column of no more values than this has them listed."""
_NOTE_CHARS = 200
_VALUE_CHARS = 80
_CELLS_AT_ONCE = 40_000
"""Cells that are held together: seventy bytes for each. A table of more is read some columns at a
time."""
_ENOUGH_ROWS = 12
"""In fewer rows than this, nothing is called unusual."""
_NUMBER = re.compile(r"[-+]?(?:0|[1-9]\d*+)?(?:\.\d++)?(?:[eE][-+]?\d++)?")
_DATE = re.compile(r"\d{4}[-/]\d{2}[-/]\d{2}(?:[T ]\d{2}:\d{2}\S*+)?|\d{2}:\d{2}(?::\d{2})?")
_ID = re.compile(r"(?i)(?:.*[_\W])?(?:id|uuid|oid|position|index|rank|fips|zip)|.*[a-z]I[dD]")
_CONTAINERS: dict[type, str] = {dict: "object", list: "list"}
_TELLING = (
    "full_name name title subject number id key login label status state type level severity error "
    "message date created_at updated_at body"
).split()
"""The most informative fields of a row, in this order."""
_NAMES = "full_name name title login label subject email slug key number id message".split()
"""Fields that name an object inside a row."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """The values of a column."""

    name: str
    kind: str
    """`int`, `number`, `date`, `text`, `bool`, `object`, `list`, `mixed` or `empty`."""
    empty: int
    distinct: int
    low: int = -1
    """The row of the smallest value, if values have an order; -1 otherwise."""
    high: int = -1
    common: tuple[tuple[str, int], ...] = ()
    """Values with their counts, if they are few."""
    rare: tuple[int, ...] = ()
    """Rows whose value is found in no other row, though most are shared by many."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Rows with the columns that were found in them."""

    rows: Sequence[dict[str, Any]]
    columns: tuple[Column, ...]
    width: int
    """Number of columns, including those without a description."""


def table_of(rows: Sequence[dict[str, Any]]) -> Profile:
    """Describe the columns of rows, the most frequent if there are very many."""
    counts = Counter(chain.from_iterable(rows))
    names = list(counts)
    if len(names) > _MOST_COLUMNS:
        frequent = {name for name, _ in counts.most_common(_MOST_COLUMNS)}
        names = [name for name in names if name in frequent]
    at_once = max(1, len(names) if isinstance(rows, list) else _CELLS_AT_ONCE // len(rows))
    columns: list[Column] = []
    for first in range(0, len(names), at_once):
        group = names[first : first + at_once]
        values: list[list[Any]] = [[] for _ in group]
        for row in rows:
            for name, column in zip(group, values, strict=True):
                column.append(row.get(name))
        columns += map(_column, group, values)
    return Profile(rows=rows, columns=tuple(columns), width=len(counts))


def table_of_columns(names: Sequence[str], records: Sequence[Sequence[str]]) -> Profile:
    """Return the profile of records whose values are in the order of the names."""
    described = names[:_MOST_COLUMNS] if records else []
    at_once = max(1, _CELLS_AT_ONCE // max(1, len(records)))
    columns: list[Column] = []
    for first in range(0, len(described), at_once):
        group = described[first : first + at_once]
        values: list[list[Any]] = [[] for _ in group]
        for record in records:
            cells = record[first : first + len(group)]
            for column, cell in zip_longest(values, cells):
                column.append(cell)
        columns += map(_column, group, values)
    return Profile(rows=_Records(names, records), columns=tuple(columns), width=len(names))


class _Records(Sequence[dict[str, Any]]):
    """Records as rows: the few that are shown are made when they are asked for."""

    def __init__(self, names: Sequence[str], records: Sequence[Sequence[str]]) -> None:
        self._names = names
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: Any) -> Any:
        return dict(zip(self._names, self._records[index], strict=False))


def at_both_ends(number: int, here: int, total: int) -> int:
    """Return the index, among all rows, of a row taken from both ends."""
    return number + total - here if here < total and number >= here // 2 else number


def describe(table: Profile, *, part_of: int = 0) -> list[Note]:
    """The schema, in lines of several columns; of what rows, where there are more than these."""
    notes: list[Note] = []
    if part_of:
        half = len(table.rows) // 2
        last = f"{part_of - len(table.rows) + half + 1:,}-{part_of:,}"
        notes.append(Note("outline", f"columns as in the rows 1-{half:,} and {last}:"))
    parts: list[str] = []
    size = 0
    for column in table.columns:
        text = _described(column, table.rows)
        if parts and size + len(text) > _NOTE_CHARS:
            notes.append(Note("outline", "; ".join(parts)))
            parts, size = [], 0
        parts.append(text)
        size += len(text) + 2
    if (more := table.width - len(table.columns)) > 0:
        parts.append(f"{more:,} more columns")
    if parts:
        notes.append(Note("outline", "; ".join(parts)))
    return notes


def samples(table: Profile, where: Callable[[int], str], *, is_whole: bool = True) -> list[Note]:
    """Return the most informative rows: the first, the unusual, the extremes, the last.

    Unusual rows and extremes are known only if all rows are present.
    """
    chosen: dict[int, list[str]] = {}
    by_row: dict[int, list[str]] = {}
    ends = [(0, "first", ""), (len(table.rows) - 1, "last", "")] if table.rows else []
    for index, reason, name in _choices(table) if is_whole else ends:
        chosen.setdefault(index, []).append(reason)
        by_row.setdefault(index, []).append(name)
    return [
        Note(
            "sample",
            f"{', '.join(dict.fromkeys(reasons))}: {brief(table.rows[index], by_row[index])}",
            where(index),
        )
        for index, reasons in chosen.items()
    ]


def brief(row: Any, first: Iterable[str] = (), limit: int = _NOTE_CHARS) -> str:
    """Return a row in one line: all of it if it is short, else its most informative fields.

    Words may be cut, with a mark; numbers, ids and links are complete or omitted.
    """
    if not isinstance(row, dict):
        return _shortened(line(row), limit) or "…"
    parts: list[str] = []
    size = 0
    left_out = False
    for key in _telling_order(row, first):
        text = _shortened(_inner(row[key]), _VALUE_CHARS if len(row) > 1 else limit)
        part = f"{_key(key)}: {text}"
        if not text or size + len(part) > limit:
            left_out = left_out or bool(row[key])
            continue
        parts.append(part)
        size += len(part) + 2
    return "; ".join(parts) + ("; …" if left_out else "")


def _key(name: str) -> str:
    name = " ".join(name.split()) if "\n" in name else name
    return shortened(name, _VALUE_CHARS)


def _telling_order(row: dict[str, Any], first: Iterable[str]) -> list[str]:
    telling = [name for name in first if name in row]
    order = dict.fromkeys(chain(telling, (name for name in _TELLING if name in row)))
    links = [name for name in row if name not in order and _is_bulky(row[name])]
    order.update(dict.fromkeys(name for name in row if not _is_bulky(row[name])))
    order.update(dict.fromkeys(links))
    return list(order)


def _is_bulky(value: Any) -> bool:
    return isinstance(value, (dict, list)) or (type(value) is str and value.startswith("http"))


def _inner(value: Any) -> str:
    """Return the short form of a value inside a row: the name of an object, "" if it is empty."""
    if isinstance(value, dict):
        names = (value[key] for key in _NAMES if type(value.get(key)) in (str, int))
        return next(map(scalar, names), "")
    if isinstance(value, list):
        small = len(value) <= 6 and not any(isinstance(item, (dict, list)) for item in value)
        return line(value) if value and small else f"[{len(value):,} items]" if value else ""
    return "" if value is None or value == "" else scalar(value)


def _shortened(text: str, limit: int) -> str:
    text = " ".join(text[: 4 * limit].split())
    if len(text) <= limit:
        return text
    at = text.rfind(" ", limit // 2, limit)
    return text[:at] + "…" if at > 0 else ""


def _column(name: str, values: list[Any]) -> Column:
    types = Counter(map(type, values))
    empty = types.pop(type(None), 0)
    if str in types and (blank := values.count("")):
        empty += blank
    if not types or empty == len(values):
        return Column(name=name, kind="empty", empty=empty, distinct=0)
    if set(types) <= {int, Number}:
        kind = "number" if Number in types else "int"
        return _ordered(name, kind, values, empty, _numbers(values))
    if set(types) == {str}:
        return _text_column(name, values, empty)
    if set(types) == {bool}:
        return _counted(name, "bool", [v if v is None else scalar(v) for v in values], empty)
    kind = _CONTAINERS.get(types.popitem()[0], "mixed") if len(types) == 1 else "mixed"
    return Column(name=name, kind=kind, empty=empty, distinct=0)


def _text_column(name: str, values: list[Any], empty: int) -> Column:
    first = next(value for value in values if value)
    if _DATE.fullmatch(first):
        return _ordered(name, "date", values, empty, [value or None for value in values])
    if first and _NUMBER.fullmatch(first) and (numbers := _as_numbers(values)):
        return _ordered(name, "number", values, empty, numbers)
    return _counted(name, "text", values, empty)


def _as_numbers(values: list[Any]) -> list[float | None] | None:
    """Numbers written as strings, as databases and CSV give them; None if some are not."""
    try:
        numbers = [float(value) if value else None for value in values]
    except ValueError:
        return None
    return None if any(number != number for number in numbers) else numbers  # noqa: PLR0124 NaN


def _numbers(values: list[Any]) -> list[float | int | None]:
    return [float(value) if type(value) is Number else value for value in values]


def _ordered(name: str, kind: str, values: list[Any], empty: int, keys: Sequence[Any]) -> Column:
    filled = [index for index, key in enumerate(keys) if key is not None]
    low = min(filled, key=keys.__getitem__, default=-1)
    high = max(filled, key=keys.__getitem__, default=-1)
    return Column(name=name, kind=kind, empty=empty, distinct=len(set(values)), low=low, high=high)


def _counted(name: str, kind: str, values: list[Any], empty: int) -> Column:
    counts = Counter(values)
    counts.pop(None, None)
    counts.pop("", None)
    if len(counts) <= _LISTED_VALUES and len(values) > len(counts):
        common = tuple(counts.most_common())
    else:
        common = ()
    rare: tuple[int, ...] = ()
    filled = len(values) - empty
    singles = [value for value, count in counts.items() if count == 1]
    if filled >= _ENOUGH_ROWS and singles and len(singles) <= filled // 20 + 1:
        rare = tuple(values.index(value) for value in singles[:3])
    return Column(name=name, kind=kind, empty=empty, distinct=len(counts), common=common, rare=rare)


def _described(column: Column, rows: Sequence[dict[str, Any]]) -> str:
    text = f"{_key(column.name)} {column.kind}"
    if column.low >= 0:
        low = _shortened(scalar(rows[column.low][column.name]), _VALUE_CHARS)
        high = _shortened(scalar(rows[column.high][column.name]), _VALUE_CHARS)
        text += f" {low}" if low == high else f" {low} to {high}"
    elif column.common and all(len(value) <= 24 for value, _ in column.common):
        text += " " + ", ".join(f"{value} ({count:,})" for value, count in column.common)
    elif column.kind == "text":
        text += f", {column.distinct:,} distinct"
    if column.empty and column.kind != "empty":
        text += f", {column.empty:,} empty"
    return text


def _choices(table: Profile) -> Iterable[tuple[int, str, str]]:
    """Rows to show, each with the reason and the column it is shown for."""
    if not table.rows:
        return
    yield 0, "first", ""
    for column in table.columns:
        for index in column.rare[:2]:
            yield index, f"only {_key(column.name)} of its kind", column.name
    measures = [
        column
        for column in table.columns
        if column.kind in ("int", "number") and column.low >= 0 and not _is_id(column, table)
    ]
    for column in measures[:4]:
        yield column.high, f"highest {_key(column.name)}", column.name
        yield column.low, f"lowest {_key(column.name)}", column.name
    yield len(table.rows) - 1, "last", ""


def _is_id(column: Column, table: Profile) -> bool:
    return column.distinct == 1 or (
        _ID.fullmatch(column.name) is not None and column.distinct > len(table.rows) // 2
    )
