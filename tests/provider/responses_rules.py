"""OpenAI's errors for Responses: rules R1 to R5, written from the list.

`history` is the model's complete input: with a `previous_response_id`, the stored history precedes
the request's own input. `reasoned` maps each item to the reasoning that produced it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from tests.provider.shared import bad_name, long_array, long_string, strings

_ID = re.compile(r"[A-Za-z0-9_-]+")
_PREFIXES = {"function_call": "fc", "message": "msg", "reasoning": "rs"}
_ROLES = ("user", "assistant", "system", "developer")
_CALLS = {
    "function_call": "function call",
    "custom_tool_call": "custom tool call",
    "local_shell_call": "local shell call",
}


def violations(
    value: dict[str, Any], history: list[Any], reasoned: Mapping[str, str]
) -> Iterator[str]:
    if "conversation" in value:
        return  # the provider's stored history is not scripted
    if not history:
        yield (
            'One of "input" or "previous_response_id" or "prompt" or "conversation" '
            "must be provided."
        )
    for number, item in enumerate(history):
        yield from _item(item, f"input[{number}]")
    if value.get("store") is False:
        yield from _unstored(history)
    yield from _pairs(history)
    yield from _reasoning(history, reasoned)
    tools = value.get("tools") or ()
    yield from long_array("tools", 128, len(tools))
    for number, tool in enumerate(tools):
        if tool.get("type") == "function":
            yield from bad_name(f"tools[{number}].name", tool.get("name"))
    for path, text in strings(history, "input"):
        yield from long_string(path, text)


def kind_of(item: dict[str, Any]) -> str:
    """A message may leave its type out."""
    return str(item.get("type") or "message")


def _item(item: dict[str, Any], path: str) -> Iterator[str]:
    kind = kind_of(item)
    if kind == "message":
        if item.get("role") not in _ROLES:
            yield f"Invalid value: '{item.get('role')}'. Supported values are: {_ROLES}. ({path})"
        if item.get("content") in (None, []):
            yield f"Missing required parameter: '{path}.content'."
    for name in ("id", "call_id"):
        text = item.get(name)
        if text is None:
            continue
        yield from long_string(f"{path}.{name}", text, 64)
        if not _ID.fullmatch(text):
            yield (
                f"Invalid '{path}.{name}': '{text}'. Expected an ID that contains letters, "
                "numbers, underscores, or dashes, but this value contained additional characters."
            )
    prefix = _PREFIXES.get(kind)
    if prefix and item.get("id") and not item["id"].startswith(prefix):
        yield f"Invalid '{path}.id': '{item['id']}'. Expected an ID that begins with '{prefix}'."
    if kind == "function_call":
        yield from bad_name(f"{path}.name", item.get("name"), 128)


def _unstored(history: list[Any]) -> Iterator[str]:
    """R3: without a store an id is no reference, and bare reasoning is only an id."""
    for item in history:
        kind = kind_of(item)
        bare = kind == "reasoning" and item.get("id") and not item.get("encrypted_content")
        if kind == "item_reference" or bare:
            yield (
                f"Item with id '{item.get('id')}' not found. Items are not persisted when "
                "`store` is set to false. Try again with `store` set to true, or remove this "
                "item from your input."
            )


def _pairs(history: list[Any]) -> Iterator[str]:
    """R1: every call has its output, and the output its call before it."""
    waiting: dict[str, str] = {}
    answered: set[str] = set()
    for item in history:
        kind, name = kind_of(item), str(item.get("call_id"))
        if kind in _CALLS:
            if name in waiting or name in answered:
                yield f"Duplicate item found with call_id {name}."
            waiting[name] = _CALLS[kind]
        elif kind.removesuffix("_output") in _CALLS:
            call = _CALLS[kind.removesuffix("_output")]
            if waiting.get(name) != call:
                yield f"No tool call found for {call} output with call_id {name}."
            waiting.pop(name, None)
            answered.add(name)
    for name, call in waiting.items():
        yield f"No tool output found for {call} {name}."


def _reasoning(history: list[Any], reasoned: Mapping[str, str]) -> Iterator[str]:
    """Yield violations of R2: reasoning and its items stay together."""
    present = {item.get("id") for item in history if kind_of(item) == "reasoning"}
    for item, follower in pairwise([*history, {}]):
        kind, name = kind_of(item), item.get("id")
        if kind == "reasoning" and not _produced(follower):
            yield (
                f"Item '{name}' of type 'reasoning' was provided without its required "
                "following item."
            )
        elif name in reasoned and reasoned[name] not in present:
            yield (
                f"Item '{name}' of type '{kind}' was provided without its required 'reasoning' "
                f"item: '{reasoned[name]}'."
            )


def _produced(item: dict[str, Any]) -> bool:
    """Whether an item is one that a model produces."""
    kind = kind_of(item)
    if kind == "message":
        return item.get("role") == "assistant"
    return not kind.endswith("_output")
