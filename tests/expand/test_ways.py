"""The example in a citation has existing values, and only those that may be shown."""

from __future__ import annotations

import json

import pytest

from holdfast.document import ContentView
from holdfast.expand import ExpandOptions, Slice, parse_call
from holdfast.expand.tool import call_of, example, find_of, is_example
from tests.expand.made import REF


def offered(value: object, visible: str = "", tokens: int = 1_000) -> str:
    return example(ContentView(json.dumps(value).encode()), tokens, visible)


@pytest.mark.parametrize(
    ("rows", "find"),
    [(2, "row 2"), (7, "rows 4-7"), (19, "rows 10-14"), (20, "rows 11-15"), (400, "rows 11-15")],
)
def test_rows_from_the_middle_of_few_and_from_the_eleventh_of_many(rows: int, find: str) -> None:
    assert offered([{"id": n} for n in range(rows)]) == find


def test_the_largest_value_is_offered_by_its_path_if_its_name_is_seen() -> None:
    value = {"small": 1, "large": "x" * 400}
    assert offered(value, visible="small large") == "$.large"
    assert offered(value, visible="small") == ""
    assert offered(value, visible="small", tokens=9_000) == "page 2"
    assert offered({"n" * 80: "x" * 400}, visible="n" * 80) == ""


def test_lines_that_the_content_has() -> None:
    assert example(ContentView(b"line\n" * 500), 1_000, "") == "lines 40-80"
    assert example(ContentView(b"line\n" * 9), 1_000, "") == "lines 5-9"
    assert example(ContentView(b"word " * 9), 1_000, "") == ""


def test_an_example_is_known_again_whatever_fields_are_beside_it() -> None:
    rows = ContentView(json.dumps([{"id": n} for n in range(40)]).encode())
    assert is_example(ExpandOptions(slice=Slice(10, 5)), rows)
    assert is_example(ExpandOptions(slice=Slice(10, 5), fields=("id",)), rows)
    assert not is_example(ExpandOptions(slice=Slice(10, 6)), rows)
    assert not is_example(ExpandOptions(query="rows 11-15"), rows)


@pytest.mark.parametrize(
    "options",
    [
        ExpandOptions(lines=(40, 80)),
        ExpandOptions(lines=(40, None)),
        ExpandOptions(lines=(-40, None)),
        ExpandOptions(slice=Slice(10, 5)),
        ExpandOptions(slice=Slice(10, None)),
        ExpandOptions(slice=Slice(10, 5), path="$.items"),
        ExpandOptions(path='$["two words"].name'),
        ExpandOptions(pattern="time.*out"),
        ExpandOptions(query="why did it fail?"),
    ],
)
@pytest.mark.parametrize("page", [1, 3])
def test_options_and_their_find_mean_the_same(options: ExpandOptions, page: int) -> None:
    find = find_of(options)
    assert find
    given = f"{find}, page {page}" if page > 1 else find
    _, read = parse_call({"ref": REF, "find": given})
    names = ("lines", "path", "slice", "pattern", "query")
    assert [getattr(read, name) for name in names] == [getattr(options, name) for name in names]
    assert read.page == page


def test_what_no_find_says_has_none() -> None:
    assert find_of(ExpandOptions(fields=("id",))) is None
    assert find_of(ExpandOptions(query="why " * 100)) is None
    assert find_of(ExpandOptions(pattern='["]')) is None


def test_a_call_is_written_as_json_values() -> None:
    assert call_of("expand_ref", REF) == f'expand_ref("{REF}")'
    assert call_of("x", REF, '$["a b"]') == f'x("{REF}", "$[\\"a b\\"]")'
