"""BM25: the rarity of terms and the score of a text, for numbers and arrays.

The formulas accept floats and NumPy arrays without importing NumPy, because ranking the lines of a
citation does not need it and it takes 80 ms to load.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple


def odds(holders: Any, texts: Any) -> Any:
    """Return the odds that a text lacks a term which `holders` of `texts` have."""
    return (texts - holders + 0.5) / (holders + 0.5)


def rarity(holders: int, texts: int) -> float:
    """Return the inverse document frequency of a term; above 0 however common it is."""
    return math.log1p(odds(holders, texts))


class Bm25(NamedTuple):
    """The two parameters of BM25."""

    k1: float = 1.2
    """Saturation: how much more a term counts if it is repeated."""
    b: float = 0.75
    """How far a long text must hold a term more often; 0: not at all."""

    def norms(self, lengths: Any, mean_length: float) -> Any:
        """Return the length penalty of texts, which is added to the count of a term."""
        return self.k1 * (1 - self.b + self.b * lengths / mean_length)

    def gains(self, rarities: Any, counts: Any, norms: Any) -> Any:
        """Return the scores of texts for terms that they have `counts` times."""
        return rarities * counts * (self.k1 + 1) / (counts + norms)


USUAL = Bm25()
"""For turns, tools and passages of sources."""
OF_PASSAGES = Bm25(b=0.5)
"""For the parts of one content. The ranking of tool results was tuned with this `b`; at 0.75, 35 of
399 citations of recorded results change."""
