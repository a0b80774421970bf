"""Internal errors, reported by their place and never by their text, so that a request can go on.

Promise 8 of the design: if a part of Holdfast fails, the request goes out unedited. Each surface
makes one `Faults` for a request and runs its steps inside `caught`. Only unexpected exceptions are
caught: a refusal (an error that tells the caller what to do), a cancellation or a client that
leaves passes through.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from holdfast.errors import (
    EditError,
    ExpandError,
    ExtractError,
    HoldfastError,
    SummarizationError,
    TokenCountingError,
    ToolError,
)

_PACKAGE = str(Path(__file__).parent) + "/"
_OWN_FAILURES = (
    EditError, ExpandError, ExtractError, SummarizationError, TokenCountingError, ToolError,
)  # fmt: skip
"""Errors of our tree that no caller can act upon: a step of ours could not do its work."""


class Fault(NamedTuple):
    """An internal error, without its text: that may hold content."""

    step: str
    """What was being done."""
    kind: str
    """The name of the exception's class."""
    place: str
    """File within the package, and line, of our innermost frame."""

    def __str__(self) -> str:
        return f"internal error in {self.step} ({self.kind} at {self.place})"


class Faults:
    """The internal errors of one request."""

    def __init__(self, report: Callable[[Fault], None]) -> None:
        """Begin; `report` is called once for each different fault."""
        self.found: list[Fault] = []
        self._report = report

    def __bool__(self) -> bool:
        return bool(self.found)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The faults as the user is told of them."""
        return tuple(map(str, self.found))

    def caught(self, step: str) -> _Caught:
        """Return a context manager that reports an internal error inside it and suppresses it."""
        return _Caught(self, step)

    def add(self, step: str, error: BaseException) -> None:
        """Report an internal error."""
        fault = Fault(step, type(error).__name__, place_of(error))
        if fault in self.found:
            return
        self.found.append(fault)
        with suppress(Exception):  # what cannot be reported is no reason to fail
            self._report(fault)


class _Caught:
    """Suppresses internal errors. A class, because it is entered for each chunk of a stream."""

    __slots__ = ("_faults", "_step")

    def __init__(self, faults: Faults, step: str) -> None:
        self._faults = faults
        self._step = step

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None or not is_internal(error):
            return False
        self._faults.add(self._step, error)
        return True


def logged_faults(logger: str) -> Faults:
    """Return faults that are only logged: for work that belongs to no request."""
    log = logging.getLogger(logger)
    return Faults(lambda fault: log.error("%s", fault))


def is_internal(error: BaseException) -> bool:
    """Return whether an exception is a failure of ours: no refusal, and no cancellation."""
    if isinstance(error, HoldfastError):
        return isinstance(error, _OWN_FAILURES)
    return isinstance(error, Exception)


def place_of(error: BaseException) -> str:
    """Return file and line of the innermost frame of ours that an exception passed."""
    place = "unknown"
    for frame, line in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        if name.startswith(_PACKAGE):
            place = f"{name.removeprefix(_PACKAGE)}:{line}"
    return place
