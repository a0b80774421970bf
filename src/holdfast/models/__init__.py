"""Models of our own: what answers where no provider is configured."""

from holdfast.models.extractive import Opening, Spoken, answer, count

__all__ = ["Opening", "Spoken", "answer", "count"]
