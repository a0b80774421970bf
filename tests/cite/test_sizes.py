"""The size of a citation: brief without room, larger with content and room, else shortened inside.

The parser of shortened contents uses only their text, and imports nothing of the code that writes
it: fences that no content can close, and our lines between them.
"""

from __future__ import annotations

import json
import math
import random
import re
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.cite import BRIEF, Citation, CitingRules, cite, count
from holdfast.cite.citation import allowance
from holdfast.expand import expand, parse_call
from holdfast.fitting import FitOptions, fit
from holdfast.store.refs import canonical
from tests.engine.test_rebuild import follow
from tests.fitting.test_citing import DIALECTS, chat, in_dialect

ROOM = CitingRules(room=100_000)
WORDS = "harbour crane pilot invoice beacon ledger tide anchor signal mooring".split()


def prose(lines: int, seed: int = 1) -> str:
    chance = random.Random(seed)
    return "\n".join(f"{n}: {' '.join(chance.choices(WORDS, k=9))}." for n in range(1, lines + 1))


CODE = "import os\n\n" + "\n\n".join(
    f"def step_{n}(path: str, depth: int = {n}) -> int:\n"
    f'    """Step {n} of the walk."""\n'
    f"    total = depth * {n * 7}\n"
    f"    return total + len(os.listdir(path))"
    for n in range(120)
)
TESTS = "".join(f"tests/test_{n}.py::test_case_{n} PASSED\n" for n in range(300)) + (
    "=========================== short test summary info ===========================\n"
    "FAILED tests/test_9.py::test_last - AssertionError: 7 is not 8\n"
    "================== 1 failed, 300 passed in 4.12s ==================\n"
)
ROWS = json.dumps(
    [{"id": n, "name": f"user-{n}", "note": f"{WORDS[n % 10]} {n * 37}"} for n in range(900)]
)


# --- how much it may have -------------------------------------------------------------------------

kinds = st.sampled_from(["code", "text", "log", "json_rows", "html", "notion_page", "of_others"])
sizes = st.integers(0, 10**7)


@given(sizes, sizes, kinds, sizes, sizes, st.integers(60, 5_000))
def test_an_allowance_grows_with_content_and_room_and_never_beyond_the_cap(
    tokens: int, more: int, kind: str, room: int, wider: int, most: int
) -> None:
    size = allowance(tokens, kind, room, most)
    assert min(BRIEF, most) <= size <= most
    assert size <= allowance(tokens + more, kind, room, most)
    assert size <= allowance(tokens, kind, room + wider, most)
    assert size <= max(BRIEF, min(room, math.ceil(tokens / 3)))


@pytest.mark.parametrize("content", [CODE, TESTS, ROWS, prose(2_000)])
def test_without_room_a_citation_is_as_brief_as_ever(content: str) -> None:
    brief = cite(content, question="What failed?")
    assert brief.tokens <= BRIEF
    wider = cite(content, question="What failed?", rules=CitingRules(most_tokens=9_000, room=10))
    assert wider == brief


@pytest.mark.parametrize("content", [CODE, TESTS, ROWS, prose(2_000)])
def test_with_room_it_shows_more_and_how_the_content_began_and_ended(content: str) -> None:
    larger = cite(content, rules=ROOM)
    tokens = count(content)
    assert 1.3 * BRIEF < larger.tokens <= allowance(tokens, larger.kind, 100_000, 2_000)
    assert larger.fidelity.level == "cited"
    assert "Beginning and end:" in larger.text
    ends = [excerpt.where for excerpt in larger.excerpts]
    assert any(re.match(r"lines 1-\d|rows 0|\$\[0\]", place) for place in ends)
    last = len(content.splitlines())
    assert any(place.endswith((f"-{last}", "899", "$[899]")) for place in ends), ends


def test_the_lines_of_a_larger_citation_stand_as_they_are() -> None:
    quoted = cite(CODE, rules=ROOM).text.replace("\n  ", "\n")
    assert CODE[:600] in quoted
    assert CODE[-300:] in quoted


def test_verdicts_and_answers_are_in_it_too() -> None:
    text = cite(TESTS, rules=ROOM).text
    assert "1 failed, 300 passed in 4.12s" in text
    assert "AssertionError: 7 is not 8" in text
    asked = cite(ROWS, question="Which users mention the crane 19129?", rules=ROOM)
    assert "19129" in asked.text
    assert asked.tokens > BRIEF


