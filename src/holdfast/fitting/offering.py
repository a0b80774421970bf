"""What is changed around the messages: the tool that opens refs, and a stream's usage.

offering: after arrival, before folding.
"""

from __future__ import annotations

from holdfast.expand.tool import definition
from holdfast.fitting.arrival import expansion_tool
from holdfast.fitting.draft import Draft
from holdfast.fitting.options import FitOptions
from holdfast.store.records import Edit
from holdfast.wire import Thinking
from holdfast.wire.thinking import BINDING, is_bound, thinks
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


def offers_early(draft: Draft, model: str, *, offered: bool) -> bool:
    """Whether the tool that opens refs is offered before there is a ref.

    Tools stand before all thinking: one that is added later costs the thinking of the whole
    session, and the vendor's cache with it; one that was there from the first request costs its own
    few tokens. Where thinking has come already, as in a session that began without us, it is kept,
    unless the request before this one `offered` the tool too.
    """
    asked = draft.asked
    if asked.dialect not in BINDING or not asked.tools:
        return False
    if not is_bound(model, asked.rest) or not thinks(asked.rest):
        return False
    thoughts = (isinstance(block, Thinking) for m in asked.messages for block in m.blocks)
    return offered or not any(thoughts)


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
