"""Tools in a message, and the providers' errors about them.

Written from Anthropic's page on mid-conversation system messages and tool changes, and from the
API reference of OpenAI's Responses. Anthropic accepts a definition only with its beta, on some
models and in some places; of the servers with OpenAI's dialect, only OpenAI's models support the
item.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

BETA = "inline-tools-2026-09-15"
_MODELS = re.compile(r"claude-(?:(?:fable|mythos)-5|opus-(?:4-8|5)|sonnet-5-5|haiku-5-5)")
_OPENAI = re.compile(r"gpt-[5-9]|codex")
_CHANGES = ("tool_addition", "tool_removal")


def added(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every function that messages add, in any dialect."""
    for message in _messages(value):
        if message.get("type") == "additional_tools":
            yield from _flat(message.get("tools") or [])
        for block in _blocks(message):
            if block.get("type") == "tool_addition":
                tool = block.get("tool") or {}
                if tool.get("type") == "tool_definition":
                    yield tool.get("definition") or {}


def _flat(tools: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from _flat(tool.get("tools") or [])
        else:
            yield tool


def claude_violations(value: dict[str, Any], model: str, betas: str) -> Iterator[str]:
    messages = _messages(value)
    for number, message in enumerate(messages):
        for place, block in enumerate(_blocks(message)):
            if block.get("type") in _CHANGES:
                path = f"messages.{number}.content.{place}"
                yield from _change(block, path, message, model, betas)
    for number, (before, message) in enumerate(pairwise([{}, *messages])):
        if _instructs(message) and not _instructs(before) and not _may_be_instructed(before):
            yield (
                f"messages.{number}: a `system` message must immediately follow a `user` turn or "
                "an `assistant` turn ending in a server tool result"
            )
        if _instructs(before) and message.get("role") == "user":
            yield (
                f"messages.{number - 1}: a `system` message must be the last entry in `messages` "
                "or be immediately followed by an `assistant` turn"
            )


def _change(
    block: dict[str, Any], path: str, message: dict[str, Any], model: str, betas: str
) -> Iterator[str]:
    if BETA not in betas:
        yield f"{path}: Input tag '{block['type']}' found using 'type' does not match"
    if message.get("role") != "system":
        yield f"{path}: `{block['type']}` blocks are only permitted in `system` messages"
    if not _MODELS.search(model):
        yield f"{path}: this model does not support mid-conversation tool changes"
    definition = (block.get("tool") or {}).get("definition")
    if block["type"] == "tool_addition" and definition is not None:
        yield from (
            f"{path}.tool.definition.{name}: Field required"
            for name in ("name", "input_schema")
            if not definition.get(name)
        )


def responses_violations(history: list[Any], model: str) -> Iterator[str]:
    for number, item in enumerate(history):
        if item.get("type") != "additional_tools":
            continue
        path = f"input[{number}]"
        if not _OPENAI.match(model):
            yield f"Invalid value: 'additional_tools'. ({path}.type)"
        if item.get("role") != "developer":
            yield f"Invalid value: '{item.get('role')}'. Supported values are: 'developer'."
        if not isinstance(item.get("tools"), list):
            yield f"Missing required parameter: '{path}.tools'."


def _messages(value: dict[str, Any]) -> list[dict[str, Any]]:
    items = value.get("messages") or value.get("input") or []
    return items if isinstance(items, list) else []


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _instructs(message: dict[str, Any]) -> bool:
    return message.get("role") == "system" and bool(message.get("content"))


def _may_be_instructed(before: dict[str, Any]) -> bool:
    last = _blocks(before)[-1:] or [{}]
    ends_in_result = str(last[0].get("type")).endswith("_tool_result")
    return before.get("role") == "user" or (before.get("role") == "assistant" and ends_in_result)
