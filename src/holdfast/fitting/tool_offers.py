"""Changes around the messages: tools that open refs and recall turns, a stream's usage.

Tools come first in the cached prefix, so expand_ref is in the first request with tools, and stays.
If the API accepts a tool in a message, it is added there, after the turn with the first ref.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.cite import CitingRules
from holdfast.expand import turn_recall
from holdfast.expand.tool import definition, is_opener, write
from holdfast.fitting.cite_results import expansion_tool
from holdfast.fitting.context_pressure import ToolCost
from holdfast.fitting.draft import Draft, standing_for, where
from holdfast.fitting.measure import Measure
from holdfast.fitting.options import FitOptions
from holdfast.fitting.state import FitState
from holdfast.store.records import Edit
from holdfast.trim.provenance import edits_of, is_ours, names_ref, shows_ref
from holdfast.wire import Conversation, Message
from holdfast.wire.bound_thinking import has_bound_thoughts
from holdfast.wire.rules.common import openai_answers
from holdfast.wire.rules.openai_chat import MOST_TOOLS
from holdfast.wire.stored_history import stored_history_id
from holdfast.wire.tools import (
    INLINE_BETA,
    adds_tools,
    changes_tools,
    has_tools,
    tool_message,
    with_tool,
)

_OFFER = Edit(
    action="offer",
    what="offered the tool that opens refs",
    why="a ref is never shown without it, and one that comes late breaks the vendor's cache",
    where="$.tools",
)
_OFFER_RECALL = Edit(
    action="offer",
    what="offered the tool that finds earlier turns",
    why="history was left out, and the model must be able to ask for it",
    where="$.tools",
)
_ASK_FOR_USAGE = Edit(
    action="usage",
    what="asked the stream for its usage",
    why="what a request costs is reported only if it is asked for",
    where="$.stream_options",
)


def offer(draft: Draft, options: FitOptions, *, new: bool, state: FitState | None = None) -> Draft:
    """Offer expand_ref, unless the request does already; `new` if it did not last time.

    A request that continues `state` gets the definition that was sent then.
    """
    name, offered = expansion_tool(draft.now)
    if offered or not options.opens:
        return draft
    if options.offer_inline != "never" and not draft.asked.tools and adds_tools(draft.now):
        return _with_tool_message(draft, name, _behind_own_tools(draft.now.messages))
    entry = _sent_definition(draft, state, name) or definition(draft.now.dialect, name)
    return draft.with_frame(with_tool(draft.now, entry), _OFFER, new=new)


def _sent_definition(draft: Draft, state: FitState | None, name: str) -> dict[str, Any] | None:
    """Return the tool as the session's last request had it: other bytes break the cache.

    Another version of Holdfast may have begun the session, and described the tool otherwise.
    """
    if state is None or not draft.known or state.sent.dialect != draft.now.dialect:
        return None
    tools = (tool for tool in state.sent.tools if tool.name == name and is_opener(tool))
    tool = next(tools, None)
    return None if tool is None else write(draft.now.dialect, tool)


def takes_tool(request: Conversation) -> bool:
    """Return whether one more tool is allowed: OpenAI's chat takes at most 128."""
    tools = request.rest.get("tools")
    full = isinstance(tools, list) and len(tools) >= MOST_TOOLS
    return not (full and request.dialect == "openai-chat")


class OfferPlan(NamedTuple):
    """How the tool that opens refs is offered in a request."""

    early: bool = False
    """Whether it is among the tools before there is a ref."""
    inline: bool = False
    """Whether it is offered in a message, after the turn that shows the first ref."""
    cost: ToolCost = ToolCost()


def plan_offer(
    draft: Draft, options: FitOptions, state: FitState | None, measure: Measure
) -> OfferPlan:
    """Decide, before anything is cited, how the tool is offered, and return the cost."""
    if not options.opens:
        return OfferPlan()
    went_on = state is not None and draft.known > 0
    offered = went_on and state is not None and expansion_tool(state.sent)[1]
    refs = went_on and state is not None and state.refs
    if not (offered or refs) and _takes_inline(draft.asked, options, measure.model):
        return OfferPlan(inline=True, cost=ToolCost(_tool_tokens(draft.asked)))
    early = offered or refs or _offers_early(draft, options, measure, went_on=went_on)
    if early or not options.cites or expansion_tool(draft.now)[1]:
        return OfferPlan(early=_may_offer_early(draft, options) and early)
    return OfferPlan(cost=ToolCost(_tool_tokens(draft.asked), rewrites=True))


