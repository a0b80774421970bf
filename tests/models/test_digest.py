"""A content in fewer tokens, quoted verbatim."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.condense import digest as digesting
from holdfast.condense.digest import spans_in, text_of
from holdfast.models.digest import ExtractiveModel, count, digest

STORY = "\n\n".join(
    f"{name} was born in the town of {town}. It rained for a week there. {name} later kept bees, "
    "and wrote letters about them. Nobody answered the letters for years."
    for name, town in zip(
        "Abel Bruno Cecil Dario Emil Fritz Gero Hanno".split(),
        "Riga Turin Bergen Cadiz Delft Essen Fano Graz".split(),
        strict=True,
    )
)
PIECES = st.sampled_from(
    [*STORY.replace(",", " ").split(". "), "\n", "# Title\n", "x" * 400, "漢字。" * 9]
)
"""No JSON and no commas, which make a table: values of both are quoted with their names."""


@given(st.lists(PIECES, max_size=30).map("\n".join), st.integers(1, 300), st.text(max_size=40))
def test_it_fits_on_recount_and_quotes_only(content: str, most: int, question: str) -> None:
    quoted = digest(content, most, question)
    assert quoted.tokens == count(quoted.text) <= most
    assert quoted.text == text_of(quoted.quotations)
    spaced = " ".join(content.split())
    for (start, stop), quotation in zip(
        spans_in(quoted.quotations), quoted.quotations, strict=True
    ):
        assert quoted.text[start:stop] == quotation.text
        assert quoted.torn or " ".join(quotation.text.split()) in spaced
    assert digest(content, most, question) == quoted


def test_without_a_question_each_paragraph_is_told_by_its_beginning() -> None:
    quoted = digest(STORY, count(STORY) // 3)
    assert all(f"{town}." in quoted.text for town in ("Riga", "Bergen", "Graz"))
    assert "answered" not in quoted.text


def test_with_a_question_what_bears_on_it_is_told_and_what_that_leads_to() -> None:
    content = STORY + "\n\nBergen lies under the mountain Floyen. The mountain has a railway."
    quoted = digest(content, count(content) // 5, "Where was Cecil born, and what lies above it?")
    assert "Cecil was born in the town of Bergen." in quoted.text
    assert "Floyen" in quoted.text


def test_errors_of_a_log_come_before_its_other_lines() -> None:
    lines = [f"10:00:{n % 60:02} INFO step {n} of the job went well" for n in range(400)]
    lines[217] = "10:03:37 ERROR disk sda1 is full"
    quoted = digest("\n".join(lines), 60)
    assert "ERROR disk sda1 is full" in quoted.text
    [where] = [one.where for one in quoted.quotations if "sda1" in one.text]
    assert where == "lines 218-218"


def test_rows_are_quoted_whole_with_their_places() -> None:
    rows = json.dumps([{"id": n, "city": f"Town {n}", "people": n * 991} for n in range(60)])
    quoted = digest(rows, 60, "How many people live in Town 37?")
    assert str(37 * 991) in quoted.text
    assert any("37" in one.where for one in quoted.quotations)


def test_what_is_said_twice_is_quoted_once() -> None:
    assert digest("It failed again.\n" * 50 + "It worked.\n", 40).text.count("again") == 1


def test_a_long_content_is_read_in_parts_with_places_of_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(digesting, "_WHOLE", 4_000)
    monkeypatch.setattr(digesting, "_PART", 2_000)
    lines = [f"Line {n} tells of the harvest in field {n * 7}." for n in range(1, 800)]
    lines[640] = "The barn of Widow Quist burnt down."
    content = "\n".join(lines)
    quoted = digest(content, 80, "What happened to the barn of Widow Quist?")
    assert quoted.tokens <= 80
    [quotation] = [one for one in quoted.quotations if "Quist" in one.text]
    first, last = map(int, quotation.where.removeprefix("lines ").split("-"))
    assert first <= 641 <= last
    half = digest(content, count(content) // 2)
    assert count(content) // 4 < half.tokens <= count(content) // 2
    assert "field 7." in half.text
    assert half.quotations[-1].where.endswith("-799")


def test_our_own_model_quotes_its_prompt() -> None:
    completion = asyncio.run(
        ExtractiveModel().complete(STORY, system="Where was Emil born?", max_tokens=40)
    )
    assert "Emil was born in the town of Delft." in completion.text
    assert completion.output_tokens == count(completion.text) <= 40
    assert completion.cost == 0.0
