"""Look up tools by name: by the whole name, its last words or its first.

All forms of a name are keys of a table, so that a query costs the same for ten tools and for ten
thousand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from holdfast.search.words import fold
from holdfast.toolbox.tool_features import split_name

_MOST_WORDS = 4
"""Maximum words of a text that may be a name; a longer one is a request."""
_MOST_PARTS = 8
"""Maximum parts of a name; a longer one is found by this many of its first or last parts."""
WHOLE, ENDING, BEGINNING = 1.0, 0.5, 0.25


class ToolNames:
    """The names of a directory's tools."""

    def __init__(self, names: Sequence[str]) -> None:
        self._whole: dict[str, list[int]] = defaultdict(list)
        self._endings: dict[tuple[str, ...], list[int]] = defaultdict(list)
        self._beginnings: dict[tuple[str, ...], list[int]] = defaultdict(list)
        self._parts: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for n, name in enumerate(names):
            parts = tuple(split_name(name))
            self._whole[fold(name)].append(n)
            self._parts[parts].append(n)
            for size in range(1, min(len(parts), _MOST_PARTS)):
                self._endings[parts[-size:]].append(n)
                self._beginnings[parts[:size]].append(n)

    def matches(self, text: str) -> dict[int, float]:
        """Return the tools whose name a text may be, with the certainty of each match.

        A text with a prefix before the name, as in `github__search` for `search`, matches too.
        """
        if not text or len(text.split()) > _MOST_WORDS:
            return {}
        parts = tuple(split_name(text))
        shares: dict[int, float] = {}
        for place in self._beginnings.get(parts, ()):
            shares[place] = BEGINNING
        longer = (parts[at:] for at in range(1, len(parts)))
        for ends in (self._endings.get(parts, ()), *(self._parts.get(end, ()) for end in longer)):
            shares |= dict.fromkeys(ends, ENDING)
        for exact in (self._parts.get(parts, ()), self._whole.get(fold(text), ())):
            shares |= dict.fromkeys(exact, WHOLE)
        return shares
