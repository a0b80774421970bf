"""Select the highest scores."""

from __future__ import annotations

from typing import Any

import numpy as np


def largest(scores: Any, k: int) -> Any:
    """Return the indexes of the `k` highest scores in any order."""
    if len(scores) <= k:
        return np.arange(len(scores))
    return np.argpartition(-scores, k - 1)[:k]


def best(scores: Any, k: int, *, later_first: bool = False) -> Any:
    """Return the indexes of the `k` highest scores, best first; ties in order, or reversed."""
    places = largest(scores, k)
    return places[np.lexsort((-places if later_first else places, -scores[places]))]
