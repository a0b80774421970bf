"""What an expansion gives back, and the lines around the content that say what it is.

expansion: after options, before pages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.expand.ways import call_of
from holdfast.voice import bracketed, fenced, inline, item

Count = Callable[[str], int]
"""Text → tokens."""

LONGEST_REF = 100
_LONGEST_WHERE = 30
_LONGEST_NOTE = 60
"""In tokens."""
_SECTION = "section: "


class Expansion(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a content, as a model reads it and as it stands."""

    text: str
    """What the model reads: a line that says what it is, the content, and what remains."""
    content: str = ""
    """The exact part alone."""
    where: str = ""
    """The part in source units: `lines 40-120`."""
    complete: bool = True
    """All that was asked for is here."""
    remaining: int = 0
    """How much of what was asked for is not, in `unit`."""
    unit: str = "lines"
    next: dict[str, Any] | None = None
    """The options that go on; None if nothing remains."""
    tokens: int = 0
    """Of `text`."""
    reason: str = ""
    """Why there is no content, if there is none; then `text` holds it too, and the next step."""

    is_answer: bool = False
    """This is what answers the user's question: the call had only the example of a citation."""

    def __repr__(self) -> str:
        return f"<Expansion of {self.tokens} tokens, {self.remaining} {self.unit} remaining>"


def miss(
    reason: str,
    step: str,
    *,
    count: Count,
    ref_id: str = "",
    there: str = "",
    most: int = 1000,
) -> Expansion:
    """An expansion that found nothing: it says why, what is there instead, and what to do next.

    What is there are words of the content, such as its keys.
    """
    head = f"[{bracketed(ref_id)}: {reason}]" if ref_id else f"[{reason}]"
    told = [head, item(inline(there)) if there else "", step]
    text = shorten("\n".join(filter(None, told)), most, count)
    why = f"{reason}: {there}" if there else reason
    return Expansion(text=text, reason=why, tokens=count(text))


class PageFrame(msgspec.Struct, frozen=True, kw_only=True):
    """The lines before and behind the content."""

    ref_id: str
    note: str
    find: str | None
    """What was asked for, as a call has it; None if no `find` says so much."""
    opener: str
    """The name under which the tool that opens refs is offered."""

    def around(self, content: str, where: str, remains: str, page: int) -> str:
        """The whole text."""
        note = f" · {self.note}" if self.note else ""
        text = f"[{self.ref_id} {where}{note}]\n{fenced(content)}"
        if not remains:
            return text
        return f"{text}\n[{remains} remain: {self.next_call(page + 1)}]"

    def next_call(self, page: int) -> str:
        """Return the call that opens a page, or what to change in the one that was made."""
        if self.find is None:
            return f'add ", page {page}" to find'
        find = f"{self.find}, page {page}" if self.find else f"page {page}"
        return call_of(self.opener, self.ref_id, find)


def frame(ref_id: str, note: str, *, find: str | None, opener: str, count: Count) -> PageFrame:
    """Return the lines around a content, of bounded length."""
    short = shorten(note, _LONGEST_NOTE, count)
    return PageFrame(ref_id=ref_id[:LONGEST_REF], note=short, find=find, opener=opener[:100])


def shorten_where(where: str, count: Count) -> str:
    """The name of a place, short enough for the first line and unable to end it.

    Keys in a path stand in quotes, and a model copies them as they are; headings do not.
    """
    named = bracketed(where) if _SECTION in where else inline(where)
    return shorten(named, _LONGEST_WHERE, count)


def shorten(text: str, most: int, count: Count) -> str:
    """The beginning of a text that has at most so many tokens."""
    kept = text[: most * 12]
    if kept == text and count(text) <= most:
        return text
    while kept:
        kept = kept[: len(kept) * 4 // 5]
        if count(f"{kept}…") <= most:
            return f"{kept}…" if kept else ""
    return ""
