"""The last turn of a conversation that cannot grow: the model is asked to finish.

The guard decides; this module builds the request. The tools are kept, so that the provider's cache
stays valid, and may not be called; they are withheld only if the request does not fit otherwise,
and the edit names them. Tools that take more than half of the limit are an error. A client's tool
for its final report stays usable.
"""

from __future__ import annotations

from typing import Any

from holdfast.errors import BudgetExceededError
from holdfast.expand.tool import write as write_tool
from holdfast.fitting.draft import Draft, because
from holdfast.fitting.fold_history import FoldResult
from holdfast.fitting.measure import Measure
from holdfast.fitting.originals import Originals
from holdfast.guard import ContextGuard, TargetContextConfig
from holdfast.guard.final_turn import FINAL_REPORT_TOOL
from holdfast.guard.telemetry import log as tell
from holdfast.store.records import Edit
from holdfast.tokens import TokenCount
from holdfast.tokens.counter import Parts
from holdfast.trim.engine import Beside
from holdfast.trim.engine import cannot_fit as anchors_cannot_fit
from holdfast.wire import DIALECTS, Conversation, Entry, Text
from holdfast.wire.blocks import Tool
from holdfast.wire.frame import take_apart
from holdfast.wire.message import common_prefix
from holdfast.wire.strict import decode, encode

# Each dialect's values that forbid tool calls, and that require one.
_CHOICE = {
    "openai-chat": "tool_choice",
    "openai-responses": "tool_choice",
    "anthropic": "tool_choice",
    "gemini": "toolConfig",
}
_NONE: dict[str, Any] = {
    "openai-chat": "none",
    "openai-responses": "none",
    "anthropic": {"type": "none"},
    "gemini": {"functionCallingConfig": {"mode": "NONE"}},
}


def ended(
    folded: FoldResult, measure: Measure, originals: Originals, *, debug: bool = False
) -> FoldResult | None:
    """The request as a last one; None if it would not fit even so, or nothing was answered yet."""
    draft = folded.draft
    if not any(message.role == "assistant" for message in draft.now.messages):
        return None  # there is nothing to report: it is the limit that is too small
    guard = _judged(draft.now, folded.counted, measure, debug=debug)
    words = guard.guidance()
    last = _last_turn(_forbidden(draft), words, folded.floor, measure)
    if last is None and 0 < folded.counted.parts.tools <= measure.most // 2:
        without = _withheld(draft, measure, originals)
        if without is not None:
            last = _last_turn(without, words, folded.floor, measure)
    return last


def _last_turn(draft: Draft, words: str, floor: int, measure: Measure) -> FoldResult | None:
    """Return a request with words to the model behind it; None if it does not fit."""
    last = _told(draft, words, measure)
    counted = measure.count(last.now)
    if measure.fits(counted):
        return FoldResult(last, counted, floor)
    start = common_prefix(draft.now.messages, last.now.messages)
    for message in last.now.messages[start:]:
        message.let_go()  # the sum cached on it holds the message itself: a reference cycle
    return None


def _judged(
    conversation: Conversation, counted: TokenCount, measure: Measure, *, debug: bool
) -> ContextGuard:
    """Return the guard of the only target; its events are logged."""
    target = TargetContextConfig(
        "request", measure.model or "unknown", measure.most, buffer_tokens=0, max_output_tokens=0
    )
    final_tools = [tool.name for tool in conversation.tools if tool.name == FINAL_REPORT_TOOL]
    guard = ContextGuard(
        [target],
        on_overflow="best_effort",  # the final count decides whether it fits
        final_tools=final_tools,
        current_tokens=counted.tokens - counted.parts.tools,
        listener=tell,
        debug=debug,
    )
    guard.set_schema(counted.parts.tools, final_tokens=0)
    guard.enforce_final_turn("turn_preflight")
    return guard


# --- what is said ----------------------------------------------------------------------------


def _told(draft: Draft, words: str, measure: Measure) -> Draft:
    """Return the request with an appended message of ours to the model."""
    longer = draft.now.insert(len(draft.now.messages), Entry("user", (Text(text=words),)))

    explain = because(
        "words",
        "asked the model to come to an end",
        "what must be kept leaves no room for more",
        lambda messages: measure.tokens(draft.now, messages),
    )
    if longer.frame == draft.now.frame:
        return draft.changed(longer, explain)
    list_edit = Edit(
        action="words",
        what="made a list of the one message",
        why="words to the model stand behind it",
        where="$",
    )
    return draft.changed(longer, explain).with_frame(longer, list_edit)


# --- what may be called ----------------------------------------------------------------------


