"""Count requests to open-weights models and to hosted models with a similar prompt template.

Qwen, Llama, Kimi, GLM, DeepSeek and Mistral publish their templates, which add a fixed frame to
each message, tool, call and result. Hosted models without a public template (Grok, Command, Nova)
use the same shape with measured numbers.
"""

from __future__ import annotations

import re

from holdfast.tokens.families import Constants
from holdfast.tokens.render.parts import (
    SEALED_CHARACTERS,
    Envelope,
    arguments_value,
    compact_json,
    spaced_json,
)
from holdfast.tokens.render.request import MessageView, NeighbourFacts, RequestFrame, answer_schema
from holdfast.tokens.vocabulary import CountText
from holdfast.wire import Tool, ToolCall
from holdfast.wire.values import take

_SPACE = re.compile(r"\s*+")  # linear: matched at one position only, and possessive
_BEGINS, _ENDS = "<think>", "</think>"


def envelope(request: RequestFrame, k: Constants, count: CountText) -> Envelope:
    """Return the tokens of everything except the messages."""
    vocabulary = k.text("vocabulary")
    tools = [tool for tool in request.tools if not tool.hosted]
    if request.choice == "none" and k["none_drops_tools"]:
        tools = []
    if k["tools_need_user"] and request.last_speaker != "user":
        tools = []
    formatting = k["base"] + (0 if request.has_system else k["no_system"])
    tool_tokens = 0.0
    if tools:
        tool_tokens = k["tool_prompt"] + (0 if request.has_system else k["tool_prompt_no_system"])
        formatting += k["forced"] if request.is_forced else 0
    tool_tokens += sum(_tool(request, tool, k, count) for tool in tools)
    schema = answer_schema(request)
    if schema is not None and request.dialect in ("openai-chat", "cohere", "openai-responses"):
        text = compact_json(schema.whole)
        formatting += k["format"] + k["format_schema"] * count(vocabulary, text)
    if request.dialect == "openai-responses":
        formatting += k["responses_with_tools"] if tools else k["responses"]
    system = sum(
        k["system"] + k["text_scale"] * count(vocabulary, text) for text in request.system if text
    )
    return Envelope(system + _history(request, k, count), tool_tokens, formatting)


def _history(request: RequestFrame, k: Constants, count: CountText) -> float:
    """Return the tokens of earlier turns, which Cohere's first API sends beside the message."""
    history = request.rest.get("chat_history")
    if request.dialect != "cohere" or not isinstance(history, list):
        return 0.0
    texts = [take(turn, "message") for turn in history]
    vocabulary = k.text("vocabulary")
    return sum(k["user"] + k["text_scale"] * count(vocabulary, text) for text in texts)


def _tool(request: RequestFrame, tool: Tool, k: Constants, count: CountText) -> float:
    """Return the tokens of one tool as JSON, complete or only its function."""
    definition: dict[str, object] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": {} if tool.parameters is None else tool.parameters,
    }
    if request.dialect in (
        "openai-chat",
        "cohere",
    ):  # rendered as sent, without adding missing fields
        sent_keys = request.definition(tool).get("function")
        definition = {
            key: value for key, value in definition.items() if key in (sent_keys or definition)
        }
    if k.text("tool_json") == "full":
        definition = {"type": "function", "function": definition}
    text = spaced_json(definition) if k["tool_spaced"] else compact_json(definition)
    return k["tool"] + k["tool_scale"] * count(k.text("vocabulary"), text)


def message(view: MessageView, context: NeighbourFacts, k: Constants, count: CountText) -> float:
    """Return the tokens of one message with its frame."""
    vocabulary = k.text("vocabulary")
    text = view.text
    total = k["text_scale"] * count(
        vocabulary, view.unknown_content.text
    ) + view.unknown_content.tokens(SEALED_CHARACTERS)
    for result in view.results:
        total += k["result"] + k["text_scale"] * count(vocabulary, result.text)
        total += k["result_id"] * count(vocabulary, result.call_id)
    if view.results and not text:
        return total
    if view.speaker == "assistant" and not context.in_turn and k["strips_thoughts"]:
        text = _without_thoughts(text)
    total += k["text_scale"] * count(vocabulary, text)
    if view.speaker == "system":
        return total + k["system"]
    if view.speaker != "assistant":
        return total + k["user"]
    if view.dialect == "openai-responses" and not (view.texts or view.calls):
        return total  # reasoning, or an item that the provider adds
    if view.dialect != "anthropic":
        total += k["thinking_parts"] * count(vocabulary, view.thoughts)
    weight = k["reasoning"] if context.in_turn else k["reasoning_past"]
    total += weight * count(vocabulary, view.reasoning)
    total += sum(_call(call, k, count) for call in view.calls)
    if context.joined:
        return total
    return total + k["assistant"] + (k["calls"] if view.calls else 0)


def _call(call: ToolCall, k: Constants, count: CountText) -> float:
    vocabulary = k.text("vocabulary")
    value = arguments_value(call.arguments)
    text = (
        value
        if isinstance(value, str)
        else (spaced_json(value) if k["arguments_spaced"] else compact_json(value))
    )
    total = k["call"] + k["call_name"] * count(vocabulary, call.name)
    total += k["call_id"] * count(vocabulary, call.id)
    total += k["call_scale"] * count(vocabulary, text)
    return total + k["call_argument"] * (len(value) if isinstance(value, dict) else 0)


def _without_thoughts(text: str) -> str:
    """Return a text without its thoughts and the space after each.

    The scan is manual: a regular expression would search for an end tag again after every start tag
    without one, in quadratic time.
    """
    pieces: list[str] = []
    at = 0
    while (begin := text.find(_BEGINS, at)) >= 0:
        end = text.find(_ENDS, begin)
        if end < 0:
            break
        pieces.append(text[at:begin])
        # `\s*` always matches.
        at = _SPACE.match(text, end + len(_ENDS)).end()  # type: ignore[union-attr]
    return "".join([*pieces, text[at:]])
