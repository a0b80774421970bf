"""Tools that Anthropic hides until a message refers to them, and its errors about them.

Written from its page on the tool search tool (custom implementations), the types of its SDK, and
the errors that Pydantic AI's source quotes: at least one tool is not hidden, no hidden tool has a
cache mark, references are in results and name tools of the request, and only models from 4.5 on
support them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_MODELS = re.compile(r"claude-(?:(?:fable|mythos)-5|(?:opus|sonnet|haiku)-(?:4-[5-9]|[5-9]))")


def shown(value: dict[str, Any]) -> Iterator[Any]:
    """The tools of a request that are in its prompt."""
    tools = value.get("tools") or []
    names = set(referred(value))
    for tool in [tools] if isinstance(tools, dict) else tools:
        if tool.get("defer_loading") is not True or tool.get("name") in names:
            yield tool


def referred(value: dict[str, Any]) -> Iterator[str]:
    """The tools that results refer to."""
    for result in _results(value):
        for block in _listed(result.get("content")):
            if block.get("type") == "tool_reference":
                yield str(block.get("tool_name"))


def violations(value: dict[str, Any], model: str) -> Iterator[str]:
    tools = value.get("tools") or []
    held = [tool for tool in tools if tool.get("defer_loading")]
    names = {tool.get("name") for tool in tools}
    if held and len(tools) > 10_000:
        yield f"tools: at most 10000 tools can be searched, found {len(tools)}"
    if held and len(held) == len(tools):
        yield "At least one tool must have defer_loading=false."
    if any(tool.get("cache_control") for tool in held):
        yield "Tools with defer_loading cannot use prompt caching"
    if not _MODELS.search(model) and (held or any(True for _ in referred(value))):
        yield f"{model} does not support tool search"
    forced = (value.get("tool_choice") or {}).get("name")
    if forced and forced not in {tool.get("name") for tool in shown(value)}:
        yield f"tool_choice: the tool {forced} is not loaded"
    for name in referred(value):
        if name not in names:
            yield f"Tool reference '{name}' not found in available tools"
    for message in value.get("messages") or []:
        for block in _listed(message.get("content")):
            if block.get("type") == "tool_reference":
                yield "messages: Input tag 'tool_reference' found using 'type' does not match"
    for result in _results(value):
        if result.get("content") == []:
            yield "messages: tool_result content must not be an empty list"


def _results(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for message in value.get("messages") or []:
        for block in _listed(message.get("content")):
            if block.get("type") == "tool_result":
                yield block


def _listed(content: Any) -> list[dict[str, Any]]:
    return (
        [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    )
