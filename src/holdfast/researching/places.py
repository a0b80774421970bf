"""Convert between characters, bytes, lines and pages of a stored source.

Quotes are made and verified by the same code.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

from holdfast.compat.content_store import text_of
from holdfast.extract.pdf import PAGE_END
from holdfast.researching.records import Quote, SourceEntry
from holdfast.store.records import Stored

_PAGED = frozenset({"pdf", "epub"})
_SPACE = re.compile(r"\s+")
_LONGEST = 2_000
"""Maximum characters of a quote that is searched with different white space."""


class SourceContent:
    """A stored source with the offsets of its lines and pages."""

    def __init__(self, entry: SourceEntry, stored: Stored) -> None:
        self.entry = entry
        self.data = stored.data
        self.text = text_of(stored.data)

    @cached_property
    def _lines(self) -> list[int]:
        """Return the byte offset of each line."""
        return [0, *(match.end() for match in re.finditer(rb"\n", self.data))]

    def quote(self, start: int, stop: int) -> Quote:
        """Return a span of characters as a quote."""
        text = self.text[start:stop]
        first = len(self.text[:start].encode("utf-8", "surrogatepass"))
        return self.at(first, first + len(text.encode("utf-8", "surrogatepass")), text)

    def at(self, start: int, stop: int, text: str) -> Quote:
        """Return a quote from byte offsets."""
        lines = bisect_right(self._lines, start), bisect_right(self._lines, max(start, stop - 1))
        paged = self.entry.kind in _PAGED
        page = 1 + self.data.count(PAGE_END.encode(), 0, start) if paged else 0
        return Quote(
            source=self.entry.id,
            ref=self.entry.ref,
            text=text,
            start=start,
            stop=stop,
            lines=lines,
            page=page,
        )

    def find(self, words: str) -> Quote | None:
        """Return the place of a claimed quotation; white space may differ."""
        words = words.strip()
        if not words:
            return None
        at = self.text.find(words)
        if at >= 0:
            return self.quote(at, at + len(words))
        if len(words) > _LONGEST:
            return None
        # Literal words with any white space in between, so that matching takes linear time.
        pattern = r"\s++".join(map(re.escape, _SPACE.split(words)))
        match = re.search(pattern, self.text)
        return self.quote(*match.span()) if match else None

    def has_quote(self, quote: Quote) -> bool:
        """Return whether a quote has exactly these bytes on these lines of this source."""
        if not 0 <= quote.start < quote.stop <= len(self.data):
            return False
        if self.data[quote.start : quote.stop] != quote.text.encode("utf-8", "surrogatepass"):
            return False
        return self.at(quote.start, quote.stop, quote.text) == quote
