"""The text of a citation: what it is, what matters in it, how to open the rest.

composing: after sections, before citing. It decides who gets how much of the room.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from holdfast.cite.answers import NO_ANSWERS, Answers, answers
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
"""Times the usual length of an excerpt, in a citation that is as many times larger."""
_MORE_ANSWERS = 0.5
_ENDS = 0.8
"""Shares of the room left in a larger citation. On recorded agents, of what they copied later from
results of over 1,500 tokens 49 % stand in a quarter of the tokens so, 46 % with the ends alone,
and 46 % where excerpts have their usual length."""
_LEAST_KEY = 80
"""Tokens for what every citation shows, where the room is small: exit code, verdict, ends."""

EXCERPTS = "excerpts"
"""Says in the first line that the rest of the citation is not the whole content."""

Ends = Callable[[int], list[Note]]
"""Returns the beginning and the end of a content in about as many tokens as it is given."""


class Composed(NamedTuple):
    """The text, and what it tells of the content."""

    text: str
    title: str
    tokens: int
    excerpts: tuple[Excerpt, ...]
    unit: str
    total: int


def citation_of(original: Content, composed: Composed, *, level: str, reason: str = "") -> Citation:
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
    """What a citation says of its original: the line above the content, and the one below it."""

    name: str
    opener: str
    tokens: int
    example: str
    """What to put in `find` to open a part; empty for the ref alone."""

    def head(self, condensed: Condensed, source: Source, *notes: str) -> str:
        """Return the first line: the ref, the size of the content, and what is shown of it."""
        size = _size(condensed, len(source.data), self.tokens)
        return f"{STORED}{'; '.join(filter(None, (self.name, size, *notes)))}]"

    def foot(self) -> str:
        """Return the last line, with one call that opens a part; empty if no tool opens it."""
        if not self.opener:
            return ""
        return f"{READ_MORE}{call_of(self.opener, self.name, self.example)}]"


def compose(
    handle: Handle, source: Source, condenser: Condenser, question: str, cap: int
) -> Composed:
    """Compose the citation of a content in at most `cap` tokens, if its first line has no more."""
    condensed = condenser.condense(source)
    title = shortened(" ".join(condensed.title.split()), 200)
    first = glance(source)
    head, foot = (
        f"{handle.head(condensed, source, first.stored, EXCERPTS)}\n{item(title)}",
        handle.foot(),
    )
    room = cap - count(head) - count(foot) - 4
    if room < 0:  # a small cap leaves room for the ref, and what is behind it
        head, foot = head.partition("\n")[0], ""
    wide = EXCERPT_CHARACTERS * min(_WIDEST, max(1.0, cap / BRIEF))
    matches = NO_ANSWERS
    if room > LEAST_TOKENS:
        matches = answers(source, condenser, question, round(wide))
    taken = Sections(room, question)
    if matches.is_exact:
        _fill_exact(taken, condensed, first, matches)
    else:
        is_large = cap > BRIEF
        ends = partial(outer, source, condenser, handle.tokens) if is_large else None
        _fill(taken, condensed, first, matches, ends)
    while True:
        text = "\n".join(filter(None, [head, *taken.lines(), foot]))
        total = count(text)
        if total <= cap or not taken.drop_last():
            return Composed(text, title, total, taken.excerpts(), condensed.unit, condensed.total)


def _fill_exact(taken: Sections, condensed: Condensed, first: Glance, matches: Answers) -> None:
    """Take the one part that the question names, and what must not be overlooked.

    Without outline, samples and weaker matches: a small model takes a value out of these for the
    answer, and the reader needs none of them.
    """
    least = min(1.0, _LEAST_KEY / max(taken.room, 1))
    taken.add("key", first.outcomes, share=max(least, 0.3))
    alerts = [note for note in condensed.notes if note.role == "alert"]
    taken.add("alert", alerts, share=0.5)
    taken.add("answer", matches.best, share=1.0)


def _fill(
    taken: Sections, condensed: Condensed, first: Glance, matches: Answers, ends: Ends | None
) -> None:
    """Take what every citation shows, what answers the question, and as much else as fits."""
    notes, has_answers = condensed.notes, bool(matches.best)
    alerts = [note for note in notes if note.role == "alert"]
    # What every citation shows comes first, then what a kind must show: ten URLs of a search take
    # some 250 tokens.
    # A question is what the content was fetched for; alerts must not be lost for it. What one of
    # the two leaves of its share, the other may use.
    least = min(1.0, _LEAST_KEY / max(taken.room, 1))
    taken.add("key", first.notes, share=max(least, 0.3 if has_answers else 0.4))
    keys = (note for note in notes if note.role == "key")
    taken.add("key", keys, share=0.88 if has_answers else 0.95)
    taken.add("alert", alerts, share=0.5 if has_answers else 0.7)
    # The best answer whole is worth more than two parts, or an outline.
    taken.add("answer", matches.best[:1], share=1.0)
    more = _MORE_ANSWERS if ends else 0.75 if notes else 1.0
    reserved = taken.room - round(taken.room * more)
    taken.add("answer", matches.best[1:], share=more)
    if taken.room > reserved:
        taken.add("other", matches.weaker, share=1 - reserved / taken.room)
    taken.add("outline", (note for note in notes if note.role == "outline"), share=0.5)
    if ends:
        taken.add("ends", ends(round(taken.room * _ENDS)), share=1.0)
    taken.add("sample", (note for note in notes if note.role == "sample"), share=1.0)
    taken.add("alert", alerts, share=1.0)
    taken.add("answer", matches.best, share=1.0)
    taken.add("other", matches.weaker, share=1.0)


def _size(condensed: Condensed, size: int, tokens: int) -> str:
    return f"{with_unit(condensed.total, condensed.unit)}, {_bytes(size)}, about {tokens:,} tokens"


def _bytes(size: int) -> str:
    return f"{size:,} bytes" if size < 10_000 else f"{size / 1000:,.0f} KB"
