"""A content to be condensed: its text, and what several condensers would otherwise work out.

source: the first word of condense. It knows no kind.
"""

from __future__ import annotations

import bisect
from functools import cached_property


class Source:
    """The text of a content, read lazily in other ways."""

    def __init__(self, data: bytes, *, tool: str = "", url: str = "") -> None:
        self.data = data
        """The exact bytes."""
        self.tool = tool
        """The tool it came from, if it is known."""
        self.url = url

    @cached_property
    def text(self) -> str:
        """The bytes as text; what is no UTF-8 shows as U+FFFD."""
        return self.data.decode("utf-8", "replace")

    @cached_property
    def line_starts(self) -> list[int]:
        """Where each line begins in the text; lines end with a newline and nothing else."""
        starts = [0]
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
