"""Which runs of characters a model writes, and whether they stand in what it saw.

reuse: knows texts, not requests; before replaying. A run is 24 characters as they read: blanks are
one blank, escapes of JSON are what they stand for. Time and memory are linear in the texts: each is
looked through once, with the runs that the model will write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

RUN = 24
"""Characters. Shorter ones are mostly words that two texts have by chance."""
_SUBSTANCE = 12
"""Letters and digits in a run: rules of dashes and indents are nobody's need."""
_ESCAPES = (("\\n", " "), ("\\r", " "), ("\\t", " "), ('\\"', '"'), ("\\/", "/"), ("\\\\", "\\"))


def squeezed(text: str) -> str:
    """A text as it reads."""
    if "\\" in text:
        for escape, meaning in _ESCAPES:
            text = text.replace(escape, meaning)
    return " ".join(text.split())


def strings(value: Any) -> Iterator[str]:
    """The texts in a JSON value; how deep it may be, reading it has bounded."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


class Reuse:
    """The runs that the model writes in each turn, by number, and where they stand."""

    def __init__(self, turns: Iterable[Sequence[str]]) -> None:
        self.numbers: dict[str, int] = {}
        self.turns = [tuple(self._written(texts)) for texts in turns]
        """The runs of each turn."""
        self.runs = list(self.numbers)
        self._read: dict[str, tuple[int, ...]] = {}

    def _written(self, texts: Sequence[str]) -> Iterator[int]:
        for text in map(squeezed, texts):
            plain = [character.isalnum() for character in text]
            substance = sum(plain[: RUN - 1])
            for n in range(len(text) - RUN + 1):
                substance += plain[n + RUN - 1]
                if substance >= _SUBSTANCE:
                    yield self.numbers.setdefault(text[n : n + RUN], len(self.numbers))
                substance -= plain[n]

    def inside(self, texts: Iterable[str]) -> frozenset[int]:
        """The runs that stand in some texts."""
        return frozenset(number for text in texts for number in self._inside(text))

    def _inside(self, text: str) -> tuple[int, ...]:
        numbers = self._read.get(text)
        if numbers is None:
            known = self.numbers
            words = squeezed(text)
            slices = (words[n : n + RUN] for n in range(len(words) - RUN + 1))
            numbers = self._read[text] = tuple({known[run] for run in slices if run in known})
        return numbers


class Sight:
    """What the model sees at a time: how often each run stands in it."""

    def __init__(self, reuse: Reuse) -> None:
        self._reuse = reuse
        self._times = [0] * len(reuse.numbers)

    def show(self, runs: Iterable[int]) -> None:
        """Let it see a message with these runs."""
        for run in runs:
            self._times[run] += 1

    def hide(self, runs: Iterable[int]) -> None:
        """Take a message with these runs out of its sight."""
        for run in runs:
            self._times[run] -= 1

    def unseen(self, turn: int) -> list[int]:
        """The runs of a turn that stand nowhere in it."""
        return [run for run in self._reuse.turns[turn] if not self._times[run]]
