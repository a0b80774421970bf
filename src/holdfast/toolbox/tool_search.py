"""Find the tools that a request needs: a weighted sum of signals, with places for each action.

The words of a query are looked up in the index, and its vector is compared with every tool's. A
query that asks for several actions is searched as a whole and clause by clause. Each clause gets
places in the result, so that one action with many similar tools does not displace the others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from holdfast.models.protocol import Embedder
from holdfast.search.arrays import Floats
from holdfast.search.bm25 import USUAL
from holdfast.search.fusion import add_signals, weight_signals
from holdfast.search.postings import TermIndex
from holdfast.search.top import best, largest
from holdfast.toolbox.clauses import limit_length, split_request
from holdfast.toolbox.index import ToolIndex
from holdfast.toolbox.names import ToolNames
from holdfast.toolbox.tool import Tool
from holdfast.toolbox.tool_features import (
    encode_features,
    extract_grams,
    extract_terms,
    index_maker,
)
from holdfast.toolbox.weights import MIN_SHARE_OF_BEST, WITH_MINILM, WITH_VECTORS, WORDS_ONLY

MOST_POSTINGS = 30_000
"""Maximum postings of letter n-grams that are summed for a query, rarest first."""
_CANDIDATES = 300
"""Tools whose vectors are compared with a clause: the best by words, of the clause and of the
query."""
_CLAUSE_SHARE, _MAX_CLAUSE_SHARE = 0.15, 0.5
"""Share of the places for each clause after the first, and the maximum for all clauses."""
_MIN_CLAUSE_SCORE = 0.6
"""Share of the whole request's best score; a clause whose best tool scores less needs no tool."""
_EXTRA = ("called", "used")
"""Signals that most tools lack: they are added on top of the sum of the others."""
_NO_SIGNAL: Floats = np.zeros((1, 1), np.float32)
_MOST_INDEXES = 32
_MOST_READ = 50_000


