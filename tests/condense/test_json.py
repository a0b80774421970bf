"""JSON rows and trees."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings

from holdfast.condense import json_rows, json_tree
from holdfast.condense.main_rows import main_rows
from holdfast.condense.outline import type_of
from holdfast.condense.pieces import leaves
from holdfast.condense.source import Source
from tests.condense.structured import check, check_complete, rows, source, values
from tests.expand.made import opened as expanded

FLIGHTS = [
    {"flight": f"X{n:03}", "delay": n % 7, "origin": "LIS" if n % 2 else "OPO", "note": None}
    for n in range(60)
]


@given(values)
@settings(max_examples=100, deadline=None)
def test_any_value_is_survived_whole_and_the_same_twice(value: Any) -> None:
    content = source(value)
    for condenser in (json_rows, json_tree):
        _, parts = check(condenser, content)
        if condenser.sniff(content):
            check_complete(value, parts)


@given(rows)
@settings(max_examples=100, deadline=None)
def test_rows_of_any_shape_are_whole(value: Any) -> None:
    _, parts = check(json_rows, source(value))
    check_complete(value, parts)


def _texts(role: str, value: Any) -> list[str]:
    content = value if isinstance(value, Source) else source(value)
    condenser = json_rows if json_rows.sniff(content) else json_tree
    return [note.text for note in condenser.condense(content).notes if note.role == role]


def test_the_schema_is_told_once_with_ranges_and_counts() -> None:
    (schema,) = _texts("outline", FLIGHTS)
    assert schema == (
        "flight text, 60 distinct; delay int 0 to 6; origin text OPO (30), LIS (30); note empty"
    )
    said = json_rows.condense(source(FLIGHTS))
    assert (said.unit, said.total) == ("rows", 60)
    assert said.title == "JSON: 60 rows of 4 columns"


def test_unusual_rows_and_extremes_are_shown_with_their_place() -> None:
    odd = [dict(row) for row in FLIGHTS]
    odd[41] |= {"origin": "FAO", "delay": 900}
    notes = json_rows.condense(source({"page": 1, "items": odd})).notes
    found = [note for note in notes if note.where == "$.items[41]"]
    assert [note.text for note in found] == [
        "only origin of its kind, highest delay: origin: FAO; delay: 900; flight: X041"
    ]


def test_a_row_can_be_opened_by_the_place_of_its_passage() -> None:
    parts = json_rows.passages(source({"page": 1, "items": FLIGHTS}))
    assert parts[0].text == "page: 1"
    assert parts[8].where == "$.items[7]"
    assert parts[8].text == "flight: X007; delay: 0; origin: LIS; note: null"


@pytest.mark.parametrize("number", ["1.10", "12345678901234567890", "1e400", "0.00000001", "-0.0"])
def test_numbers_stand_as_they_were_written(number: str) -> None:
    data = f'[{{"n": {number}}}, {{"n": 2}}, {{"n": 3}}]'.encode()
    notes = json_rows.condense(Source(data)).notes
    assert any(f"n: {number}" == note.text.removeprefix("first: ") for note in notes) or any(
        number in note.text for note in notes
    )
    assert json_rows.passages(Source(data))[0].text == f"n: {number}"
    assert json_tree.passages(Source(b'{"n": ' + number.encode() + b"}"))[0].text == f"n: {number}"


def test_rows_inside_text_of_a_tool_result_are_found_and_placed() -> None:
    inner = json.dumps({"items": FLIGHTS})
    content = source({"content": [{"type": "text", "text": inner}]})
    assert json_rows.sniff(content) > json_tree.sniff(content) > 0
    assert json_rows.passages(content)[3 + 1].where == "$.content[0].text.items[3]"


ODD = [{"id": n, "said": f'é "{n}" \\ \n 😀 {{[('} for n in range(100, 180)]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(json.dumps(ODD, ensure_ascii=False)),
        json.dumps(json.dumps(ODD), ensure_ascii=False),
        json.dumps("Rows below.\n" + json.dumps(ODD) + "\nThat is all."),
        "Rows below.\n" + json.dumps(ODD, indent=1) + "\nThat is all.",
        "Rows below.\n" + json.dumps({"n": 80, "rows": ODD}, indent=1, ensure_ascii=False),
        repr(ODD),
    ],
)
def test_rows_in_any_wrapping_open_by_the_place_that_is_named(text: str) -> None:
    content = Source(text.encode())
    parts = [part for part in json_rows.passages(content) if part.text.startswith("id: ")]
    assert [part.text for part in parts] == [f"id: {n['id']}; said: {n['said']}" for n in ODD]
    for row, part in zip(ODD, parts, strict=True):
        there = expanded(text, {"path": part.where}).content
        assert re.findall(r"""id['"]: (\d+)""", there) == [str(row["id"])]


def test_inside_a_string_with_prose_the_rows_are_named() -> None:
    text = "Rows below.\n" + json.dumps(FLIGHTS)
    content = source({"content": [{"type": "text", "text": text}]})
    assert json_rows.passages(content)[5].where == "$.content[0].text[3]"
    where = {note.where for note in json_rows.condense(content).notes if note.role == "sample"}
    assert "$.content[0].text[0]" in where
    for place in where:
        assert expanded(content.text, {"path": place}).content.startswith('{"flight"')


def test_json_with_a_sentence_around_it_keeps_the_sentence() -> None:
    text = "Found 60 flights:\n" + json.dumps(FLIGHTS, indent=1) + "\nWarning: prices are old."
    content = Source(text.encode())
    assert json_rows.sniff(content) == 0.7
    assert "Warning: prices are old." in _texts("alert", content)
    assert "Found 60 flights:" in [part.text for part in json_rows.passages(content)]


def test_json_lines_are_placed_by_line_also_with_blank_lines_and_a_torn_end() -> None:
    lines = "\n\n".join(json.dumps(row) for row in FLIGHTS) + '\n{"flight": "X0'
    content = Source(lines.encode())
    parts = json_rows.passages(content)
    assert json_rows.sniff(content) == 0.75
    assert parts[0].text == '{"flight": "X0'
    assert parts[3].where == "lines 5-5"
    assert content.lines(5, 5) == json.dumps(FLIGHTS[2]) + "\n"


def test_python_rows_are_read_without_being_run() -> None:
    text = (
        "[{'id': 1, 'rate': Decimal('5.40'), 'at': datetime.datetime(2024, 2, 3, 4, 5), 's': None},"
        " {'id': 2, 'rate': Decimal('1.00'), 'at': datetime.date(2024, 2, 3), 's': \"it's\"},"
        " {'id': 3, 'rate': Decimal('1.00'), 'at': datetime.date(2024, 2, 3), 's': 'a\\nb'}]"
    )
    found = Source(text.encode()).document
    assert found is not None
    assert found.form == "python"
    assert [row["rate"] for row in found.value] == ["5.40", "1.00", "1.00"]
    assert [row["at"] for row in found.value] == ["2024-02-03 04:05", "2024-02-03", "2024-02-03"]
    assert [row["s"] for row in found.value] == [None, "it's", "a\nb"]


@pytest.mark.parametrize(
    ("value", "alert", "where"),
    [
        ({"isError": True, "content": [{"text": "boom 17"}]}, "boom 17", "$"),
        ({"error": {"code": 17, "message": "no table x"}}, "no table x", "$.error"),
        ({"data": {"errors": ["quota 0.10 exceeded"]}}, "quota 0.10 exceeded", "$.data.errors"),
        ({"status": 404, "message": "Not Found"}, "Not Found", "$"),
        ({"jobs": [{"id": 1}, {"id": 2, "status": "failed"}]}, "id: 2", "$.jobs[1]"),
        ({"a": 1, "security_warnings": ["key in log"]}, "key in log", "$.security_warnings"),
    ],
)
def test_errors_and_warnings_are_alerts(value: Any, alert: str, where: str) -> None:
    notes = [note for note in json_tree.condense(source(value)).notes if note.role == "alert"]
    assert [note.where for note in notes] == [where]
    assert alert in notes[0].text


@pytest.mark.parametrize(
    "value",
    [
        {"errors": [], "error": None, "error_count": 0},
        {"status": "ok", "message": "done"},
        {"properties": {"error": {"type": "string", "description": "what failed"}}},
        {"failed": False, "code": 200, "message": "fine"},
    ],
)
def test_absent_errors_are_no_alerts(value: Any) -> None:
    assert _texts("alert", value) == []


def test_more_alerts_than_can_be_listed_are_counted() -> None:
    failed = [{"id": n, "status": "failed"} for n in range(40)]
    assert _texts("alert", failed)[-1] == "28 more errors or warnings"


def test_the_outline_of_a_tree_names_keys_types_and_counts() -> None:
    tree = {
        "version": "1.10",
        "limits": {"cpu": 4, "memory": None},
        "regions": ["eu", "us"],
        "zones": [{"id": 1}, {"id": 2}],
    }
    assert _texts("outline", tree) == [
        "version = 1.10, limits object (2 keys), regions list of 2 texts, zones list of 2 objects",
        "cpu = 4, memory null",
        "id = 1",
    ]


def test_long_values_are_cut_into_passages_that_name_their_object() -> None:
    body = " ".join(f"word{n}" for n in range(900))
    parts = json_rows.passages(
        source([{"id": n, "title": f"T{n}", "body": body} for n in range(3)])
    )
    of_first = [part for part in parts if part.where == "$[0].body"]
    assert len(of_first) > 8
    assert all(part.text.startswith("$[0].body (T0): ") for part in of_first)
    assert all(len(part.text) < 800 for part in parts)


def test_a_series_of_numbers_is_placed_by_rows() -> None:
    parts = json_tree.passages(source({"values": list(range(1000))}))
    assert parts[0].where.startswith("rows 1-")
    last = parts[0].where.split()[1].split("-")[1]
    assert parts[0].text.endswith(f", {int(last) - 1}")
    assert parts[-1].where.endswith("-1000 of $.values")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"7",
        b'"text"',
        b"{}",
        b"[]",
        b"[{}]",
        b"[[], {}, 1]",
        b"[" * 100_000,
        b"[" * 300 + b'{"a": "deep"}' + b"]" * 300,
        b'{"k": ' * 200 + b"1" + b"}" * 200,
        b"{" + b",".join(b'"key%d": %d' % (n, n) for n in range(100_000)) + b"}",
        b"[" + b",".join(b'{"key%d": %d}' % (n, n) for n in range(3_000)) + b"]",
        b'["' + b"x" * 3_000_000 + b'"]',
        b"[" + b"9" * 5000 + b"]",
        b'{"a": "\\ud800"}',
        b"\xff\xfe{",
        b'{"a": "\xd6x"}',
        b'{"a": "\xd6x"}\n' * 3,
        b"[{'a': ",
        b"[{'a'" + b" " * 200_000,
    ],
)
def test_hostile_content_is_survived(data: bytes) -> None:
    for condenser in (json_rows, json_tree):
        _, parts = check(condenser, Source(data))
        assert all(len(part.text) < 3000 for part in parts)


