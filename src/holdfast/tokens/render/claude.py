"""Claude, from whatever dialect: its vocabulary is not public, so its text is weighed.

Claude's tokens lie between a large vocabulary (o200k) and a small one (Llama 2), plus what both see
too cheaply: line breaks, runs of spaces and encoded data. Every weight is positive, so more text
never counts less. Tools bring a tool prompt whose length depends on the model and on whether a
tool is forced. Thinking in the history counts only in the turn that is still calling tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from holdfast.tokens.families import Constants
from holdfast.tokens.render.parts import Envelope, arguments_value, spaced_json
from holdfast.tokens.render.request import BareRequest, Surroundings, View, answer_schema, thinks
from holdfast.tokens.vocabulary import CountText, pieces
from holdfast.wire import Tool, ToolCall
from holdfast.wire.values import inner, take

_SPACES = re.compile(r" {2,}")
_ENCODED = re.compile(r"[A-Za-z0-9+/=_-]{40,}")

_SEALED_CHARACTERS = 2.5
"""Characters of sealed search results to a token, from recorded requests (1.96 to 2.56)."""


def text_tokens(text: str, k: Constants, count: CountText) -> float:
    """Claude's tokens of a text."""
    if not text:
        return 0.0
    # A pattern holds the interpreter until it is through: with 20 MB for a third of a second.
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


def envelope(made: BareRequest, k: Constants, count: CountText) -> Envelope:
    """Tokens of everything but the messages."""
    formatting = k["base"]
    if made.last_speaker == "assistant":
        formatting += k["prefill"]
    if thinks(made):
        formatting += k["thinking"]
    schema = answer_schema(made)
    if schema is not None:
        shown = text_tokens(spaced_json(schema.schema), k, count)
        formatting += k["format"] + k["format_schema"] * shown
    tools = sum(_tool(tool, k, count) for tool in made.tools if not _is_held_back(made, tool))
    if made.tools:
        tools += k["prompt_forced"] if made.is_forced else k["prompt_auto"]
    system = sum(text_tokens(text, k, count) for text in made.system)
    return Envelope(system, tools, formatting)


def _is_held_back(made: BareRequest, tool: Tool) -> bool:
    """Whether a tool is no part of the prompt until a message refers to it.

    One of 30 fields was measured to cost nothing by Anthropic's own count (pydantic-ai).
    """
    return made.dialect == "anthropic" and made.definition(tool).get("defer_loading") is True


def loaded_tools(tools: Iterable[Tool], k: Constants, count: CountText) -> float:
    """Tokens of tools that were held back and are shown since a message refers to them."""
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


def message(view: View, context: Surroundings, k: Constants, count: CountText) -> float:
    """Tokens of one message."""
    total = sum(text_tokens(text, k, count) for text in view.texts)
    total += text_tokens(view.foreign.text, k, count) + view.foreign.tokens(_SEALED_CHARACTERS)
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
    """A tool call: its name, its arguments and the frame around each."""
    given = arguments_value(call.arguments)
    weighed = k["use_o200k"] * count("o200k_base", spaced_json(given))
    weighed += k["use_name"] * count("o200k_base", call.name)
    arguments = len(given) if isinstance(given, dict) else 1
    return k["use"] + k["use_argument"] * arguments + k["text_scale"] * weighed


def _documents(view: View, k: Constants, count: CountText) -> float:
    """Documents that are given as text."""
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
