"""Items that compete for a place in a prompt, and their priorities.

A priority is a weighted mean of quality, confidence, recency and relevance, each from 0 to 1.
Higher is more important. No model is used: relevance is the share of the question's terms in a
text, rare terms counting more, and optionally the similarity of embeddings.
"""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

import msgspec

from holdfast.errors import SettingsError
from holdfast.search.bm25 import rarity
from holdfast.search.passages import hits_by_text
from holdfast.search.query import terms

DEFAULT_PRIORITY = 0.5


class Quality(StrEnum):
    """Quality of a source."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """Confidence in a finding or in a source's content."""

    CONFIRMED = "confirmed"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    SPECULATION = "speculation"
    UNKNOWN = "unknown"


class ContentItem(msgspec.Struct, frozen=True, kw_only=True):
    """A source, finding or earlier context that may be put into the prompt."""

    source_id: str
    """Its name in the prompt and the record, unique within a call."""
    content: str
    token_count: int = 0
    """The caller's count, used until the prompt is counted; 0 to count it at once."""
    priority: float = DEFAULT_PRIORITY
    """From 0 to 1, see `compute_priority`."""
    kind: str = "source"
    """`source`, `finding`, `context`, …: strategies treat kinds differently."""
    quality: Quality = Quality.UNKNOWN
    confidence: Confidence = Confidence.UNKNOWN
    published: float | None = None
    """When it was written, in seconds since 1970; None if unknown."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.priority) and 0 <= self.priority <= 1):
            raise SettingsError(
                "a priority is not between 0 and 1",
                where=self.source_id,
                fix="Give a number between, or none: then it is computed.",
            )
        if self.token_count < 0:
            raise SettingsError("a count of tokens is below zero", where=self.source_id)

    def __repr__(self) -> str:
        return f"<ContentItem {self.source_id}, {len(self.content)} characters>"


WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"quality": 0.40, "confidence": 0.30, "recency": 0.15, "relevance": 0.15}
)
QUALITY: Mapping[Quality, float] = MappingProxyType(
    {Quality.HIGH: 1.0, Quality.MEDIUM: 0.7, Quality.LOW: 0.4, Quality.UNKNOWN: 0.5}
)
CONFIDENCE: Mapping[Confidence, float] = MappingProxyType(
    {
        Confidence.CONFIRMED: 1.0,
        Confidence.HIGH: 0.9,
        Confidence.MEDIUM: 0.7,
        Confidence.LOW: 0.4,
        Confidence.SPECULATION: 0.2,
        Confidence.UNKNOWN: 0.5,
    }
)
UNKNOWN = 0.5
"""Recency of an item without a date, and relevance without a question."""
HALF_LIFE_SECONDS = 180 * 86_400.0
"""Half a year: a page of last month has almost 1, one of five years ago almost 0."""
MEANING = 1 / 3
"""Share of the embedding in relevance. Words find names and numbers, which vectors blur; vectors
find synonyms. Measured on documents that answer a question, ranked among twice as many: words find
80 %, WordLlama's vectors 72 %, both at this share 82 %, both at one half 80 %."""
_MOST_CHARACTERS = 20_000
"""Maximum characters per content for an embedder: the mean of more words is less specific."""


class TextEmbedder(Protocol):
    """The interface of `holdfast.models` embedders that is used here."""

    def embed(self, texts: Sequence[str], /) -> Iterable[Iterable[float]]:
        """Return a vector for each text."""


class PriorityState(Protocol):
    """The question and time of a state, such as `ContentState`."""

    @property
    def query(self) -> str:
        """The question; empty if there is none."""

    @property
    def now(self) -> float | None:
        """The time from which ages are counted; None for the time of the call."""


def compute_priority(
    item: ContentItem, state: PriorityState, *, embedder: TextEmbedder | None = None
) -> float:
    """Return the priority of one item, from 0 to 1."""
    return priorities([item], state, embedder=embedder)[0]


def priorities(
    items: Sequence[ContentItem], state: PriorityState, *, embedder: TextEmbedder | None = None
) -> list[float]:
    """Return each item's priority; a term of the question counts more the fewer items have it."""
    now = time.time() if state.now is None else state.now
    relevances = relevance(state.query, [item.content for item in items], embedder=embedder)
    return [
        WEIGHTS["quality"] * QUALITY[item.quality]
        + WEIGHTS["confidence"] * CONFIDENCE[item.confidence]
        + WEIGHTS["recency"] * recency(item.published, now)
        + WEIGHTS["relevance"] * relevant
        for item, relevant in zip(items, relevances, strict=True)
    ]


def recency(published: float | None, now: float) -> float:
    """Return 1 for a new item, halved per half year of age, and 0.5 without a date."""
    if published is None or not math.isfinite(published):
        return UNKNOWN
    return float(0.5 ** (max(0.0, now - published) / HALF_LIFE_SECONDS))


def relevance(
    query: str, texts: Sequence[str], *, embedder: TextEmbedder | None = None
) -> list[float]:
    """Return the relevance of each text to the question, from 0 to 1."""
    if not query.strip():
        return [UNKNOWN] * len(texts)
    by_words = _by_words(query, texts)
    if embedder is None or not texts:
        return by_words
    by_meaning = _by_meaning(query, texts, embedder)
    return [
        (1 - MEANING) * word + MEANING * near
        for word, near in zip(by_words, by_meaning, strict=True)
    ]


def _by_words(query: str, texts: Sequence[str]) -> list[float]:
    query_terms = terms(query)
    scores = [0.0] * len(texts)
    total = 0.0
    for term, holders in zip(query_terms, hits_by_text(query_terms, texts), strict=True):
        # A term of the only text would have almost no weight.
        weight = term.weight * (rarity(len(holders), len(texts)) if len(texts) > 1 else 1.0)
        total += weight
        for index in holders:
            scores[index] += weight
    return [min(1.0, score / total) if total else 0.0 for score in scores]


def _by_meaning(query: str, texts: Sequence[str], embedder: TextEmbedder) -> list[float]:
    query_vector, *vectors = (
        _unit(vector) for vector in embedder.embed([query, *(t[:_MOST_CHARACTERS] for t in texts)])
    )
    return [min(1.0, max(0.0, sum(map(operator.mul, query_vector, vector)))) for vector in vectors]


def _unit(vector: Iterable[float]) -> list[float]:
    numbers = [float(number) for number in vector]
    length = math.hypot(*numbers)
    return [number / length for number in numbers] if length else numbers
