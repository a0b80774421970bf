"""A content, looked at in the ways that others ask for: as text, lines, JSON, table, rows.

reading: after rows and tables; the face of document. Each way of looking is worked out once, and
only if it is asked for. What condense says of a content and what expand opens of it come from
here, so that they cannot disagree.
"""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Sequence
from functools import cached_property

from holdfast.document.json_text import Document
from holdfast.document.paths import Match
from holdfast.document.rows import Rows, rows_of
from holdfast.document.tables import Table, read_table
from holdfast.document.wrapping import read


class Reading:
    """The text of a content, read lazily in other ways."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        """The exact bytes."""

    @cached_property
    def text(self) -> str:
        """The bytes as text; what is no UTF-8 shows as U+FFFD."""
        return self.data.decode("utf-8", "replace")

    @cached_property
    def is_exact(self) -> bool:
        """Whether the text is the bytes, and not what could be read of them."""
        return "\ufffd" not in self.text or self.text.encode() == self.data

    # --- lines -----------------------------------------------------------------------------------

    @cached_property
    def line_starts(self) -> Sequence[int]:
        """Where each line begins in the text; lines end with a newline and nothing else."""
        # Four bytes for each: a list takes nine times that, and a line may be one character.
        starts = array("I", (0,))
        find, at = self.text.find, 0
        while (at := find("\n", at) + 1) > 0:
            starts.append(at)
        if len(starts) > 1 and starts[-1] == len(self.text):
            starts.pop()
        return starts

    @property
    def line_count(self) -> int:
        """How many lines there are; text without a newline at its end still has a last line."""
        return len(self.line_starts) if self.text else 0

    def line_at(self, offset: int) -> int:
        """The number, counted from 1, of the line that an offset into the text stands in."""
        return bisect.bisect_right(self.line_starts, offset)

    def lines(self, first: int, last: int) -> str:
        """Lines `first` to `last`, counted from 1, both included, as they stand."""
        starts = self.line_starts
        begin = starts[first - 1]
        end = starts[last] if last < len(starts) else len(self.text)
        return self.text[begin:end]

    # --- structure -------------------------------------------------------------------------------

    @cached_property
    def document(self) -> Document | None:
        """The JSON of the content, in whatever it is wrapped."""
        return read(self.text) if self.is_exact else None

    @cached_property
    def rows(self) -> Rows | None:
        """The array that the JSON is about, if it is about one."""
        if self.document is None:
            return None
        return rows_of(Match(self.document, self.document.root))

    @cached_property
    def table(self) -> Table | None:
        """The content as a table of text."""
        return read_table(self.text) if self.document is None else None
