"""Render chosen parts as a prompt: a heading line before each part, and the part between fences.

A source may be a page written to manipulate a model, so a part cannot pass for a heading or end its
fences.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.allocate.fidelity import Rung
from holdfast.quoting import bracketed, fenced

SEPARATOR = "\n\n"


class PromptPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the prompt that shows one item."""

    source_id: str
    rung: Rung
    text: str
    tokens_from: int
    """Tokens of the original."""
    ref: str = ""

    def __repr__(self) -> str:
        return f"<PromptPart {self.source_id}, {self.rung}, {len(self.text)} characters>"


def heading(source_id: str, rung: Rung, tokens_from: int, ref: str) -> str:
    """Return the heading of a part: its name, level and ref."""
    name = bracketed(source_id)
    if rung is Rung.RAW:
        return f"[{name}]"
    opening = f", {ref}" if ref else ""
    return f"[{name}: {rung} of {tokens_from:,} tokens{opening}]"


def render(parts: Iterable[PromptPart]) -> str:
    """Return the prompt with the parts in order."""
    return SEPARATOR.join(
        f"{heading(part.source_id, part.rung, part.tokens_from, part.ref)}\n{fenced(part.text)}"
        for part in parts
    )


def dropped_note(dropped: int, total: int) -> str:
    """Return the line that tells the model how many items were dropped."""
    return f"[{dropped:,} of {total:,} left out: no room]"
