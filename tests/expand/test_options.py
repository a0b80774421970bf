"""Options as models write them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ExpandError
from holdfast.expand import ExpandOptions, Slice


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("40-120", (40, 120)),
        ("40:120", (40, 120)),
        ("40..120", (40, 120)),
        ("40 to 120", (40, 120)),
        ("L40-L120", (40, 120)),
        ("lines 40-120", (40, 120)),
        ([40, 120], (40, 120)),
        (["40", "120"], (40, 120)),
        ({"start": 40, "end": "120"}, (40, 120)),
        ({"from": 40, "to": 120}, (40, 120)),
        ("40", (40, 40)),
        (40, (40, 40)),
        ([40], (40, 40)),
        ("40-", (40, None)),
        ({"start": 40}, (40, None)),
        ("-20", (-20, None)),
        (-20, (-20, None)),
        ("0-9", (1, 9)),
    ],
)
def test_lines_are_understood_in_every_usual_form(
    written: object, meant: tuple[int, int | None]
) -> None:
    options = ExpandOptions.parse({"lines": written})
    assert options.lines == meant
    assert ExpandOptions.parse(options.to_dict()) == options


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (None, ExpandOptions()),
        ({}, ExpandOptions()),
        ("", ExpandOptions()),
        ('{"page": "2"}', ExpandOptions(page=2)),
        ({"page": 0, "query": None, "fields": [], "path": ""}, ExpandOptions()),
        ({"page": 2.0}, ExpandOptions(page=2)),
        ({"max_tokens": "2,000"}, ExpandOptions(max_tokens=2000)),
        ({"max_tokens": 1_000_000}, ExpandOptions(max_tokens=8000)),
        ({"fields": "id, owner.login"}, ExpandOptions(fields=("id", "owner.login"))),
        ({"slice": {"offset": "5", "limit": 2}}, ExpandOptions(slice=Slice(5, 2))),
        ({"slice": [5, 2]}, ExpandOptions(slice=Slice(5, 2))),
        ({"offset": 5, "limit": 2}, ExpandOptions(slice=Slice(5, 2))),
        ({"limit": 2}, ExpandOptions(slice=Slice(0, 2))),
        ({"around": 7}, ExpandOptions(around="7")),
        (ExpandOptions(page=3), ExpandOptions(page=3)),
    ],
)
def test_what_is_plain_is_understood(written: object, meant: ExpandOptions) -> None:
    assert ExpandOptions.parse(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        {"lines": "120-40"},
        {"lines": "some"},
        {"lines": {"a": 1}},
        {"lines": [1, 2, 3]},
        {"lines": True},
        {"page": -1},
        {"page": "two"},
        {"page": 1.5},
        {"max_tokens": 10},
        {"fields": [1]},
        {"fields": 7},
        {"slice": {"offset": -1}},
        {"slice": {"limit": 0}},
        {"slice": "all"},
        {"path": 7},
        {"pattern": ["a"]},
        {"around": []} | {"around": {"a": 1}},
        [1],
        7,
        "no JSON",
    ],
)
def test_what_is_not_understood_is_refused(written: object) -> None:
    with pytest.raises(ExpandError):
        ExpandOptions.parse(written)


def test_an_unknown_option_is_refused_with_the_names_of_the_known_ones() -> None:
    with pytest.raises(ExpandError, match="lines, page, path, fields") as caught:
        ExpandOptions.parse({"secret words": 1})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "written",
    [
        {"lines": "1-2", "pattern": "a"},
        {"query": "a", "around": 3},
        {"path": "$", "query": "a"},
        {"slice": {"limit": 1}, "limit": 2},
        {"around": 3, "page": 2},
        {"lines": "1-2", "offset": 3},
    ],
)
def test_contradictions_are_refused_by_name(written: dict[str, Any]) -> None:
    with pytest.raises(ExpandError, match="contradict") as caught:
        ExpandOptions.parse(written)
    assert all(name in caught.value.what for name in written if name != "offset")


WORDS = st.sampled_from(["40-", "1e9", "-", "x", "$..a", "9" * 400, "\ud800", "٣"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["start", "end", "offset", "limit", "x"]), inner)
    ),
    max_leaves=4,
)
NAMES = st.sampled_from(
    "lines page path fields slice pattern query around max_tokens offset limit x".split()
)


@given(VALUES | st.dictionaries(NAMES, VALUES, max_size=3))
def test_any_value_is_read_or_refused_and_what_is_read_can_be_written(value: object) -> None:
    try:
        options = ExpandOptions.parse(value)
    except ExpandError:
        return
    assert ExpandOptions.parse(options.to_dict()) == options