class ToolHit(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that a query may need."""

    name: str
    server: str
    score: float
    """About 1 for the best tool of an exact name; 0 if it shares nothing with the query."""
    place: int
    """Its place among the searched tools."""
    signals: Mapping[str, float] = {}
    """What each signal adds to the score."""


class ToolSearch:
    """A search over tools: their index and the embedder of the queries."""

    def __init__(self, index: ToolIndex, embedder: Embedder | None) -> None:
        self.index = index
        self._embedder = embedder if index.vectors is not None else None
        self.weights = weights_for(self._embedder)
        self._places = {key: n for n, key in enumerate(index.keys)}
        self._names = ToolNames([name for _, name in index.keys])

    def __call__(
        self, query: str, k: int = 10, *, used: Mapping[tuple[str, str], float] | None = None
    ) -> list[ToolHit]:
        """Return at most `k` tools that a query may need, best first; fewer if scores drop off.

        `used` has the weight of earlier uses by server and name, at most 1.
        """
        query = limit_length(query)
        if not self.index.size or not query.strip() or k < 1:
            return []
        clauses = split_request(query)
        rows = [query, *clauses] if len(clauses) > 1 else [query]
        signals = self.signals(rows, used or {})
        parts = weight_signals(signals, self._shares(signals))
        scores = add_signals(parts.values(), (len(rows), self.index.size))
        order = _fill_places(scores, k)
        highest: list[float] = scores[:, order].max(axis=0).tolist()
        return [
            self._hit(n, score, {name: float(_at(part, n)) for name, part in parts.items()})
            for n, score in zip(order, highest, strict=True)
            if score >= MIN_SHARE_OF_BEST * highest[0] and score > 0
        ]

    def _shares(self, signals: Iterable[str]) -> dict[str, float]:
        """Return the weight of each signal, scaled so that a tool with all of them scores 1."""
        total = sum(abs(weight) for name, weight in self.weights.items() if name not in _EXTRA)
        return {name: self.weights.get(name, 0.0) / total for name in signals}

    def _hit(self, n: int, score: float, signals: Mapping[str, float]) -> ToolHit:
        server, name = self.index.keys[n]
        return ToolHit(name=name, server=server, score=round(score, 4), place=n, signals=signals)

    def signals(
        self, rows: Sequence[str], used: Mapping[tuple[str, str], float]
    ) -> dict[str, Floats]:
        """Return every signal of every tool for each text; one that no tool has is a single 0."""
        index = self.index
        terms = [extract_terms(row) for row in rows]
        overall = _bm25_share(index.all_fields, terms)
        signals = {
            "whole": overall,
            "parameters": _bm25_share(index.fields["parameters"], terms),
            "name": self._name_share(terms),
            "grams": self._gram_cosine(rows),
            "server": self._server_means(overall),
            "called": self._name_matches(rows),
            "used": self._uses(used),
        }
        if self._embedder is not None and index.vectors is not None:
            vectors = np.asarray(self._embedder.embed(rows), np.float32)
            signals["meaning"] = _cosines(vectors, overall, index.vectors)
        return signals

    def _name_share(self, terms: Sequence[Sequence[int]]) -> Floats:
        """Return the share of each tool's name that occurs in a text."""
        postings = self.index.fields["name"]
        share: Floats = postings.shared(postings.look_up(terms))
        share /= np.maximum(postings.mass, 1e-6)
        return share

    def _gram_cosine(self, rows: Sequence[str]) -> Floats:
        """Return the cosine of a text's letter n-grams with each tool's."""
        grams = self.index.grams
        query_grams = grams.rarest(
            grams.look_up(list(map(extract_grams, rows))), MOST_POSTINGS // len(rows)
        )
        masses = grams.mass * grams.mass_of(query_grams)[:, None]
        cosine: Floats = grams.shared(query_grams) / np.sqrt(np.maximum(masses, 1e-6))
        return cosine

    def _server_means(self, whole: Floats) -> Floats:
        """Return the mean BM25 of each tool's server; nothing if there is one server."""
        index, number = self.index, len(self.index.servers)
        if number < 2:
            return _NO_SIGNAL
        sizes = np.maximum(np.bincount(index.server, minlength=number), 1)
        means = [np.bincount(index.server, row, number) / sizes for row in whole]
        return np.stack([mean.astype(np.float32)[index.server] for mean in means])

    def _name_matches(self, rows: Sequence[str]) -> Floats:
        """Return 1 for the tool that a text names exactly, and less for a part of a name."""
        matches = [self._names.matches(row.strip().strip("`'\"")) for row in rows]
        if not any(matches):
            return _NO_SIGNAL
        called = np.zeros((len(rows), self.index.size), np.float32)
        for row, shares in zip(called, matches, strict=True):
            row[list(shares)] = list(shares.values())
        return called

    def _uses(self, used: Mapping[tuple[str, str], float]) -> Floats:
        places = {self._places[key]: much for key, much in used.items() if key in self._places}
        if not places:
            return _NO_SIGNAL
        uses = np.zeros((1, self.index.size), np.float32)
        uses[0, list(places)] = np.minimum(list(places.values()), 1.0)
        return uses


def _at(signal: Floats, n: int) -> np.float32:
    """Return a tool's signal for the whole query."""
    value: np.float32 = signal[0, min(n, signal.shape[1] - 1)]
    return value


def weights_for(embedder: Embedder | None) -> Mapping[str, float]:
    """Return the weights of the signals for an embedder."""
    if embedder is None:
        return WORDS_ONLY
    return WITH_VECTORS if embedder.is_quick else WITH_MINILM


def _cosines(vectors: Floats, overall: Floats, of_tools: Floats) -> Floats:
    """Return the cosines of all tools with the query, and of likely tools with its clauses."""
    cosines = np.zeros_like(overall)
    # Not `@`: BLAS spreads the product over threads and waits for the slowest of them.
    np.einsum("ij,j->i", of_tools, vectors[0], out=cosines[0])
    if len(vectors) == 1:
        return cosines
    of_query = largest(cosines[0] + overall[0], _CANDIDATES + 1)
    for n, vector in enumerate(vectors[1:], 1):
        of_clause = largest(overall[n], _CANDIDATES + 1)
        # Some tools are in both and are compared twice, which costs less than removing them.
        near = np.concatenate((of_query, of_clause))
        cosines[n, near] = np.einsum("ij,j->i", of_tools[near], vector)
    return cosines


def _bm25_share(postings: TermIndex, terms: Sequence[Sequence[int]]) -> Floats:
    """Return BM25 as a share of the highest score that a text could have for each query."""
    query_terms = postings.look_up(terms)
    most = postings.mass_of(query_terms) * np.float32(USUAL.k1 + 1)
    gained: Floats = postings.gains(query_terms) / np.maximum(most, 1e-6)[:, None]
    return gained


def _fill_places(scores: Floats, k: int) -> list[int]:
    """Return at most `k` places: the query's first, then the clauses' and its in turn.

    A clause such as "Can you help me with that?" finds tools that nobody needs. So at least half of
    the places belong to the whole query.
    """
    k = min(k, scores.shape[1])
    least = _MIN_CLAUSE_SCORE * float(scores[0].max())
    overall, *clauses = (
        best(row, k).tolist() for n, row in enumerate(scores) if not n or row.max() >= least
    )
    turns = int(k * min(_CLAUSE_SHARE * max(len(clauses) - 1, 0), _MAX_CLAUSE_SHARE))
    order = dict.fromkeys(overall[: k - turns])
    for place in range(k):
        for top in (*clauses, overall):
            if len(order) < k:
                order[top[place]] = None
    return list(order)


_feature_cache: OrderedDict[tuple[str, str, str, str], bytes] = OrderedDict()
_search_cache: OrderedDict[tuple[str, tuple[tuple[str, str, str], ...]], ToolSearch] = OrderedDict()


def search_over(tools: Iterable[Tool], embedder: Embedder | None) -> ToolSearch:
    """Return the search over some tools; a cached one if the tools are the same."""
    tool_list = list(tools)
    maker = index_maker(embedder)
    key = (maker, tuple((*tool.key, tool.hash) for tool in tool_list))
    if key not in _search_cache:
        index = ToolIndex(
            [tool.key for tool in tool_list],
            _features(tool_list, maker, embedder),
            0 if embedder is None else embedder.dimensions,
        )
        _search_cache[key] = ToolSearch(index, embedder)
        while len(_search_cache) > _MOST_INDEXES:
            _search_cache.popitem(last=False)
    _search_cache.move_to_end(key)
    return _search_cache[key]


def _features(tools: Sequence[Tool], maker: str, embedder: Embedder | None) -> list[bytes]:
    """Return the features of tools; cached ones are not extracted again."""
    keys = [(maker, *tool.key, tool.hash) for tool in tools]
    new = [n for n, key in enumerate(keys) if key not in _feature_cache]
    extracted = dict(zip(new, encode_features([tools[n] for n in new], embedder), strict=True))
    for n, features in extracted.items():
        _feature_cache[keys[n]] = features
    result = [extracted.get(n) or _feature_cache[key] for n, key in enumerate(keys)]
    while len(_feature_cache) > _MOST_READ:
        _feature_cache.popitem(last=False)
    return result
