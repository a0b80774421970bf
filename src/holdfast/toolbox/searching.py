"""Which tools a request needs: signals of each tool, their weighted sum, and the best of each wish.

searching: after index, names, clauses and weights. Pure and in numbers: the words of a query are
looked up in the index, its vector is compared with every tool's, and all signals are summed by the
weights. A query that asks for several things is searched as a whole and clause by clause: the more
there are, the more places are filled in turn, so that one wish with many like tools does not push
out the others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from holdfast.models.protocol import Embedder
from holdfast.search.arrays import Floats
from holdfast.search.bm25 import USUAL
from holdfast.search.fusion import summed, weighted
from holdfast.search.postings import TermIndex
from holdfast.search.top import best, largest
from holdfast.toolbox.clauses import bounded, clauses_of
from holdfast.toolbox.index import ToolIndex
from holdfast.toolbox.names import Names
from holdfast.toolbox.reading import grams_in, maker_of, read_all, terms_in
from holdfast.toolbox.tool import Tool
from holdfast.toolbox.weights import FALLS_OFF, WITH_MINILM, WITH_VECTORS, WORDS_ONLY

MOST_POSTINGS = 30_000
"""Tools that hold a query's runs of letters, summed over these; the rarest are looked at first."""
_CANDIDATES = 300
"""Tools whose vectors a clause is compared with: the best by words, of it and of the whole."""
_OF_CLAUSE, _OF_CLAUSES = 0.15, 0.5
"""Of the places, those for which each clause but the first stands in turn, and all at most."""
_SAYS_NOTHING = 0.6
"""Of the best score of the whole request: a clause whose best tool has less is about none."""
_EXTRA = ("called", "used")
"""Signals that most tools have nothing of: they come on top of the others' sum."""
_NOTHING: Floats = np.zeros((1, 1), np.float32)
_MOST_INDEXES = 32
_MOST_READ = 50_000


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that a query may need."""

    name: str
    server: str
    score: float
    """The best tool of an exact name has about 1; what has 0 shares nothing with the query."""
    place: int
    """Where it stands among the tools that were searched."""
    signals: Mapping[str, float] = {}
    """What each signal adds to the score."""


class Search:
    """Tools that are searched: their index, and who embeds the queries."""

    def __init__(self, index: ToolIndex, embedder: Embedder | None) -> None:
        self.index = index
        self._embedder = embedder if index.vectors is not None else None
        self.weights = weights_for(self._embedder)
        self._places = {key: n for n, key in enumerate(index.keys)}
        self._names = Names([name for _, name in index.keys])

    def __call__(
        self, query: str, k: int = 10, *, used: Mapping[tuple[str, str], float] | None = None
    ) -> list[Hit]:
        """The tools that a query may need, the best first, at most `k`; fewer if scores fall off.

        `used` says of tools, by server and name, how much they were used before: 1 at most.
        """
        query = bounded(query)
        if not self.index.size or not query.strip() or k < 1:
            return []
        clauses = clauses_of(query)
        rows = [query, *clauses] if len(clauses) > 1 else [query]
        signals = self.signals(rows, used or {})
        parts = weighted(signals, self._shares(signals))
        scores = summed(parts.values(), (len(rows), self.index.size))
        order = _filled(scores, k)
        highest: list[float] = scores[:, order].max(axis=0).tolist()
        return [
            self._hit(n, score, {name: float(_at(part, n)) for name, part in parts.items()})
            for n, score in zip(order, highest, strict=True)
            if score >= FALLS_OFF * highest[0] and score > 0
        ]

    def _shares(self, signals: Iterable[str]) -> dict[str, float]:
        """The weight of each signal, such that a tool that has all of them scores 1."""
        total = sum(abs(weight) for name, weight in self.weights.items() if name not in _EXTRA)
        return {name: self.weights.get(name, 0.0) / total for name in signals}

    def _hit(self, n: int, score: float, signals: Mapping[str, float]) -> Hit:
        server, name = self.index.keys[n]
        return Hit(name=name, server=server, score=round(score, 4), place=n, signals=signals)

    def signals(
        self, rows: Sequence[str], used: Mapping[tuple[str, str], float]
    ) -> dict[str, Floats]:
        """Every signal of every tool for each of some texts; one that no tool has is a single 0."""
        index = self.index
        terms = [terms_in(row) for row in rows]
        whole = _gained(index.whole, terms)
        signals = {
            "whole": whole,
            "parameters": _gained(index.fields["parameters"], terms),
            "name": self._named(terms),
            "grams": self._grams(rows),
            "server": self._of_servers(whole),
            "called": self._called(rows),
            "used": self._used(used),
        }
        if self._embedder is not None and index.vectors is not None:
            vectors = np.asarray(self._embedder.embed(rows), np.float32)
            signals["meaning"] = _alike(vectors, whole, index.vectors)
        return signals

    def _named(self, terms: Sequence[Sequence[int]]) -> Floats:
        """The share of each tool's name that a text says."""
        postings = self.index.fields["name"]
        share: Floats = postings.shared(postings.look_up(terms))
        share /= np.maximum(postings.mass, 1e-6)
        return share

    def _grams(self, rows: Sequence[str]) -> Floats:
        """How many runs of letters a text has in common with each tool's."""
        grams = self.index.grams
        asked = grams.rarest(grams.look_up(list(map(grams_in, rows))), MOST_POSTINGS // len(rows))
        masses = grams.mass * grams.mass_of(asked)[:, None]
        cosine: Floats = grams.shared(asked) / np.sqrt(np.maximum(masses, 1e-6))
        return cosine

    def _of_servers(self, whole: Floats) -> Floats:
        """What the tools of each tool's server gain on the mean; nothing if all are of one."""
        index, number = self.index, len(self.index.servers)
        if number < 2:
            return _NOTHING
        sizes = np.maximum(np.bincount(index.server, minlength=number), 1)
        means = [np.bincount(index.server, row, number) / sizes for row in whole]
        return np.stack([mean.astype(np.float32)[index.server] for mean in means])

    def _called(self, rows: Sequence[str]) -> Floats:
        """Whether a text is a tool's name, with a server's before it or a part of it left out."""
        alike = [self._names.alike(row.strip().strip("`'\"")) for row in rows]
        if not any(alike):
            return _NOTHING
        called = np.zeros((len(rows), self.index.size), np.float32)
        for row, shares in zip(called, alike, strict=True):
            row[list(shares)] = list(shares.values())
        return called

    def _used(self, used: Mapping[tuple[str, str], float]) -> Floats:
        places = {self._places[key]: much for key, much in used.items() if key in self._places}
        if not places:
            return _NOTHING
        uses = np.zeros((1, self.index.size), np.float32)
        uses[0, list(places)] = np.minimum(list(places.values()), 1.0)
        return uses


def _at(signal: Floats, n: int) -> np.float32:
    """A signal of a tool, for the whole query."""
    value: np.float32 = signal[0, min(n, signal.shape[1] - 1)]
    return value


def weights_for(embedder: Embedder | None) -> Mapping[str, float]:
    """How much each signal counts, by whose vectors are compared."""
    if embedder is None:
        return WORDS_ONLY
    return WITH_VECTORS if embedder.is_quick else WITH_MINILM


def _alike(vectors: Floats, whole: Floats, of_tools: Floats) -> Floats:
    """How like each tool's vector is to the query's; to a clause's, of those that may win."""
    alike = np.zeros_like(whole)
    # Not with `@`: what BLAS would share out among threads waits for the busiest of them.
    np.einsum("ij,j->i", of_tools, vectors[0], out=alike[0])
    if len(vectors) == 1:
        return alike
    of_query = largest(alike[0] + whole[0], _CANDIDATES + 1)
    for n, vector in enumerate(vectors[1:], 1):
        of_clause = largest(whole[n], _CANDIDATES + 1)
        # Some stand there twice, and are compared twice: that costs less than to sort them.
        near = np.concatenate((of_query, of_clause))
        alike[n, near] = np.einsum("ij,j->i", of_tools[near], vector)
    return alike


def _gained(postings: TermIndex, terms: Sequence[Sequence[int]]) -> Floats:
    """BM25 as a share of the most that a text could gain by the words of each query."""
    asked = postings.look_up(terms)
    most = postings.mass_of(asked) * np.float32(USUAL.k1 + 1)
    gained: Floats = postings.gains(asked) / np.maximum(most, 1e-6)[:, None]
    return gained


def _filled(scores: Floats, k: int) -> list[int]:
    """At most `k` places: the first of the whole query, then the clauses' in turn with it.

    A clause of a request for one thing ("Can you help me with that?") brings tools that nobody
    needs; so half of the places at least are the whole query's, which knows what is meant.
    """
    k = min(k, scores.shape[1])
    least = _SAYS_NOTHING * float(scores[0].max())
    whole, *clauses = (
        best(row, k).tolist() for n, row in enumerate(scores) if not n or row.max() >= least
    )
    turns = int(k * min(_OF_CLAUSE * max(len(clauses) - 1, 0), _OF_CLAUSES))
    order = dict.fromkeys(whole[: k - turns])
    for place in range(k):
        for top in (*clauses, whole):
            if len(order) < k:
                order[top[place]] = None
    return list(order)


_read: OrderedDict[tuple[str, str, str, str], bytes] = OrderedDict()
_searches: OrderedDict[tuple[str, tuple[tuple[str, str, str], ...]], Search] = OrderedDict()


def search_over(tools: Iterable[Tool], embedder: Embedder | None) -> Search:
    """The search over some tools; the one made before if they are the same."""
    listed = list(tools)
    maker = maker_of(embedder)
    key = (maker, tuple((*tool.key, tool.hash) for tool in listed))
    if key not in _searches:
        index = ToolIndex(
            [tool.key for tool in listed],
            _reads(listed, maker, embedder),
            0 if embedder is None else embedder.dimensions,
        )
        _searches[key] = Search(index, embedder)
        while len(_searches) > _MOST_INDEXES:
            _searches.popitem(last=False)
    _searches.move_to_end(key)
    return _searches[key]


def _reads(tools: Sequence[Tool], maker: str, embedder: Embedder | None) -> list[bytes]:
    """What is read in tools; those that were read before are not read again."""
    keys = [(maker, *tool.key, tool.hash) for tool in tools]
    new = [n for n, key in enumerate(keys) if key not in _read]
    reads = dict(zip(new, read_all([tools[n] for n in new], embedder), strict=True))
    for n, read in reads.items():
        _read[keys[n]] = read
    held = [reads.get(n) or _read[key] for n, key in enumerate(keys)]
    while len(_read) > _MOST_READ:
        _read.popitem(last=False)
    return held
