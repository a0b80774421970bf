"""Recall: what was said, found again by a question and packed under a budget of tokens.

`Memory` stands in `recalling`: with it comes numpy, which takes 80 ms to load.
"""

from holdfast.memory.held import HeldArrays
from holdfast.memory.passages import Passage, Recalled

__all__ = ["HeldArrays", "Passage", "Recalled"]
