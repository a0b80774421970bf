"""The fields that a question asks for, by path and by words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.condense.addresses import addressed
from holdfast.condense.fields import fields
from holdfast.condense.pieces import Place, path_of
from holdfast.condense.source import Source

ISSUES = {
    "kind": "list",
    "items": [
        {
            "id": 9000 + n,
            "title": f"Crash number {n} in the parser",
            "closed_at": f"2024-01-{n + 1:02}",
            "user": {"login": f"user{n}", "id": 50 + n, "homepage": f"https://u{n}.example"},
            "labels": [{"id": n, "name": "bug"}, {"id": 100 + n, "name": f"area-{n}"}],
        }
        for n in range(20)
    ],
    "paging": {"nextToken": "abc123", "total.count": 20, "a/b": {"x y": "deep"}},
}


def asked(question: str, value: Any = ISSUES) -> list[tuple[str, str]]:
    return [
        (part.where, part.text) for part in fields(Source(json.dumps(value).encode()), question)
    ]


@pytest.mark.parametrize(
    ("path", "where", "text"),
    [
        ("paging.nextToken", "$.paging.nextToken", "abc123"),
        ("$.items[7].user.id", "$.items[7].user.id", "57"),
        ("items.7.user.id", "$.items[7].user.id", "57"),
        ("/items/7/user/id", "$.items[7].user.id", "57"),
        ('paging["a/b"]["x y"]', '$.paging["a/b"]["x y"]', "deep"),
        ("paging.total.count", '$.paging["total.count"]', "20"),
        ("kind", "$.kind", "list"),
        ("response.data.paging.nextToken", "$.paging.nextToken", "abc123"),
    ],
)
def test_a_path_is_followed_whatever_is_written_around_it(path: str, where: str, text: str) -> None:
    assert asked(f"What does the key `{path}` hold?")[0] == (where, text)
    if " " not in path and path != "kind":
        assert asked(f"value of {path}?")[0] == (where, text)


def test_a_path_may_begin_below_the_top() -> None:
    assert asked("nextToken of a.b", {"x": {"y": {"a": {"b": {"nextToken": "t"}}}}})
    assert asked("y.a.b", {"x": {"y": {"a": {"b": "found"}}}}) == [("$.x.y.a.b", "found")]


@pytest.mark.parametrize(
    ("question", "where", "text"),
    [
        ('What is the `closed_at` of the row whose `title` is "Crash number 7 in the parser"?',
         "$.items[7].closed_at", "2024-01-08"),
        ("Crash number 7 in the parser: closed at?", "$.items[7].closed_at", "2024-01-08"),
        ("look up user12's homepage", "$.items[12].user.homepage", "https://u12.example"),
        ("When was the issue by user12 closed?", "$.items[12].closed_at", "2024-01-13"),
        ("next token?", "$.paging.nextToken", "abc123"),
    ],
)  # fmt: skip
def test_words_lead_through_the_row_to_the_field(question: str, where: str, text: str) -> None:
    found_where, found_text = asked(question)[0]
    assert found_where == where
    assert found_text.startswith(text)


def test_of_two_fields_of_a_name_the_one_nearer_to_the_top_comes_first() -> None:
    deep = {"request": {"trace": {"retries": {"timeout": 5}}}, "timeout": 30}
    assert asked("Which timeout was used?", deep)[0] == ("$.timeout", "30")


def test_the_field_that_led_to_the_row_is_said() -> None:
    assert asked("closed_at of user12")[0][1] == "2024-01-13 (login: user12)"


@pytest.mark.parametrize("question", ["", "?", "Why is the sky blue?", "Which bugs are there?"])
def test_a_question_that_names_no_field_gets_none(question: str) -> None:
    assert asked(question) == []


def test_fields_of_json_lines_are_named_by_their_path() -> None:
    text = "\n".join(json.dumps({"name": f"n{n}", "city": f"c{n}"}) for n in range(9))
    found = fields(Source(text.encode()), "city of n4")
    assert [(part.where, part.text) for part in found] == [("$[4].city", "c4 (name: n4)")]


def test_what_is_no_json_has_no_fields() -> None:
    assert fields(Source(b"just words, a.b and more " * 100), "a.b") == []


def test_nesting_of_any_depth_is_survived() -> None:
    depth = 400
    text = '{"key":[' * depth + '"deepest"' + "]}" * depth
    assert fields(Source(text.encode()), "deepest key?")[0].text == "deepest"


keys = st.text("ab.c/ []'x0", min_size=1, max_size=4)
trees = st.recursive(
    st.integers() | st.text(max_size=9) | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=25,
)


def places(value: Any, place: Place = ()) -> list[Place]:
    found = [place] if place else []
    if isinstance(value, (dict, list)):
        for step, child in value.items() if isinstance(value, dict) else enumerate(value):
            found += places(child, (place, step, value))
    return found


plain = st.recursive(
    st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcX_", min_size=1, max_size=4), inner, max_size=4)
    ),
    max_leaves=25,
)


@given(plain, st.data())
def test_every_value_is_found_by_its_path(value: Any, data: st.DataObject) -> None:
    every = places(value)
    if not every:
        return
    place = data.draw(st.sampled_from(every))
    assert path_of(place) in [path_of(one) for one in addressed(value, f"`{path_of(place)}`")]


@given(trees, st.text("`ab.c/ []'x0\"$?", max_size=30))
def test_any_question_about_any_value_is_survived(value: Any, question: str) -> None:
    source = Source(json.dumps(value).encode())
    found = fields(source, question)
    assert len(found) <= 6
    assert fields(Source(source.data), question) == found
