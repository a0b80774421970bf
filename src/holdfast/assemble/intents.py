"""Detect the intent of a user's turn by rules, and give each intent its section budgets.

A rule is a phrase with points, which count twice at the beginning of a turn. If intents have equal
points, signs decide: a question mark, the length, a list. The budgets are for a turn of 3,000
tokens and scale with it; a section that needs less lends the rest to others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

import msgspec
import re2  # type: ignore[import-untyped]

Intent = Literal["quick_capture", "context_lookup", "deep_analysis", "planning"]
"""Note something down, look something up, think something through, make a plan."""

INTENTS: tuple[Intent, ...] = get_args(Intent)

_READ_CHARACTERS = 2_000
"""Characters that are read; text pasted after a question does not show its intent."""
_BEGINNING = 60
"""Characters of the beginning, which shows the intent: "Could you please create a task …"."""


class _Rule(NamedTuple):
    points: float
    phrases: str
    """An RE2 expression, matched in linear time, at word boundaries and ignoring case."""


_RULES: dict[Intent, tuple[_Rule, ...]] = {
    "quick_capture": (
        _Rule(
            3,
            r"(?:create|add|make|open|file|log) (?:a |an |another |new |the |this |that |it |me )*"
            r"(?:as )?(?:a |an )?(?:task|note|to-?do|reminder|ticket|issue|entry|event|bug|card|"
            r"item)s?",
        ),
        _Rule(3, r"remind me (?:to|about|on|at|in|tomorrow|next)"),
        _Rule(3, r"(?:remember|note|record|save|store|jot|write)(?: this| that| it| down)+"),
        _Rule(3, r"(?:note|todo|to-?do|idea|fyi|for the record) ?[:-]"),
        _Rule(2, r"(?:mark|set|put|rename|schedule|book|add) (?:it|this|that|the|my|a|an)"),
        _Rule(1, r"(?:my|our) [\w ]{1,40} (?:is|are) (?:now )?"),
    ),
    "context_lookup": (
        _Rule(3, r"(?:search|find|look up|look for|locate|fetch|get|list|show|open|pull up)"),
        _Rule(3, r"(?:what|when|where|who|which|how|did|was|were|have|had) (?:\w+ ){0,4}"
                 r"(?:we|i|you|they|he|she) (?:\w+ ){0,2}(?:discuss|say|said|talk|mention|decide|"
                 r"agree|tell|told|call|use|name|choose|pick|write|wrote|do|meet|met|go|buy)\w*"),
        _Rule(2, r"(?:what|when|where|who|whose|which|how (?:many|much|old|long|often|far))"),
        _Rule(2, r"(?:remind me (?:what|who|when|where|which|how)|tell me (?:what|who|when|where)|"
                 r"do you (?:remember|know|recall))"),
        _Rule(1, r"(?:is|are|was|were|does|do|did|has|have|can|could) "
                 r"(?:there|it|he|she|they|we|my|the)"),
    ),
    "deep_analysis": (
        _Rule(3, r"(?:analy[sz]e|analysis|summari[sz]e|summary|compare|contrast|evaluate|assess|"
                 r"investigate|diagnose|debug|review|critique|explain|interpret|derive|prove)"),
        _Rule(3, r"(?:why|root cause|trade-?offs?|pros and cons|implications?|in (?:detail|depth)|"
                 r"what went wrong|how come|deep dive)"),
        _Rule(2, r"(?:difference|differences) between"),
        _Rule(1, r"(?:because|therefore|pattern|trend|correlat\w+|impact|cause[sd]?)"),
    ),
    "planning": (
        _Rule(3, r"(?:plan|plans|planning|roadmap|milestones?|next steps|strategy|agenda|itinerary|"
                 r"prioriti[sz]e|break (?:it |this |that )?down|timeline|sprint|backlog)"),
        _Rule(3, r"(?:how (?:should|could|would|can|do|shall) (?:we|i)|what should (?:we|i)|"
                 r"(?:let's|help me|we need to|i want to|i need to) (?:plan|design|organi[sz]e|"
                 r"prepare|decide|outline|set up|build))"),
        _Rule(2, r"(?:design|outline|draft|propose|schedule|organi[sz]e|prepare|steps (?:to|for))"),
        _Rule(1, r"(?:should|before the deadline|by (?:monday|tuesday|wednesday|thursday|friday|"
                 r"next week|next month|the end of))"),
    ),
}  # fmt: skip

_EXPRESSIONS = {
    intent: tuple((rule.points, re2.compile(rf"(?i)\b{rule.phrases}")) for rule in rules)
    for intent, rules in _RULES.items()
}

_SIGNS: tuple[tuple[str, dict[Intent, float]], ...] = (
    (r"\?\s*$", {"context_lookup": 0.9, "deep_analysis": 0.3, "planning": 0.2}),
    (r"[^?]\s*$", {"quick_capture": 0.1}),
    (r"(?s)^.{400,}", {"deep_analysis": 0.6, "planning": 0.3}),
    (r"(?s)^.{0,60}$", {"context_lookup": 0.2}),
    (r"(?i)\b(?:all|every|each|overall|entire|whole)\b", {"deep_analysis": 0.3, "planning": 0.2}),
    (r"(?i)\b(?:last|yesterday|earlier|before|ago|previous)\b", {"context_lookup": 0.3}),
    (r"(?i)\b(?:tomorrow|next|later|until|deadline)\b", {"planning": 0.3, "quick_capture": 0.2}),
    (r"(?s)(?:^|\n)\s*(?:\d+[.)]|[-*]) ", {"planning": 0.3, "deep_analysis": 0.2}),
)
"""Tie-breakers. Their sum is less than the smallest rule's points counted twice."""

