"""What became of each item: the state that gathers the records of phases.

fidelity: after item. The record itself stands in summarise/fidelity.py, for assembled turns keep
the same. All fields have defaults: a state that an older version wrote loads, and so does one that
knows nothing of fidelity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from holdfast.errors import SettingsError
from holdfast.summarise.fidelity import ContentFidelityRecord, Rung, fidelity_key

__all__ = ["ContentFidelityRecord", "ContentState", "Rung", "fidelity_key"]


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
