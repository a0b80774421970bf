"""Journals: append-only lists of entries in the store, from which work can be resumed.

A journal has a name and belongs to a scope including its session, with which it is removed. Entries
are opaque bytes; they are appended, and never changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import msgspec

from holdfast.errors import DamagedContentError, StoreConflictError
from holdfast.store import rules
from holdfast.store.records import Damage
from holdfast.store.scope import Scope

DAMAGE = "an entry of a journal does not match its hash; nothing can be gone on from behind it"


class JournalEntry(msgspec.Struct, frozen=True):
    """An entry and its position: the first entry of a journal has sequence 1."""

    sequence: int
    data: bytes
    at: float

    def __repr__(self) -> str:
        return f"<JournalEntry {self.sequence}, {len(self.data)} bytes>"


class JournalStore(ABC):
    """Journals in a store."""

    @abstractmethod
    async def append(
        self, scope: Scope, name: str, entries: Sequence[bytes], *, expect: int | None = None
    ) -> int:
        """Append entries, all or none; return the next sequence.

        `expect` is the sequence of the first new entry: of two writers that continue from the same
        position, one is refused. Pass it also if a call may be repeated, so that the second one is
        refused instead of appended twice.

        Raises:
            StoreConflictError: the journal is longer or shorter than expected.
        """

    @abstractmethod
    async def read(self, scope: Scope, name: str, after: int = 0) -> list[JournalEntry]:
        """Return the entries after a sequence, in order; none if the journal does not exist.

        Raises:
            DamagedContentError: an entry is damaged, so the following ones are useless.
        """

    @abstractmethod
    async def names(self, scope: Scope, prefix: str = "") -> list[str]:
        """The journals of the scope whose names begin so, in the order of their names."""

    @abstractmethod
    async def forget(self, scope: Scope, name: str) -> int:
        """Remove a journal without a trace; return the number of its entries."""


def check_place(name: str, expect: int | None, place: int) -> None:
    """Raise unless the next entry of a journal is the one that a writer expects."""
    if expect is not None and expect != place:
        raise StoreConflictError(
            f"the next entry of the journal is {place}, not {expect}: another writer was here",
            where=name,
            fix="Read the journal again and go on behind its last entry.",
        )


def checked(name: str) -> str:
    """A name that a journal can have."""
    rules.check_key(name)
    return name


def whole(name: str, sequence: int, data: bytes | None) -> bytes:
    """The bytes of an entry, or the error that there are none."""
    if data is None:
        raise DamagedContentError(
            "an entry of the journal does not match its hash",
            where=f"{name}, entry {sequence}",
            fix="Restore the store from a backup, or forget the journal and begin anew.",
        )
    return data


def damaged(sha256: str) -> Damage:
    """Return the report of a damaged entry."""
    return Damage(sha256=sha256, why=DAMAGE, refs=())