def test_deep_values_are_still_in_passages() -> None:
    content = Source(b"[" * 300 + b'{"a": "deep"}' + b"]" * 300)
    assert "deep" in json_tree.passages(content)[0].text


def test_the_rows_are_the_array_that_holds_most() -> None:
    found = main_rows(source({"tags": [{"t": 1}] * 5, "a": {"b": {"items": FLIGHTS}}}))
    assert found is not None
    assert (found.path, len(found.items)) == ("$.a.b.items", 60)
    assert main_rows(source({"a": FLIGHTS, "b": FLIGHTS, "c": FLIGHTS})) is None
    assert main_rows(source({"a": [1, 2, 3]})) is None


def test_very_many_short_rows_are_passages_together_that_open() -> None:
    objects = [{"a": n} for n in range(17_000)]
    lines = Source("\n".join(map(json.dumps, objects)).encode())
    parts = json_rows.passages(lines)
    assert len(parts) < 3_000
    assert "\n".join(part.text for part in parts).split("\n") == [f"a: {n}" for n in range(17_000)]
    begin, end = 0, len(parts[0].text.split("\n"))
    for part in parts[1:3]:
        begin, end = end, end + len(part.text.split("\n"))
        assert part.text.split("\n") == [f"a: {n}" for n in range(begin, end)]
        assert part.where == f"lines {begin + 1}-{end}"
    array = json_rows.passages(Source(json.dumps(objects).encode()))
    begin, end = (int(number) for number in array[5].where.split()[1].split("-"))
    assert array[5].text.split("\n") == [f"a: {n}" for n in range(begin - 1, end)]


def test_a_list_that_was_cut_is_told_with_its_whole_length() -> None:
    assert type_of([1, 2], 4_711) == "list of 4,711 numbers"
    assert type_of({"a": 1}, 4_711) == "object (4,711 keys)"
    assert type_of([1, 2]) == "list of 2 numbers"


def test_leaves_come_in_the_order_of_the_document() -> None:
    value = {"a": [1, [2, {"b": 3}], 4], "c": "d"}
    assert list(leaves(value)) == [("a", 1), ("a", 2), ("b", 3), ("a", 4), ("c", "d")]
