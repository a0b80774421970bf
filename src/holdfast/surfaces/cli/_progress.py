"""progress: a line that shows how far a command is, for commands that read or write a lot."""

from __future__ import annotations

import sys
import time

_SHOWN_AFTER_SECONDS = 1.0
_SHOWN_EVERY_SECONDS = 0.1


class Progress:
    """A line on the terminal's error stream that counts, once the work takes over a second."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._next = time.monotonic() + _SHOWN_AFTER_SECONDS
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        """Show how much is done, and of how much."""
        if not sys.stderr.isatty() or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _SHOWN_EVERY_SECONDS
        self._shown = True
        sys.stderr.write(f"\r\x1b[K{self._doing} {done:,} of {max(done, total):,} …")
        sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
