"""OpenAI's own models: how Chat Completions and Responses are rendered, token for token.

Every message costs a header. In Chat, tools and response formats are appended to the first system
message (or to one made for them), and several calls in one message become one call of
`multi_tool_use.parallel` whose results come back as one JSON list. In Responses, tools and formats
stand in a block of their own.
"""

from __future__ import annotations

import json
from typing import Any

from holdfast.tokens.families import Constants
from holdfast.tokens.render import typescript
from holdfast.tokens.render.parts import Envelope, arguments_text, compact_json
from holdfast.tokens.render.request import BareRequest, Schema, Surroundings, View, answer_schema
from holdfast.tokens.vocabulary import CountText
from holdfast.wire import Text, Tool, ToolCall, ToolResult
from holdfast.wire.values import take

# What a response schema may hold and the model is not shown.
_UNSHOWN = frozenset(
    "$schema additionalProperties required strict default maxItems minItems maximum minimum".split()
)

_SEALED_CHARACTERS = 11.0
"""Characters of a sealed compaction to a token, from recorded requests (10.5 and 12.5)."""


def envelope(made: BareRequest, k: Constants, count: CountText) -> Envelope:
    """Tokens of everything but the messages."""
    if made.dialect == "openai-responses":
        return _responses_envelope(made, k, count)
    vocabulary = k.text("vocabulary")
    system = sum(3 + count(vocabulary, "system") + count(vocabulary, text) for text in made.system)
    has_system = made.first_system is not None or bool(made.system)
    before = made.first_system or ""
    formatting, tools, per_answer = k["base"], 0.0, 0.0
    functions = _functions(made.tools)
    if functions:
        tools = _namespace(functions, k, count) + k["tool_prompt"]
        if has_system:
            tools += _blank_line(before, k, count) + k["tool_prompt_in_system"]
        else:
            tools += 3 + count(vocabulary, "system")
        has_system, before = True, "functions"
        formatting += _forced(made.choice, k, count)
    schema = answer_schema(made)
    if schema is not None:
        formatting += count(vocabulary, _format(schema))
        formatting += (
            _blank_line(before, k, count) if has_system else 3 + count(vocabulary, "system")
        )
        if k["format_name"] and not functions:
            per_answer = k["format_name"] + count(vocabulary, schema.name)
            formatting += per_answer
    return Envelope(system, tools, formatting, per_answer)


def _responses_envelope(made: BareRequest, k: Constants, count: CountText) -> Envelope:
    vocabulary = k.text("vocabulary")
    system = sum(
        3 + count(vocabulary, "developer") + count(vocabulary, text) + k["system"]
        for text in made.system
        if text
    )
    functions = _functions(tuple(t for t in made.tools if not t.hosted and not _is_custom(made, t)))
    tools = _namespace(functions, k, count) + k["responses_tools"] if functions else 0.0
    for tool in made.tools:
        if _is_custom(made, tool):
            tools += _custom(tool, made.definition(tool), k, count)
        elif made.definition(tool).get("type") == "namespace":
            tools += count(vocabulary, compact_json(_listing(made.definition(tool))))
    formatting = k["base"]
    schema = answer_schema(made)
    if schema is not None:
        formatting += count(vocabulary, _format(schema)) + k["responses_format"]
    choice = made.choice
    if choice == "required" and len(functions) == 1:
        choice = {"name": functions[0].name}
    return Envelope(system, tools, formatting + _forced(choice, k, count))


def _functions(tools: tuple[Tool, ...]) -> list[Tool]:
    return [tool for tool in tools if not tool.hosted]


def _is_custom(made: BareRequest, tool: Tool) -> bool:
    return made.definition(tool).get("type") == "custom"


def _namespace(functions: list[Tool], k: Constants, count: CountText) -> float:
    """The namespace of functions; each tool is counted from the separator before it."""
    style = typescript.Style(k.text("style"))
    vocabulary = k.text("vocabulary")
    total = count(vocabulary, "# Tools\n\n## functions\n\nnamespace functions")
    for index, tool in enumerate(functions):
        lead = ";\n\n" if index else " {\n\n"
        total += count(vocabulary, lead + typescript.tool(tool, style))
    return total + count(vocabulary, ";\n\n} // namespace functions") + k["tools"]


def _custom(tool: Tool, definition: dict[str, Any], k: Constants, count: CountText) -> float:
    """A tool with free-form input; its grammar is shown as text."""
    note = typescript.comment(tool.description)
    grammar = take(definition, "format", "definition")
    text = f"{note}\ntype {tool.name} = (FREEFORM) => any;\n\n{grammar}"
    return count(k.text("vocabulary"), text) + k["custom_tool"]


def _listing(namespace: dict[str, Any]) -> dict[str, Any]:
    """A namespace as it is shown: of tools that are loaded later, only what they are for."""
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
    """A tool that the request insists on is the beginning of the answer."""
    name = choice.get("name") if isinstance(choice, dict) else None
    if not name or not k["forced"]:
        return 0
    return k["forced"] + count(k.text("vocabulary"), f"functions.{name}")


def _format(schema: Schema) -> str:
    """The response format as it is shown to the model."""
    note = f"// {schema.description}\n" if schema.description else ""
    shown = compact_json(_shown(schema.schema))
    return f"# Response Formats\n\n## {schema.name}\n\n{note}{shown}"


def _shown(schema: Any, *, is_names: bool = False, depth: int = 0) -> Any:
    if depth > 50:
        return {}
    if isinstance(schema, dict):
        return {
            key: _shown(
                value, is_names=not is_names and key in ("properties", "$defs"), depth=depth + 1
            )
            for key, value in schema.items()
            if is_names or key not in _UNSHOWN
        }
    if isinstance(schema, list):
        return [_shown(item, depth=depth + 1) for item in schema]
    return schema


def _blank_line(before: str, k: Constants, count: CountText) -> int:
    """The blank line between a text and what is appended; it may merge with the text's end."""
    vocabulary = k.text("vocabulary")
    return count(vocabulary, before + "\n\n") - count(vocabulary, before)


# --- messages ----------------------------------------------------------------------------------


def message(view: View, context: Surroundings, k: Constants, count: CountText) -> float:
    """Tokens of one message."""
    in_responses = view.dialect == "openai-responses"
    total = sum(
        _result(result, answer, k, count, parallel=not in_responses)
        for result, answer in zip(view.results, context.answers, strict=True)
    )
    vocabulary = k.text("vocabulary")
    total += count(vocabulary, view.foreign.text) + view.foreign.tokens(_SEALED_CHARACTERS)
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
            return total  # a reasoning item, or one that the provider makes itself
        if in_responses and not view.texts and view.foreign.text:
            return total  # tools that the client adds
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
        piece = ("[" if first else " ") + _listed(text) + ("]" if last else ",")
        return count(vocabulary, piece) + (k["parallel_results"] if first else 0)
    return k["result"] + count(vocabulary, name or result.name) + count(vocabulary, text)


def _result_text(result: ToolResult) -> str:
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    return "".join(texts) if texts else result.text


def _listed(text: str) -> str:
    """One result inside the list of parallel results: objects as JSON, all else as a string."""
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
