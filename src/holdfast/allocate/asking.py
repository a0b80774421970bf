"""Have the summaries made that a plan wants: originals stored first, some at a time.

asking: after candidates. A summariser is somebody else's code and somebody else's server: whatever
it raises makes its item one that could not be summarised, and stops nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from holdfast.allocate.candidates import Candidate
from holdfast.allocate.choosing import Option
from holdfast.allocate.fidelity import Rung
from holdfast.allocate.originals import Originals
from holdfast.summarise import Summarizer, target_tokens

AT_ONCE = 8
"""Summaries that are asked for at a time; a summariser may have a limit of its own."""

Progress = Callable[[int, int], None]
"""Told how many summaries are there, and of how many."""


async def keep_originals(chosen: Iterable[tuple[Candidate, Option]], originals: Originals) -> None:
    """Store what will not be shown whole, if it is not stored yet."""
    leaving = [
        candidate
        for candidate, option in chosen
        if option.rung is not Rung.RAW and candidate.original is None
    ]
    stored = await originals.keep(
        [each.item.content for each in leaving], [each.tokens for each in leaving]
    )
    for candidate, original in zip(leaving, stored, strict=True):
        candidate.original = original


async def ask(
    wanted: Sequence[tuple[Candidate, Option]],
    summarizer: Summarizer,
    context: str,
    progress: Progress | None,
) -> None:
    """Ask for a summary of each candidate at the level of its option."""
    turns = asyncio.Semaphore(AT_ONCE)
    ready = 0

    async def one(candidate: Candidate, option: Option) -> None:
        nonlocal ready
        async with turns:
            await _ask(candidate, option, summarizer, context)
        ready += 1
        if progress is not None:
            progress(ready, len(wanted))

    async with asyncio.TaskGroup() as group:
        for candidate, option in wanted:
            group.create_task(one(candidate, option))


async def _ask(candidate: Candidate, option: Option, summarizer: Summarizer, context: str) -> None:
    level, original = option.asked, candidate.original
    assert level is not None  # noqa: S101 - of those that are wanted, and for the checker
    assert original is not None  # noqa: S101
    # Never less than the level aims at: that others came out short says nothing of this one.
    budget = max(option.tokens, target_tokens(level, candidate.tokens))
    try:
        result = await summarizer.summarize(original.visible, level, context, budget)
        candidate.add(level, result)
    except Exception as error:  # noqa: BLE001 - another's code, which may raise anything
        candidate.failures[level] = f"the summariser failed ({type(error).__name__})"
