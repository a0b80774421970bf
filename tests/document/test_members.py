"""Members are spans of the text: each holds exactly its value, however the JSON is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.document import ContentView
from tests.support.json_values import scalars

single = scalars(st.text(r'a"\[,]{}中 '))
flat = single | st.lists(single, max_size=4) | st.dictionaries(st.text('k"]}'), single, max_size=3)
values = st.recursive(flat, lambda inner: st.lists(inner, max_size=5), max_leaves=20)
spaces = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n\t", " : ")])


@given(st.lists(values), spaces, st.none() | st.integers(0, 3), st.booleans())
def test_the_elements_of_an_array_are_found_where_they_stand(
    items: list[Any], separators: tuple[str, str], indent: int | None, is_ascii: bool
) -> None:
    text = json.dumps(items, separators=separators, indent=indent, ensure_ascii=is_ascii)
    document = ContentView(f" {text}\n".encode()).document
    assert document is not None
    members = document.members(document.root.start, document.root.end)
    assert [json.loads(document.text[m.value : m.end]) for m in members] == items
    assert [member.name for member in members] == list(range(len(items)))
    assert list(members)[1:4] == members[1:4]
    assert list(members)[::-1] == list(reversed(members))
    if items:
        assert members[-1] == list(members)[-1]


def test_a_place_behind_the_last_element_is_none() -> None:
    document = ContentView(b"[1, 2, 3]").document
    assert document is not None
    members = document.members(document.root.start, document.root.end)
    for index in (3, -4):
        with pytest.raises(IndexError):
            members[index]
