"""What became of each item: a record by value, and the state that gathers the records of phases.

fidelity: after item. A record says what stands in the prompt, not what was planned (X02), and by
value, so that nobody has to look for a mark in a text (X05). All fields but the id have defaults:
a state that an older version wrote loads, and so does one that knows nothing of fidelity.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self

import msgspec

from holdfast.errors import SettingsError
from holdfast.summarise import SummarizationLevel


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


class ContentState(msgspec.Struct, kw_only=True):
    """What a run knows of its contents; the only place for fidelity (000-69)."""

    query: str = ""
    now: float | None = None
    """The run's time, in seconds since 1970; None: that of each call."""
    content_fidelity: dict[str, ContentFidelityRecord] = {}
    """By `fidelity_key`."""
    dropped_content_ids: list[str] = []
    """Items that some phase had no room for, each once."""

    def note(self, records: Mapping[str, ContentFidelityRecord]) -> None:
        """Add the records of an allocation; those of other phases stay."""
        self.content_fidelity.update(records)
        dropped = [record.source_id for record in records.values() if record.dropped]
        self.dropped_content_ids = list(dict.fromkeys([*self.dropped_content_ids, *dropped]))

    def of(self, source_id: str) -> list[ContentFidelityRecord]:
        """All records of an item, in the order of its phases."""
        return [each for each in self.content_fidelity.values() if each.source_id == source_id]

    @classmethod
    def load(cls, data: bytes | str | Mapping[str, Any]) -> Self:
        """A state from JSON or plain values; what it lacks has defaults, what is strange is left.

        Raises:
            SettingsError: it is no state at all.
        """
        try:
            if isinstance(data, bytes | str):
                return msgspec.json.decode(data, type=cls)
            return msgspec.convert(data, cls)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise SettingsError(
                "this is no state of a run",
                where="content_fidelity",
                fix="Give the JSON that `dump` wrote, or one without these fields.",
            ) from None

    def dump(self) -> bytes:
        """The state as JSON."""
        return msgspec.json.encode(self)
