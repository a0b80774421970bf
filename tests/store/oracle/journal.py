"""The model of journals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from holdfast.store import journal
from holdfast.store.journal import JournalEntry, JournalStore
from holdfast.store.scope import Scope
from holdfast.store.transfer import JournalLine

Key = tuple[str, str, str, str]
"""Workspace, user, session and name."""


class ModelJournal(JournalStore):
    """Keeps journals in dictionaries."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._journals: dict[Key, list[JournalEntry]] = {}

    async def append(
        self, scope: Scope, name: str, entries: Sequence[bytes], *, expect: int | None = None
    ) -> int:
        """Append entries."""
        written = self._journals.get(_key(scope, journal.checked(name)), [])
        place = len(written) + 1
        journal.check_place(name, expect, place)
        now = self._clock()
        added = [JournalEntry(place + n, bytes(data), now) for n, data in enumerate(entries)]
        if added:
            self._journals[_key(scope, name)] = written + added
        return place + len(added)

    async def read(self, scope: Scope, name: str, after: int = 0) -> list[JournalEntry]:
        """Return the entries after a sequence."""
        return self._journals.get(_key(scope, name), [])[max(after, 0) :]

    async def names(self, scope: Scope, prefix: str = "") -> list[str]:
        """The journals of the scope."""
        mine = _key(scope, "")[:3]
        return sorted(
            key[3] for key in self._journals if key[:3] == mine and key[3].startswith(prefix)
        )

    async def forget(self, scope: Scope, name: str) -> int:
        """Remove a journal without a trace."""
        return len(self._journals.pop(_key(scope, name), []))

    def drop_of_session(self, scope: Scope) -> int:
        """Remove the journals of a session; return how many entries they had."""
        mine = [key for key in self._journals if key[:3] == _key(scope, "")[:3]]
        return sum(len(self._journals.pop(key)) for key in mine)

    def expire(self, scope: Scope, before: float, kept: Collection[str]) -> int:
        """Remove the entries of no session that is kept, written before a time; how many."""
        removed = 0
        mine = [key for key in self._journals if key[:2] == _key(scope, "")[:2]]
        for key in [key for key in mine if key[2] not in kept]:
            left = [entry for entry in self._journals[key] if entry.at >= before]
            removed += len(self._journals[key]) - len(left)
            self._journals[key] = left
            if not left:
                del self._journals[key]
        return removed

    def lines(self, scope: Scope) -> Iterator[JournalLine]:
        """All entries of a user's journals, to be exported."""
        for key in sorted(key for key in self._journals if key[:2] == _key(scope, "")[:2]):
            for entry in self._journals[key]:
                yield JournalLine(session=key[2], name=key[3], entry=entry)

    def restore(self, scope: Scope, line: JournalLine) -> bool:
        """Append an exported entry; return whether it is new."""
        entries = self._journals.setdefault(_key(scope.of(line.session), line.name), [])
        is_next = line.entry.sequence == len(entries) + 1
        if is_next:
            entries.append(line.entry)
        return is_next


def _key(scope: Scope, name: str) -> Key:
    return scope.workspace, scope.user, scope.session, name
