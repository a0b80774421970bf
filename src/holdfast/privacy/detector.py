"""A detector for one kind of secret or personal data, on UTF-8 bytes.

All patterns use RE2, so hostile text costs only its length. A short match that the check rejects is
retried one byte later; a long one is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import re2  # type: ignore[import-untyped]

Span = tuple[int, int]
Check = Callable[[bytes, int, int], Span | None]
"""Takes the data and the span of a match; returns the span of the finding, or None."""

# A rejected match up to this size is searched again from its second byte, because another match may
# start inside it.
SHORT = 64


_WORD = re2.compile(r"\w*")
_JOINED_BEFORE = re2.compile(r"\w[-./+]?\z")
_JOINED_AFTER = re2.compile(r"[-./+]?\w")


class Detector(msgspec.Struct, frozen=True):
    """A pattern and an optional check."""

    kind: str
    """Name of the kind in records, such as `email`."""
    pattern: str
    """RE2 pattern. A matched group is the finding; otherwise the complete match is."""
    check: Check | None = None
    """Check that a pattern cannot express: a checksum, the context, a placeholder."""

    @property
    def compiled(self) -> Any:
        """Return the compiled pattern; RE2 caches it."""
        return re2.compile(self.pattern)

    def spans(self, data: bytes) -> Iterator[Span]:
        """Yield the byte spans of findings, in order."""
        search, at = self.compiled.search, 0
        while (match := search(data, at)) is not None:
            start, stop = match.span()
            span: Span | None = match.span(match.lastindex or 0)
            if self.check is not None and span is not None:
                span = self.check(data, *span)
            if span is not None:
                stop = _word_end(data, span[1])
                yield span[0], stop
            at = stop if span is not None or stop - start > SHORT else start + 1


def _word_end(data: bytes, at: int) -> int:
    """Return the end of the word at an offset, so that a masked finding leaves no partial word."""
    return _WORD.match(data, at).end() if data[at : at + 1].isalnum() else at


def matching_patterns(detectors: Iterable[Detector]) -> Callable[[bytes], Sequence[int]]:
    """Return a function that lists the indexes of matching patterns, mostly none, in one pass."""
    patterns = re2.Set.SearchSet()
    for detector in detectors:
        patterns.Add(detector.pattern)
    patterns.Compile()
    return lambda data: patterns.Match(data) or ()


def stands_alone(data: bytes, start: int, stop: int) -> bool:
    """Return whether no word touches the span, not even through a hyphen or dot."""
    before, after = data[max(start - 2, 0) : start], data[stop : stop + 2]
    return not (_JOINED_BEFORE.search(before) or _JOINED_AFTER.match(after))
