"""SQL dumps and schemas: statements that create and fill tables.

Shows the tables, their columns and numbers of rows, and the other definitions. Statements are found
at the start of a line; nothing is executed or parsed further.

The patterns use `re`, because a dump may have a statement in every other line and RE2 takes ten
times as long for each match. They are linear: each is anchored to the start of a line, on at most
200 characters, or to a character that cannot occur inside a match.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.source import Source, once
from holdfast.condense.spans import cut, line_spans, passages_of, quote, where

kind = "sql_dump"

_SNIFFED = 60_000
_FEWEST = 3
_MOST_TABLES = 60
_MOST_COLUMNS = 12
_NOTE_CHARS = 240
_STATEMENT = re.compile(
    r"(?mi)^(?:(?P<verb>CREATE|ALTER|DROP|INSERT[ ]++(?:IGNORE[ ]++)?INTO|REPLACE[ ]++INTO|COPY|SET"
    r"|GRANT|REVOKE|COMMENT|LOCK|UNLOCK|BEGIN|COMMIT|USE|SELECT|UPDATE|DELETE|PRAGMA)\b"
    r"(?:[ ]++(?:OR[ ]++REPLACE|TEMP(?:ORARY)?|UNLOGGED|GLOBAL|UNIQUE|MATERIALIZED|EXTERNAL))*+"
    r"[ ]*+(?P<rest>[^\n]{0,200}))"
)
_DEFINED = re.compile(
    r"(?i)(TABLE|VIEW|FUNCTION|PROCEDURE|INDEX|TYPE|SEQUENCE|TRIGGER|SCHEMA|DOMAIN|EXTENSION"
    r"|DATABASE|AGGREGATE|RULE)\b\s*(?:IF\s+NOT\s+EXISTS\s+)?([^\s(;]+)?"
)
_NO_COLUMN = frozenset("CONSTRAINT PRIMARY FOREIGN UNIQUE KEY CHECK INDEX EXCLUDE".split())
_TUPLE = re.compile(r"\)\s*+,\s*+\(")
_TARGET = re.compile(r"[^\s(;]+")


class _Table(msgspec.Struct):
    name: str
    start: int = 0
    end: int = 0
    columns: tuple[str, ...] = ()
    """The first columns, with their types and constraints."""
    width: int = 0
    """How many there are."""
    rows: int = 0
    first: tuple[int, int] | None = None
    """The first statement that fills it."""


class _Dump(msgspec.Struct):
    tables: dict[str, _Table]
    others: list[tuple[str, str, int]]
    """What else is defined: its sort, its name, where."""
    spans: list[tuple[int, int]]
    """Spans of the statements, and of the text before the first."""
    statements: int = 0


def sniff(source: Source) -> float:
    """Sure where several statements define or fill tables."""
    if source.data[:200].lstrip()[:1] in (b"{", b"[", b"<", b""):
        return 0.0
    head = source.data[:_SNIFFED].decode("utf-8", "replace")
    verbs = Counter(match["verb"].split()[0].upper() for match in _STATEMENT.finditer(head))
    statements = sum(
        verbs[verb] for verb in ("CREATE", "INSERT", "REPLACE", "COPY", "ALTER", "DROP")
    )
    if statements < _FEWEST or ";" not in head:
        return 0.0
    return 0.95 if "dump" in head[:500].lower() or statements > 2 * _FEWEST else 0.85


def condense(source: Source) -> Condensed:
    """Return tables with columns and rows, then other definitions."""
    dump = _read(source)
    tables = list(dump.tables.values())
    notes = [_table_note(source, table) for table in tables[:_MOST_TABLES]]
    notes += _others(source, dump)
    for table in tables[:_MOST_TABLES]:
        if table.first:
            start, end = table.first
            text = quote(source.text[start:end], 200)
            notes.append(Note("sample", text, where(source, start, end)))
    rows = sum(table.rows for table in tables)
    return Condensed(
        title=f"SQL dump: {len(tables):,} tables, {rows:,} rows, {dump.statements:,} statements",
        unit="statements",
        total=dump.statements,
        notes=tuple(notes),
    )


def passages(source: Source) -> Sequence[Passage]:
    """One for each statement; long ones in parts."""
    text = source.text
    parts = (
        part for start, end in _read(source).spans for part in cut(text, start, end, by="line")
    )
    return passages_of(source, parts)


def _table_note(source: Source, table: _Table) -> Note:
    column_names = ", ".join(table.columns)
    more = table.width - _MOST_COLUMNS
    columns = f"{table.width:,} columns: {column_names}" if table.columns else "not defined here"
    text = f"{table.name}: {table.rows:,} rows; {columns}" + (
        f", {more:,} more" if more > 0 else ""
    )
    start, end = (table.start, table.end) if table.end else table.first or (0, 1)
    return Note("outline", quote(text, _NOTE_CHARS), where(source, start, end))


def _others(source: Source, dump: _Dump) -> list[Note]:
    sorts: dict[str, list[tuple[str, int]]] = {}
    for sort, name, start in dump.others:
        sorts.setdefault(sort, []).append((name, start))
    return [
        Note(
            "outline",
            f"{len(names):,} x {sort}: " + quote(", ".join(name for name, _ in names[:20]), 160),
            where(source, names[0][1], names[0][1] + 1),
        )
        for sort, names in sorts.items()
    ]


@once
def _read(source: Source) -> _Dump:
    text = source.text
    dump = _Dump({}, [], [])
    heads = _STATEMENT.finditer(text)
    head = next(heads, None)
    if head is None or head.start() > 0:
        dump.spans.append((0, head.start() if head else len(text)))
    while head is not None:
        following = next(heads, None)
        end = following.start() if following else len(text)
        dump.spans.append((head.start(), end))
        dump.statements += 1
        verb = head["verb"].split()[0].upper()
        if verb == "CREATE":
            _define(dump, text, head, end)
        elif verb in ("INSERT", "REPLACE", "COPY"):
            _fill(dump, text, head, end, copied=verb == "COPY")
        head = following
    return dump


def _define(dump: _Dump, text: str, found: re.Match[str], end: int) -> None:
    defined = _DEFINED.match(found["rest"])
    if defined is None or not defined[2]:
        return
    sort, name = defined[1].lower(), _plain(defined[2])
    if sort != "table":
        dump.others.append((sort, name, found.start()))
        return
    table = dump.tables.setdefault(name, _Table(name))
    close = text.find(";", found.start(), end)
    table.start, table.end = found.start(), close + 1 if close > 0 else end
    begin = text.find("(", found.start(), table.end) + 1
    spans = line_spans(text, begin, table.end)
    lines = (text[start : min(stop, start + _NOTE_CHARS)] for start, stop in spans if start < stop)
    columns = [column for line in lines if (column := _column(line))]
    table.columns, table.width = tuple(columns[:_MOST_COLUMNS]), len(columns)


def _column(line: str) -> str:
    """Return the description of a column from a line of CREATE TABLE, or ""."""
    words = line.partition("--")[0].rstrip(" \r;)").removesuffix(",").split()
    if len(words) < 2 or words[0].upper() in _NO_COLUMN:
        return ""
    is_name = words[0].strip('`"[]').replace("_", "a").isalnum()
    return " ".join(words) if is_name else ""


def _fill(dump: _Dump, text: str, found: re.Match[str], end: int, *, copied: bool) -> None:
    target = _TARGET.match(found["rest"])
    if target is None:
        return
    name = _plain(target[0])
    table = dump.tables.setdefault(name, _Table(name))
    start = found.start()
    if copied:
        close = text.find("\n\\.", start, end)
        table.rows += text.count("\n", start, close if close >= 0 else end)
    else:
        table.rows += 1 + sum(1 for _ in _TUPLE.finditer(text, start, end))
    if table.first is None:
        table.first = (found.start(), end)


def _plain(name: str) -> str:
    return name.strip('`"[]').replace('"."', ".").replace("`.`", ".")
