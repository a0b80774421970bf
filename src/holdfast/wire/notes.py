"""What later steps know about a message, such as its tokens: typed, and kept with it.

notes: the first word of the wire. A message's bytes never change, so what follows from them alone
is a `SingleNote`; what depends on more (the model, the rules, the question) is a `KeyedNote`, whose
key names all of it. Knowledge goes away with its message, and one kind never pushes out another.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class NoteKind(Protocol):
    """One kind of knowledge."""

    @property
    def lasting(self) -> bool:
        """Whether it stays with a message that is let go."""

    @property
    def holds_text(self) -> bool:
        """Whether it takes as much memory as the message's texts."""


class Noted(Protocol):
    """Something that knowledge can be kept with."""

    @property
    def notes(self) -> dict[NoteKind, Any]:
        """By kind; only the kinds themselves read it."""


class SingleNote(Generic[T]):
    """One kind of knowledge: at most one value for a message."""

    __slots__ = ("name",)
    lasting = True
    holds_text = False

    def __init__(self, name: str) -> None:
        self.name = name

    def get(self, message: Noted) -> T | None:
        """What is known; None if nothing is."""
        value: T | None = message.notes.get(self)
        return value

    def put(self, message: Noted, value: T) -> T:
        """Keep a value, in the place of an earlier one."""
        message.notes[self] = value
        return value

    def carry(self, before: Noted, now: Noted) -> None:
        """Let a message know what an equal one before it knew."""
        value = before.notes.get(self)
        if value is not None:
            now.notes.setdefault(self, value)

    def __repr__(self) -> str:
        return f"<SingleNote {self.name}>"


class KeyedNote(Generic[T]):
    """One kind of knowledge that depends on more than the message: a value for each key."""

    __slots__ = ("holds_text", "lasting", "most", "name")

    def __init__(
        self, name: str, *, most: int, lasting: bool = True, holds_text: bool = False
    ) -> None:
        self.name = name
        self.most = most
        """Values for one message. Whoever asks with ever new keys must not fill the memory."""
        self.lasting = lasting
        """Whether it stays with a message that is let go: what holds texts, or other messages, and
        can be worked out again, does not."""
        self.holds_text = holds_text
        """Whether it goes with the texts of a message that is still compared with others."""

    def get(self, message: Noted, key: Hashable) -> T | None:
        """What is known under a key; None if nothing is."""
        values: dict[Hashable, T] | None = message.notes.get(self)
        return None if values is None else values.get(key)

    def put(self, message: Noted, key: Hashable, value: T) -> T:
        """Keep a value; where there are too many, the oldest goes."""
        values: dict[Hashable, T] = message.notes.setdefault(self, {})
        if len(values) >= self.most and key not in values:
            del values[next(iter(values))]
        values[key] = value
        return value

    def drop(self, message: Noted, key: Hashable) -> None:
        """Forget what is known under a key."""
        message.notes.get(self, {}).pop(key, None)

    def __repr__(self) -> str:
        return f"<KeyedNote {self.name}>"


def forget_passing(message: Noted, *, texts_alone: bool = False) -> None:
    """Forget what was not meant to last, or of that only what holds texts."""
    for kind in list(message.notes):  # at once: another thread may note something meanwhile
        if kind.holds_text or not (texts_alone or kind.lasting):
            message.notes.pop(kind, None)
