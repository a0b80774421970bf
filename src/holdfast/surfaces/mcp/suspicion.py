"""Words in a tool's definition that speak to the model instead of describing the tool.

suspicion: beside config; it knows no server. A description is written by whoever runs the server,
and a model reads it: so it is shown as data, and what reads like an order is flagged for people and
for the model. A flag forbids nothing: honest tools say "always" too, so only what no description
needs is looked for.
"""

from __future__ import annotations

import re2  # type: ignore[import-untyped]

_SIGNS: tuple[tuple[str, str], ...] = (
    (
        "overrides",
        r"(?i)\b(ignore|disregard|forget|override)\b.{0,40}"
        r"\b(previous|prior|above|earlier|other|all|system)\b.{0,20}"
        r"\b(instructions?|prompts?|rules?|tools?)\b",
    ),
    (
        "secrecy",
        r"(?i)\b(do not|don't|never|without)\b.{0,30}"
        r"\b(tell|telling|mention|mentioning|inform|informing|reveal|show|notify|notifying)\b.{0,30}"
        r"\b(user|anyone|human|them)\b",
    ),
    (
        "pretence",
        r"(?i)<\s*/?\s*(important|system|instructions?|admin|assistant|secret)\b[^>]{0,20}>",
    ),
    (
        "secrets",
        r"(?i)(\.ssh/|id_rsa|\.aws/credentials|\b(read|send|pass|include)\b.{0,60}"
        r"(\.env\b|mcp\.json|api[ _-]?keys?\b|passwords?\b))",
    ),
    (
        "hidden text",
        r"[\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{2069}\x{feff}\x{e0000}-\x{e007f}]",
    ),
    (
        "takes over",
        r"(?i)\b(before|instead of|whenever|prior to)\b.{0,30}\b(using|calling|invoking|use of)\b"
        r".{0,20}\b(any|all|every|other)\b.{0,15}\btools?\b",
    ),
)
_PATTERNS = tuple((flag, re2.compile("(?s)" + sign)) for flag, sign in _SIGNS)
_LOOKED_AT = 40_000
"""Characters of a definition; what is longer than that is flagged for that alone."""


def suspicions(text: str) -> tuple[str, ...]:
    """What a definition holds that no definition needs, in words of our own."""
    head = text[:_LOOKED_AT].encode("utf-8", "replace").decode()  # RE2 takes no lone surrogates
    flags = [flag for flag, pattern in _PATTERNS if pattern.search(head)]
    return (*flags, "very long") if len(text) > _LOOKED_AT else tuple(flags)
