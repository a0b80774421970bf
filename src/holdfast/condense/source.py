"""A content to be condensed, and its origin.

Work that several condensers need is done once per content; the results are kept as long as the
content.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

from holdfast.document import ContentView


class Source(ContentView):
    """A content, and the known facts about its origin."""

    def __init__(self, data: bytes, *, tool: str = "", url: str = "") -> None:
        super().__init__(data)
        self.tool = tool
        """The tool it came from, if it is known."""
        self.url = url


_T = TypeVar("_T")


def once(work: Callable[[Source], _T]) -> Callable[[Source], _T]:
    """Cache the result of a function of a content."""
    cache: WeakKeyDictionary[Source, _T] = WeakKeyDictionary()

    @functools.wraps(work)
    def remembered(source: Source) -> _T:
        try:
            return cache[source]
        except KeyError:
            result = cache[source] = work(source)
            return result

    return remembered
