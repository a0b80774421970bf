"""Work on a content that several condensers need, done once for each content.

once: after source. What was worked out is kept as long as the content itself, and no longer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

from holdfast.condense.source import Source

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