def test_a_field_that_is_named_exactly_needs_no_room() -> None:
    asked = cite(ROWS, question="What is the note of user-517?", rules=ROOM)
    assert "19129" in asked.text
    assert asked.tokens < BRIEF / 2


@pytest.mark.parametrize("most", [60, 150, 400, 700, 1_500])
def test_the_setting_is_a_cap_whatever_the_room(most: int) -> None:
    for content in (CODE, ROWS):
        assert cite(content, rules=CitingRules(room=100_000, most_tokens=most)).tokens <= most


ODD = [
    "",
    "\n" * 5_000,
    "x" * 30_000,
    "\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 9_000,
    "👩‍👩‍👧‍👦" * 900,
    " ".join(str(n * 77) for n in range(4_000)),
    bytes(range(256)) * 90,
    "\x00\x1b[31m" * 3_000,
    "a\r\nb\r\n" * 3_000,
    json.dumps([[]] * 5_000),
]


@pytest.mark.parametrize("content", ODD, ids=range(len(ODD)))
def test_odd_contents_have_their_sizes_too(content: Any) -> None:
    check_sizes(content, 0)
    check_sizes(content, 85)


texts = st.text(max_size=4_000) | st.text("ab \n\r`[]{}…", min_size=900, max_size=6_000)


@settings(max_examples=40)
@given(texts | st.binary(max_size=3_000), st.integers(0, 120))
@example("`" * 3_000, 85)
@example("a\n" * 700, 95)
def test_whatever_the_content_is(content: str | bytes, percent: int) -> None:
    check_sizes(content, percent)


