"""Chunks: together they are all of a content, and appended text changes only the last."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.models.digest import count
from holdfast.summarise.chunks import chunks

TEXTS = st.text(
    st.sampled_from(list("abc .\n,!?…。é漢🙂\u0301\u200d\x00\"'0123456789")), max_size=400
) | st.text(max_size=300)


@given(TEXTS, st.integers(1, 60))
def test_chunks_cover_the_content_exactly(text: str, most: int) -> None:
    pieces = list(chunks(text, most, count))
    assert "".join(text[piece.start : piece.stop] for piece in pieces) == text
    ends = [0, *(piece.stop for piece in pieces)]
    assert [piece.start for piece in pieces] == ends[:-1], "each begins where the last one ended"
    for piece in pieces:
        tokens = count(text[piece.start : piece.stop])
        assert piece.tokens == tokens
        assert tokens <= most or piece.stop - piece.start == 1


@given(TEXTS, TEXTS, st.integers(1, 60))
def test_what_is_appended_changes_only_what_was_near_the_end(
    text: str, more: str, most: int
) -> None:
    before = list(chunks(text, most, count))
    after = list(chunks(text + more, most, count))
    # The first attempt for a piece may reach into the appended text.
    settled = [piece for piece in before if piece.start + 4 * most < len(text)]
    assert after[: len(settled)] == settled


def test_a_chunk_ends_with_a_paragraph_where_there_is_one() -> None:
    text = "\n\n".join(f"Paragraph {n} tells of the {n}th thing at some length." for n in range(40))
    for piece in list(chunks(text, 60, count))[:-1]:
        assert text[: piece.stop].endswith("\n\n")


@pytest.mark.parametrize("text", ["x" * 200_000, "a b " * 50_000, "é" * 50_000, "\n" * 100_000])
def test_a_text_without_places_to_cut_is_read_a_few_times_and_no_more(text: str) -> None:
    read = 0

    def counted(piece: str) -> int:
        nonlocal read
        read += len(piece)
        return len(piece) // 2 + 1  # the most tokens that are counted in tests take time

    assert sum(piece.stop - piece.start for piece in chunks(text, 1_000, counted)) == len(text)
    assert read < 5 * len(text)
