"""Counts made for tests of the budget."""

from __future__ import annotations

from holdfast.tokens import Parts, TokenCount


def counted(tokens: int, *, system: int = 0, tools: int = 0, formatting: int = 0) -> TokenCount:
    said = tokens - system - tools - formatting
    return TokenCount(
        tokens=tokens,
        upper=tokens + tokens // 10,
        accuracy="calibrated",
        parts=Parts(system, tools, said, formatting),
        model="gpt-4o",
        family="o200k",
        plain=tokens,
    )
