"""Long-term memory: stores conversation turns and recalls the ones a question needs.

Import `Memory` from `holdfast.memory.memory`: it loads numpy, which takes 80 ms.
"""

from holdfast.memory.array_cache import ArrayCache
from holdfast.memory.passages import Passage, RecallResult

__all__ = ["ArrayCache", "Passage", "RecallResult"]
