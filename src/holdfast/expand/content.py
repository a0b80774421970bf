"""A content that is being expanded, with its complete text as a region.

content: after region. Its structure is analysed in `document`.
"""

from __future__ import annotations

from holdfast.condense.source import Source
from holdfast.document import Document
from holdfast.expand.region import Region, characters, json_part, lines


class OpenContent:
    """A content and its kind."""

    def __init__(self, data: bytes, kind: str) -> None:
        self.source = Source(data)
        self.kind = kind

    @property
    def text(self) -> str:
        """The complete text; bytes that are not UTF-8 are shown as U+FFFD."""
        return self.source.text

    @property
    def is_one_line(self) -> bool:
        """Whether the content is one line, so that line numbers are useless."""
        return self.source.line_count <= 1

    def base(self, document: Document) -> int | None:
        """Return the offset of a document in the content; None if it is inside a string."""
        return 0 if document.text is self.source.text else None

    def whole(self) -> Region:
        """Return the complete content as a region, in the units of its structure."""
        document, rows = self.source.document, self.source.rows
        if document is None or document.form == "lines" or self.base(document) is None:
            if self.is_one_line:
                return characters(self.text)
            return lines(self.source, 1, self.source.line_count)
        node = rows.node if rows is not None and rows.document is document else document.root
        return json_part(document, node, 0, len(self.text), base=0)
