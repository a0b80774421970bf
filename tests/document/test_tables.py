"""Rows of a separated text, and the lines they stand on."""

from __future__ import annotations

import csv

from hypothesis import given
from hypothesis import strategies as st

from holdfast.document.tables import read_table

LINES = ("1,2\n", "x,y\r\n", '"two\n\nlines",2\n', "\n", "\r\n", "\n\n\n", "3,\n", '"a""b",\n')


@given(st.lists(st.sampled_from(LINES), min_size=4, max_size=20))
def test_empty_lines_between_rows_are_passed_over_and_counted(lines: list[str]) -> None:
    text = "name,size\n4,5\n6,7\n8,9\n" + "".join(lines)
    table = read_table(text)
    assert table is not None
    reader = csv.reader(text.splitlines(keepends=True))
    expected = []
    before = 0
    for record in reader:
        if record:
            expected.append((record, (before + 1, reader.line_num)))
        before = reader.line_num
    assert list(table.rows) == [record for record, _ in expected[1:]]
    assert [table.rows[n] for n in range(len(table.rows))] == list(table.rows)
    assert [table.lines(n, n) for n in range(len(table.rows))] == [at for _, at in expected[1:]]