def _forbidden(draft: Draft) -> Draft:
    """The same tools, of which none may be called but that for the final report."""
    now = draft.now
    if not now.tools or now.dialect not in _CHOICE:
        return draft
    choice = _NONE[now.dialect]
    if any(tool.name == FINAL_REPORT_TOOL for tool in now.tools):
        if now.dialect == "anthropic" and now.rest.get("thinking"):
            return draft  # rule A15: with thinking no tool can be forced; the words must do
        choice = _only(FINAL_REPORT_TOOL, now.dialect)
    edit = Edit(
        action="withhold",
        what="let no tool be called",
        why="the model is asked to come to an end",
        where=f"$.{_CHOICE[now.dialect]}",
    )
    return draft.with_frame(now.with_field(_CHOICE[now.dialect], choice), edit)


def _only(name: str, dialect: str) -> Any:
    """The choice of one tool."""
    if dialect == "openai-chat":
        return {"type": "function", "function": {"name": name}}
    if dialect == "openai-responses":
        return {"type": "function", "name": name}
    if dialect == "anthropic":
        return {"type": "tool", "name": name}
    return {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [name]}}


def _withheld(draft: Draft, measure: Measure, originals: Originals) -> Draft | None:
    """Return the request without tools, except for the names of those that the history calls.

    Providers require a definition for each of these; their descriptions and parameters are
    removed. None if they may not be stored.
    """
    now = draft.now
    if now.dialect == "converse":
        return None  # its tools are in toolConfig, which is not parsed here
    body = decode(now.frame.hollow)
    before = measure.count(now).parts.tools
    ref = originals.keep("tools", encode(body.get("tools") or body.get("functions")), before)
    if not ref:
        return None
    _leave_names(body, now)
    frame, _ = take_apart(encode(body), DIALECTS[now.dialect])
    bare = now.with_frame(frame)
    names = ", ".join(tool.name for tool in now.tools if tool.name != FINAL_REPORT_TOOL)
    edit = Edit(
        action="withhold",
        what=f"withheld the tools {names[:200]}",
        why="not even the last turn fits with them",
        where="$.tools",
        from_tokens=before,
        to_tokens=measure.count(bare).parts.tools,
        ref_id=ref,
    )
    return draft.with_frame(bare, edit)


def _leave_names(body: dict[str, Any], conversation: Conversation) -> None:
    dialect = conversation.dialect
    called = {call.name: None for message in conversation.messages for call in message.calls}
    report = [tool for tool in conversation.tools if tool.name == FINAL_REPORT_TOOL]
    bare = [Tool(name=name, parameters=_NOTHING) for name in called if name != FINAL_REPORT_TOOL]
    written = [write_tool(dialect, tool) for tool in (*report, *bare)]
    for key in ("functions", "function_call", "tools", _CHOICE.get(dialect, "tool_choice")):
        body.pop(key, None)
    if not written:
        return
    if dialect == "gemini":
        groups = [declared for tool in written for declared in tool["functionDeclarations"]]
        written = [{"functionDeclarations": groups}]
    body["tools"] = written
    if dialect in _CHOICE:
        body[_CHOICE[dialect]] = _only(FINAL_REPORT_TOOL, dialect) if report else _NONE[dialect]


_NOTHING = {"type": "object", "properties": {}}


# --- what cannot be --------------------------------------------------------------------------


def cannot_fit(smallest: FoldResult, measure: Measure, originals: Originals) -> BudgetExceededError:
    """Return the error with the cause: large tools, anchors, or content that must not be stored."""
    error = _too_large(smallest, measure)
    if originals.refused:
        error.fix += " Some of it stays because the privacy policy refuses to store it."
    return error


def _too_large(smallest: FoldResult, measure: Measure) -> BudgetExceededError:
    conversation = smallest.draft.asked
    untouched = measure.count(conversation)
    # Where little can leave, the tool that opens it takes more than it gives.
    least = min(measure.size(smallest.counted), measure.size(untouched))
    beside = _beside(conversation, untouched.parts, measure)
    if smallest.trimmed is not None and beside.tools <= measure.most // 2:
        return anchors_cannot_fit(smallest.trimmed, tokens=least, limit=measure.most, beside=beside)
    tools = (
        f"; its {len(conversation.tools)} tools have {beside.tools:,}" if conversation.tools else ""
    )
    return BudgetExceededError(
        f"the request cannot be made to fit: at least {least:,} tokens are needed, and "
        f"{measure.most:,} are allowed{tools}",
        where="$.tools" if tools else "messages",
        fix="Offer fewer tools, or raise the limit."
        if tools
        else "Shorten it, or raise the limit.",
        kind="input",
        limit=measure.most,
        planned=least,
    )


def _beside(asked: Conversation, parts: Parts, measure: Measure) -> Beside:
    """The client's own: the tool that opens refs is not, and may be most of a small limit."""
    if not DIALECTS[asked.dialect].system(asked.rest):
        return Beside(tools=parts.tools)
    among = tuple(message for message in asked.messages if message.role == "system")
    return Beside(round(parts.system - measure.tokens(asked, among)), parts.tools)
