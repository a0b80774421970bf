"""A content to be condensed: what it is made of, and where it came from.

source: the first word of condense. It knows no kind.
"""

from __future__ import annotations

from holdfast.document import Reading


class Source(Reading):
    """A content, with what is known of its origin."""

    def __init__(self, data: bytes, *, tool: str = "", url: str = "") -> None:
        super().__init__(data)
        self.tool = tool
        """The tool it came from, if it is known."""
        self.url = url
