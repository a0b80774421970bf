"""The providers' rules with their sources, and the checks for them."""

from holdfast.wire.rules import (
    anthropic,
    anthropic_thoughts,
    converse,
    gemini,
    openai_chat,
    openai_responses,
)
from holdfast.wire.rules.rule import RULES, Rule, Violation, check_all, rule

__all__ = [
    "RULES",
    "Rule",
    "Violation",
    "anthropic",
    "anthropic_thoughts",
    "check_all",
    "converse",
    "gemini",
    "openai_chat",
    "openai_responses",
]

SHAPE = rule(
    "S1",
    "",
    "A body has the shape of its dialect: a list of messages with known roles and typed content.",
    source="every vendor's API reference",
)
SURROGATES = rule(
    "S2",
    "",
    "No string holds half a character (a lone surrogate).",
    source="claude-code#60394, 'no low surrogate in string'",
)
