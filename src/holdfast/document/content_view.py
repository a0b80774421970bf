"""Lazily parsed views of one content: text, lines, JSON, table and rows.

Each view is computed once, on first access. `condense` and `expand` share them, so that a citation
and its expansion agree.
"""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Sequence
from functools import cached_property

from holdfast.document.embedded_json import read
from holdfast.document.json_text import Document
from holdfast.document.paths import PathMatch
from holdfast.document.rows import Rows, rows_of
from holdfast.document.tables import Table, read_table


class ContentView:
    """The text of a content with its lazily parsed structure."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        """The exact bytes."""

    @cached_property
    def text(self) -> str:
        """Return the bytes as text; invalid UTF-8 becomes U+FFFD."""
        return self.data.decode("utf-8", "replace")

    @cached_property
    def is_exact(self) -> bool:
        """Return whether the text encodes to exactly the same bytes."""
        return "\ufffd" not in self.text or self.text.encode() == self.data

    # --- lines -----------------------------------------------------------------------------------

    @cached_property
    def line_starts(self) -> Sequence[int]:
        """Return the offset of each line; only a newline ends a line."""
        # Four bytes per line: a list takes nine times that, and a line may have one character.
        starts = array("I", (0,))
        find, at = self.text.find, 0
        while (at := find("\n", at) + 1) > 0:
            starts.append(at)
        if len(starts) > 1 and starts[-1] == len(self.text):
            starts.pop()
        return starts

    @property
    def line_count(self) -> int:
        """Return the number of lines; text after the last newline counts as a line."""
        return len(self.line_starts) if self.text else 0

    def line_at(self, offset: int) -> int:
        """Return the 1-based number of the line that contains an offset."""
        return bisect.bisect_right(self.line_starts, offset)

    def lines(self, first: int, last: int) -> str:
        """Return lines `first` to `last`, 1-based and inclusive, unchanged."""
        starts = self.line_starts
        begin = starts[first - 1]
        end = starts[last] if last < len(starts) else len(self.text)
        return self.text[begin:end]

    # --- structure -------------------------------------------------------------------------------

    @cached_property
    def document(self) -> Document | None:
        """Return the JSON of the content, in any wrapping."""
        return read(self.text) if self.is_exact else None

    @cached_property
    def rows(self) -> Rows | None:
        """Return the main array of the JSON, if it has one."""
        if self.document is None:
            return None
        return rows_of(PathMatch(self.document, self.document.root))

    @cached_property
    def table(self) -> Table | None:
        """Return the content as a text table, if it is one."""
        return read_table(self.text) if self.document is None else None
