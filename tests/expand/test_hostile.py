"""Whatever the content and the options: an expansion within its tokens, or an ExpandError."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import ExpandError
from holdfast.expand import ExpandOptions
from tests.expand.made import CSV, JSON, LOG, MCP, opened
from tests.support.steps import is_linear

CONTENTS = st.sampled_from(
    [LOG, JSON, CSV, MCP, "x", "\n", "\0\n\0", '{"a": 1, "a": [{}]}', "[]", '"']
)
WORDS = st.sampled_from(
    [
        "$", "$..*", "items[*].id", "items[-1]", "/items/0", "a.b", "lines 3-2", "rows 0-0 of $",
        "row 2", "paragraph 2", "characters 5-2", "characters 9999999-2", "worker-5", "id", "name",
        "(?i)N5", ".*", "^", "ERROR", "section: X (lines 1-1)", "$.items[3].owner", "[", "🦊",
        "rows 1-2 of $.items[0]", "rows 1-2 of $.total", "rows 1-2 of [", "lines 999999999999-1",
    ]
)  # fmt: skip
OPTIONS = st.one_of(
    st.fixed_dictionaries(
        {"path": WORDS}, optional={"fields": st.lists(WORDS), "offset": st.integers(0, 900)}
    ),
    st.fixed_dictionaries(
        {"fields": st.lists(WORDS, min_size=1)}, optional={"limit": st.integers(1, 9)}
    ),
    st.fixed_dictionaries({"offset": st.integers(0, 2000)}, optional={"limit": st.integers(1, 9)}),
    *(
        st.fixed_dictionaries({name: WORDS | st.text(max_size=12)})
        for name in ("pattern", "query", "around", "path")
    ),
    st.fixed_dictionaries(
        {"lines": st.tuples(st.integers(0, 2000), st.integers(0, 2000)).map(list)}
    ),
)


@given(
    CONTENTS | st.text(max_size=200),
    OPTIONS,
    st.integers(100, 500),
    st.sampled_from(["", "csv", "log", "x"]),
)
@settings(max_examples=250, deadline=None)
def test_any_options_on_any_content(
    data: str, options: dict[str, object], tokens: int, kind: str
) -> None:
    try:
        wanted = ExpandOptions.parse(options | {"max_tokens": tokens})
        opened(data, wanted, kind)
    except ExpandError:
        pass


DEEP = "[" * 5000 + "]" * 5000
ALMOST_TOO_DEEP = '{"a":' * 900 + "1" + "}" * 900


@pytest.mark.parametrize(
    "data", [DEEP, ALMOST_TOO_DEEP, DEEP.replace("[", '{"a":[').replace("]", "]}")]
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"path": "a.a.a"},
        {"path": "..a"},
        {"fields": ["a"]},
        {"pattern": "1"},
        {"query": "a"},
        {"around": "a"},
    ],
)
def test_deep_json(data: str, options: dict[str, object]) -> None:
    opened(data, options)


def gives_up(text: str, pattern: str) -> None:
    """Search for a pattern without a match; the answer has the range that was searched."""
    assert "nothing of the first" in opened(text, {"pattern": pattern}).reason


@pytest.mark.parametrize("pattern", [r"\b", "z*", r"(?:z|\B)"])
def test_a_pattern_that_matches_nothing_everywhere_is_given_up(pattern: str) -> None:
    """`\\b` took 28 seconds for 10 MB: an empty match at each word, and none of them counted."""

    def work(size: int) -> Callable[[], object]:
        return partial(gives_up, "ab é " * (size // 6), pattern)

    assert is_linear(work, 500_000)


def test_what_stands_before_too_many_empty_matches_is_shown() -> None:
    shown = opened("xx " + "ab " * 40_000, {"pattern": "x*"})
    assert "xx" in shown.content
    assert "of the first" in shown.text


@pytest.mark.slow
def test_a_pattern_with_too_many_states_is_given_up() -> None:
    """RE2 falls back to its slow engine: this would take four minutes for 32 MB."""
    letters = random.Random(1).choices("ab", k=1_500_000)
    gives_up("".join(letters), "a[ab]{900}c")


@pytest.mark.parametrize("pattern", [r"(?:\pL|\pN){200}_", r"(?:\pL{30}){30}"])
def test_a_pattern_that_unfolds_to_a_huge_program_is_refused(pattern: str) -> None:
    with pytest.raises(ExpandError, match=r"options\.pattern"):
        opened("some text", {"pattern": pattern})


def test_matches_across_windows_are_found_once() -> None:
    """The second window begins at line 114,688, the first ends at line 131,072."""
    text = "".join(f"{n:07}\n" for n in range(200_000))
    shown = opened(text, {"pattern": r"0(?:114687|131071|199998)\n\d+\n"})
    assert "(3 in all)" in shown.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    ["x" * 20_000_000, json.dumps(["word " * 2_000_000, "😀" * 1_000_000], ensure_ascii=False)],
    ids=["letters", "json"],
)
@pytest.mark.parametrize(
    "options", [{}, {"lines": "1"}, {"offset": 1}, {"pattern": "x{9}$"}, {"around": 1}]
)
def test_a_line_of_many_megabytes(data: str, options: dict[str, object]) -> None:
    opened(data, options)
