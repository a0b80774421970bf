"""Citations of real tool results, if this machine has them: savings, kept answers and reach."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from functools import cache

import pytest
from benchmarks.questions import MANIFEST, Asked, asked, holds

from holdfast.cite import Citation, cite, count
from holdfast.expand import ExpandOptions, expand
from tests.condense.test_recorded import ERROR, EXPECTED

pytestmark = pytest.mark.skipif(
    not MANIFEST.exists(),
    reason="recorded tool results are not on this machine; set HOLDFAST_DATA",
)

MOST_TOKENS = 400
MOST_MORE = 1_000


@cache
def files() -> list[Asked]:
    return list(asked(per_file=2))


@cache
def results() -> list[tuple[Asked, Citation]]:
    return [(each, cite(each.content)) for each in files()]


def test_the_median_citation_cuts_95_of_100_tokens() -> None:
    left = [made.tokens / made.fidelity.from_tokens for _, made in results()]
    assert statistics.median(left) <= 0.05


def test_every_original_is_kept_to_the_byte_and_no_citation_exceeds_its_cap() -> None:
    for each, made in results():
        data = (MANIFEST.parent / each.path).read_bytes()
        assert (made.content.data if made.content else made.text.encode()) == data, each.path
        assert count(made.text) == made.tokens, each.path
        assert made.tokens <= MOST_TOKENS or not made.ref_id, each.path


def test_the_kind_is_right_for_95_of_100() -> None:
    wrong = [
        (each.path, made.kind)
        for each, made in results()
        if made.ref_id and made.kind not in EXPECTED[each.kind]
    ]
    assert len(wrong) <= 0.05 * len(results()), wrong


def test_every_error_line_is_in_the_citation_or_listed_with_its_place() -> None:
    for each, made in results():
        if each.kind in ("log", "test_output"):
            listed = _numbers(made.text)
            for number, line in enumerate(each.content.split("\n"), 1):
                if ERROR.search(line) and number not in listed:
                    assert line.strip() in made.text, (each.path, number)


def _numbers(text: str) -> set[int]:
    found: set[int] = set()
    for first, last in re.findall(r"\b(\d+)(?:-(\d+))?\b", text):
        found.update(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("brief", [False, True], ids=["asked in full", "asked in brief"])
def test_answers_are_kept_for_80_and_in_reach_for_97_of_100(brief: bool) -> None:
    kept: dict[bool, list[str]] = defaultdict(list)
    reached: dict[bool, list[str]] = defaultdict(list)
    for each in files()[::2]:
        for question in each.questions:
            text = question.brief if brief else question.text
            name = f"{each.path}: {text}"
            made = cite(each.content, question=text)
            is_kept = holds(made.text, question.answer)
            kept[is_kept].append(name)
            reached[is_kept or _opens(made, text, question.answer)].append(name)
    assert len(kept[True]) >= 0.8 * (len(kept[True]) + len(kept[False])), kept[False]
    assert len(reached[True]) >= 0.97 * (len(reached[True]) + len(reached[False])), reached[False]


def _opens(made: Citation, question: str, answer: str) -> bool:
    if made.content is None:
        return False
    options = ExpandOptions(query=question, max_tokens=MOST_MORE)
    opened = expand(made.ref_id, made.content.data, made.kind, options, count=count)
    assert count(opened.text) <= MOST_MORE
    return holds(opened.text, answer)
