"""Content made to be slow takes work in proportion to its size: it is content, and may be hostile.

Compared are steps, of the smaller size with the larger, so that a busy machine changes nothing;
work in the square would take sixteen times as many for four times as much.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.document import ContentView, find
from tests.support.steps import is_linear

SMALL = 20_000

ATTACKS: dict[str, Callable[[int], str]] = {
    "open arrays": lambda n: "[" * n,
    "open objects": lambda n: '{"a":' * (n // 5),
    "nested as deep as is read": lambda n: "[" * 400 + "1," * (n // 2) + "1" + "]" * 400,
    "objects inside objects": lambda n: '{"a":' * 300 + '"' + "x" * n + '"' + "}" * 300,
    "an open string": lambda n: '["' + "a" * n,
    "escapes in an open string": lambda n: '["' + '\\"' * (n // 2),
    "one string of quotes": lambda n: '"' + '\\"' * (n // 2) + '"',
    "brackets in one string": lambda n: '"' + "[" * n + '"',
    "keys that repeat": lambda n: "{" + ",".join(['"a":[1]'] * (n // 8)) + "}",
    "lines that are nearly JSON": lambda n: '{"a": 1}\n' * (n // 9) + "x",
    "lines that begin with brackets": lambda n: "\n[" * (n // 2),
    "words before brackets": lambda n: "x: [" * (n // 4),
    "a sentence and open brackets": lambda n: "Data: " + '[{"a":' * (n // 6),
    "JSON cut off": lambda n: '[{"a": 1}' + ', {"a": [1, "b"]}' * (n // 17),
    "strings that are nearly JSON": lambda n: (
        "[" + ",".join(['"' + "[" * (n // 24) + '"'] * 24) + "]"
    ),
    "strings in strings": lambda n: '{"text": "' + '{\\"text\\": ' * (n // 11) + '"}',
    "Python, an open string": lambda n: "[{'a': '" + "\\'" * (n // 2),
    "Python, quotes of both sorts": lambda n: "[{'a': '" + "\"'" * (n // 2),
    "Python, dots in a name": lambda n: "[{'a': " + "a." * (n // 2),
    "Python, open calls": lambda n: "[{'a': " + "f(" * (n // 2),
    "Python, calls nearly closed": lambda n: "[{'a': " + "f('x'," * (n // 6),
    "Python, prefixes of strings": lambda n: "[{'a': " + "b" * n,
    "Python, spaces": lambda n: "[{'a'" + " " * n,
    "Python, tuples in tuples": lambda n: "[{'a': " + "(" * n,
    "Python, many rows": lambda n: "[" + "{'a': 'b', 'c': None}, " * (n // 23) + "]",
    "edges of GraphQL": lambda n: '{"e": [' + ",".join(['{"node": {"a": 1}}'] * (n // 19)) + "]}",
    "a table with an open quote": lambda n: "a,b\n1,2\n3,4\n5,6\n7,8\n" + '"' + "x\n" * (n // 2),
    "separators": lambda n: "a" + "," * n,
    "a header of separators": lambda n: "a," * (n // 2) + "\n" + "b," * (n // 2),
    "a rule that nearly ends": lambda n: "|a|b|\n" + "--|" * (n // 3) + "x\n",
    "a rule of spaces": lambda n: "|a|b|\n|--" + " " * n + "x\n",
    "rules": lambda n: "a | b\n---+---\n" + "---+---\n" * (n // 8),
    "cells": lambda n: "a | b\n---+---\n" + "|" * n,
}


def _work(text: str) -> None:
    reading = ContentView(text.encode())
    assert reading.table is None or reading.table.columns
    if (document := reading.document) is not None:
        assert reading.rows is None or reading.rows.members
        find(document, "$..a")
        find(document, "a.b[0].c")
        for part in range(10):
            document.node_at(len(document.text) * part // 10)


@pytest.mark.parametrize("attack", ATTACKS)
def test_work_grows_no_faster_than_the_content(attack: str) -> None:
    def work(size: int) -> Callable[[], object]:
        text = ATTACKS[attack](size)
        return lambda: _work(text)

    assert is_linear(work, SMALL)
