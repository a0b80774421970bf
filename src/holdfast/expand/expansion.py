"""The result of an expansion, and the lines before and after its content.

expansion: after options, before pages. A ref that cannot be opened or is out of date is answered
with the reason and the next step.
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
    """A part of a content, in the form for a model and as exact text."""

    text: str
    """Text for the model: a first line with ref and place, the content, and the remaining size."""
    content: str = ""
    """The exact part."""
    where: str = ""
    """The place in source units: `lines 40-120`."""
    complete: bool = True
    """Whether the requested part is complete."""
    remaining: int = 0
    """Size of the missing part, in `unit`."""
    unit: str = "lines"
    next: dict[str, Any] | None = None
    """Options for the next page; None if nothing remains."""
    tokens: int = 0
    """Tokens of `text`."""
    reason: str = ""
    """The reason why there is no content; `text` then has it too, and the next step."""

    is_answer: bool = False
    """Whether this answers the user's question, because the call only copied an example."""

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
    """Return an expansion without content: the reason, the available parts and the next step.

    `there` are words of the content, such as its keys.
    """
    head = f"[{bracketed(ref_id)}: {reason}]" if ref_id else f"[{reason}]"
    parts = [head, item(inline(there)) if there else "", step]
    text = shorten("\n".join(filter(None, parts)), most, count)
    why = f"{reason}: {there}" if there else reason
    return Expansion(text=text, reason=why, tokens=count(text))


class PageFrame(msgspec.Struct, frozen=True, kw_only=True):
    """The lines before and after the content of a page."""

    ref_id: str
    note: str
    find: str | None
    """The requested part as a value of `find`; None if `find` cannot express it."""
    opener: str
    """Name of the tool that opens refs."""

    def around(self, content: str, where: str, remains: str, page: int) -> str:
        """Return the text of a page."""
        note = f" · {self.note}" if self.note else ""
        text = f"[{self.ref_id} {where}{note}]\n{fenced(content)}"
        if not remains:
            return text
        return f"{text}\n[{remains}: {self.next_call(page + 1)}]"

    def next_call(self, page: int) -> str:
        """Return the call that opens a page, or the change to the previous call."""
        if self.find is None:
            return f'add ", page {page}" to find'
        find = f"{self.find}, page {page}" if self.find else f"page {page}"
        return call_of(self.opener, self.ref_id, find)


def frame(ref_id: str, note: str, *, find: str | None, opener: str, count: Count) -> PageFrame:
    """Return the lines around a content, of bounded length."""
    short = shorten(note, _LONGEST_NOTE, count)
    return PageFrame(ref_id=ref_id[:LONGEST_REF], note=short, find=find, opener=opener[:100])


def shorten_where(where: str, count: Count) -> str:
    """Return the name of a place, shortened for the first line and without brackets that end it.

    Keys in a path are quoted and copied exactly by models; headings are not.
    """
    named = bracketed(where) if _SECTION in where else inline(where)
    return shorten(named, _LONGEST_WHERE, count)


def shorten(text: str, most: int, count: Count) -> str:
    """Return the beginning of a text in at most `most` tokens."""
    prefix = text[: most * 12]
    if prefix == text and count(text) <= most:
        return text
    while prefix:
        prefix = prefix[: len(prefix) * 4 // 5]
        if count(f"{prefix}…") <= most:
            return f"{prefix}…" if prefix else ""
    return ""


_LONGEST_NAME = 64
NO_REF = "this is not a ref"
UNKNOWN_REF = "no content is stored under this ref"
_REMOVED = "it expired and was removed"
_DAMAGED = "the stored data is damaged and cannot be shown"


def missing(
    ref: str, info: RefInfo | None, *, count: Count, privacy: Policy = "allow"
) -> Expansion:
    """Return the reason why a ref cannot be opened: it is unknown, removed or damaged.

    The policy `mask` masks secrets in the summary.
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
    """Return the answer to a call that cannot be executed, with a corrected call."""
    return "\n".join(filter(None, (f"[{error.what}]", error.fix, f"Call {call}." if call else "")))


def note_of(info: RefInfo) -> str:
    """Return a note for the first line of a stale content; otherwise empty."""
    if info.state != "stale":
        return ""
    return f"may be out of date; call {_origin(info)} again for current data"


def stale_line(info: RefInfo, opener: str = NAME) -> str:
    """Return the line of a ref in a list: its summary, and whether it is stale.

    `opener` is the name of the tool that opens refs.
    """
    summary = bracketed(info.summary or info.kind)
    return f"{summary} [stale - use {opener} to refresh]" if info.state == "stale" else summary


def _origin(info: RefInfo) -> str:
    tool = info.meta.get("tool", "")
    return f"the tool {bracketed(tool[:_LONGEST_NAME])}" if tool else "the original tool"


def _what(info: RefInfo, privacy: Policy) -> str:
    # Summaries are stored unmasked; the policy applies when they are shown.
    summary = mask(info.summary, find(info.summary)) if privacy == "mask" else info.summary
    return f"{WAS}{bracketed(summary)}\n" if summary else ""
