"""Recall: what was said, found again by a question and packed under a budget of tokens."""

from holdfast.memory.held import HeldArrays
from holdfast.memory.passages import Passage, Recalled
from holdfast.memory.recalling import Memory

__all__ = ["HeldArrays", "Memory", "Passage", "Recalled"]
