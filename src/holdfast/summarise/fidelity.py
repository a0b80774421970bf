"""What stands of a content in a prompt: one record for each, by value.

fidelity: after levels; allocation and assembled turns both keep these. A record says what stands
in the prompt, not what was planned (X02), and by value, so that nobody has to look for a mark in a
text (X05). All fields but the id have defaults.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from holdfast.summarise.levels import SummarizationLevel


class Rung(StrEnum):
    """The one ladder of allocation and degradation, from all of a content to nothing (C9)."""

    RAW = "raw"
    CONDENSED = "condensed"
    KEY_POINTS = "key_points"
    HEADLINE = "headline"
    TRUNCATED = "truncated"
    DROPPED = "dropped"

    @property
    def summary(self) -> SummarizationLevel | None:
        """The level to be asked of a summariser; None where none is asked."""
        return _LEVELS.get(self)


_LEVELS = {
    Rung.CONDENSED: SummarizationLevel.CONDENSED,
    Rung.KEY_POINTS: SummarizationLevel.KEY_POINTS,
    Rung.HEADLINE: SummarizationLevel.HEADLINE,
}


class ContentFidelityRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What stands of one item in the prompt of one phase."""

    source_id: str
    phase: str = ""
    requested_level: Rung = Rung.RAW
    """What was asked for, of the summariser where one was asked."""
    level: Rung = Rung.RAW
    """What was reached."""
    priority: float = 0.0
    tokens_from: int = 0
    """Of the original."""
    tokens_to: int = 0
    """Of what stands in the prompt, without the lines around it; counted there."""
    provider: str = ""
    """Who wrote the summary; empty if nobody did."""
    model: str = ""
    truncated: bool = False
    """The end was cut off: by us, or by the summariser to keep its budget."""
    dropped: bool = False
    reason: str = ""
    """Why it was dropped or truncated."""
    ref: str = ""
    """The original's, if not all of it stands in the prompt."""
    sha256: str = ""
    """The same in full, by which the content archive knows it."""
    checked: int = 0
    """Sentences of the summary that were held against the original."""
    unsupported: int = 0
    """Those of them that were taken out, because the original does not say that."""
    cached: bool = False
    cost: float | None = None
    """US dollars of the summary; None where nobody knows."""
    warnings: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Its name in `content_fidelity`: one record for each item and phase."""
        return fidelity_key(self.source_id, self.phase)


def fidelity_key(source_id: str, phase: str = "") -> str:
    """The name of a record: the item's id, behind the phase if there is one."""
    return f"{phase}:{source_id}" if phase else source_id
