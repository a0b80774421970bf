"""Names of tools by which a query may call them: whole, by their last words or by their first.

names: after reading, before searching. Every form is looked up, none is searched for: a directory
of ten thousand names costs a query what one of ten does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from holdfast.search.words import fold
from holdfast.toolbox.reading import spoken

_MOST_WORDS = 4
"""Of a text that may be a name; with more it is a request."""
_MOST_PARTS = 8
"""Of a name: what is longer is called by these many of its first or last parts."""
WHOLE, ENDING, BEGINNING = 1.0, 0.5, 0.25


class Names:
    """The names of some tools."""

    def __init__(self, names: Sequence[str]) -> None:
        self._whole: dict[str, list[int]] = defaultdict(list)
        self._endings: dict[tuple[str, ...], list[int]] = defaultdict(list)
        self._beginnings: dict[tuple[str, ...], list[int]] = defaultdict(list)
        self._parts: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for n, name in enumerate(names):
            parts = tuple(spoken(name))
            self._whole[fold(name)].append(n)
            self._parts[parts].append(n)
            for size in range(1, min(len(parts), _MOST_PARTS)):
                self._endings[parts[-size:]].append(n)
                self._beginnings[parts[:size]].append(n)

    def alike(self, text: str) -> dict[int, float]:
        """Which of them a text may be, and how surely: its name, its end, its beginning.

        A text that says more before it, as in `github__search` for `search`, is its end too.
        """
        if not text or len(text.split()) > _MOST_WORDS:
            return {}
        parts = tuple(spoken(text))
        shares: dict[int, float] = {}
        for place in self._beginnings.get(parts, ()):
            shares[place] = BEGINNING
        longer = (parts[at:] for at in range(1, len(parts)))
        for ends in (self._endings.get(parts, ()), *(self._parts.get(end, ()) for end in longer)):
            shares |= dict.fromkeys(ends, ENDING)
        for same in (self._parts.get(parts, ()), self._whole.get(fold(text), ())):
            shares |= dict.fromkeys(same, WHOLE)
        return shares
