"""Places in JSON, verbatim."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.document import Document, find, step
from holdfast.document import read as read_document
from holdfast.errors import ExpandError
from tests.support.json_values import scalars

TEXT = (
    '{"a" : {"b":[1.10, {"x y":2,"k.l":1e5}], "0":"z"},'
    ' "content":[{"type":"text","text":"{\\"items\\": [{\\"id\\": 1}, {\\"id\\": 2.0}]}"}],'
    ' "id" :9, "twice":1, "twice":2, "é": [] }'
)


def read(text: str) -> Document:
    document = read_document(text)
    assert document is not None
    return document


def found(path: str, text: str = TEXT) -> list[str]:
    matches, _ = find(read(text), path)
    return [match.document.text[match.node.start : match.node.end] for match in matches]


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$.a.b[0]", ["1.10"]),
        ("a.b.0", ["1.10"]),
        ("/a/b/0", ["1.10"]),
        (".a.b[0]", ["1.10"]),
        ("$['a']['b'][0]", ["1.10"]),
        ('a.b[1]["x y"]', ["2"]),
        ("a.b[1].x y", ["2"]),
        ("/a/b/1/x y", ["2"]),
        ("a.b[-1]['k.l']", ["1e5"]),
        ("a.b[-1].k.l", ["1e5"]),
        ("a.b[*]", ["1.10", '{"x y":2,"k.l":1e5}']),
        ("a.b.*", ["1.10", '{"x y":2,"k.l":1e5}']),
        ("a.b[0:1]", ["1.10"]),
        ("a.b[1:]", ['{"x y":2,"k.l":1e5}']),
        ("a.0", ['"z"']),
        ("a[0]", ['"z"']),
        ("twice", ["2"]),
        ("é", ["[]"]),
        ("$..id", ["9"]),
        ("content[0].text.items[*].id", ["1", "2.0"]),
        ("content[0].text..id", ["1", "2.0"]),
        ("", [TEXT]),
        ("$", [TEXT]),
    ],
)
def test_a_path_gives_values_as_they_are_written(path: str, values: list[str]) -> None:
    assert found(path) == values


@pytest.mark.parametrize(
    ("path", "at", "there"),
    [
        ("a.c", "$.a", "keys b, 0"),
        ("a.b.x", "$.a.b", "array of 2 elements"),
        ("a.b[7]", "$.a.b", "[0] to [1]"),
        ("id.x", "$.id", "without parts"),
        ("content[0].text.rows", "$.content[0].text", "keys items"),
        ("..nothing", "$", "keys a, content"),
        ("é[0]", '$["é"]', "empty array"),
    ],
)
def test_a_broken_path_says_where_and_what_is_there(path: str, at: str, there: str) -> None:
    matches, broken = find(read(TEXT), path)
    assert not matches
    assert broken is not None
    assert broken.at == at
    assert there in broken.there


@pytest.mark.parametrize("path", ["a[", "a[?(@.x)]", "a[1,2]", "a" * 3000, "a." * 500, '["\\u"]'])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ExpandError, match="path"):
        find(read(TEXT), path)


SCALARS = scalars(st.text(max_size=9))
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner, max_size=5)
    ),
    max_leaves=25,
)


def places(value: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    yield path, value
    if not isinstance(value, dict | list):
        return
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from places(inner, step(path, name))


@settings(max_examples=40, deadline=None)
@given(st.lists(VALUES) | st.dictionaries(st.text(max_size=9), VALUES), st.booleans())
def test_every_place_of_any_json_is_found_by_its_path(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=1 if ascii_only else None)
    document = read(text)
    for path, inner in places(value):
        matches, _ = find(document, path)
        assert len(matches) == 1
        match = matches[0]
        assert match.node.path == path
        assert json.loads(match.document.text[match.node.start : match.node.end]) == inner


@settings(max_examples=40, deadline=None)
@given(st.lists(VALUES) | st.dictionaries(st.text(max_size=9), VALUES))
def test_every_place_is_known_by_any_of_its_characters(value: Any) -> None:
    document = read(json.dumps(value))
    for path, _ in places(value):
        node = find(document, path)[0][0].node
        if document.kind(node.start, node.end) in ("string", "scalar"):
            assert document.node_at(node.start).path == path
            assert document.node_at(node.end - 1).path == path


@given(st.lists(st.tuples(st.sampled_from("abc"), SCALARS | st.just([{}, "}"])), max_size=6))
def test_keys_that_repeat_are_all_seen(pairs: list[tuple[str, Any]]) -> None:
    inside = " , ".join(f"{json.dumps(name)} : {json.dumps(value)}" for name, value in pairs)
    document = read(f"{{ {inside} }}")
    members = document.members(document.root.start, document.root.end)
    seen = [(m.name, json.loads(document.text[m.value : m.end])) for m in members]
    assert seen == pairs


@pytest.mark.parametrize("text", ["", "x", "[1", "1", '"a"', "[" * 100_000, '{"a": 1} {"b": 2}'])
def test_what_is_no_container_is_no_document(text: str) -> None:
    assert read_document(text) is None
