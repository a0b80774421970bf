"""Remember everything, send 3,000 tokens: a turn made of what matters of a session.

intents → packs → header → ageing → working_set → context → gathering → composing, shelves →
assembler; requests assembles what a client sends with its whole history. See
docs/discussions/assemble.md.
"""

from holdfast.assemble.assembler import AssembleOptions, Assembler
from holdfast.assemble.context import (
    AssembleContextInput,
    AssembledContext,
    BudgetInfo,
    TurnSource,
)
from holdfast.assemble.header import HeaderParts, ToolIntent
from holdfast.assemble.intents import INTENTS, PACKS, TOKEN_BUDGET, Intent, Pack, detect_intent

__all__ = [
    "INTENTS",
    "PACKS",
    "TOKEN_BUDGET",
    "AssembleContextInput",
    "AssembleOptions",
    "AssembledContext",
    "Assembler",
    "BudgetInfo",
    "HeaderParts",
    "Intent",
    "Pack",
    "ToolIntent",
    "TurnSource",
    "detect_intent",
]
