"""Fields of a JSON document that a question names by their keys and the values of their row.

Each scalar whose key has a word of the question is scored by the share of the question that is in
its path and in its row.

The pattern uses `re`, because it runs on a question. It is linear, because a match cannot contain a
quote that begins another.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.condense.cutting import shortened
from holdfast.condense.pieces import Place, scalar
from holdfast.search.passages import hits_by_text
from holdfast.search.query import Term, terms
from holdfast.search.stems import stem
from holdfast.search.words import fold, is_stop_word, parts_of

MOST_FIELDS = 6
_SHORTEST_VALUE = 3
_MOST_HITS = 500
"""A term in more values than this does not distinguish rows."""
_COVERED = 0.55
"""The share of the question that a field must have in its keys and beside it."""
_NEAR_BEST = 0.8
_STRUCTURE = frozenset(map(stem, "row record entry object field column key value hold".split()))
"""Words of a question that refer to the structure, wherever they occur in the document."""
_EXACT = 0.99
"""The share of the question in the path and the object of a field that it names exactly."""
_OWN_KEY = 0.3
_SAME_ROW = 0.7
_PER_STEP = 0.01
_BESIDE_CHARS = 60
_KEY_CHARS = 400
"""Of a key that words are looked for in: one of a megabyte has half a million of them."""
_SERIES = 50
_QUOTED = re.compile(r"[\"'`“]([^\"'`“”]+)[\"'`”]")

_Bits = int
"""A set of terms, one bit for each."""
CONTAINERS = (dict, list)


class _Leaves(NamedTuple):
    """The scalars of a document: text, place and nearest key of each."""

    texts: list[str]
    places: list[Place]
    keys: list[str]


class FieldMatch(NamedTuple):
    """A field that the question names by words."""

    place: Place
    beside: str
    """The field that identifies its row, empty if there is only one row."""
    is_exact: bool
    """Whether the question names its key and a value that only its object has, and nothing else."""


def fields_by_words(value: Any, question: str) -> list[FieldMatch]:
    """Return the fields that the question names by words, best first."""
    leaves = _leaves(value)
    question_terms = _terms(question, leaves.texts)
    names = _Names(question_terms, leaves.keys)
    named = [index for index, key in enumerate(leaves.keys) if key in names.bits]
    if not named:
        return []
    rows = _Rows(question_terms, leaves, names)
    scalars = [
        _Named(index, names.path(leaves.places[index]), *rows.beside(leaves.places[index]))
        for index in named
    ]
    worth = worths(
        question_terms,
        [leaf.path | leaf.near | leaf.far for leaf in scalars],
        len(leaves.texts),
    )
    least = _COVERED * sum(worth)
    weigh = Weigher(worth)
    scored = []
    for leaf in scalars:
        reached = leaf.path | leaf.near
        key = leaves.keys[leaf.number]
        score = weigh(reached) + _SAME_ROW * weigh(leaf.far & ~reached)
        score += _OWN_KEY * weigh(names.bits[key]) * names.precision(key)
        if score >= least:
            depth = depth_of(leaves.places[leaf.number])
            scored.append((score / (1 + _PER_STEP * depth), leaf.number))
    best = max((score for score, _ in scored), default=0.0)
    near = [entry for entry in scored if entry[0] >= _NEAR_BEST * best]
    near.sort(key=lambda entry: -entry[0])
    if sum(score > best - 1e-9 for score, _ in near) > MOST_FIELDS:
        return []  # the question distinguishes no field
    # A value quoted in the question is its subject, and seldom the answer.
    quoted = {term.form for term in question_terms if term.anywhere}
    near = [entry for entry in near if fold(leaves.texts[entry[1]]) not in quoted] or near
    asked_bits = sum(1 << n for n, term in enumerate(question_terms) if term.form not in _STRUCTURE)
    hits_of = {leaf.number: (leaf.path | leaf.near) & asked_bits for leaf in scalars}
    exact = [
        index
        for _, index in near
        if names.precision(leaves.keys[index]) == 1.0
        and rows.is_named(leaves.places[index])
        and weigh(hits_of[index]) >= _EXACT * weigh(asked_bits)
        and fold(leaves.texts[index]) not in quoted
    ]
    best_first = [index for _, index in near]
    if len(exact) == 1:
        best_first.sort(key=lambda index: index != exact[0])
    return [
        FieldMatch(leaves.places[index], rows.said(index), [index] == exact)
        for index in best_first[:MOST_FIELDS]
    ]


def asks_only(question: str, key: Any) -> bool:
    """Return whether a question asks for a key and names nothing else of the document."""
    name = str(key)[:_KEY_CHARS]
    own = {fold(name), *(term.form for term in terms(name))}
    return all(term.form in own or term.form in _STRUCTURE for term in terms(question))


class _Named(NamedTuple):
    """A scalar whose key the question names, and where it has more of the question."""

    number: int
    path: _Bits
    """In the keys above it, its own among them."""
    near: _Bits
    """In values of the objects it is in."""
    far: _Bits
    """In other values of its row."""


def _leaves(value: Any) -> _Leaves:
    """Every scalar, the rows of an array in their order; no recursion."""
    texts: list[str] = []
    places: list[Place] = []
    keys: list[str] = []
    stack: list[tuple[Any, Place, str]] = [(value, (), "")]
    while stack:
        node, place, key = stack.pop()
        if type(node) is dict:
            inner = []
            for step, child in node.items():
                kind = type(child)
                if kind is dict or kind is list:
                    if child:
                        inner.append((child, (place, step, node), step))
                else:
                    texts.append(child if kind is str else scalar(child))
                    places.append((place, step, node))
                    keys.append(step)
            stack += reversed(inner)
        elif type(node) is list:
            kinds = {*map(type, node)}
            if len(node) > _SERIES and not kinds & {dict, list, str}:
                continue  # a series of numbers: paths lead to them, words do not
            if not kinds & {dict, list}:
                texts += map(scalar, node)
                places += [(place, at, node) for at in range(len(node))]
                keys += [key] * len(node)
            else:
                stack += [
                    (node[at], (place, at, node), key)
                    for at in range(len(node) - 1, -1, -1)
                    if node[at] or type(node[at]) not in CONTAINERS  # of nothing but `[]`, nothing
                ]
        elif place:
            texts.append(scalar(node))
            places.append(place)
            keys.append(key)
    return _Leaves(texts, places, keys)


def _terms(question: str, texts: list[str]) -> Sequence[Term]:
    """Terms of the question; a value that it quotes, with or without marks, is one of them.

    The words of such a value are not asked for as keys.
    """
    folded = fold(question)
    quoted = set(_QUOTED.findall(folded))
    longest = len(folded)
    short = {text for text in texts if _SHORTEST_VALUE <= len(text) < longest}
    values = {low for text in short if " " in text and (low := fold(text)) in folded}
    if quoted:
        values |= quoted & {fold(text) for text in short}
    remaining, quoted_terms = question, []
    for text in sorted(values, key=lambda text: (-len(text), text)):
        at = fold(remaining).find(text)
        if at >= 0 and _stands_alone(remaining, at, at + len(text)):
            remaining = f"{remaining[:at]} {remaining[at + len(text) :]}"
            quoted_terms.append(Term(text, 4.0, exact=True, anywhere=True))
    return [*quoted_terms, *terms(remaining)]


def _stands_alone(text: str, start: int, end: int) -> bool:
    return not (text[:start][-1:].isalnum() or text[end : end + 1].isalnum())


def worths(wanted: Sequence[Term], reached: list[_Bits], total: int) -> list[float]:
    """Return the weight of each term: high for rare terms, zero for terms that reach no field."""
    worths = []
    for number, term in enumerate(wanted):
        count = sum(bits >> number & 1 for bits in reached)
        worths.append(term.weight * math.log(1 + total / (count + 1)) if count else 0.0)
    return worths


class Weigher:
    """The worth of a set of terms; the same few sets come again and again."""

    def __init__(self, worth: list[float]) -> None:
        self._worth = worth
        self._known: dict[_Bits, float] = {0: 0.0}

    def __call__(self, bits: _Bits) -> float:
        """Return the worth of a set."""
        covered = self._known.get(bits)
        if covered is None:
            covered = sum(worth for n, worth in enumerate(self._worth) if bits >> n & 1)
            self._known[bits] = covered
        return covered


class _Names:
    """Which terms of the question the keys of a document hold."""

    def __init__(self, wanted: Sequence[Term], keys: list[str]) -> None:
        self._by_form = {term.form: 1 << number for number, term in enumerate(wanted)}
        self._above: dict[int, _Bits] = {}
        self._precision: dict[str, float] = {}
        self.bits: dict[str, _Bits] = {}
        """Of the keys that hold any."""
        for key in dict.fromkeys(keys):
            self._read(key)

    def precision(self, key: str) -> float:
        """The share of a key's words that the question has."""
        return self._precision.get(key, 0.0)

    def path(self, place: Place) -> _Bits:
        """Terms in the keys of a path; those above an object are worked out once."""
        waiting = []
        bits = 0
        while place:
            place, step, holder = place
            waiting.append((step, id(holder)))
            if id(holder) in self._above:
                bits = self._above[id(holder)]
                break
        for step, holder_id in reversed(waiting):
            self._above[holder_id] = bits
            if type(step) is str:
                if step not in self._precision:
                    self._read(step)
                bits |= self.bits.get(step, 0)
        return bits

    def _read(self, key: str) -> None:
        key_bits = self._by_form.get(fold(key), 0)
        words = [word for word in map(fold, parts_of(key[:_KEY_CHARS])) if not is_stop_word(word)]
        each = [self._by_form.get(stem(word), 0) | self._by_form.get(word, 0) for word in words]
        bits = key_bits
        for item in each:
            bits |= item
        if bits:
            self.bits[key] = bits
        self._precision[key] = 1.0 if key_bits else sum(map(bool, each)) / max(1, len(each))


