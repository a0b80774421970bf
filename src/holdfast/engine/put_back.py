"""Contents of a session that people asked to have whole, kept in its journal.

put_back: after writer, before session. A person may use another process than the one that answers
the session's next request. So the wishes are in the store, and each request checks for new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from holdfast.errors import DamagedContentError
from holdfast.store import Scope, Store

JOURNAL = "put back"


class PutBack(msgspec.Struct, frozen=True):
    """A person's wish to have the content of a ref whole."""

    ref: str
    names: tuple[str, ...]
    """Hashes of the client's messages that contain it: see fitting/restore.py."""
    whole: bool = True
    """False: it may be hidden again."""
    why: str = ""
    """Why the wish ended, if no person ended it."""


class Wishes:
    """The wishes of one session."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope
        self.length: int | None = None
        """How many wishes were written down in all, if somebody has just looked."""
        self._wanted: tuple[int, frozenset[str]] = (0, frozenset())
        """The last result of `names`, and the number of wishes at that time."""

    async def all(self) -> dict[str, PutBack]:
        """Return the wishes by ref; none if the journal is damaged."""
        wishes: dict[str, PutBack] = {}
        with suppress(DamagedContentError, msgspec.DecodeError):
            for entry in await self._store.journal.read(self._scope, JOURNAL):
                wish = msgspec.json.decode(entry.data, type=PutBack)
                wishes[wish.ref] = wish
        return wishes

    async def names(self) -> frozenset[str]:
        """The messages that are to be whole."""
        length, self.length = self.length, None  # the next request must look again
        if length != self._wanted[0]:
            wishes = (await self.all()).values()
            names = frozenset(name for wish in wishes if wish.whole for name in wish.names)
            self._wanted = (-1 if length is None else length, names)
        return self._wanted[1]

    async def add(self, ref: str, names: Sequence[str], *, whole: bool) -> PutBack:
        """Write a wish down."""
        wish = PutBack(ref, tuple(names), whole)
        await self._write(wish)
        return wish

    async def end(self, names: frozenset[str]) -> None:
        """Let go of wishes about messages that had to be hidden all the same.

        Tried again with every request, they would come and go, and the vendor's cache with them.
        """
        for wish in (await self.all()).values():
            if wish.whole and not names.isdisjoint(wish.names):
                over = msgspec.structs.replace(wish, whole=False, why="there was no room for it")
                await self._write(over)

    async def _write(self, wish: PutBack) -> None:
        await self._store.journal.append(self._scope, JOURNAL, [msgspec.json.encode(wish)])
