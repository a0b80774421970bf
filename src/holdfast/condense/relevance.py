"""Which parts of a content answer a question, without a model.

relevance: after question and condenser. BM25 over the question's own terms: the content is
searched for them instead of being cut into words, so that 100 KB take a few milliseconds. The
same question and passages give the same order.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import msgspec

from holdfast.condense.condenser import Passage
from holdfast.condense.cutting import MARK, first_break, last_break
from holdfast.condense.question import ENDINGS, Term, fold, terms

_SATURATION = 1.2
_LENGTH_SHARE = 0.5
_MOST_HITS = 4
"""More occurrences in one passage say nothing new."""
_MOST_IN_TEXT = 300
_COMMON = 0.7
"""A term in more than this share of many passages tells none of them from the others."""
_MANY = 20
_BLOCK_CHARS = 200_000
_NEAR = 60
_MOST_REFINED = 200
_LONGEST_ENDING = 8


class Ranked(msgspec.Struct, frozen=True):
    """A passage that has something to do with the question."""

    index: int
    """Its place among the passages."""
    score: float
    """Above 0; only good for comparing passages of one question."""


_Hit = tuple[int, float]
"""Where a term stands, and how well it matches there."""


class _Hits(NamedTuple):
    """Those of one term in one passage: there may be a hundred thousand passages."""

    first: int
    strength: float
    times: int


def rank(question: str, passages: Sequence[Passage]) -> list[Ranked]:
    """The passages that have to do with the question, best first, equal ones as they stand."""
    wanted = terms(question)
    if not wanted or not passages:
        return []
    blocks = _Blocks(passages)
    average = max(1.0, blocks.characters / len(passages))
    scores: dict[int, float] = {}
    places: dict[int, list[tuple[int, float]]] = {}
    telling = _telling(wanted, blocks)
    by_term: list[dict[int, _Hits]] = [{} for _ in telling]
    for block in blocks:
        for term, hits_in in zip(telling, by_term, strict=True):
            hits_in.update(_by_passage(term, block))
    for term, hits_in in zip(telling, by_term, strict=True):
        count = len(hits_in)
        worth = term.weight * math.log(1 + (len(passages) - count + 0.5) / (count + 0.5))
        for index, hits in hits_in.items():
            strength = hits.strength
            size = (len(passages[index].text) + 1) / average
            damped = strength + _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * size)
            score = worth * strength * (_SATURATION + 1) / damped
            scores[index] = scores.get(index, 0.0) + score
            places.setdefault(index, []).append((hits.first, worth))
    best = sorted(scores, key=lambda index: (-scores[index], index))
    for index in best[:_MOST_REFINED]:
        scores[index] += _together(places[index])
    best[:_MOST_REFINED] = sorted(best[:_MOST_REFINED], key=lambda index: (-scores[index], index))
    return [Ranked(index, scores[index]) for index in best]


def excerpt(text: str, question: str, most_characters: int) -> tuple[str, int, int]:
    """The window of a long text that answers best, and where it begins and ends in the text.

    Nothing is torn at the ends of the window; `…` marks where text goes on. With the marks it has
    at most `most_characters` characters.
    """
    if len(text) <= most_characters:
        return text, 0, len(text)
    room = max(0, most_characters - 2 * len(MARK))
    start = _best_window(text, terms(question), room)
    end = min(len(text), start + room)
    start = first_break(text, start, end)
    end = last_break(text, start, end)
    before = MARK if start > 0 else ""
    after = MARK if end < len(text) else ""
    return (before + text[start:end] + after)[: max(0, most_characters)], start, end


def hits_by_text(wanted: Sequence[Term], texts: Sequence[str]) -> list[list[int]]:
    """For each term the texts, by their number, that hold it."""
    block = _block(0, texts)
    return [list(_by_passage(term, block)) for term in wanted]


# --- where a term stands -------------------------------------------------------------------------


class _Block(NamedTuple):
    """Texts that follow each other, searched together."""

    first: int
    """The number of the first among all."""
    text: str
    low: str
    starts: list[int]


def _block(first: int, texts: Sequence[str]) -> _Block:
    text = "\0".join(texts)
    return _Block(first, text, fold(text), [0, *accumulate(len(one) + 1 for one in texts)])


class _Blocks:
    """All passages, a block at a time: to search them all at once takes their room twice more."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = passages
        self.characters = sum(len(passage.text) + 1 for passage in passages) - 1

    def __iter__(self) -> Iterator[_Block]:
        texts: list[str] = []
        size = 0
        for number, passage in enumerate(self.passages, 1):
            texts.append(passage.text)
            size += len(passage.text)
            if size >= _BLOCK_CHARS or number == len(self.passages):
                yield _block(number - len(texts), texts)
                texts, size = [], 0


def _telling(wanted: Sequence[Term], blocks: _Blocks) -> list[Term]:
    """The terms that tell passages apart; if there is none, the rarest."""
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


def _by_passage(term: Term, block: _Block) -> dict[int, _Hits]:
    """The hits of a term in each passage that has one, a few of each."""
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
        if hits.times >= _MOST_HITS:
            at = starts[number + 1]
    return hits_in


def _strength(term: Term, low: str, text: str, start: int) -> float:
    """How well the text at a place matches a term: 0 if it only looks like it."""
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
        if not character.isalpha() and character != "'":
            break
        word += character
    if word in ENDINGS:
        return 1.0
    doubled = word[:1] == form[-1:] and word[1:] in ENDINGS
    return 0.9 if doubled else 0.0


# --- what stands together ------------------------------------------------------------------------


def _together(places: list[tuple[int, float]]) -> float:
    """A bonus for terms that follow each other closely, as they do in the question."""
    bonus = 0.0
    for (first, worth), (second, other) in pairwise(places):
        distance = abs(second - first)
        if distance < _NEAR:
            order = 1.0 if second > first else 0.6
            bonus += 0.4 * order * min(worth, other) * (1 - distance / _NEAR)
    return bonus


def _hits(wanted: Sequence[Term], text: str) -> Iterator[tuple[int, int, float]]:
    """Yield (place, number of the term, worth) of hits, a few hundred of each term."""
    low = fold(text)
    for number, term in enumerate(wanted):
        hits: list[_Hit] = []
        at = 0
        while len(hits) < _MOST_IN_TEXT and (start := low.find(term.form, at)) >= 0:
            at = start + len(term.form)
            if strength := _strength(term, low, text, start):
                hits.append((start, strength))
        worth = term.weight / (1 + math.log(1 + len(hits)))
        yield from ((start, number, worth * strength) for start, strength in hits)


def _best_window(text: str, wanted: Sequence[Term], room: int) -> int:
    """Where the window of `room` characters begins that holds most of the question."""
    hits = sorted(_hits(wanted, text))
    if not hits:
        return 0
    best, best_score, left, score = (0, 0), -1.0, 0, 0.0
    inside: dict[int, list[float]] = {}
    for right, (place, number, worth) in enumerate(hits):
        values = inside.setdefault(number, [])
        score += worth if not values else 0.1 * worth
        values.append(worth)
        while place - hits[left][0] > room * 0.8:
            _, gone, value = hits[left]
            rest = inside[gone]
            rest.pop(0)
            score -= value if not rest else 0.1 * value
            left += 1
        if score > best_score + 1e-9:
            best, best_score = (left, right), score
    first, last = hits[best[0]][0], hits[best[1]][0]
    # What stands around the hits belongs to the answer: more of it behind than before.
    return max(0, min(first - (room - (last - first)) // 3, len(text) - room))
