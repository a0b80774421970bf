"""Remembered messages, turn by turn: the records, and the calls on them.

A turn is a message with its place in a session, and the data that recall derived from it (`index`),
which can be derived again. A message without an id is recognised by its content and position: see
`known_in`.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from holdfast.errors import StoreError
from holdfast.store import rules
from holdfast.store.scope import Scope

MOST_AT_ONCE = 500
"""Turns that one transaction writes or one answer holds, so that others get their turn."""


class RememberedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that was remembered."""

    id: str
    """Its own in its session."""
    session: str
    role: str
    content: str
    at: float
    """Time of the message, in seconds since 1970."""
    name: str = ""
    """The speaker, if a role has more than one."""
    number: int = 0
    """Its place in the session, from 1; those of forgotten ones stay empty."""
    tokens: int = 0

    def __repr__(self) -> str:
        return f"<Remembered {self.id}, {len(self.content)} characters>"


class NewTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A message to be stored as a turn."""

    role: str
    content: str
    at: float
    name: str = ""
    id: str = ""
    """Empty: it gets one, and is known again by its print: see `TurnStore.known`."""
    tokens: int = 0
    maker: str = ""
    """The version of the index: indexes of two versions are never compared."""
    index: bytes = b""
    print: str
    """A hash of its content: see `print_of`."""

    def __repr__(self) -> str:
        return f"<NewTurn {self.id or self.print[:8]}, {len(self.content)} characters>"


class KnownMessage(NamedTuple):
    """The id and number of a message in the store."""

    id: str
    is_here: bool


class IndexedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What recall needs of a turn before it opens it."""

    place: int
    """The order of remembering; it grows, and no place is given twice."""
    session: str
    role: str
    name: str
    number: int
    at: float
    maker: str
    index: bytes


class Changes(msgspec.Struct, frozen=True):
    """How often the turns of a scope changed: equal numbers mean equal turns."""

    added: int = 0
    removed: int = 0
    """Number of removals and rebuilt indexes: after one, all turns must be read again."""


class TurnFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects turns; missing fields do not limit."""

    ids: tuple[str, ...] | None = None
    session: str | None = None
    before: float | None = None
    """Said before this time."""
    since: float | None = None


class TurnStore(ABC):
    """The calls on remembered turns, implemented by each store.

    A call sees only its scope, is atomic, and durable when it returns. `scope.session` limits the
    calls that document it.
    """

    @abstractmethod
    async def known(self, scope: Scope, turns: Sequence[NewTurn]) -> list[KnownMessage]:
        """Which of these messages of `scope.session` lie here, and what to call the others.

        Raises:
            StoreError: an id, a role, a name or a time cannot be stored.
        """

    @abstractmethod
    async def add(self, scope: Scope, turns: Sequence[NewTurn]) -> int:
        """Append turns, all with ids, to `scope.session`; return the number of new ones.

        A turn with a known id is kept, but gets the index of another version.
        """

    @abstractmethod
    async def changes(self, scope: Scope) -> Changes:
        """How often the turns of this user and workspace changed."""

    @abstractmethod
    async def indexed(
        self, scope: Scope, *, after: int = 0, limit: int = MOST_AT_ONCE
    ) -> list[IndexedTurn]:
        """Return indexes in the order of remembering, of all sessions, after a position."""

    @abstractmethod
    async def with_words(
        self, scope: Scope, words: Sequence[str], *, limit: int
    ) -> list[IndexedTurn]:
        """Indexes of turns that hold any of these words, the likeliest first.

        Words are taken without their endings. Of `scope.session`, if it names one.
        """

    @abstractmethod
    async def turns(self, scope: Scope, places: Sequence[int]) -> dict[int, RememberedTurn]:
        """The turns at these places; one that is not there, or is damaged, is left out."""

    @abstractmethod
    async def recent(self, scope: Scope, *, limit: int, before: int = 0) -> list[RememberedTurn]:
        """The last turns of `scope.session` in order, before a number if one is given."""

    @abstractmethod
    async def select(
        self, scope: Scope, wanted: TurnFilter, *, limit: int = 100, after: int = 0
    ) -> list[tuple[int, RememberedTurn]]:
        """Turns that a filter means, with their places, in the order of remembering."""

    @abstractmethod
    async def forget(self, scope: Scope, places: Sequence[int]) -> int:
        """Remove turns without a trace, indexes and facts included; return their number.

        A fact is removed if the turns, by id and session, were its only sources.
        """


def print_of(role: str, name: str, content: str, at: float | None) -> str:
    """Return the identity of a message without an id: speaker, content, and time if known.

    Each part is preceded by its length, so that parts cannot be confused.
    """
    parts = (role, name, content, "" if at is None else repr(at))
    marked = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(marked.encode("utf-8", "surrogatepass")).hexdigest()


def id_of(session: str, number: int, print_: str) -> str:
    """Return the id of a turn without one: the same wherever the same history is remembered."""
    name = f"{len(session)}:{session}{number}:{print_}"
    return "turn_" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:24]


class SessionEnds(NamedTuple):
    """The beginning and the end of a session, as much of them as there are messages."""

    first: Sequence[tuple[str, str]]
    """Prints and ids."""
    last: Sequence[tuple[str, str]]
    number: int
    """Of its last turn; 0 if it has none."""
    there: Collection[str]
    """The ids of the messages that the session has."""


def known_in(session: str, turns: Sequence[NewTurn], ends: SessionEnds) -> list[KnownMessage]:
    """Return which messages a session has already, and the ids of the new ones.

    A client sends new messages, its whole history, or overlapping parts: messages without ids are
    known if they match the session's end, or agree with its beginning.
    """
    prints = [turn.print for turn in turns if not turn.id]
    ids = iter(_overlap(prints, ends))
    known_messages, number = [], ends.number
    for turn in turns:
        id_ = next(ids, "") if not turn.id else turn.id if turn.id in ends.there else ""
        number += not id_
        named = id_ or turn.id or id_of(session, number, turn.print)
        known_messages.append(KnownMessage(named, bool(id_)))
    return known_messages


def _overlap(prints: Sequence[str], ends: SessionEnds) -> list[str]:
    """The ids of the messages that are known, which are the first ones."""
    going_on: list[str] = []
    for length in range(min(len(prints), len(ends.last)), 0, -1):
        tail = ends.last[len(ends.last) - length :]
        if all(
            print_ == stored_print for print_, (stored_print, _) in zip(prints, tail, strict=False)
        ):
            going_on = [id_ for _, id_ in tail]
            break
    agreeing: list[str] = []
    for print_, (stored_print, id_) in zip(prints, ends.first, strict=False):
        if print_ != stored_print:
            break
        agreeing.append(id_)
    return max(going_on, agreeing, key=len)


def turn_of(scope: Scope, turn: NewTurn, number: int) -> RememberedTurn:
    """A message with its place in the session."""
    return RememberedTurn(
        id=turn.id,
        session=scope.session,
        role=turn.role,
        content=turn.content,
        at=turn.at,
        name=turn.name,
        number=number,
        tokens=turn.tokens,
    )


def check(scope: Scope, turns: Sequence[NewTurn]) -> None:
    """Raise unless messages can be remembered."""
    rules.check_session(scope)
    for turn in turns:
        for name in (turn.role, turn.name, turn.id):
            if len(name) > rules.MOST_KEY_CHARACTERS or "\0" in name or not _is_unicode(name):
                raise StoreError(
                    "a role, a name or an id is too long, or holds what is no character",
                    fix=f"Give at most {rules.MOST_KEY_CHARACTERS} characters.",
                )
        if not turn.role or not math.isfinite(turn.at):
            raise StoreError(
                "a message has no role, or a time that is none",
                fix="Give `role`, and `at` in seconds since 1970.",
            )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
