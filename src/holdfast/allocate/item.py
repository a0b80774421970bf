"""What may go into a prompt: a content, what it weighs, and what speaks for it.

item: the first word of allocate; values only. Higher is more important everywhere (C29). Every
level that a caller may name has a number here, also the unknown: what nobody judged stands in the
middle, neither rewarded nor punished.

How much an item matters: quality, confidence, recency and relevance, in one number. The score is a
weighted mean of four numbers from 0 to 1, and so from 0 to 1 itself. Nothing is asked of a model:
relevance is the share of the question's terms that a text holds, rare ones counting more, and the
nearness of its embedding where an embedder is given.
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
    """How good a source is."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """How sure a finding is, or what was found in a source."""

    CONFIRMED = "confirmed"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    SPECULATION = "speculation"
    UNKNOWN = "unknown"


class ContentItem(msgspec.Struct, frozen=True, kw_only=True):
    """One source, finding or earlier context that asks for a place in the prompt."""

    source_id: str
    """Its name in the prompt and in the record; no two items of a call share one."""
    content: str
    token_count: int = 0
    """As its maker counted it, and believed until the prompt is counted; 0: counted at once."""
    priority: float = DEFAULT_PRIORITY
    """0 to 1, see `compute_priority`."""
    kind: str = "source"
    """`source`, `finding`, `context`, …: strategies treat kinds differently."""
    quality: Quality = Quality.UNKNOWN
    confidence: Confidence = Confidence.UNKNOWN
    published: float | None = None
    """When it was written, in seconds since 1970; None: nobody knows."""

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
"""For an item without a date, and for all while nothing is asked."""
HALF_LIFE_SECONDS = 180 * 86_400.0
"""Half a year: a page of last month stays near 1, one of five years ago is near 0."""
MEANING = 1 / 3
"""The part of the embedding in relevance. Words find names and numbers, which vectors blur; those
find other words for the same thing. Of the documents that answer a question, words rank 80 % among
the first (twice as many as there are), WordLlama's vectors 72 %, both 82 %, halves 80 %."""
_MOST_CHARACTERS = 20_000
"""What an embedder reads of a content: a mean over more words says less, not more."""


class Embedder(Protocol):
    """What is needed of `holdfast.models`' embedders."""

    def embed(self, texts: Sequence[str], /) -> Iterable[Iterable[float]]:
        """A vector for each text."""


class Asking(Protocol):
    """What is needed of a state: what is asked, and when. `ContentState` is one."""

    @property
    def query(self) -> str:
        """The question; empty if there is none."""

    @property
    def now(self) -> float | None:
        """The time against which items are old or new; None: that of the call."""


def compute_priority(
    item: ContentItem, state: Asking, *, embedder: Embedder | None = None
) -> float:
    """The priority of one item: 0 to 1."""
    return priorities([item], state, embedder=embedder)[0]


def priorities(
    items: Sequence[ContentItem], state: Asking, *, embedder: Embedder | None = None
) -> list[float]:
    """The priority of each item, a term of the question counting more the fewer items hold it."""
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
    """1 for what is new, half as much for each half year of age; what has no date is between."""
    if published is None or not math.isfinite(published):
        return UNKNOWN
    return float(0.5 ** (max(0.0, now - published) / HALF_LIFE_SECONDS))


def relevance(query: str, texts: Sequence[str], *, embedder: Embedder | None = None) -> list[float]:
    """How much each text has to do with the question: 0 to 1."""
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
    wanted = terms(query)
    scores = [0.0] * len(texts)
    total = 0.0
    for term, holders in zip(wanted, hits_by_text(wanted, texts), strict=True):
        # A term of the only text would count next to nothing.
        weight = term.weight * (rarity(len(holders), len(texts)) if len(texts) > 1 else 1.0)
        total += weight
        for index in holders:
            scores[index] += weight
    return [min(1.0, score / total) if total else 0.0 for score in scores]


def _by_meaning(query: str, texts: Sequence[str], embedder: Embedder) -> list[float]:
    asked, *vectors = (
        _unit(vector) for vector in embedder.embed([query, *(t[:_MOST_CHARACTERS] for t in texts)])
    )
    return [min(1.0, max(0.0, sum(map(operator.mul, asked, vector)))) for vector in vectors]


def _unit(vector: Iterable[float]) -> list[float]:
    numbers = [float(number) for number in vector]
    length = math.hypot(*numbers)
    return [number / length for number in numbers] if length else numbers
