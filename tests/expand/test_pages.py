"""Pages cover everything, repeat nothing, and never exceed their tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.document import ContentView
from holdfast.errors import ExpandError
from holdfast.expand import ExpandOptions, expand
from holdfast.expand import pages as pages_module
from tests.expand.made import CSV, JSON, LOG, REF, opened, pages
from tests.support.json_values import scalars

TEXTS = st.one_of(
    st.text(max_size=4000),
    st.lists(st.text(max_size=400), max_size=30).map("\n".join),
    st.text(st.sampled_from("a \n\r\t🏳️‍🌈é漢字\u0301\u2028<|endoftext|>"), max_size=3000),
    st.builds(
        str.__mul__,
        st.sampled_from(["a", "🦊", "\n", " ", "ab\n", "\\", "字"]),
        st.integers(0, 3000),
    ),
)
SCALARS = scalars(st.text(max_size=60))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=60,
)
TOKENS = st.integers(100, 400)


@settings(max_examples=60, deadline=None)
@given(TEXTS.filter(bool), TOKENS, st.sampled_from(["", "csv", "log"]))
def test_the_pages_of_any_text_are_the_text(text: str, tokens: int, kind: str) -> None:
    made = pages(text, {"max_tokens": tokens}, kind)
    assert "".join(page.content for page in made) == text


@settings(max_examples=60, deadline=None)
@given(VALUES, TOKENS, st.sampled_from([None, 2]), st.booleans())
def test_the_pages_of_any_json_are_its_text(
    value: object, tokens: int, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps({"a": value, "rows": [value] * 7}, indent=indent, ensure_ascii=ascii_only)
    made = pages(text, {"max_tokens": tokens}, "json_tree")
    assert "".join(page.content for page in made) == text


@settings(max_examples=40, deadline=None)
@given(st.binary(min_size=1, max_size=3000), TOKENS)
def test_the_pages_of_any_bytes_are_what_can_be_read_of_them(data: bytes, tokens: int) -> None:
    made = pages(data, {"max_tokens": tokens})
    assert "".join(page.content for page in made) == data.decode("utf-8", "replace")
    assert ("not UTF-8" in made[0].text) == (data.decode("utf-8", "replace").encode() != data)


@pytest.mark.parametrize("data", [LOG, JSON, CSV, "x" * 20_000, "word " * 5000])
@pytest.mark.parametrize("tokens", [150, 1000])
def test_pages_are_full(data: str, tokens: int) -> None:
    made = pages(data, {"max_tokens": tokens})
    assert "".join(page.content for page in made) == data
    room = tokens - 80
    assert all(page.tokens > room * 0.5 for page in made[:-1])


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (LOG, {"lines": "100-400"}),
        (LOG, {"offset": 10, "limit": 200}),
        (CSV, {"offset": 10, "limit": 200}),
        (JSON, {"path": "$.items"}),
        (JSON, {"offset": 3, "limit": 100}),
        (JSON, {"path": "$.items[5:200]"}),
        (JSON, {"fields": ["id", "name"]}),
        (LOG, {"pattern": "worker-1"}),
        (LOG, {"query": "which worker has an error"}),
    ],
)
def test_pages_of_a_part_are_the_part(data: str, options: dict[str, Any]) -> None:
    kind = "csv" if data is CSV else "log"
    whole = [page.content for page in pages(data, options | {"max_tokens": 8000}, kind)]
    small = [page.content for page in pages(data, options | {"max_tokens": 200}, kind)]
    assert len(small) > len(whole)
    assert "".join(small) == "".join(whole)


def test_a_page_is_the_same_whether_or_not_the_pages_before_were_read() -> None:
    after_others = pages(LOG, {"max_tokens": 400})[5]
    pages_module._known.clear()
    assert opened(LOG, {"max_tokens": 400, "page": 6}) == after_others


def test_json_is_cut_between_rows() -> None:
    rows = ContentView(JSON.encode()).rows
    assert rows is not None
    starts = {member.start for member in rows.members}
    ends, at = set(), 0
    for page in pages(JSON, {"max_tokens": 500})[:-1]:
        at += len(page.content)
        ends.add(at)
    assert ends <= starts
    assert len(ends) > 20


def test_a_row_too_big_for_a_page_is_cut_between_its_members() -> None:
    big = json.dumps([{f"key{n}": "value " * 10 for n in range(200)}] * 2)
    for page in pages(big, {"max_tokens": 400})[1:-1]:
        assert page.content.lstrip("[{ ").startswith('"key')


def test_a_page_says_what_it_is_what_remains_and_how_to_go_on() -> None:
    page = opened(LOG, {"page": 2, "max_tokens": 300})
    assert page.text.startswith(f"[{REF} lines ")
    assert page.text.splitlines()[0].endswith(" of 1,000]")
    assert f"{page.remaining:,} lines remain" in page.text.splitlines()[-1]
    assert "page 3" in page.text.splitlines()[-1]
    assert page.next == {"page": 3, "max_tokens": 300}


def test_a_page_behind_the_last_is_a_miss_that_says_how_many_there_are() -> None:
    page = opened(LOG, {"page": 99_999, "max_tokens": 8000})
    assert "pages" in page.reason
    assert not page.content


def test_content_that_fits_comes_whole_and_alone() -> None:
    made = opened("one\ntwo\n", None)
    assert made.text == f"[{REF} lines 1-2 of 2]\n```\none\ntwo\n```"
    assert made.complete


def test_empty_content_is_called_empty() -> None:
    assert opened("").reason == "this content is empty"


def test_a_note_stands_in_the_first_line_and_is_kept_short() -> None:
    assert "stale" in opened(LOG, note="stale").text.splitlines()[0]
    opened(LOG, {"max_tokens": 200}, note="🦊 long note " * 500)


def test_where_no_character_fits_an_error_says_so() -> None:
    with pytest.raises(ExpandError, match="fits"):
        expand(REF, b"text", "", ExpandOptions(), count=lambda _: 10**9)
