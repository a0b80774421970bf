"""warnings: Python warnings as plain lines, without a path and a line of source."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import HoldfastWarning


@contextmanager
def plain_warnings(show: Callable[[str], None]) -> Iterator[None]:
    """Pass each distinct warning to `show` as one line, instead of printing it.

    A library's own text may hold text of a conversation, so only its category and module are
    passed.
    """
    passed: set[str] = set()

    def route(message: Warning | str, category: type[Warning], filename: str, *_: object) -> None:
        line = _line(message, category, filename)
        if line not in passed:
            passed.add(line)
            show(line)

    with warnings.catch_warnings():
        warnings.simplefilter("always", HoldfastWarning)
        warnings.showwarning = route  # type: ignore[assignment]  # it takes more arguments
        yield


@contextmanager
def silent_logs() -> Iterator[None]:
    """Keep log records of libraries from standard error, where Python prints them by default."""
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _line(message: Warning | str, category: type[Warning], filename: str) -> str:
    if issubclass(category, HoldfastWarning):
        return f"holdfast: {' '.join(str(message).split())}"
    return f"holdfast: a library warns ({category.__name__} in {Path(filename).stem})"
