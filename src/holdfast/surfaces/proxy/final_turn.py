"""The last turn that fits: without the tools that no longer do, and with a word to the model.

final_turn: before exchange. The guard decides and says so; this makes the request that it wants.
Tools that the history calls keep their names, because providers want a definition for each; what
they are and take goes.
"""

from __future__ import annotations

from typing import Any

from holdfast.expand.tool import write as write_tool
from holdfast.guard import ContextGuard, TargetContextConfig
from holdfast.guard.telemetry import log as tell
from holdfast.tokens import count
from holdfast.wire import Conversation, Entry, Text, read, write
from holdfast.wire.blocks import Tool
from holdfast.wire.strict import decode, encode

_NO_CALLS: dict[str, tuple[str, Any]] = {
    "openai-chat": ("tool_choice", "none"),
    "openai-responses": ("tool_choice", "none"),
    "anthropic": ("tool_choice", {"type": "none"}),
    "gemini": ("toolConfig", {"functionCallingConfig": {"mode": "NONE"}}),
}


def final_turn(
    conversation: Conversation, *, provider: str, model: str, limit: int, debug: bool
) -> Conversation:
    """The request as a last one: its tools cannot be called, and the model is told to end."""
    guard = _judged(conversation, provider, model, limit, debug=debug)
    body = decode(write(conversation))
    _without_tools(body, conversation)
    plain = read(encode(body), conversation.dialect)
    return plain.insert(len(plain.messages), Entry("user", (Text(text=guard.guidance()),)))


def _judged(
    conversation: Conversation, provider: str, model: str, limit: int, *, debug: bool
) -> ContextGuard:
    """The guard over the one target there is; what it does goes into the log."""
    counted = count(conversation, model=model)
    target = TargetContextConfig(
        provider, model or "unknown", limit, buffer_tokens=0, max_output_tokens=0
    )
    guard = ContextGuard(
        [target],
        on_overflow="best_effort",  # whether it fits after all is for fit to say
        final_tools=(),
        current_tokens=counted.tokens - counted.parts.tools,
        listener=tell,
        debug=debug,
    )
    guard.set_schema(counted.parts.tools, final_tokens=0)
    guard.preflight(target.provider, target.model)
    return guard


def _without_tools(body: dict[str, Any], conversation: Conversation) -> None:
    """Leave of the tools only the names that the history calls, and let none be called."""
    if not conversation.tools:
        return
    dialect = conversation.dialect
    called = {call.name: None for message in conversation.messages for call in message.calls}
    bare = [write_tool(dialect, _bare(name)) for name in called]
    key, choice = _NO_CALLS[dialect]
    body.pop("functions", None)
    body.pop("function_call", None)
    if not bare:
        body.pop("tools", None)
        body.pop(key, None)
        return
    if dialect == "gemini":
        bare = [{"functionDeclarations": [one for t in bare for one in t["functionDeclarations"]]}]
    body["tools"] = bare
    body[key] = choice


def _bare(name: str) -> Tool:
    return Tool(name=name, parameters={"type": "object", "properties": {}})