def check_sizes(content: str | bytes, percent: int) -> None:
    data = canonical(content)
    tokens = count(data.decode("utf-8", "replace"))
    rules = CitingRules(room=100_000, shorten_to=tokens * percent // 100, threshold=500)
    citation = cite(content, question="What is it?", rules=rules)
    assert citation == cite(content, question="What is it?", rules=rules)
    assert citation.tokens == count(citation.text)
    if citation.content is None:
        assert citation.text.encode("utf-8", "replace") == data.decode("utf-8", "replace").encode()
        return
    assert citation.content.data == data
    assert citation.tokens < tokens
    if citation.fidelity.level == "shortened":
        assert citation.tokens <= rules.shorten_to
        check_shortened(citation)
    else:
        assert citation.tokens <= allowance(tokens, citation.kind, rules.room, rules.most_tokens)


# --- shortened inside -----------------------------------------------------------------------------

_HEAD = re.compile(r"\[Stored as (ref:[a-z_]+:[0-9a-f]{16}); [^\n]*; shortened\]")
_GAP = re.compile(
    r"\[… (?P<place>(?:lines?|characters) (?P<first>\d+)(?:-(?P<last>\d+))?)"
    r"(?:: the same as line (?P<same>\d+)| left out: "
    r'expand_ref\("(?P<ref>ref:[a-z_]+:[0-9a-f]{16})", "(?P<find>[^"\n]+)"\)) …\]'
)


class Read(NamedTuple):
    """A shortened content, taken apart."""

    ref: str
    parts: list[str]
    gaps: list[re.Match[str]]


def shortened_read(text: str) -> Read:
    head, _, rest = text.partition("\n")
    named = _HEAD.fullmatch(head)
    assert named, head
    parts: list[str] = []
    gaps: list[re.Match[str]] = []
    while True:
        fence = re.match("`{3,}(?=\n)", rest)
        assert fence, "no fence"
        shown, closing, rest = rest[fence.end() + 1 :].partition(fence[0])
        assert closing
        assert shown.endswith("\n"), "the fence does not begin a line"
        parts.append(shown)
        if not rest:
            return Read(named[1], parts, gaps)
        line, _, rest = rest.removeprefix("\n").partition("\n")
        gap = _GAP.fullmatch(line)
        assert gap, line
        gaps.append(gap)


def check_shortened(citation: Citation) -> None:
    """Check that shown and missing parts make up the content, each in its place."""
    assert citation.content is not None
    text = citation.content.data.decode("utf-8", "replace")
    read = shortened_read(citation.text)
    assert read.ref == citation.ref_id
    assert len(read.parts) == len(read.gaps) + 1 == len(citation.excerpts)
    at = 0
    for part, excerpt in zip(read.parts, citation.excerpts, strict=True):
        assert part in (excerpt.text, excerpt.text + "\n")
        assert text.find(excerpt.text, at) >= 0
        at = text.find(excerpt.text, at) + len(excerpt.text)
    assert text.startswith(citation.excerpts[0].text)
    assert text.endswith(citation.excerpts[-1].text)
    for gap in read.gaps:
        assert gap["same"] or gap["ref"] == citation.ref_id


def opened(citation: Citation, gap: re.Match[str]) -> str:
    assert citation.content is not None
    _, options = parse_call({"ref": citation.ref_id, "find": gap["find"], "max_tokens": 8_000})
    return expand(
        citation.ref_id, citation.content.data, citation.kind, options, count=count
    ).content


@pytest.mark.parametrize("content", [CODE, TESTS, ROWS.replace("}, ", "},\n"), prose(300)])
def test_a_content_a_little_too_long_is_shown_but_for_a_gap_that_opens(content: str) -> None:
    tokens = count(content)
    citation = cite(content, rules=CitingRules(shorten_to=round(tokens / 1.2)))
    assert citation.fidelity.level == "shortened"
    assert 0.75 * tokens < citation.tokens <= tokens / 1.2
    check_shortened(citation)
    read = shortened_read(citation.text)
    [gap] = read.gaps
    assert read.parts[0] + opened(citation, gap) + read.parts[1] == content + "\n" * (
        not content.endswith("\n")
    )
    assert citation.fidelity.kept == tuple(excerpt.where for excerpt in citation.excerpts)


def test_one_much_too_long_is_cited() -> None:
    tokens = count(CODE)
    rules = CitingRules(shorten_to=round(tokens * 0.7))
    assert cite(CODE, rules=rules) == cite(CODE)


def test_the_gap_is_where_neither_the_question_nor_an_error_stands() -> None:
    lines = prose(300).split("\n")
    lines[140] = "The treasure lies under the old lighthouse."
    lines[200] = "ERROR: the pump failed"
    content = "\n".join(lines)
    rules = CitingRules(shorten_to=round(count(content) * 0.85))
    text = cite(content, question="Where is the treasure?", rules=rules).text
    assert lines[140] in text
    assert lines[200] in text


def test_lines_over_and_over_are_shown_once() -> None:
    lines = [*prose(60).split("\n"), *["waiting for the lock of the other process"] * 60]
    content = "\n".join([*lines, *prose(60, seed=2).split("\n")])
    citation = cite(content, rules=CitingRules(shorten_to=round(count(content) * 0.9)))
    read = shortened_read(citation.text)
    [gap] = read.gaps
    assert (gap["place"], gap["same"]) == ("lines 62-120", "61")
    assert read.parts[0] + "\n".join(lines[61:120]) + "\n" + read.parts[1] == (content + "\n")


def test_secrets_are_masked_in_what_is_shown() -> None:
    content = prose(100) + "\nmail to jane.roe@company.org\n" + prose(100, seed=3)
    rules = CitingRules(shorten_to=round(count(content) * 0.9), privacy="mask")
    citation = cite(content, question="Whom to mail?", rules=rules)
    assert citation.fidelity.level == "shortened"
    assert "jane.roe" not in citation.text
    assert citation.content is not None
    assert citation.content.data == content.encode()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_in_a_request_it_is_on_record_and_rebuilt(dialect: str) -> None:
    content = prose(300)
    rules = CitingRules(
        tokens=round(count(content) * 0.9)
    )  # it is shortened to the size that may be kept
    body = in_dialect(chat(content), dialect)
    options = FitOptions(dialect=dialect, rules=rules, cites=True, opens=True)
    [fitted] = follow([body], dialect, options)
    [edit] = fitted.edits[:1]
    assert edit.action == "cite"
    assert edit.ref_id == fitted.contents[0].ref_id
    assert b"; shortened]" in fitted.body
    again = fit(body, dialect=dialect, citing=rules)
    assert again.body == fitted.body
