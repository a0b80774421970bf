"""Records of how completely each content appears in a prompt.

Allocation and assembled turns store one record per item and phase. It describes the actual prompt
rather than the plan. All fields except the id have defaults.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from holdfast.summarise.levels import SummarizationLevel


class Rung(StrEnum):
    """The degrees of allocation and degradation, from a complete content to none."""

    RAW = "raw"
    CONDENSED = "condensed"
    KEY_POINTS = "key_points"
    HEADLINE = "headline"
    TRUNCATED = "truncated"
    DROPPED = "dropped"

    @property
    def summary(self) -> SummarizationLevel | None:
        """Return the level to request from a summariser; None if no summary is needed."""
        return _LEVELS.get(self)


_LEVELS = {
    Rung.CONDENSED: SummarizationLevel.CONDENSED,
    Rung.KEY_POINTS: SummarizationLevel.KEY_POINTS,
    Rung.HEADLINE: SummarizationLevel.HEADLINE,
}


class ContentFidelityRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one item in the prompt of one phase."""

    source_id: str
    phase: str = ""
    requested_level: Rung = Rung.RAW
    """The requested degree, of the summariser if one was used."""
    level: Rung = Rung.RAW
    """The degree reached."""
    priority: float = 0.0
    tokens_from: int = 0
    """Tokens of the original."""
    tokens_to: int = 0
    """Tokens of the text in the prompt, without the lines around it."""
    provider: str = ""
    """Provider of the summary; empty if there is none."""
    model: str = ""
    truncated: bool = False
    """Whether the end was cut off, by Holdfast or by the summariser."""
    dropped: bool = False
    reason: str = ""
    """Why the item was dropped or truncated."""
    ref: str = ""
    """Ref of the original, if the prompt does not contain all of it."""
    sha256: str = ""
    """Complete hash of the original in the content archive."""
    checked: int = 0
    """Number of summary sentences compared with the original."""
    unsupported: int = 0
    """Number of those sentences removed because the original does not support them."""
    cached: bool = False
    cost: float | None = None
    """Cost of the summary in US dollars; None if unknown."""
    warnings: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return the record's key in `content_fidelity`, unique per item and phase."""
        return fidelity_key(self.source_id, self.phase)


def fidelity_key(source_id: str, phase: str = "") -> str:
    """Return the key of a record: the item's id, prefixed with the phase if there is one."""
    return f"{phase}:{source_id}" if phase else source_id
