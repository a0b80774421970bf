"""index: the tools of a directory as arrays that a search reads, built once.

Words and runs of letters are numbers with their BM25 scores, so that a query only adds up. The
index holds neither texts nor schemas.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holdfast.search.arrays import Floats, Ints
from holdfast.search.postings import Counts, TermIndex, decoded, merged
from holdfast.search.vectors import unit_rows
from holdfast.toolbox.reading import FIELDS, Read
from holdfast.toolbox.reading import decoded as decoded_read

WEIGHT_OF_FIELD = {"name": 3, "description": 1, "parameters": 1, "server": 1}
"""How often the words of a field count where all fields are read as one text."""


class ToolIndex:
    """The tools of a directory, to be searched."""

    def __init__(self, keys: Sequence[tuple[str, str]], reads: Sequence[bytes], width: int) -> None:
        """Build it from what was read in tools that are called so, of servers that are called so.

        `width` is the number of dimensions of their vectors; 0 if they have none.
        """
        parts = [decoded_read(read) for read in reads]
        self.keys = tuple(keys)
        self.size = len(parts)
        self.servers = {name: n for n, name in enumerate(dict.fromkeys(key[0] for key in keys))}
        self.server: Ints = np.fromiter((self.servers[key[0]] for key in keys), np.int32)
        self.fields = {name: self._field(parts, n) for n, name in enumerate(FIELDS)}
        self.whole = self._whole(parts)
        self.grams = _gram_index([part.grams for part in parts])
        self.vectors = self._stacked(parts, width) if width else None

    def _field(self, parts: Sequence[Read], n: int) -> TermIndex:
        return TermIndex(decoded([(part.fields[n], part.counts[n]) for part in parts]), self.size)

    def _whole(self, parts: Sequence[Read]) -> TermIndex:
        """Index all fields as one text."""
        fields = range(len(FIELDS))
        columns = decoded([(part.fields[n], part.counts[n]) for n in fields for part in parts])
        field, texts = np.divmod(columns.texts, max(self.size, 1))
        weights = np.fromiter(WEIGHT_OF_FIELD.values(), np.int64)[field]
        return TermIndex(merged(Counts(columns.terms, texts, columns.counts * weights)), self.size)

    def _stacked(self, parts: Sequence[Read], width: int) -> Floats:
        """Return a vector of length 1 for each tool; zeros for a tool without one.

        As floats: a directory is small, and converting the bytes takes as long as comparing them.
        """
        encoded = b"".join(
            part.vector if len(part.vector) == width else bytes(width) for part in parts
        )
        return unit_rows(np.frombuffer(encoded, np.int8).reshape(-1, width))


def _gram_index(grams: Sequence[bytes]) -> TermIndex:
    """Index runs of letters, each of which a tool has once."""
    return TermIndex(decoded([(each, b"\1" * (len(each) // 4)) for each in grams]), len(grams))
