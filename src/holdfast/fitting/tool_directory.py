"""Replace the schemas of very many tools by a directory of their names.

The model searches the directory with one tool and calls the tools that it found with another, so
schemas come after the cached prefix (004-32). Where the provider can defer schemas itself, they
stay in the request with a mark, and the model calls a tool by its own name once it was found. Tools
are the first part of the provider's cached prefix, so the decision is made once for a session:
later requests may show more tools in full, never fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

import msgspec

from holdfast.expand.tool_search import (
    ToolPair,
    caller,
    finder,
    free_pair,
    offered_pair,
)
from holdfast.fitting.core_tools import called_tools, is_core, searches_tools
from holdfast.fitting.draft import Draft
from holdfast.fitting.found_tools import loaded_in
from holdfast.fitting.measure import Measure
from holdfast.fitting.options import FitOptions, LazyRules
from holdfast.fitting.originals import Originals
from holdfast.fitting.state import FitState
from holdfast.guard.final_turn import FINAL_REPORT_TOOL
from holdfast.store.records import Edit
from holdfast.wire import Conversation
from holdfast.wire.blocks import Tool
from holdfast.wire.bound_thinking import has_bound_thoughts
from holdfast.wire.deferred_tools import defer_tools, deferred_names, loads_tools
from holdfast.wire.rules.openai_chat import MOST_TOOLS
from holdfast.wire.strict import decode
from holdfast.wire.tool_choice import chosen_tools
from holdfast.wire.tools import definitions, plain_functions, with_tool, without_tools

_CLAUDE_CODE = "claude-code-20250219"
"""The beta of Anthropic's API that Claude Code names in every request with tools."""
_MOST_RECENT = 8
"""Tools called last that stay in full where not all tools can that the session has called."""
_DIRECTORY_SHARE = 0.125
"""Maximum share of the limit for the directory: a small window needs its room for messages."""
_PAYS = 0.7
"""Maximum share of the tokens that may remain: otherwise the gain does not pay for a search."""


class _Step(NamedTuple):
    """All that decides how the tools of one request are set aside."""

    draft: Draft
    options: FitOptions
    state: FitState | None
    measure: Measure
    originals: Originals
    before: Conversation | None
    """The request before, if its schemas were set aside."""
    pair: ToolPair


def defer(
    draft: Draft,
    options: FitOptions,
    state: FitState | None,
    measure: Measure,
    originals: Originals,
) -> Draft:
    """Return the request with a directory in the place of most of its tools, if there are many."""
    pair = free_pair(draft.asked) if _may_be_lazy(draft.asked, options) else None
    if pair is None:
        return draft
    before = _lazy_before(draft, state)
    step = _Step(draft, options, state, measure, originals, before, pair)
    if before is not None:
        return _deferred(step, _always_shown(step) | _shown_in(before))
    if not plain_functions(draft.now) or not _is_due(draft, options.lazy, state, measure):
        return draft
    called = called_tools(draft.asked)
    core = {tool.name for tool in draft.asked.tools if is_core(tool.name)}
    deferred = _deferred(step, _always_shown(step) | core.union(called))
    if not _is_too_much(deferred, options.lazy, measure):
        return deferred
    # Hardly anything else would fit beside the tools that the agent uses most.
    smaller = _deferred(step, _always_shown(step).union(called[-_MOST_RECENT:]))
    return deferred if smaller is draft else smaller


def unclaimed_tokens(draft: Draft, options: FitOptions, measure: Measure) -> int:
    """Return the tokens of schemas that the client would have deferred without us.

    At the provider's own address the client would not have paid for them either, so no saving is
    claimed for them. They are counted before calibration, as all savings are.
    """
    if not _defers_elsewhere(options) or not any(
        each.edit.action == "defer" for each in draft.frame_edits
    ):
        return 0
    plain = msgspec.structs.replace(measure, calibration=None)
    return plain.count(draft.asked).parts.tools - plain.count(draft.now).parts.tools


def deferred_tools(state: FitState) -> set[str]:
    """Return the names of the client's tools that were sent without their schemas."""
    if state.sent.frame is state.asked.frame or offered_pair(state.sent) is None:
        return set()
    return _names(state.asked.tools) - _shown_in(state.sent)