_SIGN_EXPRESSIONS = tuple((re2.compile(sign), weights) for sign, weights in _SIGNS)


def detect_intent(text: str) -> Intent:
    """Return the intent of a turn; a lookup if nothing matches, since that leaves out least."""
    points = scores(text)
    return max(INTENTS, key=lambda intent: (points[intent], intent == "context_lookup"))


def scores(text: str) -> dict[Intent, float]:
    """Return the points of each intent from rules and signs."""
    beginning = text.strip()[:_READ_CHARACTERS]
    points: dict[Intent, float] = dict.fromkeys(INTENTS, 0.0)
    for intent, rules in _EXPRESSIONS.items():
        for worth, expression in rules:
            if match := expression.search(beginning):
                points[intent] += worth * (2 if match.start() < _BEGINNING else 1)
    for sign, weights in _SIGN_EXPRESSIONS:
        if sign.search(beginning):
            for intent, weight in weights.items():
                points[intent] += weight
    return points


Section = Literal["header", "history", "facts", "summaries"]

TOKEN_BUDGET: dict[str, int] = {
    "total": 3_000,
    "header": 600,
    "history": 1_000,
    "facts": 800,
    "summaries": 600,
}
"""Tokens of each section in a turn of the default size."""

LEAST_FACTS = 10
"""Facts that are kept as long as any of the working set is."""

_BORROWING_ORDER: tuple[Section, ...] = ("history", "facts", "summaries", "header")
"""The order of borrowing: the evidence of an answer is most often in the history."""


class SectionBudgets(msgspec.Struct, frozen=True, kw_only=True):
    """The sections of a turn for one intent."""

    header: int = TOKEN_BUDGET["header"]
    history: int = TOKEN_BUDGET["history"]
    """Tokens of recent and recalled turns together."""
    facts: int = TOKEN_BUDGET["facts"]
    summaries: int = TOKEN_BUDGET["summaries"]
    pairs: int
    """Most recent pairs of question and answer: 4 to 8."""
    most_facts: int
    """From 8 to 20."""
    most_refs: int
    """Stored contents that are listed, most used first."""

    @property
    def shares(self) -> dict[Section, int]:
        """Return the tokens of each section, of 3,000."""
        return {
            "header": self.header,
            "history": self.history,
            "facts": self.facts,
            "summaries": self.summaries,
        }


SECTION_BUDGETS: Mapping[Intent, SectionBudgets] = {
    # A note needs its context, and little of the past.
    "quick_capture": SectionBudgets(pairs=4, most_facts=10, most_refs=2),
    "context_lookup": SectionBudgets(pairs=4, most_facts=12, most_refs=6),
    # An analysis is about results: more of them, and more recent history.
    "deep_analysis": SectionBudgets(
        history=1_000, facts=600, summaries=800, pairs=6, most_facts=12, most_refs=8
    ),
    # A plan rests on decisions, open tasks and numbers, which are facts.
    "planning": SectionBudgets(
        history=900, facts=1_000, summaries=500, pairs=8, most_facts=20, most_refs=4
    ),
}


def allocate_sections(
    shares: Mapping[Section, int], needs: Mapping[Section, int], total: int
) -> dict[Section, int]:
    """Return the tokens of each section: its share of the total plus unused tokens of others.

    The sum never exceeds the total, and no section gets more than it needs.
    """
    total_share = sum(shares.values())
    allowed = {
        section: min(needs[section], share * total // total_share)
        for section, share in shares.items()
    }
    spare = total - sum(allowed.values())
    for section in _BORROWING_ORDER:
        if section in allowed:
            more = min(spare, needs[section] - allowed[section])
            allowed[section] += more
            spare -= more
    return allowed
