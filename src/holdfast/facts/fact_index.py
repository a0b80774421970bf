"""The current facts of one scope as arrays, searched in about a millisecond.

The index holds no text: it returns ids, which the store confirms. Rows are only appended; the row
of a superseded or forgotten fact is marked, and the ledger rebuilds the index when half of its rows
are marked. Only one thread may use an index at a time.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from holdfast.facts.fact_query import FactHit, FactQuery, strip_speaker
from holdfast.facts.names import ROLES, find_names
from holdfast.models.protocol import Embedder
from holdfast.search.arrays import Bytes, GrowingArray
from holdfast.search.bm25 import rarity
from holdfast.search.postings import Counts, Postings
from holdfast.search.top import best, largest
from holdfast.search.vectors import SignSketches, VectorColumn, quantise, unit_rows
from holdfast.search.words import fact_terms, number_of
from holdfast.store.fact_store import FactKind, FactRow

DAY_SECONDS = 86_400.0
HALF_LIVES: dict[FactKind, float] = {
    "decision": 180 * DAY_SECONDS,
    "entity": 365 * DAY_SECONDS,
    "fact": 90 * DAY_SECONDS,
    "link": 60 * DAY_SECONDS,
    "metric": 30 * DAY_SECONDS,
    "task": 14 * DAY_SECONDS,
}
"""Age in seconds at which a fact counts half as recent. A task is done or dropped within weeks and
a figure is measured again, while a person's identity stays true for years."""
STEP = 0.05
"""Facts whose similarity differs by less than this are ranked by tags, then by recency."""
_TAG_SHARE, _RECENCY_SHARE = 0.95, 0.04
"""Shares of a step. The least overlap, one tag of 20, counts more than any recency."""
_WORDS_SHARE = 0.6
"""Share of the words in the similarity where vectors exist too: names and numbers match by
spelling."""
_UNRELATED = 0.3
"""Cosine of texts that have nothing to do with each other."""
_CANDIDATES = 512
"""Facts that are compared exactly, chosen by rare words and vector signs."""
_STANDING = 64
"""Maximum standing facts that are compared."""
_COMMON = 0.2
"""A word in more than this share of the facts, such as a speaker's name, chooses no candidates. It
still counts in the exact comparison."""
_NAMED_STEP = 2.0
"""Larger than any other score, so that facts about a name in the question rank first."""
_NEW_TEXTS = 512
"""Texts embedded per call."""

Numbers = npt.NDArray[Any]


class _Term(NamedTuple):
    """A word of a question."""

    places: Numbers
    """Rows of the facts that hold it, ascending."""
    worth: float
    """Its weight: the rarer, the higher."""


