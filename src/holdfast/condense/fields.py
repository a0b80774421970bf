"""The fields of a JSON document that a question asks for.

fields: after addresses and relevance, before cite and expand. Passages say what stands around an
answer; a field is the answer alone. A field is asked for by its path, or by words: those of its
keys, and those of the values beside it, so that `city of Thigpen` leads through the row that has
`Thigpen` in it to its `city`. Work is linear in the size of the document.

The one pattern is in `re`: it is asked about a question, and is linear, for nothing in a match can
be a quote that another begins with.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from holdfast.condense.addresses import MOST_FOUND, addressed, paths_in
from holdfast.condense.condenser import Passage
from holdfast.condense.cutting import shortened
from holdfast.condense.pieces import Place, path_of, scalar
from holdfast.condense.question import Term, fold, is_stop_word, parts_of, stem, terms
from holdfast.condense.relevance import hits_by_text
from holdfast.condense.rows import brief
from holdfast.condense.source import Source
from holdfast.document import Document, Window, find, windows
from holdfast.document import step as child_path
from holdfast.document.json_text import decoder
from holdfast.document.windows import WINDOW
from holdfast.errors import ExpandError

_MOST_FIELDS = 6
_SHORTEST_VALUE = 3
_MOST_HITS = 500
"""A term in more values than this does not tell rows from each other."""
_COVERED = 0.55
"""The share of the question that a field must have in its keys and beside it."""
_NEAR_BEST = 0.8
_OWN_KEY = 0.3
_SAME_ROW = 0.7
_PER_STEP = 0.01
_BESIDE_CHARS = 60
_KEY_CHARS = 400
"""Of a key that words are looked for in: one of a megabyte has half a million of them."""
_VALUE_CHARS = 600
_SERIES = 50
_QUOTED = re.compile(r"[\"'`“]([^\"'`“”]+)[\"'`”]")


def fields(source: Source, question: str) -> list[Passage]:
    """The fields that the question asks for, best first; none if it names none."""
    document = source.document
    if document is None or not isinstance(document.value, (dict, list)):
        return []
    if not document.is_whole:
        return (_at_paths(document, question) or _in_windows(document, question))[:_MOST_FIELDS]
    named = addressed(document.value, question)
    chosen = [(place, "") for place in named]
    if all(_depth(place) == 1 for place in named):  # a lone key may be meant of something else
        chosen += _by_words(document.value, question)
    unique: dict[str, Passage] = {}
    for place, beside in chosen:
        passage = _passage(place, beside, path_of(place))
        unique.setdefault(passage.where, passage)
    return list(unique.values())[:_MOST_FIELDS]


def _passage(place: Place, beside: str, path: str) -> Passage:
    _, step, holder = place
    whole = _shown(holder[step])
    return Passage(f"{whole} ({beside})" if beside else whole, path)


def _shown(value: Any) -> str:
    return brief(value, limit=_VALUE_CHARS) if isinstance(value, (dict, list)) else scalar(value)


# --- of a document that is read a part at a time --------------------------------------------------


def _at_paths(document: Document, question: str) -> list[Passage]:
    """The values at the paths that a question names, if each is one or a few."""
    passages: list[Passage] = []
    for path in paths_in(question):
        with suppress(ExpandError):  # words that are no path
            matches, _ = find(document, path)
            for match in matches if len(matches) <= MOST_FOUND else ():
                start, end = match.node.start, match.node.end
                if end - start <= WINDOW:
                    value = decoder.decode(match.document.text[start:end])
                    passages.append(Passage(_shown(value), match.node.path))
    return passages


def _in_windows(document: Document, question: str) -> list[Passage]:
    """The fields of the window that has most of the question, if one has more than the others."""
    wanted = terms(question)
    bits = []
    for window in windows(document):
        low = fold(window.written)
        bits.append(sum(1 << n for n, term in enumerate(wanted) if term.form in low))
    weigh = _Weigher(_worths(wanted, bits, len(bits)))
    scores = list(map(weigh, bits))
    best = max(scores, default=0.0)
    if scores.count(best) != 1:
        return []
    window = next(islice(windows(document), scores.index(best), None))
    if not isinstance(window.value, _CONTAINERS):
        return []
    return [
        _passage(place, beside, _path_in(window, place))
        for place, beside in _by_words(window.value, question)
    ]


def _path_in(window: Window, place: Place) -> str:
    """The path of a place of a window in its document."""
    above, steps = place, []
    while above:
        above, step, _ = above
        steps.append(step)
    if type(steps[-1]) is int:
        steps[-1] += window.first
    path = window.path
    for step in reversed(steps):
        path = child_path(path, step)
    return path


# --- by words ------------------------------------------------------------------------------------

_Bits = int
"""A set of terms, one bit for each."""


_CONTAINERS = (dict, list)


class _Leaves(NamedTuple):
    """The scalars of a document: text, place and nearest key of each."""

    texts: list[str]
    places: list[Place]
    keys: list[str]


def _by_words(value: Any, question: str) -> Iterator[tuple[Place, str]]:
    leaves = _leaves(value)
    wanted = _terms(question, leaves.texts)
    names = _Names(wanted, leaves.keys)
    named = [index for index, key in enumerate(leaves.keys) if key in names.bits]
    if not named:
        return
    rows = _Rows(wanted, leaves, names)
    known = [
        _Named(index, names.path(leaves.places[index]), *rows.beside(leaves.places[index]))
        for index in named
    ]
    worth = _worths(wanted, [one.path | one.near | one.far for one in known], len(leaves.texts))
    least = _COVERED * sum(worth)
    weigh = _Weigher(worth)
    scored = []
    for one in known:
        reached = one.path | one.near
        key = leaves.keys[one.number]
        score = weigh(reached) + _SAME_ROW * weigh(one.far & ~reached)
        score += _OWN_KEY * weigh(names.bits[key]) * names.precision(key)
        if score >= least:
            depth = _depth(leaves.places[one.number])
            scored.append((score / (1 + _PER_STEP * depth), one.number))
    best = max((score for score, _ in scored), default=0.0)
    told = [entry for entry in scored if entry[0] >= _NEAR_BEST * best]
    told.sort(key=lambda entry: -entry[0])
    if sum(score > best - 1e-9 for score, _ in told) > _MOST_FIELDS:
        return  # the question tells no field from the others
    for _, index in told[:_MOST_FIELDS]:
        yield leaves.places[index], rows.said(index)


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
                    if node[at] or type(node[at]) not in _CONTAINERS  # of nothing but `[]`, nothing
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
    asked = fold(question)
    quoted = set(_QUOTED.findall(asked))
    longest = len(asked)
    short = {text for text in texts if _SHORTEST_VALUE <= len(text) < longest}
    values = {low for text in short if " " in text and (low := fold(text)) in asked}
    if quoted:
        values |= quoted & {fold(text) for text in short}
    rest, found = question, []
    for text in sorted(values, key=lambda text: (-len(text), text)):
        at = fold(rest).find(text)
        if at >= 0 and _stands_alone(rest, at, at + len(text)):
            rest = f"{rest[:at]} {rest[at + len(text) :]}"
            found.append(Term(text, 4.0, exact=True, anywhere=True))
    return [*found, *terms(rest)]


def _stands_alone(text: str, start: int, end: int) -> bool:
    return not (text[:start][-1:].isalnum() or text[end : end + 1].isalnum())


def _worths(wanted: Sequence[Term], reached: list[_Bits], total: int) -> list[float]:
    """What each term tells: rare ones more, those that lead to no field nothing."""
    worths = []
    for number, term in enumerate(wanted):
        count = sum(bits >> number & 1 for bits in reached)
        worths.append(term.weight * math.log(1 + total / (count + 1)) if count else 0.0)
    return worths


class _Weigher:
    """The worth of a set of terms; the same few sets come again and again."""

    def __init__(self, worth: list[float]) -> None:
        self._worth = worth
        self._known: dict[_Bits, float] = {0: 0.0}

    def __call__(self, bits: _Bits) -> float:
        known = self._known.get(bits)
        if known is None:
            known = sum(worth for n, worth in enumerate(self._worth) if bits >> n & 1)
            self._known[bits] = known
        return known


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
        whole = self._by_form.get(fold(key), 0)
        words = [word for word in map(fold, parts_of(key[:_KEY_CHARS])) if not is_stop_word(word)]
        each = [self._by_form.get(stem(word), 0) | self._by_form.get(word, 0) for word in words]
        bits = whole
        for one in each:
            bits |= one
        if bits:
            self.bits[key] = bits
        self._precision[key] = 1.0 if whole else sum(map(bool, each)) / max(1, len(each))


def _depth(place: Place) -> int:
    depth = 0
    while place:
        place = place[0]
        depth += 1
    return depth


class _Rows:
    """Which terms of the question stand in the values of which objects."""

    def __init__(self, wanted: Sequence[Term], leaves: _Leaves, names: _Names) -> None:
        self._near: dict[int, _Bits] = {}
        self._far: dict[int, _Bits] = {}
        self._beside: dict[int, tuple[_Bits, _Bits]] = {}
        self._telling: dict[int, tuple[int, int]] = {}
        self._leaves = leaves
        hits = []
        for number, found in enumerate(hits_by_text(wanted, leaves.texts)):
            form = wanted[number].form
            equal = [index for index in found if fold(leaves.texts[index]) == form]
            hits.append((equal or found, 1 << number))
        # The rarest first: it tells most of its row.
        for indices, bit in sorted(hits, key=lambda hit: len(hit[0])):
            for index in indices if len(indices) <= _MOST_HITS else ():
                bits = bit | names.bits.get(leaves.keys[index], 0)
                self._mark(leaves.places[index], bits, (len(indices), index))

    def _mark(self, place: Place, bits: _Bits, telling: tuple[int, int]) -> None:
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
        # What is around many rows is looked at once: they may stand hundreds of steps deep.
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
        """The field that tells the row of a scalar from others best, if it is another one."""
        known = []
        place = self._leaves.places[index]
        while place:
            place, _, holder = place
            if id(holder) in self._telling:
                known.append(self._telling[id(holder)])
        _, telling = min(known, default=(0, index))
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
