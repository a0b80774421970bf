"""A content that is being expanded, and all of it as a region.

opened: after region. What the content is made of, `document` says.
"""

from __future__ import annotations

from holdfast.condense.source import Source
from holdfast.document import Document
from holdfast.expand.region import Region, characters, json_part, lines


class Opened:
    """A content and its kind."""

    def __init__(self, data: bytes, kind: str) -> None:
        self.source = Source(data)
        self.kind = kind

    @property
    def text(self) -> str:
        """All of it; what is no UTF-8 shows as U+FFFD."""
        return self.source.text

    @property
    def is_one_line(self) -> bool:
        """Whether lines cannot tell its parts from each other."""
        return self.source.line_count <= 1

    def base(self, document: Document) -> int | None:
        """Where a document's text begins in the content's; None if it stands inside a string."""
        return 0 if document.text is self.source.text else None

    def whole(self) -> Region:
        """All of it, in the units that suit it."""
        document, rows = self.source.document, self.source.rows
        if document is None or document.form == "lines" or self.base(document) is None:
            if self.is_one_line:
                return characters(self.text)
            return lines(self.source, 1, self.source.line_count)
        node = rows.node if rows is not None and rows.document is document else document.root
        return json_part(document, node, 0, len(self.text), base=0)
