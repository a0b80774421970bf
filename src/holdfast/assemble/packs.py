"""What goes into a turn, by its intent: shares of the tokens, and how many of each thing; as data.

packs: after intents. Shares lend each other what they do not use: a session without facts has more
room for what was said. They are shares of the seed's 3,000 tokens (004-43) and grow and shrink with
the budget of a turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from holdfast.assemble.intents import Intent

Section = Literal["header", "history", "facts", "summaries"]

TOKEN_BUDGET: dict[str, int] = {
    "total": 3_000,
    "header": 600,
    "history": 1_000,
    "facts": 800,
    "summaries": 600,
}
"""The seed's (004-43)."""

LEAST_FACTS = 10
"""So many facts stay as long as any of the working set does (004-44)."""

_BORROWING: tuple[Section, ...] = ("history", "facts", "summaries", "header")
"""Who takes first of what others leave: the evidence of an answer is most often something said."""


class Pack(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn of one intent is made of."""

    header: int = TOKEN_BUDGET["header"]
    history: int = TOKEN_BUDGET["history"]
    """Tokens of recent and of recalled turns together."""
    facts: int = TOKEN_BUDGET["facts"]
    summaries: int = TOKEN_BUDGET["summaries"]
    pairs: int
    """Most recent pairs of question and answer: 4 to 8 (C20)."""
    most_facts: int
    """8 to 20 (004-10)."""
    most_refs: int
    """Stored contents that are named, the most used first."""

    @property
    def shares(self) -> dict[Section, int]:
        """The tokens of each section, of 3,000."""
        return {
            "header": self.header,
            "history": self.history,
            "facts": self.facts,
            "summaries": self.summaries,
        }


PACKS: Mapping[Intent, Pack] = {
    # What is written down needs what it belongs to, and little of the past.
    "quick_capture": Pack(pairs=4, most_facts=10, most_refs=2),
    "context_lookup": Pack(pairs=4, most_facts=12, most_refs=6),
    # Results are what is thought about: more of them, and more of what was said last.
    "deep_analysis": Pack(
        history=1_000, facts=600, summaries=800, pairs=6, most_facts=12, most_refs=8
    ),
    # A plan rests on decisions, open tasks and numbers, which are facts.
    "planning": Pack(history=900, facts=1_000, summaries=500, pairs=8, most_facts=20, most_refs=4),
}


def lend(
    shares: Mapping[Section, int], wanted: Mapping[Section, int], total: int
) -> dict[Section, int]:
    """How many tokens each section may have: its share of the total, and what others do not use.

    The sum is never over the total, and no section has more than it wants.
    """
    whole = sum(shares.values())
    allowed = {
        section: min(wanted[section], share * total // whole) for section, share in shares.items()
    }
    spare = total - sum(allowed.values())
    for section in _BORROWING:
        if section in allowed:
            more = min(spare, wanted[section] - allowed[section])
            allowed[section] += more
            spare -= more
    return allowed
