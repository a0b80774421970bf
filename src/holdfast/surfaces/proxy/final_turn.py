"""The last turn that fits: without the tools that no longer do, and with a word to the model.

final_turn: before exchange. Tools that the history calls keep their names, because providers want
a definition for each; what they are and take goes.
"""

from __future__ import annotations

from typing import Any

from holdfast.expand.tool import write as write_tool
from holdfast.guard.final_turn import final_turn_guidance
from holdfast.wire import Conversation, Entry, Text, read, write
from holdfast.wire.blocks import Tool
from holdfast.wire.strict import encode, splice

_NO_CHOICE: dict[str, tuple[tuple[str, ...], Any]] = {
    "openai-chat": (("tool_choice",), "none"),
    "openai-responses": (("tool_choice",), "none"),
    "anthropic": (("tool_choice",), {"type": "none"}),
    "gemini": (("toolConfig",), {"functionCallingConfig": {"mode": "NONE"}}),
}


def final_turn(conversation: Conversation) -> Conversation:
    """The request as a last one: its tools cannot be called, and the model is told to end."""
    dialect = conversation.dialect
    called = {call.name: None for message in conversation.messages for call in message.calls}
    body = write(conversation)
    if conversation.tools:
        kept = [_bare(dialect, name) for name in called]
        body = splice(body, ("tools",), encode(_grouped(dialect, kept)))
        place, choice = _NO_CHOICE[dialect]
        if kept:
            body = splice(body, place, encode(choice))
        elif place[0] in conversation.rest:
            body = splice(body, place, encode("auto" if dialect.startswith("openai") else choice))
    plain = read(body, dialect)
    said = Entry("user", (Text(text=final_turn_guidance(())),))
    return plain.insert(len(plain.messages), said)


def _bare(dialect: str, name: str) -> dict[str, Any]:
    return write_tool(dialect, Tool(name=name, parameters={"type": "object", "properties": {}}))


def _grouped(dialect: str, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if dialect != "gemini" or not tools:
        return tools
    return [{"functionDeclarations": [one for t in tools for one in t["functionDeclarations"]]}]
