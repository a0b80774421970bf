"""Set the schemas of very many tools aside: a directory of their names stands for them.

deferring: after finding, measure and leaving, before arrival. The model finds what it needs with
one tool, and calls it with another; its schemas come behind what is cached. Where the provider can
hold schemas back itself, they stay in the request, marked, and the model calls what it has found by
its own name. Tools stand first in what is cached, so what is shown is decided once: a session's
tools stay as they are, and only ever become more.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from holdfast.expand.finding import (
    ToolPair,
    caller,
    finder,
    free_pair,
    offered_pair,
)
from holdfast.fitting.draft import Draft
from holdfast.fitting.finding import loaded_in
from holdfast.fitting.leaving import Leaving
from holdfast.fitting.measure import Measure
from holdfast.fitting.options import FitOptions, LazyRules
from holdfast.fitting.state import FitState
from holdfast.guard.final_turn import FINAL_REPORT_TOOL
from holdfast.store.records import Edit
from holdfast.wire import Conversation
from holdfast.wire.blocks import Tool
from holdfast.wire.loading import held_back, hold_back, loads_tools
from holdfast.wire.rules.openai_chat import MOST_TOOLS
from holdfast.wire.strict import decode
from holdfast.wire.thinking import has_bound_thoughts
from holdfast.wire.tools import definitions, plain_functions, with_tool, without_tools
from holdfast.wire.withdrawing import chosen_tools

_MOST_RECENT = 8
"""Tools that a session has called which stay in full when its schemas are first set aside."""
_DIRECTORY_SHARE = 0.125
"""Most of the limit that the directory may take: a small window has other things to hold."""
_PAYS = 0.7
"""Share of the tokens of tools that may be left: else setting some aside is not worth a search."""


def defer(
    draft: Draft, options: FitOptions, state: FitState | None, measure: Measure, leaving: Leaving
) -> Draft:
    """The request with a directory in the place of most of its tools, where these are very many."""
    if not _may_be_lazy(draft.asked, options):
        return draft
    before = _lazy_before(draft, state)
    pair = free_pair(draft.asked)
    if pair is None:
        return draft
    candidates = plain_functions(draft.now)
    if before is None and not (candidates and _is_due(draft, options.lazy, state, measure)):
        return draft
    shown = _shown(draft, options.lazy, before)
    withheld = [tool for tool in candidates if tool.name not in shown]
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
        fewer = with_tool(hold_back(draft.now, withheld), _marked(search, draft.now, withheld))
    else:
        fewer = with_tool(without_tools(draft.now, withheld), search)
        fewer = with_tool(fewer, _marked(caller(draft.now.dialect, pair), draft.now, withheld))
    lazy = _explained(
        draft,
        fewer,
        schemas,
        measure,
        leaving,
        begins=before is None,
        same=_is_same(draft, state, before, fewer),
    )
    return loaded_in(lazy) if native else lazy


def deferred_tools(state: FitState) -> set[str]:
    """The client's tools that went out without their schemas."""
    if state.sent.frame is state.asked.frame or offered_pair(state.sent) is None:
        return set()
    return _names(state.asked.tools) - _shown_in(state.sent)


def _may_be_lazy(asked: Conversation, options: FitOptions) -> bool:
    """Whether someone answers the calls, and nobody else plays the same game.

    An answer that is fetched later, in the background, would show the client calls of ours; a
    client that defers tools itself, or has the provider search them, has its own way to find them.
    """
    if options.lazy.mode == "never" or not options.opens or asked.rest.get("background"):
        return False
    listed = asked.rest.get("tools")
    return not any(map(_is_deferred, listed if isinstance(listed, list) else ()))


def _is_deferred(entry: Any) -> bool:
    """Whether an entry of the client's tools is held back, or searches those that are."""
    if not isinstance(entry, dict):
        return False
    return bool(entry.get("defer_loading")) or str(entry.get("type")).startswith("tool_search")


def _is_native(
    asked: Conversation, rules: LazyRules, before: Conversation | None, model: str
) -> bool:
    """Whether the provider holds the schemas back itself; a session goes on as it began."""
    if before is not None:
        return bool(held_back(before))
    return rules.native and loads_tools(asked, model)


def _lazy_before(draft: Draft, state: FitState | None) -> Conversation | None:
    """What went out last time, if its schemas had been set aside."""
    if state is None or state.sent.dialect != draft.now.dialect:
        return None
    return state.sent if offered_pair(state.sent) is not None else None


