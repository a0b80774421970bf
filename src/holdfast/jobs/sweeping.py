"""The recurring removal of expired contents, summaries, old sessions and finished jobs.

It is one job for the whole store, which decides what to remove (see `Store.gc`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.jobs.protocol import Outcome
from holdfast.settings import Settings
from holdfast.store import Scope, Store
from holdfast.store.queue import Job, NewJob

KIND = "sweep"
JOB = NewJob(kind=KIND, key="store", priority=3, max_attempts=0)
"""Tried for ever: were it to fail for good, nothing would be swept any more."""
SWEEP_SECONDS = 3600.0
"""Time between two sweeps. Times to live are set in hours, so that a shorter one finds little."""
KEPT_SECONDS = 7 * 86_400.0
"""How long jobs that are over are remembered: so long, an equal one is not done again."""


class Sweeper:
    """Does the job of sweeping."""

    def __init__(
        self, store: Store, settings: Settings, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock

    async def __call__(self, _: Job) -> Outcome:
        """Sweep what everyone has here, one after the other."""
        idle_seconds = self._settings.sweep_idle_days * 86_400
        retain_seconds = self._settings.retain_days * 86_400
        has_removed = False
        for scope in await self._store.scopes():
            if retain_seconds:
                before = self._clock() - retain_seconds
                has_removed |= bool(await self._store.expire(scope, before))
            if idle_seconds:
                await close_idle(self._store, scope, self._clock() - idle_seconds)
            has_removed |= (await self._store.gc(scope)).contents > 0
        await self._store.jobs.forget_finished(KEPT_SECONDS)
        if has_removed:
            await self._store.scrub()
        return Outcome(again_seconds=SWEEP_SECONDS)


async def close_idle(store: Store, scope: Scope, since: float) -> None:
    """Close the open sessions that were last used before a time."""
    before = ""
    while page := await store.sessions(scope, before=before):
        for session in page:
            if session.closed_at is None and session.updated_at < since:
                await store.close_session(scope.of(session.session))
        before = page[-1].session
