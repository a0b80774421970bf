"""Open-weights models and their like: a vocabulary, and a handful of whole numbers.

Qwen, Llama, Kimi, GLM, DeepSeek and Mistral publish how messages become text; all of them put a
fixed frame around each message, tool, call and result. Hosted models whose template is not public
(Grok, Command, Nova) fit the same shape with measured numbers.
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
from holdfast.tokens.render.request import BareRequest, Surroundings, View, answer_schema
from holdfast.tokens.vocabulary import CountText
from holdfast.wire import Tool, ToolCall
from holdfast.wire.values import take

_SPACE = re.compile(r"\s*+")  # only matched where a scan stands, and possessive: linear
_BEGINS, _ENDS = "<think>", "</think>"


def envelope(made: BareRequest, k: Constants, count: CountText) -> Envelope:
    """Tokens of everything but the messages."""
    vocabulary = k.text("vocabulary")
    tools = [tool for tool in made.tools if not tool.hosted]
    if made.choice == "none" and k["none_drops_tools"]:
        tools = []
    if k["tools_need_user"] and made.last_speaker != "user":
        tools = []
    formatting = k["base"] + (0 if made.has_system else k["no_system"])
    shown = 0.0
    if tools:
        shown = k["tool_prompt"] + (0 if made.has_system else k["tool_prompt_no_system"])
        formatting += k["forced"] if made.is_forced else 0
    shown += sum(_tool(made, tool, k, count) for tool in tools)
    schema = answer_schema(made)
    if schema is not None and made.dialect in ("openai-chat", "cohere", "openai-responses"):
        text = compact_json(schema.whole)
        formatting += k["format"] + k["format_schema"] * count(vocabulary, text)
    if made.dialect == "openai-responses":
        formatting += k["responses_with_tools"] if tools else k["responses"]
    system = sum(
        k["system"] + k["text_scale"] * count(vocabulary, text) for text in made.system if text
    )
    return Envelope(system + _history(made, k, count), shown, formatting)


def _history(made: BareRequest, k: Constants, count: CountText) -> float:
    """The earlier turns of Cohere's first API, which stand beside the message."""
    history = made.rest.get("chat_history")
    if made.dialect != "cohere" or not isinstance(history, list):
        return 0.0
    texts = [take(turn, "message") for turn in history]
    vocabulary = k.text("vocabulary")
    return sum(k["user"] + k["text_scale"] * count(vocabulary, text) for text in texts)


def _tool(made: BareRequest, tool: Tool, k: Constants, count: CountText) -> float:
    """One tool as JSON, whole or only its function."""
    shown: dict[str, object] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": {} if tool.parameters is None else tool.parameters,
    }
    if made.dialect in ("openai-chat", "cohere"):  # shown as sent: what is missing stays missing
        sent = made.definition(tool).get("function")
        shown = {key: value for key, value in shown.items() if key in (sent or shown)}
    if k.text("tool_json") == "full":
        shown = {"type": "function", "function": shown}
    text = spaced_json(shown) if k["tool_spaced"] else compact_json(shown)
    return k["tool"] + k["tool_scale"] * count(k.text("vocabulary"), text)


def message(view: View, context: Surroundings, k: Constants, count: CountText) -> float:
    """Tokens of one message with its frame."""
    vocabulary = k.text("vocabulary")
    text = view.text
    total = k["text_scale"] * count(vocabulary, view.foreign.text) + view.foreign.tokens(
        SEALED_CHARACTERS
    )
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
        return total  # reasoning, and what the provider makes itself
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
    """The text less its thoughts and the space behind each.

    Scanned by hand: a pattern would look for an end again behind every beginning that has none.
    """
    pieces: list[str] = []
    at = 0
    while (begin := text.find(_BEGINS, at)) >= 0:
        end = text.find(_ENDS, begin)
        if end < 0:
            break
        pieces.append(text[at:begin])
        at = _SPACE.match(text, end + len(_ENDS)).end()  # type: ignore[union-attr] # or nothing
    return "".join([*pieces, text[at:]])
