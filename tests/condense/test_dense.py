"""A document of very many small values is read in parts, with a note."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.condense import csv_table, json_rows, json_tree
from holdfast.condense.alerts import alerts
from holdfast.condense.fields import fields
from holdfast.condense.kinds import condenser_for
from holdfast.condense.source import Source
from holdfast.document import ContentView, find, windows
from holdfast.search.passages import rank
from tests.expand.made import opened

MANY = 10_000
"""Rows of 26 characters: more than are held as values (`density.LARGE`)."""
ROWS: list[dict[str, Any]] = [{"id": n, "name": f"n{n}"} for n in range(MANY)]
ROWS[7_000]["error"] = "disk full"
ROWS[7_001]["name"] = "Thigpen"


def source(value: Any) -> Source:
    content = Source(json.dumps(value).encode())
    assert content.document is not None
    assert not content.document.is_whole
    return content


WRAPPED = {
    "alone": ROWS,
    "beside more": {"total": MANY, "items": ROWS, "next": "page2"},
    "in a string": {"content": [{"type": "text", "text": json.dumps(ROWS)}]},
    "deep": {"a": [{"b": {"c": ROWS}}]},
}


@pytest.mark.parametrize("value", WRAPPED.values(), ids=WRAPPED)
def test_windows_hold_every_row_once_and_in_order(value: Any) -> None:
    document = source(value).document
    assert document is not None
    parts = [part for part in windows(document) if isinstance(part.value, list)]
    rows = [(part.first + n, row) for part in parts for n, row in enumerate(part.value)]
    rows = [(n, row) for n, row in rows if isinstance(row, dict) and "id" in row]
    assert rows == list(enumerate(ROWS))


@pytest.mark.parametrize("value", WRAPPED.values(), ids=WRAPPED)
def test_rows_are_counted_and_the_last_is_shown_where_it_stands(value: Any) -> None:
    content = source(value)
    condensed = json_rows.condense(content)
    assert condenser_for(content).kind == "json_rows"
    assert condensed.total == MANY
    assert f"{MANY:,} rows" in condensed.title
    last = next(note for note in condensed.notes if note.text.startswith("last"))
    assert f"n{MANY - 1}" in last.text
    assert f"n{MANY - 1}" in opened(content.data, {"path": last.where}).text


@pytest.mark.parametrize("value", WRAPPED.values(), ids=WRAPPED)
def test_an_error_in_the_middle_is_an_alert_that_opens(value: Any) -> None:
    content = source(value)
    (alert,) = alerts(content)
    assert alert.text == "error: disk full"
    assert "disk full" in opened(content.data, {"path": alert.where}).text


@pytest.mark.parametrize("value", WRAPPED.values(), ids=WRAPPED)
def test_what_a_question_names_is_found_in_the_middle(value: Any) -> None:
    content = source(value)
    best = rank("Who is Thigpen?", json_rows.passages(content))[0]
    passage = json_rows.passages(content)[best.index]
    assert "id: 7001; name: Thigpen" in passage.text
    (field,) = fields(content, "What is the id of Thigpen?")
    assert field.text.startswith("7001")
    assert opened(content.data, {"path": field.where}).content == "7001"


def test_what_stands_beside_the_rows_is_said() -> None:
    notes = json_rows.condense(source(WRAPPED["beside more"])).notes
    assert any("next = page2" in note.text and str(MANY) in note.text for note in notes)


def test_a_path_in_a_question_is_followed() -> None:
    (field, *_) = fields(source(WRAPPED["beside more"]), "What is `items[7001].name`?")
    assert (field.text, field.where) == ("Thigpen", "$.items[7001].name")


def test_extremes_of_a_long_series_are_those_of_all_numbers() -> None:
    numbers = [n % 977 + 0.5 for n in range(60_000)]
    numbers[30_000], numbers[31_000] = 10**9, -(10**9)
    notes = {note.text: note.where for note in json_rows.condense(source(numbers)).notes}
    assert notes["highest: 1000000000"] == "$[30000]"
    assert notes["lowest: -1000000000"] == "$[31000]"


def test_keys_of_a_large_object_are_counted_and_found() -> None:
    value = {f"k{n}": n for n in range(20_000)} | {'"quoted"': {"a": [1]}}
    content = source(value)
    assert json_tree.condense(content).title == "JSON: object (20,001 keys)"
    document = content.document
    assert document is not None
    assert [member.name for member in document.members(*document.root[1:])] == list(value)
    (match,), _ = find(document, "$.k19999")
    assert document.text[match.node.start : match.node.end] == "19999"
    texts = "\n".join(part.text for part in json_tree.passages(content))
    assert "k12000: 12000" in texts


def test_of_more_rows_the_first_and_the_last_are_described_and_it_is_said() -> None:
    content = source([{"a": n} for n in range(25_000)])
    condensed = json_rows.condense(content)
    assert condensed.title == "JSON: 25,000 rows of at least 1 columns"
    texts = {note.text: note.where for note in condensed.notes}
    assert "columns as in the rows 1-1,000 and 24,001-25,000:" in texts
    assert texts["last: a: 24999"] == "$[24999]"
    assert not any(text.startswith("highest") for text in texts)


def test_extremes_of_rows_that_are_not_held_are_those_of_all() -> None:
    rows = [{"id": n, "size": n % 50} for n in range(MANY)]
    rows[5_000]["size"] = 10**6
    texts = {note.text: note.where for note in json_rows.condense(source(rows)).notes}
    assert texts["highest size: size: 1000000; id: 5000"] == "$[5000]"


def test_lines_are_values_one_by_one() -> None:
    """Two values on a line, or one on two, were taken for lines, and failed when opened."""
    for text in ('{}{"a": 1}\n- [', '{"b": 2}\n{"a":\n1}\nx', '{} {"a": 1}\n{"a": 2}'):
        document = ContentView(text.encode()).document
        assert document is None or document.form != "lines"
        assert opened(text, {"fields": ["a"]}).text


def test_json_lines_that_are_many_keep_their_lines() -> None:
    text = "\n".join(map(json.dumps, ROWS))
    content = Source(text.encode())
    condensed = json_rows.condense(content)
    assert condensed.title == "JSON lines: 10,000 rows of 3 columns"
    last = next(note for note in condensed.notes if note.text.startswith("last"))
    assert last.where == f"lines {MANY}-{MANY}"
    best = rank("Thigpen", passages := json_rows.passages(content))[0]
    first, end = passages[best.index].where.removeprefix("lines ").split("-")
    assert int(first) <= 7_002 <= int(end)


def test_a_table_of_very_many_rows_is_counted_whole() -> None:
    table = "a,b\n" + "".join(f"{n},x{n}\n" for n in range(30_000))
    content = Source(table.encode())
    condensed = csv_table.condense(content)
    assert condensed.title == "CSV: 30,000 rows of 2 columns"
    last = next(note for note in condensed.notes if note.text.startswith("last"))
    assert last.where == "rows 30000-30000"
    assert "x29999" in last.text
    best = rank("x12345", passages := csv_table.passages(content))[0]
    assert "12345,x12345" in passages[best.index].text
    assert "x12345" in opened(table, {"slice": {"offset": 12345, "limit": 1}}).text