def depth_of(place: Place) -> int:
    """Return how many steps a place is from the root."""
    depth = 0
    while place:
        place = place[0]
        depth += 1
    return depth


class _Rows:
    """Index of the terms of the question by the objects whose values contain them."""

    def __init__(self, wanted: Sequence[Term], leaves: _Leaves, names: _Names) -> None:
        self._near: dict[int, _Bits] = {}
        self._far: dict[int, _Bits] = {}
        self._beside: dict[int, tuple[_Bits, _Bits]] = {}
        self._telling: dict[int, tuple[bool, int, int]] = {}
        self._named: set[int] = set()
        self._leaves = leaves
        hits = []
        for number, indices in enumerate(hits_by_text(wanted, leaves.texts)):
            form = wanted[number].form
            equal = [index for index in indices if fold(leaves.texts[index]) == form]
            hits.append((not equal, equal or indices, 1 << number))
            holders = {id(leaves.places[index][2]) for index in equal}
            self._named |= holders if len(holders) == 1 else set()
        # A complete value before a part of one, and the rarest first: it identifies its row best.
        for is_part, indices, bit in sorted(hits, key=lambda hit: (hit[0], len(hit[1]))):
            for index in indices if len(indices) <= _MOST_HITS else ():
                bits = bit | names.bits.get(leaves.keys[index], 0)
                self._mark(leaves.places[index], bits, (is_part, len(indices), index))

    def is_named(self, place: Place) -> bool:
        """Return whether the question has a value that occurs only in the object of a place."""
        return id(place[2]) in self._named

    def _mark(self, place: Place, bits: _Bits, telling: tuple[bool, int, int]) -> None:
        holder = place[2]
        self._near[id(holder)] = self._near.get(id(holder), 0) | bits
        self._telling.setdefault(id(holder), telling)
        row = _row(place)
        if row is not holder:
            self._far[id(row)] = self._far.get(id(row), 0) | bits
            self._telling.setdefault(id(row), telling)

    def beside(self, place: Place) -> tuple[_Bits, _Bits]:
        """Terms in the objects that a place is in, and in others of its row."""
        if not self._near:
            return 0, 0
        # Objects around many rows are visited once: they may be nested hundreds of levels deep.
        waiting: list[Any] = []
        while place and id(place[2]) not in self._beside:
            waiting.append(place[2])
            place = place[0]
        near, far = self._beside[id(place[2])] if place else (0, 0)
        for holder in reversed(waiting):
            near |= self._near.get(id(holder), 0)
            far |= self._far.get(id(holder), 0)
            self._beside[id(holder)] = near, far
        return near, far

    def said(self, index: int) -> str:
        """Return the field that best distinguishes the row of a scalar, if it is another field."""
        candidates = []
        place = self._leaves.places[index]
        while place:
            place, _, holder = place
            if id(holder) in self._telling:
                candidates.append(self._telling[id(holder)])
        *_, telling = min(candidates, default=(False, 0, index))
        text = shortened(self._leaves.texts[telling], _BESIDE_CHARS)
        return "" if telling == index else f"{self._leaves.keys[telling]}: {text}"


def _row(place: Place) -> Any:
    """The object around a place that is an element of an array; else the nearest."""
    nearest = place[2]
    while place:
        place, _, holder = place
        if place and type(place[1]) is int:
            return holder
    return nearest
