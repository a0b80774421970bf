"""Separated values."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.condense import csv_table
from holdfast.condense.kinds import kind_of
from holdfast.condense.source import Source
from tests.condense.structured import check

WEATHER = [["date", "rain", "place"]] + [
    [f"2024-01-{n:02}", f"{n}.10", "Porto" if n % 2 else "Faro"] for n in range(1, 29)
]


def written(records: list[list[str]], separator: str = ",") -> Source:
    out = io.StringIO()
    csv.writer(out, delimiter=separator).writerows(records)
    return Source(out.getvalue().encode())


@pytest.mark.parametrize("separator", [",", "\t", ";", "|"])
def test_columns_and_telling_rows_of_a_table(separator: str) -> None:
    content = written(WEATHER, separator)
    assert kind_of(content) == "csv"
    said, parts = check(csv_table, content)
    assert said.title.endswith("28 rows of 3 columns")
    assert said.notes[0].text == (
        "date date 2024-01-01 to 2024-01-28; rain number 1.10 to 28.10; "
        "place text Porto (14), Faro (14)"
    )
    assert parts[4].where == "rows 5-5"
    assert parts[4].text == "date: 2024-01-05; rain: 5.10; place: Porto"


def test_a_table_of_markdown_is_a_table_and_its_rule_is_no_row() -> None:
    rows = "".join(f"| n{n} | {n}.10 |\n" for n in range(9))
    content = Source(f"| name | rate |\n|:-----|-----:|\n{rows}".encode())
    assert kind_of(content) == "csv"
    said, parts = check(csv_table, content)
    assert said.title == "Table: 9 rows of 2 columns"
    assert (parts[8].text, parts[8].where) == ("name: n8; rate: 8.10", "rows 9-9")


def test_values_with_separators_quotes_and_lines_stay_whole() -> None:
    records = [["name", "said"], *[[f"n{n}", f'a, "b"\nc {n}'] for n in range(5)]]
    content = written(records)
    assert csv_table.passages(content)[3].text == 'name: n3; said: a, "b"\nc 3'


def test_long_and_short_rows_are_counted_and_lose_nothing() -> None:
    content = written([*WEATHER, ["2024-02-01"], ["2024-02-02", "1", "Faro", "extra"]])
    said, parts = check(csv_table, content)
    assert "2 rows are longer or shorter than the header" in [note.text for note in said.notes]
    assert parts[-2].text == "date: 2024-02-01"
    assert parts[-1].text.endswith("; extra")


@pytest.mark.parametrize(
    "text",
    [
        "Dear Ann, how are you,\nI am well, thank you.\nCome soon, please.\nYours, Bo\nPS, bye",
        "2024-01-01 10:00:00,123 INFO start\n" * 9,
        "# Title\n\nWords.\n\n| a | b |\n|---|---|\n" + "| 1 | 2 |\n" + "More words.\n" * 9,
        "a,b\n1,2\n",
        "",
        "just one line",
        "x = f(a, b)\n\ny = 3\nz = g(a)\n",
    ],
)
def test_what_only_has_commas_is_no_table(text: str) -> None:
    assert csv_table.sniff(Source(text.encode())) == 0


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


@given(st.lists(st.lists(cells, min_size=2, max_size=3), min_size=4, max_size=8))
@settings(max_examples=80, deadline=None)
def test_every_value_is_in_a_passage(rows: list[list[str]]) -> None:
    content = written([["alpha", "beta", "gamma"][: len(rows[0])], *rows])
    _, parts = check(csv_table, content)
    if csv_table.sniff(content):
        whole = "\0".join(part.text for part in parts)
        read = list(csv.reader(io.StringIO(content.text, newline="")))
        assert all(cell.strip() in whole for row in read[1:] for cell in row)


@given(st.text(max_size=200) | st.text(",;\t|\"'\nab1 ", max_size=200))
@settings(max_examples=80, deadline=None)
def test_any_text_is_survived(text: str) -> None:
    check(csv_table, Source(text.encode("utf-8", "replace")))


def test_a_long_row_among_short_ones_is_in_the_passages() -> None:
    long = " ".join(f"word{n}" for n in range(400))
    text = "id,note\n1,short\n2," + long + "\n3,last\n"
    passages = csv_table.passages(Source(text.encode()))
    read = "\n".join(passage.text for passage in passages)
    assert [word for word in (*long.split(), "short", "last") if word not in read.split()] == []
