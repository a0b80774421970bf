"""Messages and tools as an agent's loop holds them, plain JSON values → a conversation.

plain: beside targets, before estimate. Nothing says which dialect a bare list is in but the shapes
of its entries, and reading them in another one loses what they hold: an Anthropic tool result read
as OpenAI's is an unknown part of no tokens. So every entry is looked at, not only the first ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.wire import Conversation, read

_LIST_KEYS = {"gemini": "contents", "openai-responses": "input"}
"""Where each dialect puts its list; all others in `messages`."""

_ANTHROPIC_PARTS = frozenset(
    "tool_use tool_result thinking redacted_thinking server_tool_use search_result document "
    "mcp_tool_use mcp_tool_result compaction tool_reference".split()
)
_RESPONSES_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file"})


def conversation_of(messages: Sequence[Mapping[str, Any]]) -> Conversation:
    """Read a list of messages, in the dialect that its entries are written in."""
    dialect = _dialect_of_messages(messages)
    return read({_LIST_KEYS.get(dialect, "messages"): list(messages)}, dialect)


def offering(tools: Sequence[Mapping[str, Any]]) -> Conversation:
    """A small request that offers these tools, in the dialect that they are written in."""
    dialect = _dialect_of_tools(tools)
    offered = list(tools)
    match dialect:
        case "gemini":
            request = {"contents": [{"role": "user", "parts": [{"text": "-"}]}], "tools": offered}
        case "converse":
            request = {
                "messages": [{"role": "user", "content": [{"text": "-"}]}],
                "toolConfig": {"tools": offered},
            }
        case "openai-responses":
            request = {"input": "-", "tools": offered}
        case _:
            request = {"messages": [{"role": "user", "content": "-"}], "tools": offered}
    return read(request, dialect)


def _dialect_of_messages(messages: Sequence[Mapping[str, Any]]) -> str:
    for message in messages:
        if "parts" in message:
            return "gemini"
        if "role" not in message and "type" in message:
            return "openai-responses"
        for part in _parts(message):
            kind = part.get("type")
            if kind is None:
                return "converse"
            if kind in _ANTHROPIC_PARTS:
                return "anthropic"
            if kind in _RESPONSES_PARTS:
                return "openai-responses"
    return "openai-chat"


def _parts(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, list):
        yield from (part for part in content if isinstance(part, Mapping))


def _dialect_of_tools(tools: Sequence[Mapping[str, Any]]) -> str:
    for tool in tools:
        if "function" in tool:
            return "openai-chat"
        if "input_schema" in tool:
            return "anthropic"
        if "functionDeclarations" in tool or "function_declarations" in tool:
            return "gemini"
        if "toolSpec" in tool:
            return "converse"
        if tool.get("type") == "function" and "name" in tool:
            return "openai-responses"
    return "openai-chat"
