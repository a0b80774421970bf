"""journal: what was done, entry behind entry, kept in the store so that it can be gone on from.

journal: after records, before the stores, of which each has its own. A journal has a name, and
belongs to the scope it is written in, its session included: with that session it goes. Entries
are bytes that mean something to who wrote them; they are added behind the last, and never changed.
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
    """What was written down, and its place: the first entry of a journal has sequence 1."""

    sequence: int
    data: bytes
    at: float

    def __repr__(self) -> str:
        return f"<JournalEntry {self.sequence}, {len(self.data)} bytes>"


class JournalShelf(ABC):
    """The calls on journals; each store has a shelf that makes them true."""

    @abstractmethod
    async def append(
        self, scope: Scope, name: str, entries: Sequence[bytes], *, expect: int | None = None
    ) -> int:
        """Add entries behind the last, all or none; the sequence that the next one will have.

        `expect` is the sequence that the first of them is to have: of two writers who go on from
        one place, one is refused. Give it also where a call may be repeated, for then the second
        is refused instead of written twice.

        Raises:
            StoreConflictError: the journal is longer or shorter than expected.
        """

    @abstractmethod
    async def read(self, scope: Scope, name: str, after: int = 0) -> list[JournalEntry]:
        """The entries behind a sequence, in order; none of a journal that is not there.

        Raises:
            DamagedContentError: an entry is not what was written, so that what follows means
                nothing.
        """

    @abstractmethod
    async def names(self, scope: Scope, prefix: str = "") -> list[str]:
        """The journals of the scope whose names begin so, in the order of their names."""

    @abstractmethod
    async def forget(self, scope: Scope, name: str) -> int:
        """Remove a journal without a trace; how many entries went."""


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
    """What there is to be told of an entry that was damaged."""
    return Damage(sha256=sha256, why=DAMAGE, refs=())
