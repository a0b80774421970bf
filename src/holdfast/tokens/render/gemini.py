"""Count requests to Gemini, from any dialect.

Text is exact in Gemma's vocabulary, tools nearly so. Gemini 1.5, 2.0 and Vertex count the bare
strings of tools and calls; the Gemini API counts a fixed frame per tool and property from 2.5 on.
"""

from __future__ import annotations

import json
from typing import Any

from holdfast.tokens.families import Constants
from holdfast.tokens.render.parts import SEALED_CHARACTERS, Envelope, arguments_value
from holdfast.tokens.render.request import MessageView, NeighbourFacts, RequestFrame
from holdfast.tokens.vocabulary import CountText
from holdfast.wire import Tool
from holdfast.wire.values import first, inner, take

_VOCABULARY = "gemma3"
_DEEPEST = 12


def envelope(request: RequestFrame, k: Constants, count: CountText) -> Envelope:
    """Return the tokens of everything except the messages."""
    text = "".join(request.system)
    system = count(_VOCABULARY, text) + (k["content"] if text else 0)
    tools = sum(_declaration(request, tool, k, count) for tool in request.tools if not tool.hosted)
    body = inner(request.rest, "generateContentRequest") or request.rest
    settings = first(body, "generationConfig", "generation_config")
    schema = (
        first(settings, "responseSchema", "response_schema") if isinstance(settings, dict) else 0
    )
    formatting = 0.0
    if k["response_schema"] and isinstance(schema, dict):
        formatting = _object(schema, k, count, 0)
    return Envelope(system, tools, formatting)


def _declaration(request: RequestFrame, tool: Tool, k: Constants, count: CountText) -> float:
    total = k["tool"] + count(_VOCABULARY, tool.name)
    if tool.description:
        total += k["tool_description"] + count(_VOCABULARY, tool.description)
    schema = tool.parameters
    if request.dialect == "gemini" and k["response_schema"]:
        # The earlier count ignores `parametersJsonSchema`.
        schema = request.definition(tool).get("parameters")
    if isinstance(schema, dict) and inner(schema, "properties"):
        total += _object(schema, k, count, 0)
    return total


def _object(schema: dict[str, Any], k: Constants, count: CountText, depth: int) -> float:
    """Return the tokens of an object schema: its properties and the names of the required ones."""
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


def message(view: MessageView, context: NeighbourFacts, k: Constants, count: CountText) -> float:
    """Return the tokens of one message."""
    if view.dialect == "gemini":
        parts = view.value["parts"]
        part_list = parts if isinstance(parts, list) else [parts]
        unknown_tokens = count(
            _VOCABULARY, view.unknown_content.text
        ) + view.unknown_content.tokens(SEALED_CHARACTERS)
        return k["content"] + sum(_part(part, k, count) for part in part_list) + unknown_tokens
    if view.speaker == "system":
        return count(_VOCABULARY, view.text) + k["content"]
    total = k["content"] + count(_VOCABULARY, view.text)
    total += count(_VOCABULARY, view.unknown_content.text) + view.unknown_content.tokens(
        SEALED_CHARACTERS
    )
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
    """Return the tokens of a JSON value: keys and leaves as text, with a frame around each."""
    total = 0.0
    pending = [value]
    while pending:
        match pending.pop():
            case dict() as container:
                total += sum(frame + count(_VOCABULARY, key) for key in container)
                pending.extend(container.values())
            case list() as container:
                total += frame * len(container)
                pending.extend(container)
            case None:
                pass
            case str() as text:
                total += count(_VOCABULARY, text)
            case leaf:
                total += count(_VOCABULARY, json.dumps(leaf))
    return total
