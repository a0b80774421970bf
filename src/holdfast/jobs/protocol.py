"""The interface of a handler, and the report of each attempt.

The jobs themselves are in the store: see store/queue.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from holdfast.store.queue import Job, JobState
from holdfast.store.records import Summary


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a job, written in one transaction with its end."""

    cost: int = 0
    """Tokens used; the rest of the debited ones is refunded."""
    summary: Summary | None = None
    """The summary to store."""
    gist: str = ""
    """The new description of the job's ref, at most 500 characters."""
    again_seconds: float | None = None
    """When it is to be done once more, if it recurs."""
    skipped: str = ""
    """Why there was nothing to do, or nothing yet; empty if it was done."""


Handler = Callable[[Job], Awaitable[Outcome]]
"""Runs jobs of one kind. It may be cancelled at any `await`, and may run again for an interrupted
job: only its outcome counts. It raises `HoldfastError` if it failed; an error with `retry_after`
sets the time of the next attempt."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that has ended, for those who watch."""

    kind: str
    state: JobState
    """The new state of the job; `running` if another worker has it now."""
    seconds: float
    cost: int = 0
    error: str = ""
    """Why it failed, without content."""
