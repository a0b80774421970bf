"""Tool calls that a small model writes as text: fenced JSON, `<tool_call>` tags, bare JSON."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection
from typing import Any, NamedTuple

_DECODER = json.JSONDecoder()
_OPENERS = ("<tool_call>", "```json", "```tool_call", "```")
_CLOSERS = ("</tool_call>", "```")


class ParsedReply(NamedTuple):
    """The text of a reply without its calls, and the calls."""

    text: str
    calls: list[dict[str, Any]]
    """As `tool_calls` of OpenAI's chat completions."""


def parse_reply(reply: str, tools: Collection[str]) -> ParsedReply:
    """Return the reply's text and its calls of the offered `tools`.

    A JSON object counts as a call if its `name` is that of an offered tool and its `arguments` (or
    `parameters`) are an object. Other JSON stays text: it may be the answer.
    """
    calls: list[dict[str, Any]] = []
    text: list[str] = []
    start = at = 0
    while (at := reply.find("{", at)) >= 0:
        try:
            value, end = _DECODER.raw_decode(reply, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        call = _read_call(value, tools)
        if call is not None:
            call["id"] = f"call_{len(calls) + 1}"
            calls.append(call)
            text.append(_strip_opener(reply[start:at]))
            start = _skip_closer(reply, end)
        at = end
    text.append(reply[start:])
    remainder = "".join(text).strip()
    is_list = calls and remainder in ("[", "]", "[]")  # of nothing but calls
    return ParsedReply("" if is_list else remainder, calls)


def _read_call(value: Any, tools: Collection[str]) -> dict[str, Any] | None:
    name = value.get("name")
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):  # a string of JSON, as OpenAI's own responses have it
        with contextlib.suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)
    if not isinstance(name, str) or name not in tools or not isinstance(arguments, dict):
        return None
    written = json.dumps(arguments, ensure_ascii=False)
    return {"id": "", "type": "function", "function": {"name": name, "arguments": written}}


def _strip_opener(text: str) -> str:
    stripped = text.rstrip().removesuffix("[").rstrip()
    for opener in _OPENERS:
        if stripped.endswith(opener):
            return stripped.removesuffix(opener)
    return text


def _skip_closer(reply: str, end: int) -> int:
    tail = reply[end:]
    stripped = tail.lstrip(" \n\r\t,]")
    for closer in _CLOSERS:
        if stripped.startswith(closer):
            return end + len(tail) - len(stripped) + len(closer)
    return end
