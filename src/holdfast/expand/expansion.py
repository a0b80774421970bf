"""What an expansion gives back, and the lines around the content that say what it is.

expansion: after options, before pages.

What a model is told about a ref that cannot be opened, or is out of date: never silence. Each text
gives the reason and the next step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.errors import ExpandError
from holdfast.expand.tool import NAME, call_of
from holdfast.privacy import Policy, find, mask
from holdfast.quoting import WAS, bracketed, fenced, inline, item
from holdfast.store.records import RefInfo
from holdfast.store.refs import parse

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
        return f"{text}\n[{remains}: {self.next_call(page + 1)}]"

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


_LONGEST_NAME = 64
NO_REF = "this is not a ref"
UNKNOWN_REF = "no content is stored under this ref"
_REMOVED = "it expired and was removed"
_DAMAGED = "the stored data is damaged and cannot be shown"


def missing(
    ref: str, info: RefInfo | None, *, count: Count, privacy: Policy = "allow"
) -> Expansion:
    """Return why a ref cannot be opened: it is unknown, removed or damaged.

    With the policy to mask, secrets in its summary are masked.
    """
    name = info.ref_id if info is not None else ref.strip()[:LONGEST_REF]
    if info is not None:
        reason = _DAMAGED if info.state == "damaged" else _REMOVED
        step = f"{_what(info, privacy)}Call {_origin(info)} again."
    elif parse(ref) is None:
        reason = NO_REF
        step = "Copy a ref from this conversation exactly."
    else:
        reason = UNKNOWN_REF
        step = "Check it against the conversation; if it is right, call the original tool again."
    return miss(reason, step, count=count, ref_id=name)


def refusal(error: ExpandError, call: str = "") -> str:
    """Return what a model is told of a call that cannot be answered, with one that can."""
    return "\n".join(filter(None, (f"[{error.what}]", error.fix, f"Call {call}." if call else "")))


def note_of(info: RefInfo) -> str:
    """What to say beside the content of a ref: that it is stale, if it is."""
    if info.state != "stale":
        return ""
    return f"may be out of date; call {_origin(info)} again for current data"


def stale_line(info: RefInfo, opener: str = NAME) -> str:
    """A ref in a list of refs: its summary, and whether it is stale.

    `opener` is the name under which the tool that opens refs is offered.
    """
    summary = bracketed(info.summary or info.kind)
    return f"{summary} [stale - use {opener} to refresh]" if info.state == "stale" else summary


def _origin(info: RefInfo) -> str:
    tool = info.meta.get("tool", "")
    return f"the tool {bracketed(tool[:_LONGEST_NAME])}" if tool else "the original tool"


def _what(info: RefInfo, privacy: Policy) -> str:
    # A summary is stored as it was made: what may be shown is decided where it is shown.
    summary = mask(info.summary, find(info.summary)) if privacy == "mask" else info.summary
    return f"{WAS}{bracketed(summary)}\n" if summary else ""