def offer_in_time(
    draft: Draft, options: FitOptions, state: FitState | None, plan: OfferPlan
) -> tuple[Draft, bool]:
    """Offer the tool if there is a ref or the plan requires it; return whether there is a ref."""
    went_on = state is not None and draft.known > 0
    refs = state is not None and state.refs and went_on
    offered = state is not None and expansion_tool(state.sent)[1]
    has_ref = offered and bool(
        stored_history_id(draft.asked)
    )  # tools are offered anew with each request
    shows = has_ref or names_ref(draft.now)
    offered = offered and went_on
    if not options.opens:
        return draft, shows
    if plan.inline:
        inline = _offered_inline(draft) if shows else draft
        if inline is not None:
            return inline, shows
    if shows or plan.early:
        draft = offer(draft, options, new=not (refs or has_ref or offered), state=state)
    return draft, shows


def offer_recall(draft: Draft, *, new: bool) -> Draft:
    """Offer the tool that finds earlier turns, unless the request has it."""
    name, offered = turn_recall.recall_tool(draft.now)
    if offered or not takes_tool(draft.now):
        return draft
    finder = turn_recall.definition(draft.now.dialect, name)
    return draft.with_frame(with_tool(draft.now, finder), _OFFER_RECALL, new=new)


def go_on_recalling(draft: Draft, options: FitOptions, state: FitState | None) -> Draft:
    """Keep the tools of an assembled turn in their order: the prefix is cached."""
    if state is None or not draft.known or not turn_recall.recall_tool(state.sent)[1]:
        return draft
    if expansion_tool(state.sent)[1]:
        draft = offer(draft, options, new=False, state=state)
    return offer_recall(draft, new=False)


# --- in a message ----------------------------------------------------------------------------


def _takes_inline(asked: Conversation, options: FitOptions, model: str) -> bool:
    """Return whether the API accepts the tool in a message; other APIs refuse such requests.

    Only the request shows the API: gateways with OpenAI's and Anthropic's dialects support neither
    form (envoy ai-gateway#2586, litellm's Bedrock Mantle).
    """
    if options.offer_inline == "never" or stored_history_id(asked):
        return False  # a provider that holds the history may hold the tool too
    if asked.dialect == "openai-responses":
        trusted = options.offer_inline == "always" and openai_answers(asked.context(model))
        return trusted or adds_tools(asked)
    if asked.dialect != "anthropic" or INLINE_BETA not in options.betas:
        return False
    # Without a tool at the beginning, the first one in a message changes the beginning.
    declarations = (asked.rest["tools"][tool.place[-1]] for tool in asked.tools)
    return changes_tools(model) and not all(tool.get("defer_loading") for tool in declarations)


def _offered_inline(draft: Draft) -> Draft | None:
    """Return the request with the tool after the turn with the first ref; None if it has no place.

    The place depends on the conversation alone, so that a new process chooses the same.
    """
    name, offered = expansion_tool(draft.now)
    if offered:
        return draft
    place = _behind_first_ref(draft.now.messages, draft.known)
    return None if place is None else _with_tool_message(draft, name, place)


def _with_tool_message(draft: Draft, name: str, place: int) -> Draft:
    dialect, messages = draft.now.dialect, draft.now.messages
    at = draft.origins[place - 1][1]
    edit = Edit(
        action="offer",
        what="offered the tool that opens refs, in a message",
        why="a ref is never shown without it, and what stands before is in the vendor's cache",
        where=where(at, at),
        start=at,
        stop=at,
    )
    message = standing_for(tool_message(dialect, definition(dialect, name)), (), (edit,))
    return draft.with_messages((*messages[:place], message, *messages[place:]), edit)


def _behind_own_tools(messages: tuple[Message, ...]) -> int:
    """Return the index after the client's first message with tools, rewritten by a fold anyway.

    A body without a list of tools gets none: Codex's newest models use a different form of the API
    (its header has `responses-lite`), which is not documented.
    """
    return 1 + next(n for n, message in enumerate(messages) if has_tools(message))


def _behind_first_ref(messages: tuple[Message, ...], start: int) -> int | None:
    """Return the place after the client's turn with the first ref, before the model's next turn."""
    shows = False
    for n in range(start, len(messages)):
        shows = shows or shows_ref(messages[n])
        ends = n + 1 == len(messages) or messages[n + 1].role == "assistant"
        if shows and ends and messages[n].role in ("user", "tool"):
            return n + 1
    return None


