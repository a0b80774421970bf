r"""Import of another system's cache table into the store, row by row.

A table is a SQLite file, lines of JSON, or the CSV that psql's `\copy … TO … CSV HEADER` writes.
Its columns show the type of a row: a question with its answer, or a key with a cached value. A
hash in the table must match its value; a missing one is computed when the value is stored.
"""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.errors import StoreError
from holdfast.store.refs import digest

TABLES = ("semantic_cache", "cache_entries")
"""Where to look in a SQLite file, if no name is given: the tables of the seed."""
_MOST_CHARACTERS = 32_000_000
_QUESTION = ("query_text", "query", "prompt", "question")
_ANSWER = ("answer_text", "answer", "response", "completion")
_KEY = ("cache_key", "key", "id", "name")
_VALUE = ("value", "full_content", "content", "data", "result")
_CREATED = ("created_at", "created", "inserted_at")
_EXPIRES = ("ttl_expires_at", "expires_at", "expires")
_MAGIC = b"SQLite format 3\0"


class CachedRow(NamedTuple):
    """A row of a cache table."""

    number: int
    """Counted from 1."""
    key: str
    question: str = ""
    answer: str = ""
    signature: str = ""
    value: str = ""
    """The cached text; empty if the row is an answer."""
    created_at: float | None = None
    expires_at: float | None = None
    fault: str = ""
    """Why it cannot be taken; empty if it can."""

    @property
    def is_answer(self) -> bool:
        """Whether it holds a question and its answer."""
        return bool(self.question)


def rows_of(path: Path, table: str = "") -> Iterator[CachedRow]:
    """The rows of a cache table, read one by one.

    Raises:
        StoreError: the file cannot be read, or it is no table of a cache.
    """
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
        if head == _MAGIC:
            rows = _sqlite_rows(path, table)
        elif path.suffix.lower() in (".jsonl", ".ndjson", ".json"):
            rows = _json_rows(path)
        else:
            rows = _csv_rows(path)
        for number, row in enumerate(rows, 1):
            yield _row(number, row)
    except (OSError, sqlite3.Error, csv.Error, UnicodeDecodeError) as error:
        raise StoreError(
            f"the cache table cannot be read ({type(error).__name__})",
            where=str(path),
            fix="Give a SQLite file, lines of JSON (.jsonl), or CSV with a header.",
        ) from None


def _sqlite_rows(path: Path, table: str) -> Iterator[Mapping[str, Any]]:
    address = f"file:{path.absolute().as_posix()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as db:
        db.row_factory = sqlite3.Row
        names = [
            name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type='table'")
        ]
        tables = [table] if table else [name for name in TABLES if name in names]
        if not tables or tables[0] not in names:
            raise StoreError(
                "there is no such table",
                where=table or str(path),
                fix=f"Name one of them with --table: {', '.join(sorted(names)[:20]) or 'none'}.",
            )
        quoted = tables[0].replace('"', '""')
        for row in db.execute(f'SELECT * FROM "{quoted}"'):  # noqa: S608 - a name of the schema
            yield dict(row)


def _json_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            yield row if isinstance(row, dict) else {}


def _csv_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    csv.field_size_limit(_MOST_CHARACTERS)
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _row(number: int, row: Mapping[str, Any]) -> CachedRow:
    question, answer = _text(row, _QUESTION), _text(row, _ANSWER)
    value = "" if question and answer else _text(row, _VALUE)
    read = CachedRow(
        number,
        _text(row, _KEY)[:200],
        question if answer else "",
        answer if question else "",
        _text(row, ("context_signature", "signature")),
        value,
        _time(row, _CREATED),
        _time(row, _EXPIRES),
    )
    return read._replace(fault=_fault(read, row))


def _fault(read: CachedRow, row: Mapping[str, Any]) -> str:
    if not read.is_answer and not read.value:
        return "it holds neither a question with its answer nor a value"
    if max(len(read.value), len(read.question), len(read.answer)) > _MOST_CHARACTERS:
        return f"it has more than {_MOST_CHARACTERS:,} characters"
    stated_hash = _text(row, ("content_hash",)).lower()
    if stated_hash and read.value and isinstance(_first(row, _VALUE), str):
        return (
            ""
            if stated_hash == digest(read.value.encode("utf-8", "surrogatepass"))
            else ("its content_hash is not that of its value")
        )
    return ""


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    by_name = {str(name).lower(): value for name, value in row.items()}
    return next((by_name[name] for name in names if by_name.get(name) not in (None, "")), None)


def _text(row: Mapping[str, Any], names: Sequence[str]) -> str:
    value = _first(row, names)
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _time(row: Mapping[str, Any], names: Sequence[str]) -> float | None:
    """Seconds since 1970, from a number or a date; None if there is none that can be read."""
    value = _first(row, names)
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(value)
    except (TypeError, ValueError):
        pass
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
