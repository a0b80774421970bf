"""Assemble turns of a fixed size, 3,000 tokens by default, from a session's memory.

docs/discussions/assemble.md explains the steps.
"""

from holdfast.assemble.assembler import AssembleOptions, Assembler
from holdfast.assemble.context import (
    AssembleContextInput,
    AssembledContext,
    ContextBudget,
    TurnSource,
)
from holdfast.assemble.header import HeaderParts, ToolIntent
from holdfast.assemble.intents import (
    INTENTS,
    SECTION_BUDGETS,
    TOKEN_BUDGET,
    Intent,
    SectionBudgets,
    detect_intent,
)

__all__ = [
    "INTENTS",
    "SECTION_BUDGETS",
    "TOKEN_BUDGET",
    "AssembleContextInput",
    "AssembleOptions",
    "AssembledContext",
    "Assembler",
    "ContextBudget",
    "HeaderParts",
    "Intent",
    "SectionBudgets",
    "ToolIntent",
    "TurnSource",
    "detect_intent",
]