class FactIndex:
    """The current facts of a scope."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self.counter = 0
        """The count of changes that the index includes."""
        self._ids: list[str] = []
        self._row_of: dict[str, int] = {}
        self._current = GrowingArray(np.bool_)
        self._standing = GrowingArray(np.uint32)
        """Rows of standing facts."""
        self._created, self._decay, self._half_life = (GrowingArray(np.float64) for _ in range(3))
        self._norm = GrowingArray(np.float32)
        self._words = Postings()
        self._tags: dict[str, array[int]] = {}
        self._sessions: dict[str, array[int]] = {}
        self._subjects: dict[str, array[int]] = {}
        self._speakers: set[str] = set()
        self._has_speaker = GrowingArray(np.bool_)
        """Whether a fact names its speaker; a role is not a name."""
        self._dimensions = 0 if embedder is None else embedder.dimensions
        self._vectors = VectorColumn(self._dimensions)
        self._sketches = SignSketches(self._dimensions)

    def __len__(self) -> int:
        return len(self._row_of)

    @property
    def rows(self) -> int:
        """Return the number of rows, including those of facts that are no longer current."""
        return len(self._ids)

    # --- what changed ----------------------------------------------------------------------------

    def apply(self, rows: Sequence[FactRow], remaining_ids: frozenset[str] | None = None) -> None:
        """Apply changed rows; if facts were forgotten, `remaining_ids` has the others."""
        if remaining_ids is not None:
            for fact_id in self._row_of.keys() - remaining_ids:
                self._drop(fact_id)
        for at in range(0, len(rows), _NEW_TEXTS):
            part = rows[at : at + _NEW_TEXTS]
            for row in part:
                self._drop(row.id)
            self._append([row for row in part if not row.superseded_by])
        if len(rows) > _NEW_TEXTS:
            self._words.sort()

    def _drop(self, fact_id: str) -> None:
        number = self._row_of.pop(fact_id, None)
        if number is not None:
            self._current.all[number] = False
            self._ids[number] = ""

    def _append(self, rows: Sequence[FactRow]) -> None:
        first = len(self._ids)
        terms = [fact_terms(row.text) for row in rows]
        for number, row in enumerate(rows, first):
            self._ids.append(row.id)
            self._row_of[row.id] = number
            for table, names in (
                (self._tags, row.tags),
                (self._sessions, row.sessions),
                (self._subjects, (row.subject,) if row.subject else ()),
            ):
                for name in names:
                    table.setdefault(name, array("I")).append(number)
            if row.said_by:
                self._speakers.update(fact_terms(row.said_by))
        self._current.extend([True] * len(rows))
        self._standing.extend([number for number, row in enumerate(rows, first) if row.standing])
        self._created.extend([row.created_at for row in rows])
        self._decay.extend([row.decay_weight for row in rows])
        self._half_life.extend([HALF_LIVES[row.kind] for row in rows])
        self._norm.extend([1.0 / (0.75 + 0.25 * len(each) / _USUAL_WORDS) for each in terms])
        self._has_speaker.extend(
            [bool(row.said_by) and row.said_by.lower() not in ROLES for row in rows]
        )
        numbers = [number_of(term) for each in terms for term in each]
        holders = np.repeat(np.arange(first, first + len(rows)), [len(each) for each in terms])
        self._words.extend(Counts(numbers, holders, [1] * len(numbers)))
        if self._embedder is not None and rows:
            vectors = self._vectors_of(self._embedder, rows)
            self._vectors.extend(vectors)
            self._sketches.extend(vectors)

    def _vectors_of(self, embedder: Embedder, rows: Sequence[FactRow]) -> Bytes:
        """Return the stored vectors of facts; those of another embedder are computed again."""
        size = self._dimensions
        foreign = [row.embedder != embedder.name or len(row.vector) != size for row in rows]
        stored = b"".join(
            bytes(size) if is_foreign else row.vector
            for row, is_foreign in zip(rows, foreign, strict=True)
        )
        vectors: Bytes = np.frombuffer(stored, np.int8).reshape(-1, size)
        if any(foreign):
            texts = [
                strip_speaker(row.text, row.said_by)
                for row, is_foreign in zip(rows, foreign, strict=True)
                if is_foreign
            ]
            vectors = vectors.copy()
            vectors[foreign] = quantise(embedder.embed(texts))
        return vectors

    # --- searching -------------------------------------------------------------------------------

    def search(self, query: FactQuery) -> list[FactHit]:
        """Return the best facts: those about a name in the question first, then by score.

        Up to a third of the places are reserved for standing facts, unless the question names
        somebody and the facts are another person's.
        """
        if not self._row_of or query.limit < 1:
            return []
        allowed = self._allowed_rows(query.session)
        terms = self._terms(query.text)
        vector = self._vector(query.text)
        rough = self._rough_scores(terms, vector)
        for tag in query.tags:
            rough[self._places(self._tags, tag)] += np.float32(1e-3)
        named = self._name_gains(query.text)
        rough += named
        rough *= allowed
        chosen = self._candidates(rough, allowed, max(_CANDIDATES, 2 * query.limit))
        standing = self._standing.all
        standing = standing[allowed[standing] & self._reservable(named, standing)]
        chosen = np.union1d(chosen, standing[largest(rough[standing], _STANDING)])
        similarity = self._word_similarity(terms, chosen)
        if vector is not None:
            unit = unit_rows(vector[np.newaxis])[0]
            similarity = _mix_similarity(similarity, self._vectors.cosines(unit, chosen))
        overlap = self._tag_overlap(query.tags, chosen)
        score = self._scores(chosen, similarity, overlap, query.now) + named[chosen]
        places = _pick(score, np.isin(chosen, standing).tolist(), query.limit)
        gains = named[chosen]
        return [
            FactHit(
                self._ids[int(chosen[at])],
                float(score[at]),
                float(similarity[at]),
                named=bool(gains[at]),
            )
            for at in places
        ]

    def _allowed_rows(self, session: str) -> Numbers:
        current: Numbers = self._current.all
        if not session:
            return current
        in_session = np.zeros(self.rows, np.bool_)
        in_session[self._places(self._sessions, session)] = True
        allowed: Numbers = current & in_session
        return allowed

    def _name_gains(self, text: str) -> Numbers:
        """Return what each fact's score gains by the question's names: people count before things.

        A fact's text begins with the speaker's name, so its words show both the speaker and the
        people it mentions.
        """
        names = find_names(text, self._speakers)
        speakers, named_objects = (np.zeros(self.rows, np.bool_) for _ in range(2))
        for term in names.speakers:
            speakers[self._words.of(number_of(term))[0]] = True
        for terms in names.objects:
            holders = (self._words.of(number_of(term))[0] for term in terms)
            rarest, *further = sorted(holders, key=len)
            for places in further:
                rarest = rarest[np.isin(rarest, places, assume_unique=True)]
            named_objects[rarest] = True
        gains: Numbers = _NAMED_STEP * (2.0 * speakers + named_objects)
        return gains.astype(np.float32)

    def _reservable(self, named: Numbers, standing: Numbers) -> Numbers:
        """Return which standing facts may have a reserved place."""
        if not named.max(initial=0.0) >= 2 * _NAMED_STEP:
            return np.ones(len(standing), np.bool_)
        is_nameless = ~self._has_speaker.all[standing]
        may_stand: Numbers = is_nameless | (named[standing] >= 2 * _NAMED_STEP)
        return may_stand

    def _places(self, table: dict[str, array[int]], name: str) -> Numbers:
        """Return a copy of a name's rows: an array whose memory is in use cannot grow."""
        return np.array(table.get(name, ()), np.uint32)

    def _terms(self, text: str) -> list[_Term]:
        """Return the question's words that occur in any fact, with their weights."""
        holders = (self._words.of(number_of(term))[0] for term in fact_terms(text))
        return [_Term(each, rarity(len(each), self.rows)) for each in holders if len(each)]

    def _rough_scores(self, terms: list[_Term], vector: Bytes | None) -> Numbers:
        """Return a rough similarity of every fact, from rare words and vector signs."""
        rare = [term for term in terms if len(term.places) <= _COMMON * self.rows] or terms
        rough = np.zeros(self.rows, np.float32)
        for term in rare:
            rough[term.places] += np.float32(term.worth)
        rough *= self._norm.all
        if vector is None:
            return rough
        return _mix_similarity(
            rough / max(_total_worth(rare), 1e-9), self._sketches.cosines(vector)
        )

    def _candidates(self, rough: Numbers, allowed: Numbers, count: int) -> Numbers:
        """Return the facts to compare exactly; if too few have any similarity, the newest too."""
        hits = np.flatnonzero(rough > 0)
        if len(hits) >= count:
            nearest: Numbers = hits[largest(rough[hits], count)]
            return nearest
        dissimilar = np.flatnonzero(allowed & (rough <= 0))
        newest = largest(self._created.all[dissimilar], count - len(hits))
        return np.concatenate([hits, dissimilar[newest]])

    def _word_similarity(self, terms: list[_Term], chosen: Numbers) -> Numbers:
        """Return the share of the question's word weights that each fact holds."""
        scores = np.zeros(len(chosen), np.float32)
        for term in terms:  # rows ascend because rows are only appended
            at = np.searchsorted(term.places, chosen)
            at[at == len(term.places)] = 0
            scores += np.float32(term.worth) * (term.places[at] == chosen)
        share: Numbers = scores * self._norm.all[chosen] / max(_total_worth(terms), 1e-9)
        return share.clip(max=1.0)

    def _vector(self, text: str) -> Bytes | None:
        """Return the vector of a question without the names of speakers."""
        if self._embedder is None:
            return None
        about = " ".join(term for term in text.split() if not _are_names(term, self._speakers))
        row: Bytes = quantise(self._embedder.embed([about or text]))[0]
        return row

    def _tag_overlap(self, tags: frozenset[str], chosen: Numbers) -> Numbers:
        overlap = np.zeros(len(chosen), np.float32)
        for tag in tags:
            overlap += np.isin(chosen, self._places(self._tags, tag)) / np.float32(len(tags))
        return overlap

    def _scores(
        self, chosen: Numbers, similarity: Numbers, overlap: Numbers, now: float
    ) -> Numbers:
        age = np.maximum(now - self._created.all[chosen], 0.0)
        half_life = self._half_life.all[chosen]
        recency = self._decay.all[chosen] * np.exp2(-age / half_life)
        within = _TAG_SHARE * overlap + _RECENCY_SHARE * np.minimum(recency, 1.0)
        scores: Numbers = STEP * (np.floor(similarity / STEP) + within)
        return scores

    def contradictions(self, subject: str, fact_id: str) -> tuple[str, ...]:
        """Return the ids of current facts in which other speakers have the same subject."""
        ids = (self._ids[number] for number in self._subjects.get(subject, ()))
        return tuple(sorted(other_id for other_id in ids if other_id and other_id != fact_id))


_USUAL_WORDS = 10
"""Words of a typical fact. A longer one matches by chance more often."""


def _total_worth(terms: list[_Term]) -> float:
    return sum(term.worth for term in terms)


def _are_names(word: str, speakers: set[str]) -> bool:
    terms = fact_terms(word)
    return bool(terms) and speakers.issuperset(terms)


def _mix_similarity(words: Numbers, cosine: Numbers) -> Numbers:
    near = np.maximum(cosine - _UNRELATED, 0.0) / (1.0 - _UNRELATED)
    return _WORDS_SHARE * words + (1.0 - _WORDS_SHARE) * near


def _pick(score: Numbers, is_standing: list[bool], limit: int) -> list[int]:
    """Return the places of the best facts, with places reserved for standing ones."""
    order: list[int] = best(score, len(score)).tolist()
    standing = [at for at in order if is_standing[at]][: max(1, limit // 3)]
    further = [at for at in order[: limit + len(standing)] if at not in standing]
    chosen = {*standing, *further[: limit - len(standing)]}
    return [at for at in order if at in chosen]
