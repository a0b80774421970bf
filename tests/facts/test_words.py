"""Words that facts are compared by."""

from __future__ import annotations

from holdfast.facts import words


def test_a_long_word_is_remembered_by_its_beginning_alone() -> None:
    words._forms.cache_clear()
    first, second = ("a" * length for length in (1_000_000, 900_000))
    assert words.terms_of(first) == words.terms_of(second)
    assert words._forms.cache_info().currsize == 1
