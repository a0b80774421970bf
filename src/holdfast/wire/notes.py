"""Typed values derived from a message, such as its tokens, cached on the message.

A message's bytes never change: a value that depends only on them is a `SingleNote`, and one that
depends on more (the model, the rules, the question) a `KeyedNote` with all of it in the key. Notes
are freed with their message.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class NoteKind(Protocol):
    """One kind of cached value."""

    @property
    def lasting(self) -> bool:
        """Whether the value survives when the message's content is released."""

    @property
    def holds_text(self) -> bool:
        """Whether the value takes as much memory as the message's texts."""


class HasNotes(Protocol):
    """An object that notes can be attached to."""

    @property
    def notes(self) -> dict[NoteKind, Any]:
        """Values by kind; only the kinds access it."""


class SingleNote(Generic[T]):
    """A kind of note with at most one value per message."""

    __slots__ = ("name",)
    lasting = True
    holds_text = False

    def __init__(self, name: str) -> None:
        self.name = name

    def get(self, message: HasNotes) -> T | None:
        """Return the value; None if there is none."""
        value: T | None = message.notes.get(self)
        return value

    def put(self, message: HasNotes, value: T) -> T:
        """Store a value, replacing an earlier one."""
        message.notes[self] = value
        return value

    def carry(self, before: HasNotes, now: HasNotes) -> None:
        """Copy the value from an equal earlier message."""
        value = before.notes.get(self)
        if value is not None:
            now.notes.setdefault(self, value)

    def __repr__(self) -> str:
        return f"<SingleNote {self.name}>"


class KeyedNote(Generic[T]):
    """A kind of note with one value per key, for values that depend on more than the message."""

    __slots__ = ("holds_text", "lasting", "most", "name")

    def __init__(
        self, name: str, *, most: int, lasting: bool = True, holds_text: bool = False
    ) -> None:
        self.name = name
        self.most = most
        """Maximum values per message, so that changing keys cannot fill the memory."""
        self.lasting = lasting
        """Whether values survive when the message's content is released; values that hold texts or
        other messages do not.
        """
        self.holds_text = holds_text
        """Whether values are dropped together with the message's texts."""

    def get(self, message: HasNotes, key: Hashable) -> T | None:
        """Return the value of a key; None if there is none."""
        values: dict[Hashable, T] | None = message.notes.get(self)
        return None if values is None else values.get(key)

    def put(self, message: HasNotes, key: Hashable, value: T) -> T:
        """Store a value; evict the oldest one if there are too many."""
        values: dict[Hashable, T] = message.notes.setdefault(self, {})
        if len(values) >= self.most and key not in values:
            del values[next(iter(values))]
        values[key] = value
        return value

    def drop(self, message: HasNotes, key: Hashable) -> None:
        """Remove the value of a key."""
        message.notes.get(self, {}).pop(key, None)

    def __repr__(self) -> str:
        return f"<KeyedNote {self.name}>"


def drop_transient_notes(message: HasNotes, *, texts_alone: bool = False) -> None:
    """Drop the notes that do not last, or only those that hold texts."""
    for kind in list(message.notes):  # copied first: another thread may add a note meanwhile
        if kind.holds_text or not (texts_alone or kind.lasting):
            message.notes.pop(kind, None)
