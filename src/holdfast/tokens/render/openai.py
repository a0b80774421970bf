"""Count requests to OpenAI's own models, token for token.

Chat Completions appends tools and response formats to the first system message, or adds one for
them, and renders parallel calls as one call of `multi_tool_use.parallel`. Responses puts tools and
formats in a separate block.
"""

from __future__ import annotations

import json
from typing import Any

from holdfast.tokens.families import Constants
from holdfast.tokens.render import typescript
from holdfast.tokens.render.parts import Envelope, arguments_text, compact_json
from holdfast.tokens.render.request import (
    AnswerSchema,
    MessageView,
    NeighbourFacts,
    RequestFrame,
    answer_schema,
)
from holdfast.tokens.vocabulary import CountText
from holdfast.wire import Text, Tool, ToolCall, ToolResult
from holdfast.wire.values import take

# Fields of a response schema that the model does not see.
_HIDDEN_FIELDS = frozenset(
    "$schema additionalProperties required strict default maxItems minItems maximum minimum".split()
)

# Characters of an encrypted compaction per token, from recorded requests (10.5 and 12.5).
_SEALED_CHARACTERS = 11.0


def envelope(request: RequestFrame, k: Constants, count: CountText) -> Envelope:
    """Return the tokens of everything except the messages."""
    if request.dialect == "openai-responses":
        return _responses_envelope(request, k, count)
    vocabulary = k.text("vocabulary")
    system = sum(
        3 + count(vocabulary, "system") + count(vocabulary, text) for text in request.system
    )
    has_system = request.first_system is not None or bool(request.system)
    before = request.first_system or ""
    formatting, tools, per_answer = k["base"], 0.0, 0.0
    functions = _functions(request.tools)
    if functions:
        tools = _namespace(functions, k, count) + k["tool_prompt"]
        if has_system:
            tools += _blank_line(before, k, count) + k["tool_prompt_in_system"]
        else:
            tools += 3 + count(vocabulary, "system")
        has_system, before = True, "functions"
        formatting += _forced(request.choice, k, count)
    schema = answer_schema(request)
    if schema is not None:
        formatting += count(vocabulary, _format(schema))
        formatting += (
            _blank_line(before, k, count) if has_system else 3 + count(vocabulary, "system")
        )
        if k["format_name"] and not functions:
            per_answer = k["format_name"] + count(vocabulary, schema.name)
            formatting += per_answer
    return Envelope(system, tools, formatting, per_answer)


def _responses_envelope(request: RequestFrame, k: Constants, count: CountText) -> Envelope:
    vocabulary = k.text("vocabulary")
    system = sum(
        3 + count(vocabulary, "developer") + count(vocabulary, text) + k["system"]
        for text in request.system
        if text
    )
    functions = _functions(
        tuple(t for t in request.tools if not t.hosted and not _is_custom(request, t))
    )
    tools = _namespace(functions, k, count) + k["responses_tools"] if functions else 0.0
    for tool in request.tools:
        if _is_custom(request, tool):
            tools += _custom(tool, request.definition(tool), k, count)
        elif request.definition(tool).get("type") == "namespace":
            tools += count(vocabulary, compact_json(_listing(request.definition(tool))))
    formatting = k["base"]
    schema = answer_schema(request)
    if schema is not None:
        formatting += count(vocabulary, _format(schema)) + k["responses_format"]
    choice = request.choice
    if choice == "required" and len(functions) == 1:
        choice = {"name": functions[0].name}
    return Envelope(system, tools, formatting + _forced(choice, k, count))


def _functions(tools: tuple[Tool, ...]) -> list[Tool]:
    return [tool for tool in tools if not tool.hosted]


def _is_custom(request: RequestFrame, tool: Tool) -> bool:
    return request.definition(tool).get("type") == "custom"


def _namespace(functions: list[Tool], k: Constants, count: CountText) -> float:
    """Return the tokens of the tool namespace; each tool includes the separator before it."""
    style = typescript.Style(k.text("style"))
    vocabulary = k.text("vocabulary")
    total = count(vocabulary, "# Tools\n\n## functions\n\nnamespace functions")
    for index, tool in enumerate(functions):
        lead = ";\n\n" if index else " {\n\n"
        total += count(vocabulary, lead + typescript.tool(tool, style))
    return total + count(vocabulary, ";\n\n} // namespace functions") + k["tools"]


def _custom(tool: Tool, definition: dict[str, Any], k: Constants, count: CountText) -> float:
    """Return the tokens of a tool with free-form input; its grammar is rendered as text."""
    note = typescript.comment(tool.description)
    grammar = take(definition, "format", "definition")
    text = f"{note}\ntype {tool.name} = (FREEFORM) => any;\n\n{grammar}"
    return count(k.text("vocabulary"), text) + k["custom_tool"]


