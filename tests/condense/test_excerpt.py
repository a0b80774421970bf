"""The window of a long text that answers a question."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.condense.excerpt import excerpt


def test_the_excerpt_is_the_window_around_the_answer() -> None:
    filler = "lorem ipsum dolor " * 2000
    text = f"{filler}The capacitor needs 1.21 gigawatts. {filler}"
    shown, start, end = excerpt(text, "How many gigawatts for the capacitor?", 200)
    assert "needs 1.21 gigawatts" in shown
    assert shown == f"…{text[start:end]}…"
    assert len(shown) <= 200
    assert text[start - 1].isspace()
    assert text[end].isspace()


@given(st.text(max_size=300), st.text(max_size=40), st.integers(0, 120))
def test_an_excerpt_keeps_its_size_and_quotes_the_text(text: str, question: str, most: int) -> None:
    shown, start, end = excerpt(text, question, most)
    assert len(shown) <= most
    assert shown.strip("…") in text.strip("…") or shown.strip("…") in text
    assert 0 <= start <= end <= len(text)
    if len(text) <= most:
        assert (shown, start, end) == (text, 0, len(text))