def _may_be_lazy(asked: Conversation, options: FitOptions) -> bool:
    """Return whether someone answers our calls, and nobody else defers the tools already.

    A client that fetches its answer later, in the background, would see calls of our tools. A
    client that defers tools itself, or lets the provider search them, finds them in its own way.
    """
    if options.lazy.mode == "never" or not options.opens or asked.rest.get("background"):
        return False
    tools = asked.rest.get("tools")
    if any(map(_is_deferred, tools if isinstance(tools, list) else ())):
        return False
    return not any(searches_tools(tool.name) for tool in asked.tools)


def _defers_elsewhere(options: FitOptions) -> bool:
    """Return whether the client defers tools itself where it talks to the provider directly.

    Claude Code does, but not at an address that is not Anthropic's, such as ours.
    """
    return _CLAUDE_CODE in options.betas


def _is_deferred(entry: Any) -> bool:
    """Return whether an entry of the tools is deferred, or is the provider's search of tools."""
    if not isinstance(entry, dict):
        return False
    return bool(entry.get("defer_loading")) or str(entry.get("type")).startswith("tool_search")


def _is_native(
    asked: Conversation, rules: LazyRules, before: Conversation | None, model: str
) -> bool:
    """Return whether the provider defers the schemas itself; a session keeps its first way."""
    if before is not None:
        return bool(deferred_names(before))
    return rules.native and loads_tools(asked, model)


def _lazy_before(draft: Draft, state: FitState | None) -> Conversation | None:
    """Return the request sent before this one, if its schemas were set aside."""
    if state is None or state.sent.dialect != draft.now.dialect:
        return None
    return state.sent if offered_pair(state.sent) is not None else None


def _is_due(draft: Draft, rules: LazyRules, state: FitState | None, measure: Measure) -> bool:
    """Return whether the tools take too much of the window, or cost too much in each request."""
    if _is_too_much(draft, rules, measure):
        return True
    tokens = measure.count(draft.now).parts.tools
    tools = draft.asked.tools
    too_many = draft.asked.dialect == "openai-chat" and len(tools) > MOST_TOOLS
    if tokens < rules.tokens and not too_many:
        return False
    # If the client changed its tools, the provider's cache is lost anyway.
    is_same = state is not None and _names(state.asked.tools) == _names(tools)
    return not is_same and not has_bound_thoughts(draft.asked, measure.model)


def _names(tools: Sequence[Tool]) -> set[str]:
    return {tool.name for tool in tools}


def _shown_in(sent: Conversation) -> set[str]:
    """Return the names of the tools that a request shows in full."""
    return _names(sent.tools) - deferred_names(sent)


def _always_shown(step: _Step) -> set[str]:
    """Return the names of tools that are always shown in full: pinned and forced ones."""
    names = {FINAL_REPORT_TOOL, *chosen_tools(step.draft.asked)}
    for tool in step.draft.asked.tools:
        if any(fnmatchcase(tool.name, pattern) for pattern in step.options.lazy.pinned):
            names.add(tool.name)
    return names


def _is_too_much(draft: Draft, rules: LazyRules, measure: Measure) -> bool:
    """Return whether the tools alone take so much of the limit that little else fits."""
    return measure.count(draft.now).parts.tools >= rules.share * measure.most


def _deferred(step: _Step, shown: set[str]) -> Draft:
    """Return the request with the schemas of all tools set aside that are not in `shown`."""
    draft, options, state, measure, originals, before, pair = step
    withheld = [tool for tool in plain_functions(draft.now) if tool.name not in shown]
    if not withheld:
        return draft
    schemas = definitions(draft.now, withheld)
    native = _is_native(draft.asked, options.lazy, before, measure.model)
    search = _known_finder(draft, before, pair, withheld, state, measure)
    if search is None:
        room = min(options.lazy.directory_tokens, round(_DIRECTORY_SHARE * measure.most))
        directory = options.lazy.directory(schemas, room)
        search = finder(draft.now.dialect, pair, directory, native=native)
    if native:
        fewer = with_tool(defer_tools(draft.now, withheld), _marked(search, draft.now, withheld))
    else:
        fewer = with_tool(without_tools(draft.now, withheld), search)
        fewer = with_tool(fewer, _marked(caller(draft.now.dialect, pair), draft.now, withheld))
    lazy = _explained(
        draft,
        fewer,
        schemas,
        measure,
        originals,
        begins=before is None,
        same=_is_same(draft, state, before, fewer),
    )
    return loaded_in(lazy) if native else lazy


