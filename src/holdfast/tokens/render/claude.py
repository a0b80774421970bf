"""Count requests to Claude, from any dialect.

Claude's vocabulary is not public. Its count is estimated as a weighted sum of a large vocabulary
(o200k) and a small one (Llama 2), plus terms for line breaks, spaces and encoded data; all weights
are positive, so that more text never counts less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from holdfast.tokens.families import Constants
from holdfast.tokens.render.parts import Envelope, arguments_value, spaced_json
from holdfast.tokens.render.request import (
    MessageView,
    NeighbourFacts,
    RequestFrame,
    answer_schema,
    has_thinking,
)
from holdfast.tokens.vocabulary import CountText, pieces
from holdfast.wire import Tool, ToolCall
from holdfast.wire.values import inner, take

_SPACES = re.compile(r" {2,}")
_ENCODED = re.compile(r"[A-Za-z0-9+/=_-]{40,}")

_SEALED_CHARACTERS = 2.5
"""Characters of sealed search results to a token, from recorded requests (1.96 to 2.56)."""


def text_tokens(text: str, k: Constants, count: CountText) -> float:
    """Return Claude's tokens of a text."""
    if not text:
        return 0.0
    # A regular expression holds the GIL until it finishes: a third of a second for 20 MB.
    parts = list(pieces(text))
    encoded = sum(len(run) for part in parts for run in _ENCODED.findall(part))
    spaces = sum(len(_SPACES.findall(part)) for part in parts)
    return k["text_scale"] * (
        k["text_o200k"] * count("o200k_base", text)
        + k["text_llama2"] * count("llama2", text)
        + k["text_newline"] * text.count("\n")
        + k["text_spaces"] * spaces
        + k["text_encoded"] * encoded
    )


def envelope(request: RequestFrame, k: Constants, count: CountText) -> Envelope:
    """Return the tokens of everything except the messages."""
    formatting = k["base"]
    if request.last_speaker == "assistant":
        formatting += k["prefill"]
    if has_thinking(request):
        formatting += k["thinking"]
    schema = answer_schema(request)
    if schema is not None:
        schema_tokens = text_tokens(spaced_json(schema.schema), k, count)
        formatting += k["format"] + k["format_schema"] * schema_tokens
    tools = sum(_tool(tool, k, count) for tool in request.tools if not _is_held_back(request, tool))
    if request.tools:
        tools += k["prompt_forced"] if request.is_forced else k["prompt_auto"]
    system = sum(text_tokens(text, k, count) for text in request.system)
    return Envelope(system, tools, formatting)


def _is_held_back(request: RequestFrame, tool: Tool) -> bool:
    """Return whether a tool is not in the prompt until a message references it.

    One such tool with 30 fields added no tokens to Anthropic's own count (pydantic-ai).
    """
    return request.dialect == "anthropic" and request.definition(tool).get("defer_loading") is True


def loaded_tools(tools: Iterable[Tool], k: Constants, count: CountText) -> float:
    """Return the tokens of deferred tools that a message has loaded."""
    return sum(_tool(tool, k, count) for tool in tools)


def _tool(tool: Tool, k: Constants, count: CountText) -> float:
    text = spaced_json(
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.parameters,
        }
    )
    weighed = k["tool_o200k"] * count("o200k_base", text)
    weighed += k["tool_llama2"] * count("llama2", text)
    return k["tool"] + k["text_scale"] * weighed


def message(view: MessageView, context: NeighbourFacts, k: Constants, count: CountText) -> float:
    """Return the tokens of one message."""
    total = sum(text_tokens(text, k, count) for text in view.texts)
    total += text_tokens(view.unknown_content.text, k, count) + view.unknown_content.tokens(
        _SEALED_CHARACTERS
    )
    if view.speaker == "system" and view.dialect != "anthropic":
        return total  # gateways move it out of the list
    if not context.joined:
        total += k["assistant"] if view.speaker == "assistant" else k["user"]
    total += sum(text_tokens(result.text, k, count) for result in view.results)
    total += sum(_use(call, k, count) for call in view.calls)
    if context.in_turn:
        total += k["thought"] * text_tokens(view.thoughts or view.reasoning, k, count)
    if view.dialect == "anthropic" and view.media:
        total += _documents(view, k, count)
    return total


def _use(call: ToolCall, k: Constants, count: CountText) -> float:
    """Return the tokens of a tool call: name, arguments and their frame."""
    value = arguments_value(call.arguments)
    weighed = k["use_o200k"] * count("o200k_base", spaced_json(value))
    weighed += k["use_name"] * count("o200k_base", call.name)
    arguments = len(value) if isinstance(value, dict) else 1
    return k["use"] + k["use_argument"] * arguments + k["text_scale"] * weighed


def _documents(view: MessageView, k: Constants, count: CountText) -> float:
    """Return the tokens of documents given as text."""
    total = 0.0
    content = view.value.get("content")
    for part in content if isinstance(content, list) else ():
        source = inner(part, "source")
        if take(part, "type") == "document" and source.get("type") in ("text", "content"):
            parts = source.get("content")
            texts = [take(p, "text") for p in parts] if isinstance(parts, list) else []
            text = take(source, "data") or "\n".join(texts)
            total += k["document"] + text_tokens(text, k, count)
    return total
