"""Rank the passages of one content by a question, with BM25 and without an index.

The content is searched for the question's terms instead of being split into words, so 100 KB take a
few milliseconds. The ranking is deterministic.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol

import msgspec

from holdfast.search.bm25 import OF_PASSAGES, rarity
from holdfast.search.query import Term, terms
from holdfast.search.stems import ENDINGS
from holdfast.search.words import fold

_MAX_HITS = 4
"""Hits of a term in one passage that count; further ones add nothing."""
_MAX_HITS_IN_TEXT = 300
_COMMON = 0.7
"""A term in more than this share of many passages cannot rank them."""
_MANY = 20
_BLOCK_CHARS = 200_000
_NEAR = 60
_MAX_REFINED = 200
_LONGEST_ENDING = 8


class TextPassage(Protocol):
    """A part of a content that can answer a question on its own."""

    @property
    def text(self) -> str:
        """The text of the passage."""


class RankedPassage(msgspec.Struct, frozen=True):
    """A passage that matches the question."""

    index: int
    """Index among the passages."""
    score: float
    """Positive; comparable only among passages of one question."""


class _Hits(NamedTuple):
    """The hits of one term in one passage: there may be a hundred thousand passages."""

    first: int
    strength: float
    times: int


def rank(question: str, passages: Sequence[TextPassage]) -> list[RankedPassage]:
    """Return the passages that match the question, best first; ties keep their order."""
    query = terms(question)
    if not query or not passages:
        return []
    blocks = _PassageBlocks(passages)
    average = max(1.0, blocks.characters / len(passages))
    scores: dict[int, float] = {}
    places: dict[int, list[tuple[int, float]]] = {}
    telling = _ranking_terms(query, blocks)
    by_term: list[dict[int, _Hits]] = [{} for _ in telling]
    for block in blocks:
        for term, hits_in in zip(telling, by_term, strict=True):
            hits_in.update(_by_passage(term, block))
    norms, gains = OF_PASSAGES.norms, OF_PASSAGES.gains
    for term, hits_in in zip(telling, by_term, strict=True):
        worth = term.weight * rarity(len(hits_in), len(passages))
        for index, hits in hits_in.items():
            norm = norms(len(passages[index].text) + 1, average)
            score = gains(worth, hits.strength, norm)
            scores[index] = scores.get(index, 0.0) + score
            places.setdefault(index, []).append((hits.first, worth))
    best = sorted(scores, key=lambda index: (-scores[index], index))
    for index in best[:_MAX_REFINED]:
        scores[index] += _nearness(places[index])
    best[:_MAX_REFINED] = sorted(best[:_MAX_REFINED], key=lambda index: (-scores[index], index))
    return [RankedPassage(index, scores[index]) for index in best]


def hits_by_text(wanted: Sequence[Term], texts: Sequence[str]) -> list[list[int]]:
    """Return for each term the indexes of the texts that contain it."""
    block = _block(0, texts)
    return [list(_by_passage(term, block)) for term in wanted]


def best_window(text: str, question: str, size: int) -> int:
    """Return the start of the window of `size` characters that answers a question best."""
    hits = sorted(_hits(terms(question), text))
    if not hits:
        return 0
    best, best_score, begin, score = (0, 0), -1.0, 0, 0.0
    inside: dict[int, list[float]] = {}
    for right, (place, number, worth) in enumerate(hits):
        values = inside.setdefault(number, [])
        score += worth if not values else 0.1 * worth
        values.append(worth)
        while place - hits[begin][0] > size * 0.8:
            _, number_left, worth_left = hits[begin]
            remaining = inside[number_left]
            remaining.pop(0)
            score -= worth_left if not remaining else 0.1 * worth_left
            begin += 1
        if score > best_score + 1e-9:
            best, best_score = (begin, right), score
    first, last = hits[best[0]][0], hits[best[1]][0]
    # The text around the hits belongs to the answer: more of it after than before them.
    return max(0, min(first - (size - (last - first)) // 3, len(text) - size))


# --- positions of terms ------------------------------------------------------------------------


class _TextBlock(NamedTuple):
    """Consecutive texts that are searched together."""

    first: int
    """Index of the first text."""
    text: str
    low: str
    starts: list[int]


def _block(first: int, texts: Sequence[str]) -> _TextBlock:
    text = "\0".join(texts)
    return _TextBlock(first, text, fold(text), [0, *accumulate(len(each) + 1 for each in texts)])


class _PassageBlocks:
    """All passages in blocks; searching them all at once takes twice their memory in addition."""

    def __init__(self, passages: Sequence[TextPassage]) -> None:
        self.passages = passages
        self.characters = sum(len(passage.text) + 1 for passage in passages) - 1

    def __iter__(self) -> Iterator[_TextBlock]:
        texts: list[str] = []
        size = 0
        for number, passage in enumerate(self.passages, 1):
            texts.append(passage.text)
            size += len(passage.text)
            if size >= _BLOCK_CHARS or number == len(self.passages):
                yield _block(number - len(texts), texts)
                texts, size = [], 0


def _ranking_terms(wanted: Sequence[Term], blocks: _PassageBlocks) -> list[Term]:
    """Return the terms that can rank passages; if there is none, the rarest."""
    if len(blocks.passages) < _MANY:
        return list(wanted)
    most = _COMMON * len(blocks.passages)
    often = [0] * len(wanted)
    among = [0] * len(wanted)
    for block in blocks:
        parts = None
        for number, term in enumerate(wanted):
            count = block.low.count(term.form)
            often[number] += count
            if count > _COMMON * (len(block.starts) - 1):
                parts = parts or block.low.split("\0")
                count = sum(term.form in part for part in parts)
            among[number] += count
    telling = [
        term
        for term, count, passages in zip(wanted, often, among, strict=True)
        if count and passages <= most
    ]
    present = [(count, at) for at, count in enumerate(often) if count]
    return telling or ([wanted[min(present)[1]]] if present else [])


def _by_passage(term: Term, block: _TextBlock) -> dict[int, _Hits]:
    """Return the hits of a term by passage, a few of each."""
    first, text, low, starts = block
    hits_in: dict[int, _Hits] = {}
    at = 0
    while (start := low.find(term.form, at)) >= 0:
        at = start + len(term.form)
        strength = _strength(term, low, text, start)
        if not strength:
            continue
        number = bisect.bisect_right(starts, start) - 1
        before = hits_in.get(first + number, _Hits(start, 0.0, 0))
        hits = _Hits(before.first, before.strength + strength, before.times + 1)
        hits_in[first + number] = hits
        if hits.times >= _MAX_HITS:
            at = starts[number + 1]
    return hits_in


def _strength(term: Term, low: str, text: str, start: int) -> float:
    """Return how well the text at an offset matches a term; 0 if it only looks similar."""
    if term.anywhere:
        return 1.0
    before = text[start - 1] if start else " "
    # `Tokens` begins a word in `maxTokens`, and so does `port` in `8080port`.
    if before.isalnum() and (term.exact or not (before.isdigit() or _is_hump(text, start))):
        return 0.0
    end = start + len(term.form)
    ending = low[end : end + _LONGEST_ENDING]
    if not ending or not ending[0].isalpha():
        if term.exact and ending[:1].isdigit():
            return 0.0
        return 1.3 if _names_a_field(ending) else 1.0
    if _is_hump(text, end):
        return 0.9
    if term.exact:
        return 0.0
    return _strength_of_ending(term.form, ending)


def _is_hump(text: str, at: int) -> bool:
    return text[at].isupper() and (text[at - 1].islower() or text[at + 1 : at + 2].islower())


def _names_a_field(ending: str) -> bool:
    return ending.lstrip("\"' ").startswith((":", "="))


def _strength_of_ending(form: str, ending: str) -> float:
    word = ""
    for character in ending:
        if not character.isalpha():  # the apostrophe of "the dogs' food" ends the word
            break
        word += character
    if word in ENDINGS:
        return 1.0
    doubled = word[:1] == form[-1:] and word[1:] in ENDINGS
    return 0.9 if doubled else 0.0


# --- terms close to each other -----------------------------------------------------------------


def _nearness(places: list[tuple[int, float]]) -> float:
    """Return a bonus for terms that follow each other closely, as they do in the question."""
    bonus = 0.0
    for (first, worth), (second, next_worth) in pairwise(places):
        distance = abs(second - first)
        if distance < _NEAR:
            order = 1.0 if second > first else 0.6
            bonus += 0.4 * order * min(worth, next_worth) * (1 - distance / _NEAR)
    return bonus


def _hits(wanted: Sequence[Term], text: str) -> Iterator[tuple[int, int, float]]:
    """Yield (place, number of the term, worth) of hits, a few hundred of each term."""
    low = fold(text)
    for number, term in enumerate(wanted):
        hits: list[tuple[int, float]] = []
        at = 0
        while len(hits) < _MAX_HITS_IN_TEXT and (start := low.find(term.form, at)) >= 0:
            at = start + len(term.form)
            if strength := _strength(term, low, text, start):
                hits.append((start, strength))
        worth = term.weight / (1 + math.log(1 + len(hits)))
        yield from ((start, number, worth * strength) for start, strength in hits)
