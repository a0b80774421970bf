"""Calls as small models write them: copied, fenced, half filled in, contradicting themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import ExpandError
from holdfast.expand import ExpandOptions, Expansion, Slice, expand, parse_call
from holdfast.expand.calls import nearest_ref
from holdfast.expand.options import MOST_TOKENS
from tests.expand.made import JSON, LOG, REF, count

QUESTION = "What went wrong with worker-388?"


def opened(arguments: object, data: str, question: str = QUESTION) -> Expansion:
    ref, options = parse_call(arguments, question)
    assert ref == REF
    return expand(ref, data.encode(), "json" if data is JSON else "log", options, count=count)


# --- the ref -------------------------------------------------------------------------------------

LATEST, EARLIER = "ref:log:0123456789abcdef", "ref:json_rows:fedcba9876543210"
REFS = [LATEST, EARLIER]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        (EARLIER, EARLIER),
        (EARLIER[:-3], EARLIER),  # cut short
        ("ref:log:fedc", EARLIER),  # of another kind
        (f"{EARLIER}00", EARLIER),  # written on
        ("FEDCBA98", EARLIER),
        ("ref:json_rows:fedcba9876543211", EARLIER),  # one digit changed
        ("ref:json_row:fedcba9876543210", EARLIER),
        ("a.log", LATEST),  # no ref at all: the latest citation is meant
        ("…", LATEST),
        ("ref:log:aaaaaaaaaaaaaaaa", ""),  # a ref of another conversation
        ("ref:log:", LATEST),
        ("", LATEST),
    ],
)
def test_a_ref_that_is_not_stored_is_taken_for_the_one_that_it_resembles(
    name: str, meant: str
) -> None:
    assert nearest_ref(name, REFS) == meant


def test_a_beginning_that_two_refs_share_means_neither_of_them() -> None:
    refs = ["ref:log:0123456789abcdef", "ref:log:0123ffffffffffff"]
    assert nearest_ref("ref:json:0123aaaaaaaaaaaa", refs) == ""
    assert nearest_ref("ref:log:0123", refs) == refs[0]  # no ref: the latest


@pytest.mark.parametrize("name", ["", "a.log", LATEST])
def test_without_refs_in_the_conversation_none_is_meant(name: str) -> None:
    assert nearest_ref(name, []) == ""


@pytest.mark.parametrize(
    "arguments",
    [
        {"ref_id": REF},
        {"ref_id": f"[{REF}]"},
        {"ref_id": f"`{REF}`"},
        {"ref_id": REF.removeprefix("ref:")},
        {"ref_id": f"ref_id={REF}, lines 1-3"},
        {"reference": REF},
        {"ref_id": [REF]},
        {"arguments": {"ref_id": REF}},
        {"parameters": json.dumps({"ref_id": REF})},
        [{"ref_id": REF}],
        json.dumps({"ref_id": REF}),
        f"```json\n{json.dumps({'ref_id': REF})}\n```",
        f"Here is the call: {json.dumps({'ref': REF})}. It opens the log.",
        REF,
        json.dumps(REF),
    ],
)
def test_a_ref_is_found_in_whatever_form_it_is_given(arguments: object) -> None:
    assert parse_call(arguments) == (REF, ExpandOptions())


@pytest.mark.parametrize(
    "arguments", [{}, {"lines": "1-3"}, "the log, please", 7, None, {"ref": 1}]
)
def test_a_call_without_a_ref_is_refused(arguments: object) -> None:
    with pytest.raises(ExpandError) as caught:
        parse_call(arguments)
    assert caught.value.fix
    assert "…" not in str(caught.value)


# --- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"lines": "`40-80`"}, ExpandOptions(lines=(40, 80))),
        ({"line_range": "40-80"}, ExpandOptions(lines=(40, 80))),
        ({"search": "timeout"}, ExpandOptions(query="timeout")),
        ({"regex": "time.*out"}, ExpandOptions(pattern="time.*out")),
        ({"lines": "40-80", "query": "…"}, ExpandOptions(lines=(40, 80))),
        ({"lines": "40-80", "query": "<your question>"}, ExpandOptions(lines=(40, 80))),
        ({"lines": "40-80", "pattern": "..."}, ExpandOptions(lines=(40, 80))),
        ({"offset": 10, "limit": 5, "path": "null"}, ExpandOptions(slice=Slice(10, 5))),
        ({"lines": "40-80", "page": "two"}, ExpandOptions(lines=(40, 80))),
        ({"lines": "40-80", "please": "yes"}, ExpandOptions(lines=(40, 80))),
        ({"find": "lines 40-80"}, ExpandOptions(lines=(40, 80))),
        ({"find": "page 3"}, ExpandOptions(page=3)),
        ({"find": "rows 11-15"}, ExpandOptions(slice=Slice(10, 5))),
        ({"find": "/time.*out/"}, ExpandOptions(pattern="time.*out")),
        ({"find": "$.items[3].name"}, ExpandOptions(path="$.items[3].name")),
        ({"find": "items[3].name"}, ExpandOptions(path="items[3].name")),
        ({"find": "why did it fail?"}, ExpandOptions(query="why did it fail?")),
    ],
)
def test_what_a_call_means_comes_first(given: dict[str, Any], meant: ExpandOptions) -> None:
    _, options = parse_call({"ref_id": REF} | given)
    assert ExpandOptions(**{name: getattr(options, name) for name in _NAMES}) == meant


_NAMES = ("lines", "page", "path", "fields", "slice", "pattern", "query", "around", "max_tokens")


def test_a_pattern_keeps_its_quotes() -> None:
    assert parse_call({"ref_id": REF, "pattern": '"id": "7"'})[1].pattern == '"id": "7"'


def test_a_call_with_nothing_but_placeholders_is_answered_by_the_question() -> None:
    part = opened({"ref_id": REF, "query": "…", "pattern": "…"}, LOG)
    assert "worker-388 " in part.text


def test_copied_examples_give_way_to_the_words_of_the_model() -> None:
    """A citation of this log offers lines 40-80: the model copies that beside its own words."""
    copied = {"ref_id": REF, "lines": "40-80", "pattern": "…", "query": "worker-388"}
    part = opened(copied, LOG, question="")
    assert "worker-388 " in part.text
    assert "by words" in part.text.splitlines()[0]
    own = opened(copied | {"lines": "41-44"}, LOG, question="")
    assert own.where == "lines 41-44"


def test_what_finds_nothing_gives_way_to_the_question_and_says_so() -> None:
    part = opened({"ref_id": REF, "path": "$.workers"}, LOG)
    assert "worker-388 " in part.text
    assert "by words, because path finds nothing" in part.text.splitlines()[0]


def test_a_pattern_that_cannot_be_read_gives_way_to_the_question() -> None:
    part = opened({"ref_id": REF, "pattern": "(worker"}, LOG)
    assert "worker-388 " in part.text


def test_a_pattern_that_cannot_be_read_is_looked_for_as_it_stands() -> None:
    part = opened({"ref_id": REF, "pattern": "call(12"}, f"{LOG}call(12)\n", question="")
    assert "call(12)" in part.content


def test_lines_that_are_not_there_are_told_how_many_there_are() -> None:
    part = opened({"ref_id": REF, "lines": "90000-90010"}, LOG)
    assert "there are only" in part.reason


def test_the_first_reason_is_given_where_nothing_finds_anything() -> None:
    part = opened({"ref_id": REF, "path": "$.a", "query": "zeppelin"}, LOG, question="quagga?")
    assert part.reason.startswith("this content is not JSON")


def test_the_next_page_of_a_sloppy_call_goes_on_from_the_first() -> None:
    sloppy: dict[str, Any] = {"ref_id": REF, "lines": "1-400", "fields": ["…"], "max_tokens": 300}
    first = opened(sloppy, LOG)
    second = opened(sloppy | {"page": 2}, LOG)
    assert LOG.startswith(first.content + second.content)


# --- whatever a model writes ---------------------------------------------------------------------

WORDS = st.sampled_from(
    ["…", "...", "<question>", "null", "40-80", "lines 2-3", "$.items[0]", "a.b", "/x/", "[", "(",
     "worker-388", "\ud800", "9" * 30, "page 2", "rows 3", "```", "{", "ref:log:", "id", "-"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=6) | WORDS, inner, max_size=3)
    ),
    max_leaves=5,
)
NAMES = st.sampled_from(
    "lines page path fields slice pattern query around max_tokens offset limit find question"
    " options arguments key x".split()
)


def test_a_page_beyond_the_end_gives_way_to_another_option_that_has_it() -> None:
    """The lines have one page and the words have many: the page is that of the words."""
    part = opened({"ref": REF, "lines": "1-3", "query": "worker", "page": 2}, LOG)
    first = opened({"ref": REF, "query": "worker"}, LOG)
    assert part.reason == ""
    assert "by words, because there is only 1 page by lines" in part.text
    assert part.content != first.content


def test_a_page_that_no_option_has_gives_way_to_the_first_page() -> None:
    part = opened({"ref": REF, "lines": "1-3", "query": "worker-388", "page": 999}, LOG)
    assert part.reason == ""
    assert part.content.splitlines() == LOG.splitlines()[:3]
    assert "by lines, because there is only 1 page by lines" in part.text


@settings(max_examples=300)
@given(st.dictionaries(NAMES, VALUES, max_size=6), st.booleans(), st.booleans())
def test_every_call_with_a_ref_is_answered(
    given_options: dict[str, Any], is_json: bool, has_question: bool
) -> None:
    data, question = JSON if is_json else LOG, QUESTION if has_question else ""
    try:
        part = opened({"ref_id": REF} | given_options, data, question)
    except ExpandError as error:  # a pattern or path that nobody can read, and nothing else to try
        fix = error.fix
    else:
        fix = part.reason
        assert part.tokens <= MOST_TOKENS
        assert bool(part.content) != bool(part.reason)
    assert fix or part.content


@given(VALUES)
def test_any_arguments_are_read_or_refused(value: object) -> None:
    for arguments in (value, json.dumps(value), f"```\n{json.dumps(value)}\n```"):
        try:
            ref, _ = parse_call(arguments)
        except ExpandError:
            continue
        assert ref


def test_a_call_that_copies_the_example_is_answered_with_what_the_user_asked() -> None:
    copied = {"ref": REF, "find": "rows 11-15"}
    made = opened(copied, JSON, "What is the price of the item named n7?")
    assert made.is_answer
    assert "7.5" in made.content
    assert "n12" not in made.text
    assert made.tokens <= 300


@pytest.mark.parametrize(
    ("find", "question"),
    [
        ("rows 11-15", ""),  # nobody asked anything
        ("rows 11-15", "Where are zebras?"),  # nothing answers it
        ("rows 11-16", "What is the price of the item named n7?"),  # it is no copy
    ],
)
def test_other_rows_are_opened_as_they_are_named(find: str, question: str) -> None:
    made = opened({"ref": REF, "find": find}, JSON, question)
    assert not made.is_answer
    assert '"n10"' in made.content


def test_the_line_that_a_question_quotes_is_opened_alone() -> None:
    question = 'The log says "ERROR ___ took 97 ms". What stands in place of ___?'
    made = opened({"ref": REF, "find": "lines 40-80"}, LOG, question)
    assert made.content == "12:00:37 ERROR worker-97 took 97 ms"
