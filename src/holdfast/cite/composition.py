"""Compose the text of a citation from its first line, its sections and its last line.

composition: after sections, before content_citation. It divides the room among the sections.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from holdfast.cite.answers import NO_ANSWERS, RankedAnswers, answers
from holdfast.cite.citation import BRIEF, Citation, Excerpt, Fidelity, count
from holdfast.cite.outer import outer
from holdfast.cite.sections import EXCERPT_CHARACTERS, LEAST_TOKENS, Sections
from holdfast.condense.condenser import Condensed, Condenser, Note
from holdfast.condense.cutting import shortened
from holdfast.condense.glance import Glance, glance
from holdfast.condense.places import with_unit
from holdfast.condense.source import Source
from holdfast.expand.tool import call_of
from holdfast.quoting import READ_MORE, STORED, item
from holdfast.store.records import Content

_WIDEST = 3.0
"""Maximum factor by which excerpts grow with the size of a citation."""
_MORE_ANSWERS = 0.5
_ENDS = 0.8
"""Shares of the remaining room in a larger citation. Of the text that recorded agents later copied
from results of over 1,500 tokens, a quarter of the tokens holds 49 % with these shares, 46 % with
the beginning and end alone, and 46 % with excerpts of the usual length."""
_LEAST_KEY = 80
"""Tokens for exit code, verdict, first and last line in a citation with little room."""

EXCERPTS = "excerpts"
"""Says in the first line that the rest of the citation is not the whole content."""

Ends = Callable[[int], list[Note]]
"""Returns the beginning and the end of a content in about the given number of tokens."""


class CitationText(NamedTuple):
    """The text of a citation and the excerpts in it."""

    text: str
    title: str
    tokens: int
    excerpts: tuple[Excerpt, ...]
    unit: str
    total: int


def citation_of(
    original: Content, composed: CitationText, *, level: str, reason: str = ""
) -> Citation:
    """Return the citation of a stored content; `level` and `reason` are those of `Fidelity`."""
    fidelity = Fidelity(
        level=level,
        unit=composed.unit,
        total=composed.total,
        kept=tuple(excerpt.where for excerpt in composed.excerpts if excerpt.where),
        from_tokens=original.tokens,
        to_tokens=composed.tokens,
        flags=original.flags,
        reason=reason,
    )
    return Citation(
        ref_id=original.ref_id,
        kind=original.kind,
        text=composed.text,
        tokens=composed.tokens,
        excerpts=composed.excerpts,
        fidelity=fidelity,
        content=original,
    )


class Handle(NamedTuple):
    """The first and the last line of a citation, with the ref of the original."""

    name: str
    opener: str
    tokens: int
    example: str
    """Value of `find` that opens a part; empty for the ref alone."""

    def head(self, condensed: Condensed, source: Source, *notes: str) -> str:
        """Return the first line: the ref, the size of the content, and notes."""
        size = _size(condensed, len(source.data), self.tokens)
        return f"{STORED}{'; '.join(filter(None, (self.name, size, *notes)))}]"

    def foot(self) -> str:
        """Return the last line, with one call that opens a part; empty without such a tool."""
        if not self.opener:
            return ""
        return f"{READ_MORE}{call_of(self.opener, self.name, self.example)}]"


def compose(
    handle: Handle, source: Source, condenser: Condenser, question: str, cap: int
) -> CitationText:
    """Compose a citation in at most `cap` tokens, unless its first line is longer."""
    condensed = condenser.condense(source)
    title = shortened(" ".join(condensed.title.split()), 200)
    first = glance(source)
    head, foot = (
        f"{handle.head(condensed, source, first.stored, EXCERPTS)}\n{item(title)}",
        handle.foot(),
    )
    room = cap - count(head) - count(foot) - 4
    if room < 0:  # a small cap only has room for the ref and the size
        head, foot = head.partition("\n")[0], ""
    wide = EXCERPT_CHARACTERS * min(_WIDEST, max(1.0, cap / BRIEF))
    matches = NO_ANSWERS
    if room > LEAST_TOKENS:
        matches = answers(source, condenser, question, round(wide))
    sections = Sections(room, question)
    if matches.is_exact:
        _fill_exact(sections, condensed, first, matches)
    else:
        is_large = cap > BRIEF
        ends = partial(outer, source, condenser, handle.tokens) if is_large else None
        _fill(sections, condensed, first, matches, ends)
    while True:
        text = "\n".join(filter(None, [head, *sections.lines(), foot]))
        total = count(text)
        if total <= cap or not sections.drop_last():
            return CitationText(
                text, title, total, sections.excerpts(), condensed.unit, condensed.total
            )


def _fill_exact(
    sections: Sections, condensed: Condensed, first: Glance, matches: RankedAnswers
) -> None:
    """Take the one part that the question names, with errors and exit codes.

    Outline, samples and weaker matches are left out: small models take values from them for the
    answer, and the reader does not need them.
    """
    least = min(1.0, _LEAST_KEY / max(sections.room, 1))
    sections.add("key", first.outcomes, share=max(least, 0.3))
    alerts = [note for note in condensed.notes if note.role == "alert"]
    sections.add("alert", alerts, share=0.5)
    sections.add("answer", matches.best, share=1.0)


def _fill(
    sections: Sections,
    condensed: Condensed,
    first: Glance,
    matches: RankedAnswers,
    ends: Ends | None,
) -> None:
    """Take key lines, the parts that answer the question, and other parts as far as they fit."""
    notes, has_answers = condensed.notes, bool(matches.best)
    alerts = [note for note in notes if note.role == "alert"]
    # Key lines come first, then the key notes of a kind: ten URLs of a search take 250 tokens.
    # The content was fetched to answer the question, but errors must not be lost for it. Either
    # may use the share that the other leaves.
    least = min(1.0, _LEAST_KEY / max(sections.room, 1))
    sections.add("key", first.notes, share=max(least, 0.3 if has_answers else 0.4))
    keys = (note for note in notes if note.role == "key")
    sections.add("key", keys, share=0.88 if has_answers else 0.95)
    sections.add("alert", alerts, share=0.5 if has_answers else 0.7)
    # A complete best answer is worth more than two parts of answers, or an outline.
    sections.add("answer", matches.best[:1], share=1.0)
    more = _MORE_ANSWERS if ends else 0.75 if notes else 1.0
    reserved = sections.room - round(sections.room * more)
    sections.add("answer", matches.best[1:], share=more)
    if sections.room > reserved:
        sections.add("other", matches.weaker, share=1 - reserved / sections.room)
    sections.add("outline", (note for note in notes if note.role == "outline"), share=0.5)
    if ends:
        sections.add("ends", ends(round(sections.room * _ENDS)), share=1.0)
    sections.add("sample", (note for note in notes if note.role == "sample"), share=1.0)
    sections.add("alert", alerts, share=1.0)
    sections.add("answer", matches.best, share=1.0)
    sections.add("other", matches.weaker, share=1.0)


def _size(condensed: Condensed, size: int, tokens: int) -> str:
    return f"{with_unit(condensed.total, condensed.unit)}, {_bytes(size)}, about {tokens:,} tokens"


def _bytes(size: int) -> str:
    return f"{size:,} bytes" if size < 10_000 else f"{size / 1000:,.0f} KB"
