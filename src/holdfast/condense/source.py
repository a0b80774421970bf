"""A content to be condensed: what it is made of, and where it came from.

source: the first word of condense. It knows no kind.

Work on a content that several condensers need, done once for each content. What was worked out is
kept as long as the content itself, and no longer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

from holdfast.document import ContentView


class Source(ContentView):
    """A content, with what is known of its origin."""

    def __init__(self, data: bytes, *, tool: str = "", url: str = "") -> None:
        super().__init__(data)
        self.tool = tool
        """The tool it came from, if it is known."""
        self.url = url


_T = TypeVar("_T")


def once(work: Callable[[Source], _T]) -> Callable[[Source], _T]:
    """Remember what a function of a content gave."""
    known: WeakKeyDictionary[Source, _T] = WeakKeyDictionary()

    @functools.wraps(work)
    def remembered(source: Source) -> _T:
        try:
            return known[source]
        except KeyError:
            result = known[source] = work(source)
            return result

    return remembered
