"""Content made to be slow takes time in proportion to its size: it is content, and may be hostile.

Compared is processor time, of the smaller size with the larger, so that a busy machine changes
nothing; work in the square would take sixteen times as long for four times as much.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from holdfast.document import Reading, find

SMALL, LARGE = 50_000, 200_000
MOST = 9.0
"""Four times would be exact; twice as much is left for memory that grows."""
TOO_FAST = 0.02
"""Seconds of the processor below which a clock tells nothing."""

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
    reading = Reading(text.encode())
    assert reading.table is None or reading.table.columns
    if (document := reading.document) is not None:
        assert reading.rows is None or reading.rows.members
        find(document, "$..a")
        find(document, "a.b[0].c")
        for part in range(10):
            document.node_at(len(document.text) * part // 10)


def _seconds(text: str) -> float:
    begin = time.thread_time()
    _work(text)
    return time.thread_time() - begin


@pytest.mark.parametrize("attack", ATTACKS)
def test_time_grows_no_faster_than_the_content(attack: str) -> None:
    small = min(_seconds(ATTACKS[attack](SMALL)) for _ in range(2))
    large: list[float] = []
    for _ in range(3):  # as quick once is as quick: only noise makes a run of the same work longer
        large.append(_seconds(ATTACKS[attack](LARGE)))
        if large[-1] < max(TOO_FAST, MOST * small):
            return
    pytest.fail(f"{small} seconds, and of four times as much {large}")
