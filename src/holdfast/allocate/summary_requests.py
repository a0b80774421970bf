"""Request the summaries that a plan needs, several at a time; originals are stored first.

A summariser is foreign code. Any exception that it raises marks its item as one that could not be
summarised and stops nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from holdfast.allocate.candidates import AllocationCandidate
from holdfast.allocate.fidelity import Rung
from holdfast.allocate.level_choice import Option
from holdfast.allocate.originals import StoredOriginals
from holdfast.summarise import Summarizer, target_tokens

AT_ONCE = 8
"""Concurrent summary requests; a summariser may have its own limit."""

Progress = Callable[[int, int], None]
"""Receives the number of finished summaries and the total."""


async def store_originals(
    chosen: Iterable[tuple[AllocationCandidate, Option]], originals: StoredOriginals
) -> None:
    """Store the originals of contents that will not be shown in full."""
    unstored = [
        candidate
        for candidate, option in chosen
        if option.rung is not Rung.RAW and candidate.original is None
    ]
    stored = await originals.keep(
        [each.item.content for each in unstored], [each.tokens for each in unstored]
    )
    for candidate, original in zip(unstored, stored, strict=True):
        candidate.original = original


async def request_summaries(
    requested: Sequence[tuple[AllocationCandidate, Option]],
    summarizer: Summarizer,
    context: str,
    progress: Progress | None,
) -> None:
    """Request a summary of each candidate at the level of its option."""
    slots = asyncio.Semaphore(AT_ONCE)
    ready = 0

    async def summarise(candidate: AllocationCandidate, option: Option) -> None:
        nonlocal ready
        async with slots:
            await _request_summary(candidate, option, summarizer, context)
        ready += 1
        if progress is not None:
            progress(ready, len(requested))

    async with asyncio.TaskGroup() as group:
        for candidate, option in requested:
            group.create_task(summarise(candidate, option))


async def _request_summary(
    candidate: AllocationCandidate, option: Option, summarizer: Summarizer, context: str
) -> None:
    level, original = option.asked, candidate.original
    assert level is not None  # noqa: S101 - of those that are wanted, and for the checker
    assert original is not None  # noqa: S101
    # Never less than the level's target: short summaries of other items do not predict this one.
    budget = max(option.tokens, target_tokens(level, candidate.tokens))
    try:
        result = await summarizer.summarize(original.visible, level, context, budget)
        candidate.add(level, result)
    except Exception as error:  # noqa: BLE001 - another's code, which may raise anything
        candidate.failures[level] = f"the summariser failed ({type(error).__name__})"
