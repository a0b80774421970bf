"""Where a text is cut: nothing in it is torn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.condense.cutting import MARK, first_break, last_break, shortened


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("short", 10, "short"),
        ("one two three", 9, "one two …"),
        ("see https://example.org/a/b?c=d,e;f", 30, "see …"),
        ("in /var/log/app/2024,05,01.log it says", 20, "in …"),
        ("total 1,234,567 bytes", 12, "total …"),
        ("alpha,beta,gamma,delta", 14, "alpha,beta, …"),
        ('File "C:\\Program Files\\app\\main.py" failed', 20, "File …"),
        ("量子计算机的错误率很低", 7, "量子计算机 …"),
        ("https://example.org/" + "x" * 900, 100, MARK),
        ("x" * 900, 10, "x" * 8 + " …"),
    ],
)
def test_what_does_not_fit_is_left_out_whole(text: str, most: int, shown: str) -> None:
    assert shortened(text, most) == shown


def test_the_end_of_a_text_that_goes_on_is_not_trusted() -> None:
    assert shortened("see https://example.org/ab", 100, goes_on=True) == "see …"


@given(st.lists(st.from_regex(r"[a-z0-9/:.,-]{1,30}", fullmatch=True), min_size=2), st.integers(2))
def test_every_word_of_a_shortened_text_is_a_word_of_the_text(words: list[str], most: int) -> None:
    text = " ".join(words)
    most = most % (len(text) + 2)
    shown = shortened(text, most)
    assert len(shown) <= max(most, len(MARK))
    for word in shown.removesuffix(MARK).split():
        whole = word in words
        cell = word[-1] in ",;" and any(each.startswith(word) for each in words)
        assert whole or cell


@given(st.text(max_size=80), st.integers(0, 90), st.integers(0, 90))
def test_breaks_stay_inside_what_is_looked_at(text: str, low: int, high: int) -> None:
    low, high = sorted((min(low, len(text)), min(high, len(text))))
    assert low <= last_break(text, low, high) <= len(text)
    assert low <= first_break(text, low, high) <= max(low, high)
