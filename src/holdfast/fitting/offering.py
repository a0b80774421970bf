"""What is changed around the messages: the tool that opens refs, and a stream's usage.

offering: after arrival, before folding.
"""

from __future__ import annotations

from holdfast.expand.tool import definition
from holdfast.fitting.arrival import expansion_tool
from holdfast.fitting.draft import Draft
from holdfast.fitting.options import FitOptions
from holdfast.store.records import Edit
from holdfast.wire.tools import with_tool

_OFFER = Edit(
    action="offer",
    what="offered the tool that opens refs",
    why="a ref is never shown without it",
    where="$.tools",
)
_ASK_FOR_USAGE = Edit(
    action="usage",
    what="asked the stream for its usage",
    why="what a request costs is reported only if it is asked for",
    where="$.stream_options",
)


def offer(draft: Draft, options: FitOptions, *, new: bool) -> Draft:
    """Offer to open refs, unless the request does already; `new` if it did not last time."""
    name, offered = expansion_tool(draft.now)
    if offered or not options.opens:
        return draft
    return draft.with_frame(
        with_tool(draft.now, definition(draft.now.dialect, name)), _OFFER, new=new
    )


def ask_for_usage(draft: Draft, *, new: bool) -> Draft:
    """Ask for the usage of a stream where it has to be asked for: only OpenAI's chat wants it."""
    rest = draft.now.rest
    if draft.now.dialect != "openai-chat" or rest.get("stream") is not True:
        return draft
    given = rest.get("stream_options")
    options = given if isinstance(given, dict) else {}
    if options.get("include_usage"):
        return draft
    changed = draft.now.with_field("stream_options", {**options, "include_usage": True})
    return draft.with_frame(changed, _ASK_FOR_USAGE, new=new)
