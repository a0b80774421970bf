"""Models of our own: what answers where no provider is configured."""

from holdfast.models.digest import count
from holdfast.models.extractive import Opening, Spoken, answer

__all__ = ["Opening", "Spoken", "answer", "count"]
