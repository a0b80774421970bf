"""JSON in any wrapping: found, whole, and each of its places a span of the text."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.document import ContentView, Document, Number, PathMatch, find, read, rows_of
from holdfast.document.python_text import read_python

ROWS = [{"id": n, "name": f"n{n}", "said": 'a "b" [c]'} for n in range(5)]
TEXT = json.dumps(ROWS)


def found(text: str) -> Document:
    document = read(text)
    assert document is not None
    return document


def at(document: Document, path: str) -> str:
    (match,), _ = find(document, path)
    return match.document.text[match.node.start : match.node.end]


@pytest.mark.parametrize(
    ("text", "form", "around"),
    [
        (TEXT, "json", ()),
        (f"\ufeff {TEXT}\n", "json", ()),
        (f"Below is untrusted data: {TEXT}", "embedded", ("Below is untrusted data:",)),
        (f"See [1].\n{TEXT}\nThe end [2].", "embedded", ("See [1].", "The end [2].")),
        (f"```json\n{TEXT}\n```", "embedded", ("```json", "```")),
        (f"<data>{TEXT}</data>", "embedded", ("<data>", "</data>")),
        ("\n".join(map(json.dumps, ROWS)), "lines", ()),
        (json.dumps(TEXT), "embedded", ()),
        (repr(ROWS), "python", ()),
        (f"2 rows:\n{ROWS!r}", "python", ("2 rows:",)),
        (json.dumps(repr(ROWS)), "python", ()),
    ],
)
def test_the_values_and_what_stands_around_them(
    text: str, form: str, around: tuple[str, ...]
) -> None:
    document = found(text)
    assert (document.form, document.around) == (form, around)
    assert document.value == ROWS
    assert at(document, "$[3].id") == "3"
    assert at(document, "$[3].name").strip("'\"") == "n3"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain words",
        "7",
        '"text"',
        "An array like [1, 2] is an example in a text of many more words than numbers, see below.",
        "[" * 100_000,
        '{"a": 1} {"b": 2}',
        "{'a': 1, **rest}",
        "[<object at 0x7f>, 'a']",
        "{'a', 'b'}",
        "[{'a': __import__('os').getcwd()}]",
        "x = [i for i in 'abc']",
    ],
)
def test_what_holds_no_json_is_no_document(text: str) -> None:
    assert read(text) is None


def test_a_string_with_prose_and_json_can_be_gone_through() -> None:
    text = json.dumps({"content": [{"type": "text", "text": f"Found:\n{TEXT}\nBye."}]})
    document = found(text)
    assert document.value["content"][0]["text"] == ROWS
    assert document.around == ("Found:", "Bye.")
    assert at(document, "$.content[0].text[2].name") == '"n2"'


@pytest.mark.parametrize(
    ("value", "path", "count", "inner"),
    [
        (ROWS, "$", 5, ""),
        ([{"results": ROWS}], "$[0].results", 5, ""),
        ({"a": {"b": {"c": {"d": {"e": ROWS}}}}}, "$.a.b.c.d.e", 5, ""),
        ({"data": {"e": {"edges": [{"node": row} for row in ROWS]}}}, "$.data.e.edges", 5, "node"),
        ([{"type": "text", "text": json.dumps({"items": ROWS})}], "$[0].text.items", 5, ""),
        ({"tags": [1, 2, 3], "rows": ROWS}, "$.rows", 5, ""),
        (["a", "b", "c"], "$", 3, ""),
        ([{"a": 1}, {"b": 2}], "$", 2, ""),
    ],
)
def test_the_rows_are_the_array_that_holds_most(
    value: Any, path: str, count: int, inner: str
) -> None:
    document = found(json.dumps(value))
    rows = rows_of(PathMatch(document, document.root))
    assert rows is not None
    assert (rows.node.path, len(rows.members), rows.inner) == (path, count, inner)


@pytest.mark.parametrize("value", [{"a": ROWS, "b": ROWS, "c": ROWS}, {"a": 1, "b": "x"}, {}])
def test_a_value_whose_weight_is_spread_has_no_rows(value: Any) -> None:
    document = found(json.dumps(value))
    assert rows_of(PathMatch(document, document.root)) is None


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.binary(max_size=3)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=20,
)


def as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    return repr(value)[2:-1].encode().decode("unicode_escape") if type(value) is bytes else value


@given(st.lists(values, min_size=1))
@settings(max_examples=150, deadline=None)
def test_what_python_prints_is_read_as_it_was(value: list[Any]) -> None:
    text = repr([{"first": None}, value])
    document = found(text)
    assert document.value[1] == as_json(value)
    for index, inner in enumerate(value):
        assert at(document, f"$[1][{index}]") == repr(inner)


def test_calls_are_numbers_dates_or_texts_and_nothing_is_run() -> None:
    text = "[{'a': Decimal('5.40'), 'b': datetime.date(2024, 2, 3), 'c': X(Y(1), 'z)')}]"
    document = found(text)
    assert document.value == [{"a": Decimal("5.40"), "b": "2024-02-03", "c": "X(Y(1), 'z)')"}] or (
        document.value == [{"a": Number("5.40"), "b": "2024-02-03", "c": "X(Y(1), 'z)')"}]
    )
    assert at(document, "$[0].c") == "X(Y(1), 'z)')"


TABLE = " id | name\n----+------\n  1 | a\n  2 | b\n(2 rows)\n"


@pytest.mark.parametrize(
    ("text", "style", "columns", "count", "line"),
    [
        (TABLE, "drawn", ["id", "name"], 2, 4),
        ("+--+--+\n|a |b |\n+--+--+\n|1 |2 |\n|3 |4 |\n+--+--+", "drawn", ["a", "b"], 2, 5),
        ("| a | b |\n|:--|--:|\n| 1 | 2 |\n| 3 | 4 |", "markdown", ["a", "b"], 2, 4),
        ("a,b\n1,2\n\n3,4\n5,6\n", "separated", ["a", "b"], 3, 4),
        ("\ufeffa\tb\n1\t2\n3\t4\n5\t6\n", "separated", ["a", "b"], 3, 3),
        ("a | b\n1 | 2\n3 | 4\n5 | 6\n", "separated", ["a", "b"], 3, 3),
    ],
)
def test_rows_of_a_table_know_their_lines(
    text: str, style: str, columns: list[str], count: int, line: int
) -> None:
    table = ContentView(text.encode()).table
    assert table is not None
    assert (table.style, table.columns, len(table.rows)) == (style, columns, count)
    assert table.lines(1, 1) == (line, line)


@pytest.mark.parametrize("text", ["{'a':}", "{'a': 1, 'b':}", "[{'a':}]", "{'a'}", "[,]", "(1"])
def test_what_python_would_not_print_is_not_read(text: str) -> None:
    assert read_python(text) is None
