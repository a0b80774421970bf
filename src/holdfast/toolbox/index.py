"""The tools of a directory as arrays for searching, built once.

Words and letter n-grams are numbers with their BM25 scores, so that a query only adds them up. The
index holds neither texts nor schemas.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holdfast.search.arrays import Floats, Ints
from holdfast.search.postings import Counts, TermIndex, decode_counts, merge_counts
from holdfast.search.vectors import unit_rows
from holdfast.toolbox.tool_features import FIELDS, ToolFeatures, decode_features

WEIGHT_OF_FIELD = {"name": 3, "description": 1, "parameters": 1, "server": 1}
"""How often the words of a field count if all fields are indexed as one text."""


class ToolIndex:
    """A searchable index of a directory's tools."""

    def __init__(
        self, keys: Sequence[tuple[str, str]], features: Sequence[bytes], width: int
    ) -> None:
        """Build the index from the (server, name) keys and encoded features of tools.

        `width` is the number of dimensions of their vectors; 0 if they have none.
        """
        parts = [decode_features(encoded) for encoded in features]
        self.keys = tuple(keys)
        self.size = len(parts)
        self.servers = {name: n for n, name in enumerate(dict.fromkeys(key[0] for key in keys))}
        self.server: Ints = np.fromiter((self.servers[key[0]] for key in keys), np.int32)
        self.fields = {name: self._field(parts, n) for n, name in enumerate(FIELDS)}
        self.all_fields = self._all_fields(parts)
        self.grams = _gram_index([part.grams for part in parts])
        self.vectors = self._stacked(parts, width) if width else None

    def _field(self, parts: Sequence[ToolFeatures], n: int) -> TermIndex:
        return TermIndex(
            decode_counts([(part.fields[n], part.counts[n]) for part in parts]), self.size
        )

    def _all_fields(self, parts: Sequence[ToolFeatures]) -> TermIndex:
        """Index all fields as one text."""
        fields = range(len(FIELDS))
        columns = decode_counts(
            [(part.fields[n], part.counts[n]) for n in fields for part in parts]
        )
        field, texts = np.divmod(columns.texts, max(self.size, 1))
        weights = np.fromiter(WEIGHT_OF_FIELD.values(), np.int64)[field]
        return TermIndex(
            merge_counts(Counts(columns.terms, texts, columns.counts * weights)), self.size
        )

    def _stacked(self, parts: Sequence[ToolFeatures], width: int) -> Floats:
        """Return a vector of length 1 per tool; zeros for a tool without one.

        Floats, because a directory is small and converting the bytes takes as long as comparing
        them.
        """
        encoded = b"".join(
            part.vector if len(part.vector) == width else bytes(width) for part in parts
        )
        return unit_rows(np.frombuffer(encoded, np.int8).reshape(-1, width))


def _gram_index(grams: Sequence[bytes]) -> TermIndex:
    """Index letter n-grams, each of which a tool has once."""
    return TermIndex(
        decode_counts([(each, b"\1" * (len(each) // 4)) for each in grams]), len(grams)
    )
