"""The prompt that chosen parts make: a line of ours before each, and the part between fences.

prompt: after fidelity. What a part says cannot pass for a line of ours, nor end its fences: a
source may be a page that somebody wrote to be read by a model.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.allocate.fidelity import Rung
from holdfast.quoting import bracketed, fenced

SEPARATOR = "\n\n"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What stands of one item in the prompt."""

    source_id: str
    rung: Rung
    text: str
    tokens_from: int
    """Of the original."""
    ref: str = ""

    def __repr__(self) -> str:
        return f"<Part {self.source_id}, {self.rung}, {len(self.text)} characters>"


def heading(source_id: str, rung: Rung, tokens_from: int, ref: str) -> str:
    """The line before a part: which item it is, and what is shown of it."""
    name = bracketed(source_id)
    if rung is Rung.RAW:
        return f"[{name}]"
    opening = f", {ref}" if ref else ""
    return f"[{name}: {rung} of {tokens_from:,} tokens{opening}]"


def render(parts: Iterable[Part]) -> str:
    """The prompt: the parts in their order."""
    return SEPARATOR.join(
        f"{heading(part.source_id, part.rung, part.tokens_from, part.ref)}\n{fenced(part.text)}"
        for part in parts
    )


def left_out(dropped: int, total: int) -> str:
    """The line that tells a model that it does not see everything."""
    return f"[{dropped:,} of {total:,} left out: no room]"