def _listing(namespace: dict[str, Any]) -> dict[str, Any]:
    """Return a namespace as the model sees it; deferred tools appear without their parameters."""
    inside = namespace.get("tools")
    tools = [
        {key: tool[key] for key in tool if key not in ("parameters", "defer_loading")}
        if tool.get("defer_loading") is True
        else tool
        for tool in (inside if isinstance(inside, list) else ())
        if isinstance(tool, dict)
    ]
    return {**namespace, "tools": tools}


def _forced(choice: Any, k: Constants, count: CountText) -> float:
    """Return the tokens of a forced tool's name, with which the answer begins."""
    name = choice.get("name") if isinstance(choice, dict) else None
    if not name or not k["forced"]:
        return 0
    return k["forced"] + count(k.text("vocabulary"), f"functions.{name}")


def _format(schema: AnswerSchema) -> str:
    """Return the response format as the model sees it."""
    note = f"// {schema.description}\n" if schema.description else ""
    schema_json = compact_json(_visible_schema(schema.schema))
    return f"# Response Formats\n\n## {schema.name}\n\n{note}{schema_json}"


def _visible_schema(schema: Any, *, is_names: bool = False, depth: int = 0) -> Any:
    if depth > 50:
        return {}
    if isinstance(schema, dict):
        return {
            key: _visible_schema(
                value, is_names=not is_names and key in ("properties", "$defs"), depth=depth + 1
            )
            for key, value in schema.items()
            if is_names or key not in _HIDDEN_FIELDS
        }
    if isinstance(schema, list):
        return [_visible_schema(item, depth=depth + 1) for item in schema]
    return schema


def _blank_line(before: str, k: Constants, count: CountText) -> int:
    """Return the tokens of a blank line after a text; it may merge with the text's last token."""
    vocabulary = k.text("vocabulary")
    return count(vocabulary, before + "\n\n") - count(vocabulary, before)


# --- messages ----------------------------------------------------------------------------------


def message(view: MessageView, context: NeighbourFacts, k: Constants, count: CountText) -> float:
    """Return the tokens of one message."""
    in_responses = view.dialect == "openai-responses"
    total = sum(
        _result(result, answer, k, count, parallel=not in_responses)
        for result, answer in zip(view.results, context.answers, strict=True)
    )
    vocabulary = k.text("vocabulary")
    total += count(vocabulary, view.unknown_content.text) + view.unknown_content.tokens(
        _SEALED_CHARACTERS
    )
    if view.results and not view.texts:
        return total
    name = "" if in_responses else take(view.value, "name")
    total += 1 + count(vocabulary, name) if name and not view.results else 0
    frame = k["assistant"] if view.speaker == "assistant" else 0
    if view.speaker == "system":
        frame = k["system"]
    text = view.text
    if not view.calls:
        if in_responses and not view.texts and view.speaker == "assistant":
            return total  # a reasoning item, or an item that the provider adds
        if in_responses and not view.texts and view.unknown_content.text:
            return total  # an item that adds tools
        return total + 3 + count(vocabulary, view.role) + count(vocabulary, text) + frame
    if text:
        total += 4 + count(vocabulary, text) + k["assistant"]
    if view.reasoning and k["reasoning"]:
        total += k["reasoning_frame"] + count(vocabulary, view.reasoning)
    if len(view.calls) > 1 and k["parallel_calls"] and not in_responses:
        return total + _parallel(view.calls, k, count)
    head = k["responses_call"] if in_responses else k["call"]
    for call in view.calls:
        total += head + count(vocabulary, f"functions.{call.name}")
        total += count(vocabulary, arguments_text(call.arguments))
    return total


def _result(
    result: ToolResult,
    answer: tuple[str, int, int],
    k: Constants,
    count: CountText,
    *,
    parallel: bool,
) -> float:
    name, index, size = answer
    vocabulary = k.text("vocabulary")
    text = _result_text(result)
    if parallel and k["parallel_calls"] and size > 1:
        first, last = index == 0, index == size - 1
        piece = ("[" if first else " ") + _parallel_item(text) + ("]" if last else ",")
        return count(vocabulary, piece) + (k["parallel_results"] if first else 0)
    return k["result"] + count(vocabulary, name or result.name) + count(vocabulary, text)


def _result_text(result: ToolResult) -> str:
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    return "".join(texts) if texts else result.text


def _parallel_item(text: str) -> str:
    """Return one item of the list of parallel results: JSON for objects, else a string."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    return json.dumps(value if isinstance(value, (dict, list)) else text)


def _parallel(calls: tuple[ToolCall, ...], k: Constants, count: CountText) -> float:
    uses = ",".join(
        f'{{"recipient_name":"functions.{call.name}",'
        f'"parameters":{arguments_text(call.arguments) or "{}"}}}'
        for call in calls
    )
    vocabulary = k.text("vocabulary")
    head = k["call"] + count(vocabulary, "multi_tool_use.parallel")
    return head + count(vocabulary, f'{{"tool_uses":[{uses}]}}')
