"""protocol: what a handler is asked and answers, and what is told of each attempt.

protocol: the first of this folder. The jobs themselves are the store's: see store/queue.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from holdfast.store.queue import Job, JobState
from holdfast.store.records import Summary


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a job. It is written down in one transaction with the end of the job."""

    cost: int = 0
    """Tokens that it took; the rest of what was debited is refunded."""
    summary: Summary | None = None
    """What it made, to be kept."""
    gist: str = ""
    """What the job's ref is from now on said to be, in at most 500 characters."""
    again_seconds: float | None = None
    """When it is to be done once more, if it recurs."""
    skipped: str = ""
    """Why there was nothing to do, or nothing yet; empty if it was done."""


Handler = Callable[[Job], Awaitable[Outcome]]
"""Does jobs of one kind. It may be cancelled at any `await`, and may be called again for a job that
was cut off: all that counts is in its outcome. It raises `HoldfastError` if it failed; an error
with `retry_after` says when to try again."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that has ended, for those who watch."""

    kind: str
    state: JobState
    """What the job is now; `running` if it belongs to another by now."""
    seconds: float
    cost: int = 0
    error: str = ""
    """Why it failed, without content."""