def _is_due(draft: Draft, rules: LazyRules, state: FitState | None, measure: Measure) -> bool:
    """Whether the tools are too many: for the window, or for what every request should cost."""
    tokens = measure.count(draft.now).parts.tools
    if tokens >= rules.share * measure.most:
        return True
    listed = draft.asked.tools
    too_many = draft.asked.dialect == "openai-chat" and len(listed) > MOST_TOOLS
    if tokens < rules.tokens and not too_many:
        return False
    # Where the client's own tools have changed, the vendor's cache is lost anyway.
    same = state is not None and _names(state.asked.tools) == _names(listed)
    return not same and not has_bound_thoughts(draft.asked, measure.model)


def _names(tools: Sequence[Tool]) -> set[str]:
    return {tool.name for tool in tools}


def _shown_in(sent: Conversation) -> set[str]:
    """The tools that a request shows in full."""
    return _names(sent.tools) - held_back(sent)


def _shown(draft: Draft, rules: LazyRules, before: Conversation | None) -> set[str]:
    """The tools that stay in full: pinned, forced, shown before; at first those lately called."""
    asked = draft.asked
    shown = {FINAL_REPORT_TOOL, *chosen_tools(asked)}
    for tool in asked.tools:
        if any(fnmatchcase(tool.name, pattern) for pattern in rules.pinned):
            shown.add(tool.name)
    if before is not None:
        return shown | _shown_in(before)
    calls = (call.name for m in reversed(asked.messages) for call in reversed(m.calls))
    recent: dict[str, None] = {}
    for name in calls:
        if len(recent) == _MOST_RECENT:
            break
        recent[name] = None
    return shown | recent.keys()


def _known_finder(
    draft: Draft,
    before: Conversation | None,
    pair: ToolPair,
    withheld: Sequence[Tool],
    state: FitState | None,
    measure: Measure,
) -> dict[str, Any] | None:
    """The tool with the directory as it went out last time; None if there must be a new one.

    A tool that went stays in the directory: whoever calls it is told. One that came breaks the
    client's own prefix, so it is listed; but thinking that is bound to the tools is worth more,
    and it is found all the same.
    """
    if before is None or state is None or offered_pair(before) != pair:
        return None
    came = _names(withheld) - _names(state.asked.tools)
    if came and not has_bound_thoughts(draft.asked, measure.model):
        return None
    search = [tool for tool in before.tools if tool.name == pair.find]
    definition: dict[str, Any] = decode(definitions(before, search)[0])
    definition.pop("cache_control", None)  # the client may have moved it
    if draft.now.dialect == "gemini":
        return {"functionDeclarations": [definition]}
    return definition


def _marked(
    definition: dict[str, Any], now: Conversation, withheld: Sequence[Tool]
) -> dict[str, Any]:
    """The last tool, with the mark up to which the client has its tools cached (Anthropic)."""
    if now.dialect != "anthropic":
        return definition
    listed = now.rest["tools"]
    marks = [listed[tool.place[-1]].get("cache_control") for tool in withheld]
    marks = [mark for mark in marks if mark]
    return {**definition, "cache_control": marks[-1]} if marks else definition


def _is_same(
    draft: Draft, state: FitState | None, before: Conversation | None, fewer: Conversation
) -> bool:
    """Whether the same tools were set aside last time."""
    if state is None or before is None or _shown_in(fewer) - _shown_in(before):
        return False
    return _names(state.asked.tools) == _names(draft.asked.tools)


def _explained(  # noqa: PLR0913 - all that was found out, once
    draft: Draft,
    fewer: Conversation,
    schemas: Sequence[bytes],
    measure: Measure,
    leaving: Leaving,
    *,
    begins: bool,
    same: bool,
) -> Draft:
    """The request with fewer tools, if that pays and what left may be stored.

    Where the `same` was done last time, it is stored already: 400 tools are not read for secrets
    with every request.
    """
    tokens = measure.count(draft.now).parts.tools
    left = measure.count(fewer).parts.tools
    if begins and left > _PAYS * tokens:
        return draft
    if held_back(fewer):
        return draft.with_frame(fewer, _held_back(len(schemas), tokens, left), new=not same)
    whole = b"[" + b",".join(schemas) + b"]"
    kept = leaving.name_of if same else partial(leaving.keep, tokens=tokens - left)
    ref = kept("schemas", whole)
    if not ref:
        return draft
    edit = Edit(
        action="defer",
        what=f"set the schemas of {len(schemas)} tools aside; a directory names them",
        why=f"the tools have {tokens:,} tokens, which every request pays for",
        where="$.tools",
        from_tokens=tokens,
        to_tokens=left,
        ref_id=ref,
    )
    return draft.with_frame(fewer, edit, new=not same)


def _held_back(number: int, tokens: int, left: int) -> Edit:
    """Nothing leaves the request: there is no ref to open."""
    return Edit(
        action="defer",
        what=f"had the provider hold back the schemas of {number} tools; a directory names them",
        why=f"the tools have {tokens:,} tokens, which every request pays for",
        where="$.tools",
        from_tokens=tokens,
        to_tokens=left,
    )
