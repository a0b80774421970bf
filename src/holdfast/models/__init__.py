"""Models of our own: what answers where no provider is configured."""

from holdfast.models.digest import count
from holdfast.models.extractive import OfflineAnswer, Opening, answer

__all__ = ["OfflineAnswer", "Opening", "answer", "count"]
