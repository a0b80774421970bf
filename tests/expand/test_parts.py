"""Lines, rows, paths, fields, hits, answers and surroundings: exactly the requested part."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.condense.places import short_place
from holdfast.errors import ExpandError
from tests.expand.made import CSV, JSON, LOG, MCP, ROWS, opened

LINES = LOG.splitlines(keepends=True)


@given(st.integers(1, 1000), st.integers(0, 8))
@settings(max_examples=30, deadline=None)
def test_lines_are_the_lines(first: int, more: int) -> None:
    made = opened(LOG, {"lines": [first, first + more]})
    assert made.content == "".join(LINES[first - 1 : first + more])
    assert made.where == short_place(f"lines {first}-{min(1000, first + more)}")


@pytest.mark.parametrize(
    ("options", "where", "content"),
    [
        ({"lines": "-2"}, "lines 999-1000", "".join(LINES[-2:])),
        ({"lines": "998-5000"}, "lines 998-1000", "".join(LINES[-3:])),
        ({"offset": 4, "limit": 2}, "lines 5-6", "".join(LINES[4:6])),
    ],
)
def test_parts_of_a_log(options: dict[str, Any], where: str, content: str) -> None:
    made = opened(LOG, options)
    assert (made.where, made.content) == (where, content)


@pytest.mark.parametrize(
    ("options", "where", "content"),
    [
        ({"path": "$.items[7].price"}, "$.items[7].price", "7.50"),
        ({"path": "total"}, "$.total", "400"),
        ({"path": "items[7].owner"}, "$.items[7].owner", '{"login": "u7"}'),
        ({"path": "items[7]", "fields": ["price", "id"]}, "$.items[7]", '{"price": 7.50, "id": 7}'),
        ({"path": "items[7].owner.login", "slice": [1, 2]}, "characters", "u7"),
        ({"fields": ["total"]}, "$", '{"total": 400}'),
        (
            {"fields": ["price", "owner.login", "none"], "offset": 7, "limit": 2},
            "rows 8-9 of $.items",
            '{"price": 7.50, "owner.login": "u7"}\n{"price": 8.50, "owner.login": "u8"}',
        ),
        (
            {"path": "items[1:3].id"},
            "$.items[1].id; $.items[2].id",
            "- $.items[1].id: 1\n- $.items[2].id: 2",
        ),
        ({"path": "items[1:3]", "fields": "id"}, "matches 1-2", '{"id": 1}\n{"id": 2}'),
    ],
)
def test_parts_of_json_are_written_as_they_stand(
    options: dict[str, Any], where: str, content: str
) -> None:
    made = opened(JSON, options)
    assert made.where.startswith(where)
    assert made.content == content
    assert made.complete


@given(st.integers(0, 399), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_a_run_of_rows_is_a_piece_of_the_source(offset: int, limit: int) -> None:
    made = opened(JSON, {"slice": {"offset": offset, "limit": limit}})
    assert made.content in JSON
    assert json.loads(f"[{made.content}]") == ROWS[offset : offset + limit]
    assert made.where == short_place(f"rows {offset + 1}-{min(400, offset + limit)} of $.items")


def test_a_path_goes_through_a_string_that_holds_json() -> None:
    made = opened(MCP, {"path": "content[0].text.items[1].owner"})
    assert made.content == '{"login": "u1"}'
    assert made.where == "$.content[0].text.items[1].owner"


@pytest.mark.parametrize(
    ("options", "content"),
    [
        ({"offset": 3, "limit": 2}, '3,n3,"a\nb, 3"\n4,n4,"a\nb, 4"\n'),
        ({"fields": ["note", "id"], "offset": 3, "limit": 1}, '"a\nb, 3",3'),
    ],
)
def test_rows_of_a_table_may_stand_on_several_lines(options: dict[str, Any], content: str) -> None:
    made = opened(CSV, options, "csv")
    assert made.content == content
    assert made.where.startswith(("row 4", "rows 4-"))
    assert "of 300" in made.text.splitlines()[0]


def test_fields_of_json_lines() -> None:
    data = "".join(json.dumps(row) + "\n" for row in ROWS)
    made = opened(data, {"fields": ["id"], "limit": 2})
    assert made.content == '{"id": 0}\n{"id": 1}'
    assert made.where == "lines 1-2"


@pytest.mark.parametrize(
    ("data", "options", "reason"),
    [
        (LOG, {"lines": "5000-"}, "only 1,000 lines"),
        (LOG, {"path": "$.a"}, "not JSON"),
        (LOG, {"fields": ["a"]}, "no fields"),
        (LOG, {"offset": 5000}, "only 1,000"),
        (LOG, {"pattern": "zebra"}, "nothing matches"),
        (LOG, {"query": "zebra"}, "no passage"),
        (LOG, {"around": "zebra"}, "no such place"),
        (LOG, {"around": 5000}, "only 1,000 lines"),
        (JSON, {"path": "$.items[3].ownr"}, "keys id, name, owner"),
        (JSON, {"fields": ["nme"]}, "there are: id, name"),
        (JSON, {"offset": 400}, "only 400"),
        (JSON, {"around": "rows 900-901 of $.items"}, "only 400 rows"),
        (JSON, {"around": "$.nothing"}, "keys total, items"),
        (CSV, {"fields": ["nme"]}, "there are: id, name, note"),
        (CSV, {"around": "row 5000"}, "only 300 rows"),
    ],
)
def test_a_miss_gives_a_reason_and_a_next_step(
    data: str, options: dict[str, Any], reason: str
) -> None:
    made = opened(data, options, "csv" if data is CSV else "")
    assert reason in made.reason
    assert reason in made.text
    names = ["- " in line for line in made.text.splitlines()[1:-1]]
    assert names in ([], [True])
    assert not made.content


# --- patterns ------------------------------------------------------------------------------------


def test_hits_come_with_line_numbers_and_their_neighbours() -> None:
    made = opened(LOG, {"pattern": r"^\S+ ERROR .*worker-97\b"})
    assert made.content == f"96- {LINES[95]}97: {LINES[96]}98- {LINES[97]}".rstrip("\n")
    assert made.where == "lines 96-98"


def test_hits_in_one_line_of_json_come_with_paths() -> None:
    made = opened(JSON, {"pattern": r"u12[34]\b"})
    assert made.content == (
        '- $.items[123].owner.login: "u123"\n- $.items[124].owner.login: "u124"'
    )


def test_where_nothing_matches_case_is_ignored_and_said() -> None:
    made = opened(LOG, {"pattern": "error worker-97"})
    assert "97: " in made.content
    assert "ignoring case" in made.text


def test_hits_behind_signs_of_several_bytes_are_counted_in_characters() -> None:
    made = opened("é漢🦊\n" * 5 + "needle é\n", {"pattern": "need.e"})
    assert made.content == "5- é漢🦊\n6: needle é"


@given(
    line=st.integers(0, 60),
    most=st.integers(120, 600),
    shape=st.sampled_from(["lines", "long lines", "one line", "fold"]),
)
@settings(max_examples=60, deadline=None)
def test_the_first_page_shows_the_match_however_small_it_is(
    line: int, most: int, shape: str
) -> None:
    codes = [hashlib.sha256(f"{n}".encode()).hexdigest() for n in range(61)]
    width = 5 if shape == "long lines" else 1
    logged = [f"step {n} done, code {code[:8]} {code * width}" for n, code in enumerate(codes)]
    joined = (" " if shape == "one line" else "\n").join(logged)
    held = json.dumps([{"role": "user", "content": [{"type": "text", "text": joined}]}])
    made = opened(
        held if shape == "fold" else joined, {"pattern": f"step {line} ", "max_tokens": most}
    )
    assert f"step {line} done, code {codes[line][:8]}" in made.content


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", r"(a)\1", "x" * 1001, "a{2000}"])
def test_what_is_no_pattern_is_refused_without_quoting_it(pattern: str) -> None:
    with pytest.raises(ExpandError, match="pattern") as caught:
        opened(LOG, {"pattern": pattern})
    assert pattern not in str(caught.value.what)


@pytest.mark.parametrize(
    "pattern", ["(a*)*$", "(((a{30}){30}){30})", ".*.*.*.*=.*", "(?:a?){200}a{200}", "a|"]
)
def test_patterns_made_to_be_slow_end(pattern: str) -> None:
    try:
        opened("a" * 20_000 + "\n" + LOG, {"pattern": pattern})
    except ExpandError as error:
        assert error.where == "options.pattern"  # noqa: PT017 either outcome is right


# --- questions and surroundings ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "query", "answer"),
    [
        (LOG, "How long did worker-388 take?", "worker-388 took 88 ms"),
        (JSON, "price of n321", '"price": 321.50'),
        (CSV, "note of n77", "b, 77"),
    ],
)
def test_the_passages_that_answer_come_with_their_places(
    data: str, query: str, answer: str
) -> None:
    made = opened(data, {"query": query})
    assert answer in made.content
    assert made.content.startswith("- ")


def test_a_piece_of_a_long_value_does_not_bring_the_whole_value() -> None:
    data = json.dumps({"content": "filler words here. " * 9000 + "The needle is blue."})
    made = opened(data, {"query": "What colour has the needle?", "max_tokens": 400})
    assert "needle is blue" in made.content


def test_a_place_that_a_query_names_can_be_opened() -> None:
    found = opened(LOG, {"query": "worker-388"})
    again = opened(LOG, {"around": found.where, "max_tokens": 200})
    assert LINES[387] in again.content


@pytest.mark.parametrize(
    ("data", "around", "held"),
    [
        (LOG, 388, LINES[387]),
        (LOG, "388", LINES[387]),
        (LOG, "lines 388-389", LINES[387] + LINES[388]),
        (LOG, "line 388", LINES[387]),
        (LOG, "lines 388-388; 8 more places; lines 873-873", LINES[387]),
        (LOG, "line 388, characters 1-2", LOG[1:2]),
        (LOG, "section: Work (lines 388-388)", LINES[387]),
        (LOG, "worker-388 took", LINES[387]),
        (LOG, "WORKER-388 TOOK", LINES[387]),
        (LOG, "characters 100-120", LOG[100:120]),
        (JSON, "rows 100-101 of $.items", '"name": "n99"'),
        (JSON, "row 100", '"name": "n99"'),
        (JSON, "$.items[99]", '"name": "n99"'),
        (JSON, "$.items[99].owner.login", '"u99"'),
        (JSON, '"n99"', '"name": "n99"'),
        (CSV, "rows 5-6", '4,n4,"a\nb, 4"\n5,n5,"a\nb, 5"\n'),
        ("para one\n\npara two\n\n" * 40, "paragraph 1", "para one"),
        ("x" * 50_000 + "needle" + "y" * 50_000, "needle", "needle"),
    ],
)
def test_the_surroundings_hold_the_place(data: str, around: object, held: str) -> None:
    made = opened(data, {"around": around, "max_tokens": 300}, "csv" if data is CSV else "")
    assert held in made.content
    assert made.content in data
    assert made.complete


def test_a_run_of_paragraphs_opens_as_a_citation_names_it() -> None:
    page = "".join(f"<p>Paragraph {n} of a page. {'Many words. ' * 30}</p>" for n in range(40))
    html = f"<!doctype html><html><body><article>{page}</article></body></html>"
    for around, first in (("paragraphs 3-4", 3), ("paragraphs 39-99", 39), ("paragraphs 9-2", 9)):
        made = opened(html, {"around": around, "max_tokens": 600}, "html")
        assert made.where.startswith("paragraphs ") or around == "paragraphs 9-2"
        assert f"Paragraph {first} of a page" in made.content


def test_surroundings_reach_to_both_sides_in_whole_lines() -> None:
    made = opened(LOG, {"around": 500, "max_tokens": 400})
    at = made.content.splitlines(keepends=True).index(LINES[499])
    assert at >= 3
    assert len(made.content.splitlines()) - at >= 4
    assert made.content in LOG
    assert made.content.endswith("\n")


NESTED = json.dumps(
    {
        "outer": {"inner": {"x": 1, "y": 2}, "z": 3},
        "other": [{"p": n, "list": [{"a": 10 * n + m} for m in range(5)]} for n in range(3)],
        "text": "abcdefghij",
    }
)


@pytest.mark.parametrize(
    ("options", "where", "content"),
    [
        ({"around": "$.outer.inner.x"}, "keys 1-2 of $.outer.inner", '{"x": 1, "y": 2}'),
        (
            {"around": "$.other[1].list[2]"},
            "rows 1-5 of $.other[1].list",
            '[{"a": 10}, {"a": 11}, {"a": 12}, {"a": 13}, {"a": 14}]',
        ),
        (
            {"path": "$.other[1].list", "slice": {"offset": 1, "limit": 2}},
            "rows 2-3 of $.other[1].list",
            '{"a": 11}, {"a": 12}',
        ),
        (
            {"path": "$.other", "slice": {"offset": 2, "limit": 1}},
            "row 3 of $.other",
            '{"p": 2, "list": [{"a": 20}, {"a": 21}, {"a": 22}, {"a": 23}, {"a": 24}]}',
        ),
    ],
)
def test_what_is_nested_is_shown_among_its_own_neighbours(
    options: dict[str, Any], where: str, content: str
) -> None:
    made = opened(NESTED, options)
    assert (made.where, made.content) == (where, content)


def test_a_slice_of_a_text_is_named_by_its_place_in_the_whole() -> None:
    made = opened(NESTED, {"path": "text", "slice": {"offset": 2, "limit": 3}})
    start = NESTED.index("bcd")
    assert (made.where, made.content) == (f"characters {start}-{start + 3}", "bcd")
