"""What a condenser is: it knows one kind of content, and says what matters in it.

condenser: after source. Each kind has a file of its own that defines one of these; which one
takes a content is decided in kinds.py. A condenser chooses and orders, it never counts tokens:
cite takes as many of its notes as fit. It calls no model, and for the same bytes it says the
same. Nothing is paraphrased: errors, warnings, ids, URLs and numbers are quoted as they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from holdfast.condense.source import Source

Role = Literal["key", "alert", "outline", "sample"]


class Note(msgspec.Struct, frozen=True):
    """One thing worth saying about a content."""

    role: Role
    """`key`: shown before all else, for without it the content is not known: the URLs of a search,
    the primary key of an entity. `alert`: an error, a failure, a warning of security, quoted.
    `outline`: what the whole is made of. `sample`: a part of it, quoted: the head, a
    typical or an unusual row."""
    text: str
    where: str = ""
    """In source units, so that `expand_ref` can open it: `lines 45-67`, `rows 11-12`,
    `$.items[3]`, `section: Introduction`."""

    def __repr__(self) -> str:
        return f"<Note {self.role}, {len(self.text)} characters>"


class Passage(msgspec.Struct, frozen=True):
    """A part of a content that can answer a question on its own: a row, a paragraph, a log line."""

    text: str
    """As it would be quoted."""
    where: str
    """In source units, as in a note."""

    def __repr__(self) -> str:
        return f"<Passage of {len(self.text)} characters>"


class Condensed(msgspec.Struct, frozen=True, kw_only=True):
    """What a condenser says of a content."""

    title: str
    """What it is, in one line of at most 200 characters: `GitHub search, 3,112 repositories`."""
    unit: str
    """What its parts are called: `lines`, `rows`, `items`, `sections`."""
    total: int
    """How many there are."""
    notes: tuple[Note, ...]
    """The most important first within each role."""

    def __repr__(self) -> str:
        return f"<Condensed {self.total} {self.unit}, {len(self.notes)} notes>"


class Condenser(Protocol):
    """The shape of every condenser; a module can be one."""

    kind: str
    """Its name in refs: `log`, `json_rows`."""

    def sniff(self, source: Source) -> float:
        """How sure it is that the content is of its kind: 0 to 1. Cheap; never raises."""

    def condense(self, source: Source) -> Condensed:
        """Say what matters. May assume that `sniff` was above 0; must survive if it was not."""

    def passages(self, source: Source) -> Sequence[Passage]:
        """Cut the content into parts that can answer questions, in the order they stand.

        Together they hold all of the content's text that a question could be about.
        """
