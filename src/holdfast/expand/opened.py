"""A content that is being expanded, looked at in the ways that options can ask for.

opened: after region. Each way of looking is worked out once, and only if it is asked for.
"""

from __future__ import annotations

import csv
import io
from functools import cached_property

from holdfast.condense.source import Source
from holdfast.expand.json_document import Document, Node
from holdfast.expand.region import Region, characters, json_part, lines

_SEPARATORS = (",", "\t", ";", "|")
_SEPARATED = frozenset({"csv", "tsv", "table"})


class Table:
    """Records of separated values, and the lines they stand on."""

    def __init__(self, separator: str, records: list[list[str]], ends: list[int]) -> None:
        self.separator = separator
        self.columns = records[0]
        self.rows = records[1:]
        self._ends = ends

    def lines(self, first: int, last: int) -> tuple[int, int]:
        """The lines, counted from 1, of the rows `first` to `last`, counted from 0."""
        return self._ends[first] + 1, self._ends[last + 1]


class Opened:
    """A content, and lazily its lines, its JSON, its table."""

    def __init__(self, data: bytes, kind: str) -> None:
        self.source = Source(data)
        self.kind = kind

    @property
    def text(self) -> str:
        """All of it; what is no UTF-8 shows as U+FFFD."""
        return self.source.text

    @cached_property
    def is_exact(self) -> bool:
        """Whether the text is the bytes, and not what could be read of them."""
        return "\ufffd" not in self.text or self.text.encode() == self.source.data

    @cached_property
    def document(self) -> Document | None:
        """The content as one JSON value."""
        return Document.read(self.text) if self.is_exact else None

    @cached_property
    def main(self) -> Node | None:
        """The array that the JSON is mostly made of, else the whole of it."""
        if self.document is None:
            return None
        return self.document.main_array(self.document.root) or self.document.root

    @cached_property
    def table(self) -> Table | None:
        """The content as separated values, if its kind says so."""
        if self.kind not in _SEPARATED:
            return None
        head = self.source.lines(1, 1) if self.text else ""
        separator = max(_SEPARATORS, key=head.count)
        reader = csv.reader(io.StringIO(self.text, newline="\n"), delimiter=separator)
        records, ends = [], []
        try:
            for record in reader:
                records.append(record)
                ends.append(reader.line_num)
        except csv.Error:
            return None
        return Table(separator, records, ends) if records else None

    @property
    def is_one_line(self) -> bool:
        """Whether lines cannot tell its parts from each other."""
        return self.source.line_count <= 1

    def whole(self) -> Region:
        """All of it, in the units that suit it."""
        if self.document is not None and self.main is not None:
            return json_part(self.document, self.main, 0, len(self.text), base=0)
        if self.is_one_line:
            return characters(self.text)
        return lines(self.source, 1, self.source.line_count)
