"""What is changed around the messages: the tool that opens refs, and a stream's usage.

offering: after arrival and measure, before folding. Tools stand first in what vendors cache, so the
one that opens refs is there from the first request that has tools, and stays.
"""

from __future__ import annotations

from holdfast.expand.tool import definition
from holdfast.fitting.arrival import expansion_tool, names_ref
from holdfast.fitting.draft import Draft
from holdfast.fitting.measure import Measure
from holdfast.fitting.options import FitOptions
from holdfast.fitting.state import FitState
from holdfast.store.records import Edit
from holdfast.wire import Conversation, Thinking
from holdfast.wire.chained import held_under
from holdfast.wire.rules.openai_chat import MOST_TOOLS
from holdfast.wire.thinking import BINDING, is_bound, thinks
from holdfast.wire.tools import with_tool

_OFFER = Edit(
    action="offer",
    what="offered the tool that opens refs",
    why="a ref is never shown without it, and one that comes late breaks the vendor's cache",
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


def offer_in_time(
    draft: Draft, options: FitOptions, state: FitState | None, measure: Measure
) -> tuple[Draft, bool]:
    """Offer to open refs where one stands, and before if that is worth it; and whether one does."""
    went_on = state is not None and draft.known > 0
    refs = state is not None and state.refs and went_on
    offered = state is not None and expansion_tool(state.sent)[1]
    held = offered and bool(held_under(draft.asked))  # tools are offered anew with each request
    shows = held or names_ref(draft.now)
    offered = offered and went_on
    if options.opens and (shows or _offers_early(draft, options, measure, offered=offered)):
        draft = offer(draft, options, new=not (refs or held or offered))
    return draft, shows


def _offers_early(draft: Draft, options: FitOptions, measure: Measure, *, offered: bool) -> bool:
    """Whether the tool is offered before there is a ref; `offered` if it was last time.

    To take it away again would break the vendor's cache as much as to bring it late. A request
    that has no tools of its own is a plain chat: it gets one only with something to open.
    """
    asked, rules = draft.asked, options.rules
    if not options.cites or (rules.policy == "never" and not rules.tools):
        return False  # a ref comes with a fold alone, which breaks the prefix anyway
    own = sum(not tool.hosted for tool in asked.tools)  # Gemini refuses ours beside its hosted ones
    if options.offer_expand != "always" or not own:
        return False
    if offered:
        return True
    if asked.dialect == "openai-chat" and len(asked.tools) >= MOST_TOOLS:
        return False
    if _has_bound_thoughts(asked, measure.model):
        return False
    # Nothing is cited yet: what fits without the tool must not be refused for it.
    with_it = measure.count(offer(draft, options, new=True).now)
    return measure.fits(with_it) or not measure.fits(measure.count(draft.now))


def _has_bound_thoughts(asked: Conversation, model: str) -> bool:
    """Whether a new tool would cost thinking, as in a session that began without us.

    Tools stand before all thinking: where it is bound to them, it is kept until there is a ref.
    """
    if asked.dialect not in BINDING or not is_bound(model, asked.rest) or not thinks(asked.rest):
        return False
    return any(isinstance(block, Thinking) for m in asked.messages for block in m.blocks)


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
