"""What people asked to have whole in a session, kept in its journal.

put_back: after writer, before session. A person looks at another process than the one that answers
the session's next request, so what they ask for is in the store, and each request looks whether
there is more of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from holdfast.errors import DamagedContentError
from holdfast.store import Scope, Store

JOURNAL = "put back"


class PutBack(msgspec.Struct, frozen=True):
    """Someone's wish about what a ref stands for."""

    ref: str
    names: tuple[str, ...]
    """The client's messages behind it: see fitting/restore.py."""
    whole: bool = True
    """False: it may be hidden again."""
    why: str = ""
    """Why it is no longer wanted, where nobody said so."""


class Wishes:
    """The wishes of one session."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope
        self.length: int | None = None
        """How many wishes were written down in all, if somebody has just looked."""
        self._wanted: tuple[int, frozenset[str]] = (0, frozenset())
        """What `names` said last, and how many wishes there were then."""

    async def all(self) -> dict[str, PutBack]:
        """What is wanted of each ref now; a journal that is damaged wants nothing."""
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
