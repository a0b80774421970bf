"""Where the shown beginning and end of a long text stop."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cite.outer import head_end, tail_start

LONGEST_WORD = 9
words = st.lists(
    st.text("abc", min_size=1, max_size=LONGEST_WORD - 1).flatmap(
        lambda word: st.sampled_from([word + " ", word + "\n"])
    ),
    max_size=80,
).map("".join)


@given(words, st.integers(-3, 500))
def test_as_much_is_shown_as_fits_up_to_a_word_or_a_line_that_ends_near(
    text: str, most: int
) -> None:
    end, start = head_end(text, most), tail_start(text, 0, most)
    if most >= len(text):
        assert (end, start) == (len(text), 0)
        return
    shown = max(most, 0)
    # The end of a line costs at most a quarter of the room; the end of a word, less than a word.
    least = shown - shown // 4 - LONGEST_WORD
    assert least <= end <= shown
    assert least <= len(text) - start <= shown


@pytest.mark.parametrize(
    ("text", "end"), [("one two a\nthree four", 10), ("one\ntwo three four", 7)]
)
def test_the_end_of_a_line_is_taken_only_if_it_is_near(text: str, end: int) -> None:
    assert head_end(text, 10) == end