def _known_finder(
    draft: Draft,
    before: Conversation | None,
    pair: ToolPair,
    withheld: Sequence[Tool],
    state: FitState | None,
    measure: Measure,
) -> dict[str, Any] | None:
    """Return the search tool as it was sent before; None if it needs a new directory.

    A tool that the client removed stays in the directory; a call of it gets an error text. A tool
    that the client added invalidates the client's own prefix, so the directory is rebuilt. Not if
    thinking blocks are bound to the tools: the search finds the new tool without the directory.
    """
    if before is None or state is None or offered_pair(before) != pair:
        return None
    came = _names(withheld) - _names(state.asked.tools)
    if came and not has_bound_thoughts(draft.asked, measure.model):
        return None
    search = [tool for tool in before.tools if tool.name == pair.find]
    definition: dict[str, Any] = decode(definitions(before, search)[0])
    definition.pop("cache_control", None)  # the client may have moved its cache mark
    if draft.now.dialect == "gemini":
        return {"functionDeclarations": [definition]}
    return definition


def _marked(
    definition: dict[str, Any], now: Conversation, withheld: Sequence[Tool]
) -> dict[str, Any]:
    """Return the last tool with the client's cache mark, if a withheld tool had one (Anthropic)."""
    if now.dialect != "anthropic":
        return definition
    tools = now.rest["tools"]
    marks = [tools[tool.place[-1]].get("cache_control") for tool in withheld]
    marks = [mark for mark in marks if mark]
    return {**definition, "cache_control": marks[-1]} if marks else definition


def _is_same(
    draft: Draft, state: FitState | None, before: Conversation | None, fewer: Conversation
) -> bool:
    """Return whether the request before set the same tools aside."""
    if state is None or before is None or _shown_in(fewer) - _shown_in(before):
        return False
    return _names(state.asked.tools) == _names(draft.asked.tools)


def _explained(  # noqa: PLR0913 - the parts of one edit
    draft: Draft,
    fewer: Conversation,
    schemas: Sequence[bytes],
    measure: Measure,
    originals: Originals,
    *,
    begins: bool,
    same: bool,
) -> Draft:
    """Return the request with fewer tools, if that pays and the schemas may be stored.

    If the `same` tools were set aside before, the schemas are stored already: 400 tools are not
    scanned for secrets in every request.
    """
    tokens = measure.count(draft.now).parts.tools
    remaining = measure.count(fewer).parts.tools
    if begins and remaining > _PAYS * tokens:
        return draft
    if deferred_names(fewer):
        return draft.with_frame(fewer, _held_back(len(schemas), tokens, remaining), new=not same)
    original = b"[" + b",".join(schemas) + b"]"
    keep = originals.name_of if same else partial(originals.keep, tokens=tokens - remaining)
    ref = keep("schemas", original)
    if not ref:
        return draft
    edit = Edit(
        action="defer",
        what=f"set the schemas of {len(schemas)} tools aside; a directory names them",
        why=f"the tools have {tokens:,} tokens, which every request pays for",
        where="$.tools",
        from_tokens=tokens,
        to_tokens=remaining,
        ref_id=ref,
    )
    return draft.with_frame(fewer, edit, new=not same)


def _held_back(number: int, tokens: int, left: int) -> Edit:
    """Return the edit for schemas that stay in the request, so there is no ref to open."""
    return Edit(
        action="defer",
        what=f"had the provider hold back the schemas of {number} tools; a directory names them",
        why=f"the tools have {tokens:,} tokens, which every request pays for",
        where="$.tools",
        from_tokens=tokens,
        to_tokens=left,
    )
