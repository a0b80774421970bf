"""What a model is told about a ref that cannot be opened, or is out of date: never silence.

misses: after expansion. Each text gives the reason and the next step.
"""

from __future__ import annotations

from holdfast.expand.expansion import LONGEST_REF, Count, Expansion, miss
from holdfast.expand.tool import NAME
from holdfast.privacy import Policy, find, mask
from holdfast.store.records import RefInfo
from holdfast.store.refs import parse
from holdfast.voice import WAS, bracketed

_LONGEST_NAME = 64
_FORM = "ref:kind:0123456789abcdef"
_REMOVED = "its time was over and it was removed"
_DAMAGED = "what is stored is not what was stored, so it is not served"


def missing(
    ref: str, info: RefInfo | None, *, count: Count, privacy: Policy = "allow"
) -> Expansion:
    """Return why a ref cannot be opened: it is unknown, removed or damaged.

    With the policy to mask, secrets in its summary are masked.
    """
    name = info.ref_id if info is not None else ref.strip()[:LONGEST_REF]
    if info is not None:
        reason = _DAMAGED if info.state == "damaged" else _REMOVED
        step = f"{_what(info, privacy)}Call {_origin(info)} again to get it anew."
    elif parse(ref) is None:
        reason = "this is not a ref"
        step = f'Copy a ref from the conversation as it stands: {{"ref_id": "{_FORM}"}}.'
    else:
        reason = "no content is stored under this ref"
        step = "Check it against the conversation; if it is right, call the original tool again."
    return miss(reason, step, count=count, ref_id=name)


def note_of(info: RefInfo) -> str:
    """What to say beside the content of a ref: that it is stale, if it is."""
    if info.state != "stale":
        return ""
    return f"stale: as it was stored; call {_origin(info)} again if it may have changed"


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
