"""Gather the working set of a turn within its budget: recent pairs, recalled turns, facts, results.

The section budgets limit each kind; history gets what facts and results do not use. A
`ContextSource` returns pieces in order of worth, and `gather` takes as many as fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec.structs import replace

from holdfast.assemble.history_compression import compress
from holdfast.assemble.intents import LEAST_FACTS, Section, SectionBudgets, allocate_sections
from holdfast.assemble.working_set import (
    ContextPiece,
    WorkingSet,
    replace_text,
    shorten_history,
    tokens_of,
)

_RECENT_SHARE = 0.5
"""Maximum share of recent pairs in the tokens for history; recalled turns get the rest."""
_LEAST_RECALL = 60
"""Minimum tokens for a recall; with less, none is made."""
_DAY_TOKENS = 5
"""Tokens of a day heading."""
_HEADINGS = 60
"""Tokens of the lines around quoted memory."""


class ContextSource(Protocol):
    """Source of the pieces of a turn. Each call returns the best first, history in order."""

    async def recent(self, pairs: int) -> Sequence[ContextPiece]:
        """Return the last pairs of question and answer in full, oldest first."""

    async def facts(
        self, query: str, tags: Sequence[str] | None, most: int
    ) -> Sequence[ContextPiece]:
        """Return the facts relevant to a question."""

    async def refs(self, most: int) -> Sequence[ContextPiece]:
        """Return the stored results that are used most."""

    async def recalled(self, query: str, tokens: int) -> Sequence[ContextPiece]:
        """Return earlier turns relevant to a question, in time order."""


async def gather(
    source: ContextSource,
    query: str,
    tags: Sequence[str] | None,
    budgets: SectionBudgets,
    available: int,
) -> WorkingSet:
    """Return the working set of a turn in about `available` tokens, estimated by piece."""
    recent = compress_by_age(await source.recent(budgets.pairs))
    facts = tuple(await source.facts(query, tags, budgets.most_facts))
    summaries = tuple(await source.refs(budgets.most_refs))
    available = max(0, available - _HEADINGS)
    needs: dict[Section, int] = {
        "history": available,
        "facts": tokens_of(facts),
        "summaries": tokens_of(summaries),
    }
    shares = {section: share for section, share in budgets.shares.items() if section in needs}
    allowed = allocate_sections(shares, needs, available)
    facts = _take(facts, allowed["facts"], LEAST_FACTS)
    summaries = _take(summaries, allowed["summaries"])
    history_tokens = allowed["history"]
    history = shorten_history(recent, round(history_tokens * _RECENT_SHARE))
    recalled: tuple[ContextPiece, ...] = ()
    if (remaining := history_tokens - tokens_of(history)) >= _LEAST_RECALL:
        complete = {turn.id for turn in history if turn.text == turn.original}
        passages = await source.recalled(query, remaining + _tokens_among(recent, complete))
        recalled = _best_passages(
            tuple(each for each in passages if each.id not in complete), remaining
        )
    history = shorten_history(recent, max(tokens_of(history), history_tokens - tokens_of(recalled)))
    return WorkingSet(history=history, recalled=recalled, facts=facts, summaries=summaries)


def compress_by_age(recent: Iterable[ContextPiece]) -> tuple[ContextPiece, ...]:
    """Return recent messages, each compressed for its age; a question begins a pair."""
    pieces = list(recent)
    age = 0
    for place in range(len(pieces) - 1, -1, -1):
        message = pieces[place]
        pieces[place] = replace_text(replace(message, age=age), *compress(message.original, age))
        age += message.role == "user"
    return tuple(pieces)


def _take(pieces: tuple[ContextPiece, ...], most: int, least: int = 0) -> tuple[ContextPiece, ...]:
    """Return the first pieces that fit into `most` tokens, but never fewer than `least`."""
    fitting = 0
    for stop, each in enumerate(pieces, 1):
        most -= each.tokens
        if most < 0 and stop > least:
            break
        fitting = stop
    return pieces[:fitting]


def _best_passages(passages: tuple[ContextPiece, ...], most: int) -> tuple[ContextPiece, ...]:
    """Return the passages with the best scores that fit with their day headings, in time order."""
    chosen: set[str] = set()
    days: set[str] = set()
    for each in sorted(passages, key=lambda passage: -passage.score):
        tokens = each.tokens + (0 if each.heading in days else _DAY_TOKENS)
        if tokens <= most:
            most -= tokens
            chosen.add(each.id)
            days.add(each.heading)
    return tuple(each for each in passages if each.id in chosen)


def _tokens_among(recent: Iterable[ContextPiece], names: set[str]) -> int:
    """Return the tokens of recalled turns that are shown as history already."""
    return sum(each.tokens for each in recent if each.id in names)
