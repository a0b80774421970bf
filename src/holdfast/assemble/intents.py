"""What a turn of the user's is for: one of four intents, by rules and, where these tie, by score.

intents: the first word of assemble; it knows text alone. Each rule is a phrase that people use for
one of the four, with its points; the first words of a turn say most, so that there a rule counts
twice. Where two intents have the same points, signs that no phrase shows decide: a question mark,
the length, how many things are asked. The same text always has the same intent.

What goes into a turn, by its intent: shares of the tokens, and how many of each thing; as data.
Shares lend each other what they do not use: a session without facts has more room for what was
said. They are shares of the seed's 3,000 tokens (004-43) and grow and shrink with the budget of a
turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

import msgspec
import re2  # type: ignore[import-untyped]

Intent = Literal["quick_capture", "context_lookup", "deep_analysis", "planning"]
"""To write something down, to look something up, to think something through, to plan."""

INTENTS: tuple[Intent, ...] = get_args(Intent)

_LOOKED_AT = 2_000
"""Characters: what is pasted behind a question says nothing of what it is for."""
_BEGINNING = 60
"""Characters in which a turn says what it is for: "Could you please create a task …"."""


class _Rule(NamedTuple):
    points: float
    phrases: str
    """An expression of re2, which takes linear time; words are bounded, and case is ignored."""


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
"""What decides between equals; no sum of these is as much as the smallest rule's points twice."""

_SIGN_EXPRESSIONS = tuple((re2.compile(sign), weights) for sign, weights in _SIGNS)


def detect_intent(text: str) -> Intent:
    """What a turn is for; a lookup where nothing tells, for that leaves out least."""
    points = scores(text)
    return max(INTENTS, key=lambda intent: (points[intent], intent == "context_lookup"))


def scores(text: str) -> dict[Intent, float]:
    """The points of each intent: those of its rules, and a part of one of the signs."""
    looked_at = text.strip()[:_LOOKED_AT]
    points: dict[Intent, float] = dict.fromkeys(INTENTS, 0.0)
    for intent, rules in _EXPRESSIONS.items():
        for worth, expression in rules:
            if match := expression.search(looked_at):
                points[intent] += worth * (2 if match.start() < _BEGINNING else 1)
    for sign, weights in _SIGN_EXPRESSIONS:
        if sign.search(looked_at):
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
