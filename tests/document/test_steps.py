"""Searching in steps gives what searching at once gives, wherever a step ends."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from holdfast.condense.severity import alert_lines
from holdfast.condense.source import Source
from holdfast.document import steps
from holdfast.document.steps import find_in_steps, lines_in_steps

TEXTS = st.text("ab\n", max_size=40)
STEPS = st.integers(1, 9)


@given(TEXTS, st.text("ab\n", min_size=1, max_size=4), st.integers(0, 45), STEPS)
def test_a_part_is_found_where_find_finds_it(text: str, part: str, start: int, step: int) -> None:
    with patch.object(steps, "STEP", step):
        assert find_in_steps(text, part, start) == text.find(part, start)
        assert find_in_steps(text.encode(), part.encode(), start) == text.find(part, start)


@given(TEXTS.map(str.encode), STEPS)
def test_pieces_end_with_lines_and_are_the_whole(data: bytes, step: int) -> None:
    with patch.object(steps, "STEP", step):
        pieces = list(lines_in_steps(data))
    assert b"".join(pieces) == data
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])
    assert all(pieces)


@given(
    st.lists(st.sampled_from(["", "fine", "ERROR", "a failed", '"GET /" 500 1']), max_size=12),
    STEPS,
)
def test_lines_that_warn_are_the_same_in_every_piece(lines: list[str], step: int) -> None:
    expected = [n for n, line in enumerate(lines, 1) if line not in ("", "fine")]
    with patch.object(steps, "STEP", step):
        assert list(alert_lines(Source("\n".join(lines).encode()))) == expected
