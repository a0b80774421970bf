"""Extracts facts from stored results, during a call or in the background.

fact_learner: after parts, before holdfast. Facts are an extra: a failure here is logged, and never
fails the request.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from holdfast.engine.parts import EngineParts
from holdfast.errors import StoreError
from holdfast.facts import Ledger
from holdfast.facts.fact_reader import fact_job, is_long_enough
from holdfast.facts.values import MOST_BYTES
from holdfast.faults import logged_faults
from holdfast.store import Content, Scope
from holdfast.store.deadline import without_deadline

_LOGGER = "holdfast.engine"


class FactLearner:
    """Extracts facts from the results of one scope."""

    def __init__(self, parts: EngineParts, ledger: Ledger) -> None:
        self._parts = parts
        self._ledger = ledger
        self._tasks: set[asyncio.Task[None]] = set()

    async def learn(self, scope: Scope, content: Content) -> None:
        """Extract the facts of a stored result (004-33)."""
        if not self._parts.learns:
            return
        with logged_faults(_LOGGER).caught("facts"), suppress(StoreError):
            if len(content.data) <= MOST_BYTES:
                text, tool = content.data.decode("utf-8", "replace"), content.meta.get("tool", "")
                await self._ledger.extract(
                    text, session=scope.session, source_ref=content.ref_id, tool=tool
                )
            if self._parts.reading is not None and is_long_enough(content):
                await self._parts.store.jobs.enqueue(scope, [fact_job(content)])

    def learn_later(self, scope: Scope, contents: Sequence[Content]) -> None:
        """Extract the facts of a request's results without making the request wait."""
        if not self._parts.learns:
            return
        # Without a model only short contents are read: do not hold the long ones in memory.
        asks = self._parts.reading is not None
        legible = deque(each for each in contents if asks or len(each.data) <= MOST_BYTES)
        if legible:
            learning = self._learn_in_turn(scope, legible)
            task = asyncio.create_task(learning, context=without_deadline())
            self._tasks.add(task)
            task.add_done_callback(self._end)

    async def settle(self) -> None:
        """Wait until all facts are extracted."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _end(self, task: asyncio.Task[None]) -> None:
        """Forget a task and log its error; asyncio would log the text, which may be content."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logged_faults(_LOGGER).add("facts", error)

    async def _learn_in_turn(self, scope: Scope, contents: deque[Content]) -> None:
        """Read one result after the other and free each: together they may be a whole body."""
        while contents:
            await self.learn(scope, contents.popleft())
