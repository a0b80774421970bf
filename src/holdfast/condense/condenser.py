"""The interface of a condenser, which selects the parts of one kind of content that matter.

Each kind has a file with one condenser; kinds.py decides which one handles a content. A condenser
selects and orders notes; it counts no tokens (cite takes as many notes as fit) and calls no model.
It is deterministic, and quotes errors, warnings, ids, URLs and numbers verbatim.
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
    """`key`: shown first, because it identifies the content: the URLs of a search, the primary key
    of an entity. `alert`: an error, a failure or a security warning, quoted. `outline`: the
    structure of the content. `sample`: a quoted part: the beginning, a typical or an unusual row.
    """
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
    """The notes of a condenser about a content."""

    title: str
    """Description in one line of at most 200 characters: `GitHub search, 3,112 repositories`."""
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
        """Cut the content into passages that can answer questions, in document order.

        Together they contain all text that a question could be about.
        """
