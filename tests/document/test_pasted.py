"""Where a pasted document stands in a text: the words beside it are never part of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.document import pasted
from holdfast.document.pasted import document_in, fenced_blocks, question_in
from tests.support.steps import is_linear

DOCUMENT = "\n\n".join(
    f"Clause {n}. The fee of part {n} is due within {n} days." for n in range(90)
)
ASKED = "When is the fee of part 40 due?"
TOLD = "Answer in one sentence."
SHAPES = {
    "behind": f"{DOCUMENT}\n\n{ASKED}",
    "before": f"{ASKED}\n\n{DOCUMENT}",
    "on both sides": f"{TOLD}\n\n{DOCUMENT}\n\n{ASKED}",
    "in the middle": f"{DOCUMENT}\n\n{ASKED}\n\n{DOCUMENT}",
    "line by line": f"{ASKED}\n" + DOCUMENT.replace("\n\n", "\n"),
    "fence": f"{ASKED}\n```text\n{DOCUMENT}\n```",
    "two fences": f"```\n{DOCUMENT}\n```\n{ASKED}\n```\nshort\n```",
    "tag": f'<contract id="7">\n{DOCUMENT}\n</contract>\n{ASKED} {TOLD}',
    "tags": f"<d>\n{DOCUMENT}\n</d>\n<d>\n{DOCUMENT}\n</d>\n{ASKED}",
    "tags around it": f"<d>\n{DOCUMENT}\n</d>\n{ASKED}\n<d>\nshort\n</d>",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_most_of_it_is_the_document_and_no_word_of_the_question_is(shape: str) -> None:
    text = SHAPES[shape]
    start, stop = document_in(text)
    assert stop - start > 0.45 * len(text)
    for words in (ASKED, TOLD):
        assert words not in text[start:stop]
    assert ASKED in question_in(text)
    assert len(question_in(text)) < len(text) * 0.6


@pytest.mark.parametrize("text", ["", " \n ", "Why?", "Why?\nBecause.", "word " * 5000])
def test_what_is_no_document_and_question_is_all_question(text: str) -> None:
    assert question_in(text) == text


@given(st.text("a?\n`<>/d ~:", max_size=200))
def test_any_text_has_a_document_inside_its_bounds(text: str) -> None:
    start, stop = document_in(text)
    assert 0 <= start <= stop <= len(text)


@pytest.mark.parametrize("piece", ["\n", "```\n", "<d>\n", "</d><d>", "<d></d>\n", "a?\n\n", " \n"])
def test_the_work_grows_with_the_text(piece: str) -> None:
    def work(times: int) -> Callable[[], object]:
        text = "<d>" + piece * times
        return lambda: document_in(text)

    assert is_linear(work, 5_000)


@pytest.mark.parametrize("shape", ["behind", "before", "on both sides"])
def test_of_a_very_long_text_only_the_ends_are_read_for_the_question(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A span for each of 15 million lines took 20 seconds and gigabytes."""
    read: list[int] = []

    def note(text: str) -> list[pasted.TextSpan]:
        read.append(len(text))
        return paragraphs(text)

    paragraphs = pasted.paragraphs
    monkeypatch.setattr(pasted, "_END_CHARACTERS", 2_000)
    monkeypatch.setattr(pasted, "paragraphs", note)
    text = SHAPES[shape].replace(DOCUMENT, "\n\n".join([DOCUMENT] * 10))
    start, stop = document_in(text)
    assert read == [2_000, 2_000]
    assert stop - start > 0.9 * len(text)
    for words in (ASKED, TOLD):
        assert words not in text[start:stop]


def test_a_very_long_text_without_a_beginning_or_an_end_is_no_document() -> None:
    for text in ("\n" * 3_000_000, "x" * 3_000_000, " " * 3_000_000):
        assert document_in(text).size in (0, len(text))


def blocks_by_line(text: str) -> list[tuple[int, int]]:
    """Return the spans between fences, written line by line: slow, and plain to see."""
    blocks = []
    start, fence, at = -1, "", 0
    for line in text.split("\n"):
        if start < 0 and line.startswith(("```", "~~~")):
            start, fence = at + len(line) + 1, line[:3]
        elif start >= 0 and line.rstrip().endswith(fence):
            blocks.append((start, at + len(line.rstrip().rstrip(fence[0]))))
            start = -1
        at += len(line) + 1
    return blocks


@given(st.lists(st.sampled_from(["```", "~~~", "`", "~", "\n", "\n", " ", "a", "\r"])).map("".join))
def test_fenced_blocks_are_those_that_a_reader_of_lines_sees(text: str) -> None:
    assert fenced_blocks(text) == blocks_by_line(text)


@pytest.mark.parametrize("piece", ["```\na\n```\n", "```\n", "~~~\n```\n", "``` a ", "a\n"])
def test_fences_are_found_in_linear_time(piece: str) -> None:
    def work(times: int) -> Callable[[], object]:
        text = piece * times
        return lambda: fenced_blocks(text)

    assert is_linear(work, 5_000)
