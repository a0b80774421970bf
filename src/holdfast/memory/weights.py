"""How much each signal counts, as data, and where the numbers come from.

weights: beside ranking, which says what each signal is. All are linear; those of words, vectors
and length are measured in deviations from the mean of the scope, the others are 0 or 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DENSITY = 0.5
"""What a piece costs when pieces are chosen: so much for each factor e of its tokens."""

WITH_VECTORS: Mapping[str, float] = MappingProxyType(
    {
        "words": -0.10,
        "words_and_names": 0.35,
        "words_around": 0.30,
        "words_of_episode": 0.40,
        "rarest_words": 0.20,
        "meaning": 0.10,
        "meaning_around": 0.45,
        "speaker": 0.60,
        "date": 2.50,
        "user": 1.00,
        "assistant_asked": 1.50,
        "rule": 2.50,
        "wish": 0.40,
        "length": 0.40,
        "pieces": -0.60,
        "answers": 0.30,
        "time": 0.30,
        "names": 0.15,
        "first_person": 0.30,
    }
)
WORDS_ONLY: Mapping[str, float] = MappingProxyType(
    {
        **{name: weight for name, weight in WITH_VECTORS.items() if "meaning" not in name},
        "words_and_names": 0.40,
        "words_around": 0.45,
    }
)
