"""Decide whether the model of a request can open refs; if not, the request is shortened in place.

access: after arrival and offering, before fit. `shortens_in_place` is the only place that decides
this. The proxy could add `expand_ref` to a request without tools and answer its calls itself, but
only models that are prompted to call tools use it: aider's models answer with edits of files, and
the models of smolagents' CodeAgent answer with Python for an interpreter that has no `expand_ref`.
Servers refuse tools, too: vLLM answers 400 unless it was started with a parser for tool calls, and
Ollama answers 400 for models whose template has no tools.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.expand.finding import offered_pair
from holdfast.expand.recalling import recall_tool
from holdfast.fitting.arrival import openers
from holdfast.fitting.draft import Draft
from holdfast.fitting.options import FitOptions
from holdfast.fitting.state import FitState
from holdfast.wire import DIALECTS, Conversation, Message
from holdfast.wire.running import RunningNote
from holdfast.wire.tools import offered_tools
from holdfast.wire.withdrawing import chosen_tools


def shortens_in_place(draft: Draft, options: FitOptions, state: FitState | None) -> bool:
    """Return whether a request is shortened in place because its model can open no ref.

    That is so if neither the request nor its history has tools, or if the request forbids all tools
    but the client's own. A user who disables `expand_ref`, or configures a model for summaries, has
    chosen to fold. A request that continues one with refs keeps them: without these edits the bytes
    sent before would change.
    """
    chose_folding = options.offer_expand == "never" or options.summary_tokens > 0
    if not options.in_place or chose_folding or openers(draft.asked):
        return False
    if draft.known and state is not None and _shows_refs(state):
        return False
    return not uses_tools(draft.asked) or not _may_choose(draft.asked)


def uses_tools(request: Conversation) -> bool:
    """Return whether the client offers functions, or its history has tool calls."""
    if any(not tool.hosted for tool in offered_tools(request)):
        return True
    return _CALLS.over(request)


def _shows_refs(state: FitState) -> bool:
    """Return whether the last request sent had refs, or tools that Holdfast added."""
    return state.refs or recall_tool(state.sent)[1] or offered_pair(state.sent) is not None


def _may_choose(request: Conversation) -> bool:
    """Return whether the model may call a tool that the client does not name."""
    choice = DIALECTS[request.dialect].params(request.rest).get("tool_choice")
    if choice not in (None, "auto", "required"):
        return False
    names = {tool.name for tool in request.tools}
    # Gemini has a list of the tools that may be called; Converse has all tools in that place.
    return request.dialect == "converse" or names.isdisjoint(chosen_tools(request))


def _any_calls(calls: bool, messages: Sequence[Message]) -> bool:
    return calls or any(message.calls for message in messages)


_CALLS: RunningNote[bool] = RunningNote("calls", False, _any_calls)