def offer_in_front(draft: Draft, options: FitOptions) -> Draft:
    """Return the request with the tool in the list, instead of a message of Anthropic's.

    Used before a fold, which rewrites the prefix anyway: the message must follow a user's turn and
    precede a model's, which digests rarely leave.
    """
    if draft.now.dialect != "anthropic":
        return draft
    messages = tuple(message for message in draft.now.messages if not _offers(message))
    if len(messages) == len(draft.now.messages):
        return draft
    return offer(draft.with_messages(messages), options, new=True)


def _offers(message: Message) -> bool:
    """Return whether a message of Holdfast offers the tool."""
    return is_ours(message) and any(edit.action == "offer" for edit in edits_of(message))


# --- among the tools -------------------------------------------------------------------------


_EARLY_SHARE = 0.01
"""Most of the first request that the tool may take: then no session costs more than 1 % more for
it, however short, for every later request is larger. 64 tokens for GPT models make 6,400 tokens,
124 for Claude 12,400: what coding agents begin with, and chats and small agents do not."""


_FILLING_SHARE = 0.05
"""Share of a limit that someone set: an agent that begins with as much fills the window within some
twenty turns, and then has to open things. Offered late, recorded agents in 16,000 tokens cost 0.77
of the untouched conversations, offered so 0.69."""


def _may_offer_early(draft: Draft, options: FitOptions) -> bool:
    """Return whether the tool may be in a request before there is a ref.

    A request without tools is a plain chat: it gets the tool only with a ref.
    """
    rules = options.rules
    if not options.cites or (rules.policy == "never" and not rules.tools):
        return False  # a ref comes with a fold alone, which breaks the prefix anyway
    # Gemini refuses ours beside its hosted ones.
    has_own = any(not tool.hosted for tool in draft.asked.tools)
    return has_own and options.offer_expand in ("auto", "always")


def _offers_early(draft: Draft, options: FitOptions, measure: Measure, *, went_on: bool) -> bool:
    """Return whether the tool is offered before there is a ref, if it was not last time."""
    if not _may_offer_early(draft, options):
        return False
    conversation = draft.asked
    if has_bound_thoughts(conversation, measure.model):  # it is kept until there is a ref
        return False
    if options.offer_expand == "auto" and not _cites_by_rule(options.rules):
        if went_on:
            return False  # the first request was too small for it, and now it breaks the cache
        first = conversation.with_messages(_first_request(conversation.messages))
        without = draft.now.with_messages(())
        tokens = measure.count(_with_opener(without)).tokens - measure.count(without).tokens
        return _pays_early(tokens, measure.count(first).tokens, measure)
    # Nothing is cited yet: what fits without the tool must not be refused for it.
    with_it = measure.count(_with_opener(draft.now))
    return measure.fits(with_it) or not measure.fits(measure.count(draft.now))


def _pays_early(tokens: int, first: int, measure: Measure) -> bool:
    """Return whether a tool of this size pays with a first request of this size."""
    if tokens <= _EARLY_SHARE * first:
        return True
    fills = not measure.by_bound and first >= _FILLING_SHARE * measure.most
    return fills and tokens <= _EARLY_SHARE * measure.most


def _cites_by_rule(rules: CitingRules) -> bool:
    """Return whether a user chose the results to cite: then citations are certain."""
    return (
        rules.policy != "auto" or bool(rules.tools) or (rules.tokens, rules.share) != (None, None)
    )


def _first_request(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages of a conversation's first request: those before the model's first answer.

    The size of the first request decides, also where a conversation is seen for the first time in
    its middle, so that the same conversation gets the same tools.
    """
    answers = (n for n, message in enumerate(messages) if n and message.role == "assistant")
    return messages[: next(answers, len(messages))]


def _with_opener(request: Conversation) -> Conversation:
    name, offered = expansion_tool(request)
    return request if offered else with_tool(request, definition(request.dialect, name))


def _tool_tokens(request: Conversation) -> int:
    """Return about how many tokens the definition takes: 124 of Claude, 64 of GPT models.

    Counting it for each request would take longer than the difference is worth.
    """
    return 124 if request.dialect in ("anthropic", "converse") else 64


def ask_for_usage(draft: Draft, *, new: bool) -> Draft:
    """Request the usage of a stream where it has to be requested: only in OpenAI's chat."""
    members = draft.now.rest
    if draft.now.dialect != "openai-chat" or members.get("stream") is not True:
        return draft
    given = members.get("stream_options")
    options = given if isinstance(given, dict) else {}
    if options.get("include_usage"):
        return draft
    changed = draft.now.with_field("stream_options", {**options, "include_usage": True})
    return draft.with_frame(changed, _ASK_FOR_USAGE, new=new)
