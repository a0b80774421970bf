"""The fidelity records of a run, collected over its phases.

All fields have defaults, so that states from older versions load.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from holdfast.errors import SettingsError
from holdfast.summarise.fidelity import ContentFidelityRecord, Rung, fidelity_key

__all__ = ["ContentFidelityRecord", "ContentState", "Rung", "fidelity_key"]


class ContentState(msgspec.Struct, kw_only=True):
    """The contents of a run and their fidelity records."""

    query: str = ""
    now: float | None = None
    """The run's time in seconds since 1970; None for the time of each call."""
    content_fidelity: dict[str, ContentFidelityRecord] = {}
    """Records by `fidelity_key`."""
    dropped_content_ids: list[str] = []
    """Ids of items that some phase dropped, each once."""

    def note(self, records: Mapping[str, ContentFidelityRecord]) -> None:
        """Add the records of an allocation; records of other phases are kept."""
        self.content_fidelity.update(records)
        dropped = [record.source_id for record in records.values() if record.dropped]
        self.dropped_content_ids = list(dict.fromkeys([*self.dropped_content_ids, *dropped]))

    def of(self, source_id: str) -> list[ContentFidelityRecord]:
        """Return all records of an item, in the order of its phases."""
        return [each for each in self.content_fidelity.values() if each.source_id == source_id]

    @classmethod
    def load(cls, data: bytes | str | Mapping[str, Any]) -> Self:
        """Load a state from JSON or plain values; missing fields get defaults.

        Raises:
            SettingsError: if it is not a state.
        """
        try:
            if isinstance(data, bytes | str):
                return msgspec.json.decode(data, type=cls)
            return msgspec.convert(data, cls)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise SettingsError(
                "this is not the state of a run",
                where="content_fidelity",
                fix="Give the JSON that `dump` wrote, or one without these fields.",
            ) from None

    def dump(self) -> bytes:
        """Return the state as JSON."""
        return msgspec.json.encode(self)
