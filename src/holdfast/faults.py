"""Record internal errors by their location, never by their text, so that a request can continue.

If a part of Holdfast fails, the request is sent unedited. Each surface creates one `Faults` per
request and runs its steps inside `caught`, which suppresses only unexpected exceptions: refusals,
cancellations and disconnected clients pass through.
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
"""Holdfast's errors that no caller can act on: an internal step failed."""


class Fault(NamedTuple):
    """An internal error without its text, which may contain content."""

    step: str
    """Name of the step that failed."""
    kind: str
    """Name of the exception's class."""
    place: str
    """File within the package and line of the innermost frame."""

    def __str__(self) -> str:
        return f"internal error in {self.step} ({self.kind} at {self.place})"


class Faults:
    """The internal errors of one request."""

    def __init__(self, report: Callable[[Fault], None]) -> None:
        """Create an empty list; `report` is called once per distinct fault."""
        self.found: list[Fault] = []
        self._report = report

    def __bool__(self) -> bool:
        return bool(self.found)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the faults as warnings for the user."""
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
        with suppress(Exception):  # failing to report must not fail the request
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
    """Return faults that are only logged, for work outside any request."""
    log = logging.getLogger(logger)
    return Faults(lambda fault: log.error("%s", fault))


def is_internal(error: BaseException) -> bool:
    """Return whether an exception is an internal failure, not a refusal or cancellation."""
    if isinstance(error, HoldfastError):
        return isinstance(error, _OWN_FAILURES)
    return isinstance(error, Exception)


def place_of(error: BaseException) -> str:
    """Return file and line of the innermost frame inside the package."""
    place = "unknown"
    for frame, line in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        if name.startswith(_PACKAGE):
            place = f"{name.removeprefix(_PACKAGE)}:{line}"
    return place
