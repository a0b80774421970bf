"""Prose: the beginning, warnings, places that open."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.condense import text
from holdfast.condense.source import Source
from holdfast.condense.spans import LONGEST, cut, paragraphs, quote

LETTER = "\n\n".join([
    "THE HARBOUR REPORT",
    "The harbour was closed in 1911 after the storm. " * 8,
    "The harbour authority paid £4,212.50 to the owners. " * 8,
    "WARNING: the eastern pier must not be used.",
    "Opening again\n\n" + "Ships returned to the harbour in the spring of 1913. " * 8,
    "The last chapter\n\n" + "Nothing is known about the lighthouse keeper. " * 8,
])  # fmt: skip


def test_the_head_is_quoted_as_it_stands() -> None:
    notes = text.condense(Source(LETTER.encode())).notes
    head = next(note for note in notes if note.role == "sample")
    assert LETTER.startswith(head.text)
    assert head.where == "lines 1-5"


def test_a_warning_is_an_alert_with_its_line() -> None:
    alerts = [note for note in text.condense(Source(LETTER.encode())).notes if note.role == "alert"]
    assert [(a.text, a.where) for a in alerts] == [
        ("WARNING: the eastern pier must not be used.", "lines 7-7")
    ]


def test_many_warnings_are_counted_with_their_place() -> None:
    source = Source("\n".join(f"Warning: number {n}" for n in range(50)).encode())
    notes = text.warnings(source, 5)
    assert len(notes) == 6
    assert notes[-1].text.startswith("45 more")
    assert notes[-1].where == "lines 6-50"


def test_headings_make_the_outline() -> None:
    notes = text.condense(Source(LETTER.encode())).notes
    outline = [note.text for note in notes if note.role == "outline"]
    assert outline == ["THE HARBOUR REPORT", "Opening again", "The last chapter"]


def test_central_sentences_are_whole_sentences_of_the_text() -> None:
    notes = text.condense(Source(LETTER.encode())).notes
    later = [note.text for note in notes if note.role == "sample"][1:]
    assert "The harbour authority paid £4,212.50 to the owners." in later


def test_a_text_of_one_long_line_is_cut_at_sentences() -> None:
    source = Source(b"A sentence of some words. " * 400)
    parts = text.passages(source)
    assert all(part.text.endswith(".") for part in parts)
    assert all(part.where.startswith("characters ") for part in parts)


@given(content=st.text(st.sampled_from("ab .\n\r\u2028é"), max_size=4000), most=st.integers(3, 900))
def test_cuts_lose_nothing_and_keep_their_size(content: str, most: int) -> None:
    for by in ("sentence", "line"):
        pieces = [content[start:end] for start, end in cut(content, 0, len(content), most, by=by)]
        assert "".join(pieces) == content
        assert all(0 < len(piece) <= most for piece in pieces)


@given(content=st.text(st.sampled_from("ab .\n "), max_size=4000))
def test_paragraphs_lose_nothing_and_are_never_too_long(content: str) -> None:
    pieces = [content[start:end] for start, end in paragraphs(content)]
    assert "".join(pieces) == content
    assert all(len(piece) <= LONGEST for piece in pieces)


@given(content=st.text(max_size=2000), most=st.integers(10, 300))
def test_a_quote_is_one_line_of_bounded_length(content: str, most: int) -> None:
    quoted = quote(content, most)
    assert "\n" not in quoted
    assert len(quoted) <= most + 2
