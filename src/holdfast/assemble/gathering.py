"""What a turn could be made of, gathered within its room: recent, recalled, facts, stored results.

gathering: after context. Shares of the pack say how much of each there may be; what facts and
results do not use goes to what was said. Where the records come from, `Shelves` says: it gives
pieces in the order of their worth, and this takes as many as fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec.structs import replace

from holdfast.assemble.ageing import aged
from holdfast.assemble.intents import LEAST_FACTS, Pack, Section, lend
from holdfast.assemble.working_set import (
    Piece,
    WorkingSet,
    in_form,
    shortened,
    tokens_of,
)

_RECENT_SHARE = 0.5
"""Of the tokens for history: recent pairs leave the rest to recalled turns, if there are any."""
_LEAST_RECALL = 60
"""Tokens: with less room than this nothing is looked for."""
_DAY_TOKENS = 5
"""Of the line above what was said on a day."""
_HEADINGS = 60
"""Tokens of the lines around quoted memory: what it is, and what its lists are."""


class Shelves(Protocol):
    """Where the pieces of a turn come from; each call gives the best first, history in order."""

    async def recent(self, pairs: int) -> Sequence[Piece]:
        """The last pairs of question and answer, whole, the oldest first."""

    async def facts(self, query: str, tags: Sequence[str] | None, most: int) -> Sequence[Piece]:
        """The facts that bear on a question."""

    async def refs(self, most: int) -> Sequence[Piece]:
        """The stored results that are used most."""

    async def recalled(self, query: str, tokens: int) -> Sequence[Piece]:
        """Earlier turns that bear on a question, in the order of time."""


async def gather(
    shelves: Shelves, query: str, tags: Sequence[str] | None, pack: Pack, room: int
) -> WorkingSet:
    """The working set of a turn, in about so many tokens: who sends it counts."""
    recent = with_ages(await shelves.recent(pack.pairs))
    facts = tuple(await shelves.facts(query, tags, pack.most_facts))
    summaries = tuple(await shelves.refs(pack.most_refs))
    room = max(0, room - _HEADINGS)
    wanted: dict[Section, int] = {
        "history": room,
        "facts": tokens_of(facts),
        "summaries": tokens_of(summaries),
    }
    shares = {section: share for section, share in pack.shares.items() if section in wanted}
    allowed = lend(shares, wanted, room)
    facts = _within(facts, allowed["facts"], LEAST_FACTS)
    summaries = _within(summaries, allowed["summaries"])
    spoken = allowed["history"]
    history = shortened(recent, round(spoken * _RECENT_SHARE))
    recalled: tuple[Piece, ...] = ()
    if (left := spoken - tokens_of(history)) >= _LEAST_RECALL:
        whole = {said.id for said in history if said.text == said.original}
        passages = await shelves.recalled(query, left + _tokens_among(recent, whole))
        recalled = _best(tuple(each for each in passages if each.id not in whole), left)
    history = shortened(recent, max(tokens_of(history), spoken - tokens_of(recalled)))
    return WorkingSet(history=history, recalled=recalled, facts=facts, summaries=summaries)


def with_ages(recent: Iterable[Piece]) -> tuple[Piece, ...]:
    """Recent messages, each as it is shown at its age: a question begins a pair."""
    pieces = list(recent)
    age = 0
    for place in range(len(pieces) - 1, -1, -1):
        said = pieces[place]
        pieces[place] = in_form(replace(said, age=age), *aged(said.original, age))
        age += said.role == "user"
    return tuple(pieces)


def _within(pieces: tuple[Piece, ...], most: int, least: int = 0) -> tuple[Piece, ...]:
    """The first pieces that have so many tokens together, and never fewer than `least`."""
    fitting = 0
    for stop, each in enumerate(pieces, 1):
        most -= each.tokens
        if most < 0 and stop > least:
            break
        fitting = stop
    return pieces[:fitting]


def _best(passages: tuple[Piece, ...], most: int) -> tuple[Piece, ...]:
    """Return the passages with the best scores that fit, days above them, in the order of time."""
    chosen: set[str] = set()
    days: set[str] = set()
    for each in sorted(passages, key=lambda passage: -passage.score):
        tokens = each.tokens + (0 if each.heading in days else _DAY_TOKENS)
        if tokens <= most:
            most -= tokens
            chosen.add(each.id)
            days.add(each.heading)
    return tuple(each for each in passages if each.id in chosen)


def _tokens_among(recent: Iterable[Piece], names: set[str]) -> int:
    """What recall would give once more of what is shown anyway."""
    return sum(said.tokens for said in recent if said.id in names)
