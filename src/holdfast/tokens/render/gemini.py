"""Gemini, from whatever dialect: text is exact in Gemma's vocabulary, tools nearly.

Gemini 1.5, 2.0 and all of Vertex count the bare strings of tools and calls; 2.5 and later on the
Gemini API count a rendering with a fixed frame for each tool and property.
"""

from __future__ import annotations

import json
from typing import Any

from holdfast.tokens.families import Constants
from holdfast.tokens.render.parts import SEALED_CHARACTERS, Envelope, arguments_value
from holdfast.tokens.render.request import BareRequest, Surroundings, View
from holdfast.tokens.vocabulary import CountText
from holdfast.wire import Tool
from holdfast.wire.values import first, inner, take

_VOCABULARY = "gemma3"
_DEEPEST = 12


def envelope(made: BareRequest, k: Constants, count: CountText) -> Envelope:
    """Tokens of everything but the messages."""
    text = "".join(made.system)
    system = count(_VOCABULARY, text) + (k["content"] if text else 0)
    tools = sum(_declaration(made, tool, k, count) for tool in made.tools if not tool.hosted)
    rest = inner(made.rest, "generateContentRequest") or made.rest
    settings = first(rest, "generationConfig", "generation_config")
    schema = (
        first(settings, "responseSchema", "response_schema") if isinstance(settings, dict) else 0
    )
    formatting = 0.0
    if k["response_schema"] and isinstance(schema, dict):
        formatting = _object(schema, k, count, 0)
    return Envelope(system, tools, formatting)


def _declaration(made: BareRequest, tool: Tool, k: Constants, count: CountText) -> float:
    total = k["tool"] + count(_VOCABULARY, tool.name)
    if tool.description:
        total += k["tool_description"] + count(_VOCABULARY, tool.description)
    schema = tool.parameters
    if made.dialect == "gemini" and k["response_schema"]:
        # The older count does not see `parametersJsonSchema`.
        schema = made.definition(tool).get("parameters")
    if isinstance(schema, dict) and inner(schema, "properties"):
        total += _object(schema, k, count, 0)
    return total


def _object(schema: dict[str, Any], k: Constants, count: CountText, depth: int) -> float:
    """An object schema: its properties, and the names of those required."""
    if depth > _DEEPEST:
        return 0.0
    total = k["object"] if depth == 0 else k["nested"]
    description = take(schema, "description")
    if description and (depth or k["object_description"]):
        total += k["object_description"] + count(_VOCABULARY, description)
    for name, value in inner(schema, "properties").items():
        if isinstance(value, dict):
            total += _property(name, value, k, count, depth)
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        total += k["required"] * count(_VOCABULARY, str(name))
    return total


def _property(
    name: str, schema: dict[str, Any], k: Constants, count: CountText, depth: int
) -> float:
    total = k["property"] + k["property_name"] * count(_VOCABULARY, name)
    for key in ("description", "title"):
        text = take(schema, key)
        frame = k["property_description" if key == "description" else "title"]
        if text and (frame or key == "description"):
            total += frame + count(_VOCABULARY, text)
    values = schema.get("enum")
    if isinstance(values, list) and values:
        total += k["enum"] + sum(count(_VOCABULARY, str(value)) for value in values)
    if "default" in schema:
        total += k["default"]
    variants = schema.get("anyOf")
    for variant in variants if isinstance(variants, list) else ():
        total += k["variant"]
        if inner(variant, "properties"):
            total += _object(variant, k, count, depth + 1)
    items = schema.get("items")
    if isinstance(items, dict):
        total += k["array"]
        if inner(items, "properties"):
            total += _object(items, k, count, depth + 1)
    if inner(schema, "properties"):
        bare = {key: value for key, value in schema.items() if key != "description"}
        total += _object(bare, k, count, depth + 1)
    return total


def message(view: View, context: Surroundings, k: Constants, count: CountText) -> float:
    """Tokens of one message."""
    if view.dialect == "gemini":
        parts = view.value["parts"]
        listed = parts if isinstance(parts, list) else [parts]
        other = count(_VOCABULARY, view.foreign.text) + view.foreign.tokens(SEALED_CHARACTERS)
        return k["content"] + sum(_part(part, k, count) for part in listed) + other
    if view.speaker == "system":
        return count(_VOCABULARY, view.text) + k["content"]
    total = k["content"] + count(_VOCABULARY, view.text)
    total += count(_VOCABULARY, view.foreign.text) + view.foreign.tokens(SEALED_CHARACTERS)
    for call in view.calls:
        total += k["call"] + count(_VOCABULARY, call.name)
        total += _value(arguments_value(call.arguments), k["call_key"], count)
    for result, (name, _, _) in zip(view.results, context.answers, strict=True):
        total += k["result"] + count(_VOCABULARY, name)
        total += _value({"result": result.text}, k["result_key"], count)
    return total


def _part(part: Any, k: Constants, count: CountText) -> float:
    if not isinstance(part, dict):
        return 0.0
    if isinstance(part.get("text"), str):
        return count(_VOCABULARY, part["text"])
    call = first(part, "functionCall", "function_call")
    if isinstance(call, dict):
        total = k["call"] + count(_VOCABULARY, take(call, "name"))
        return total + _value(call.get("args"), k["call_key"], count)
    result = first(part, "functionResponse", "function_response")
    if isinstance(result, dict):
        total = k["result"] + count(_VOCABULARY, take(result, "name"))
        return total + _value(result.get("response"), k["result_key"], count)
    return 0.0


def _value(value: Any, frame: float, count: CountText) -> float:
    """A JSON value: its keys and leaves as text, and a frame around each."""
    total = 0.0
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as found:
                total += sum(frame + count(_VOCABULARY, key) for key in found)
                waiting.extend(found.values())
            case list() as found:
                total += frame * len(found)
                waiting.extend(found)
            case None:
                pass
            case str() as text:
                total += count(_VOCABULARY, text)
            case leaf:
                total += count(_VOCABULARY, json.dumps(leaf))
    return total
