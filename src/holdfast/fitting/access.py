"""Whether the model can open refs in a request: where it cannot, none is shown and nothing hidden.

access: after arrival and offering, before fit. `expand_ref` is added only beside tools that the
client offers or has used. A client without tools is a plain chat, or an agent that speaks text:
aider expects edits, and smolagents' CodeAgent Python that its own interpreter
runs, in which `expand_ref` is no function. And a server may refuse tools: vLLM answers 400 unless
it was started with a parser for tool calls, Ollama for models that have no template for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.expand.recalling import recall_tool
from holdfast.fitting.arrival import expansion_tool, openers
from holdfast.fitting.draft import Draft
from holdfast.fitting.options import FitOptions
from holdfast.fitting.state import FitState
from holdfast.wire import DIALECTS, Conversation, Message
from holdfast.wire.running import RunningNote
from holdfast.wire.tools import offered_tools
from holdfast.wire.withdrawing import chosen_tools


def can_open(draft: Draft, options: FitOptions, state: FitState | None) -> bool:
    """Return whether the model of a request can call a tool that opens refs.

    Where refs stand in the request before, a choice of tools for one request changes nothing:
    without its citations the conversation would go out in other bytes, and be folded anew.
    """
    asked = draft.asked
    if not options.opens:
        return False
    if openers(asked):
        return True
    if options.offer_expand == "never":
        return False
    if not _uses_tools(asked) and not _was_assembled(state):
        return False
    shows_refs = state is not None and state.refs and expansion_tool(state.sent)[1]
    return shows_refs or _may_choose(asked)


def _uses_tools(request: Conversation) -> bool:
    """Return whether the client offers tools of its own, or its history holds calls of some."""
    if any(not tool.hosted for tool in offered_tools(request)):
        return True
    return _CALLS.over(request)


def _was_assembled(state: FitState | None) -> bool:
    """Return whether the request before was assembled, which offers tools to every client."""
    return state is not None and recall_tool(state.sent)[1]


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
