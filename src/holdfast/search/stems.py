"""Remove word endings, by rules that are data.

A search may merge too many forms (`-ment`, `-ation`), because a false match only costs a place in a
ranking. Two questions that share a cached answer must not differ in any word, so the answer cache
uses rules that only undo inflection.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple


class EndingRule(NamedTuple):
    """A word ending and its replacement."""

    text: str
    replacement: str = ""
    min_letters: int = 0
    """Minimum number of letters before the ending."""
    needs_vowel: bool = False
    """Whether one of these letters must be a vowel."""
    single_from: int | None = None
    """Letters before the ending from which a doubled last one becomes single: `stopp` → `stop`.
    None: it stays."""
    doubled: str = ""
    """Letters that stay doubled: `fall`, `miss`."""

    def removed_from(self, word: str) -> str | None:
        """Return a word that has this ending with it replaced; None if the rule does not apply."""
        size = len(word) - len(self.text)
        if size < self.min_letters:
            return None
        stem = word[:size]
        if self.needs_vowel and _VOWELS.isdisjoint(stem):
            return None
        if self.single_from is not None and size >= max(2, self.single_from):
            is_doubled = stem[-1] == stem[-2] and stem[-1] not in self.doubled
            stem = stem[:-1] if is_doubled else stem
        return stem + self.replacement


class Stemmer:
    """Steps of endings: in each step the first rule that applies replaces the ending of a word."""

    def __init__(self, *steps: tuple[EndingRule, ...]) -> None:
        # By their last letter: most words have an ending of none of the rules.
        self._steps: list[dict[str, list[tuple[str, EndingRule]]]] = []
        for endings in steps:
            by_letter: dict[str, list[tuple[str, EndingRule]]] = defaultdict(list)
            for ending in endings:
                by_letter[ending.text[-1]].append((ending.text, ending))
            self._steps.append(dict(by_letter))

    def __call__(self, word: str) -> str:
        """Return the stem of a word in lower case."""
        for by_letter in self._steps:
            for text, ending in by_letter.get(word[-1:], ()):
                if word.endswith(text) and (stem := ending.removed_from(word)) is not None:
                    word = stem
                    break
        return word


def first_letters(word: str, number: int) -> str:
    """Return the first letters of a word in lower case: a stem for words of any language."""
    return word[:number].lower()


_VOWELS = frozenset("aeiouy")
SHORTEST_STEM = 3
ENDINGS = frozenset(
    "s es e ed d ing ings er ers ly ies y ied ion ions ation ations ure ures ment ments 's".split()
)
"""Endings that do not change what a search looks for."""
_AFTER_DOUBLED = frozenset(("ed", "ing", "er", "ers"))

stem = Stemmer(
    tuple(
        EndingRule(
            ending,
            min_letters=SHORTEST_STEM,
            # `adding` is `add`: a stem of three letters keeps its double.
            single_from=SHORTEST_STEM + 1 if ending in _AFTER_DOUBLED else None,
        )
        for ending in sorted(ENDINGS, key=lambda ending: (-len(ending), ending))
    )
)
"""Return a word without its commonest ending, as searches compare it."""
