"""One way to recognise one kind of secret or personal datum.

detector: the first word of privacy. It works on UTF-8 bytes and knows no kind. Every pattern is
RE2, so a hostile text costs no more than its length: a match is taken or, if it is short, retried
one byte later; a long one is never looked at twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import re2  # type: ignore[import-untyped]

Span = tuple[int, int]
Check = Callable[[bytes, int, int], Span | None]
"""Data and where a match stands in it; what part of it is a finding, None if it is none."""

SHORT = 64
"""Bytes of a refused match that is worth a second look: another may begin inside it."""


_WORD = re2.compile(r"\w*")
_JOINED_BEFORE = re2.compile(r"\w[-./+]?\z")
_JOINED_AFTER = re2.compile(r"[-./+]?\w")


class Detector(msgspec.Struct, frozen=True):
    """A pattern, and what it cannot say."""

    kind: str
    """Its name on records: `email`."""
    pattern: str
    """RE2. If a group takes part, that group is the finding, else the whole match."""
    check: Check | None = None
    """What a pattern cannot say: a checksum, a neighbour, a placeholder."""

    @property
    def compiled(self) -> Any:
        """The pattern, compiled once (RE2 remembers)."""
        return re2.compile(self.pattern)

    def spans(self, data: bytes) -> Iterator[Span]:
        """Where it finds something, in bytes, in the order it stands."""
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
    """Where the word ends that goes on here: half a word is never left behind."""
    return _WORD.match(data, at).end() if data[at : at + 1].isalnum() else at


def any_of(detectors: Iterable[Detector]) -> Callable[[bytes], Sequence[int]]:
    """One pass over the data that tells which patterns occur at all: mostly none does."""
    patterns = re2.Set.SearchSet()
    for detector in detectors:
        patterns.Add(detector.pattern)
    patterns.Compile()
    return lambda data: patterns.Match(data) or ()


def stands_alone(data: bytes, start: int, stop: int) -> bool:
    """Whether no word touches the span, not even through a hyphen or a dot."""
    before, after = data[max(start - 2, 0) : start], data[stop : stop + 2]
    return not (_JOINED_BEFORE.search(before) or _JOINED_AFTER.match(after))
