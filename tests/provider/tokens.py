"""Token counts of the tests' provider: tiktoken over the text that the model reads.

Two numbers. The least is a lower bound of the prompt: the texts of instructions, messages, calls
and results, three tokens a message (OpenAI's cookbook), and of the tools only names and
descriptions. The provider would refuse a request whose least exceeds the window, so this one does.
The bill is an estimate of the provider's report: vocabularies of Claude and Gemini are not public,
and neither is the rendering of tools, so tiktoken's counts are weighted by the bills of recorded
requests (medians over 1,500 of OpenAI, 640 of Claude, 89 of Gemini; 90 % are within 30 % of it).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from tests.provider.held_tools import shown
from tests.provider.vocabulary import encoding

_PER_MESSAGE = 3
_OLD = ("gpt-4-", "gpt-3.5")
"""Models of cl100k; plain `gpt-4` too."""
_NOT_READ = {
    *("id", "type", "role", "call_id", "tool_call_id", "tool_use_id", "signature", "status"),
    *("thoughtSignature", "thought_signature", "cache_control", "encrypted_content", "data"),
    *("media_type", "mimeType", "image_url", "url", "detail", "strict", "caller", "phase"),
    "toolUseId",
}
"""Fields of messages whose values are no words of the prompt."""


class Weights(NamedTuple):
    """A provider's bill, in tokens of tiktoken."""

    text: float
    """For each token of text."""
    tools: float
    """For each token of the tools as JSON."""
    tool_use: int
    """Once, if there are tools: Claude's is its documented system prompt for tool use."""


_OPENAI = Weights(1.0, 0.54, 0)
_CLAUDE = Weights(1.15, 1.19, 346)
_GEMINI = Weights(1.06, 0.75, 0)
_LISTS = {
    "anthropic": "messages",
    "openai-chat": "messages",
    "gemini": "contents",
    "converse": "messages",
    "cohere": "messages",
}


def vocabulary_of(model: str) -> str:
    return "cl100k_base" if model == "gpt-4" or model.startswith(_OLD) else "o200k_base"


@lru_cache(maxsize=20_000)
def text_tokens(text: str, vocabulary: str = "o200k_base") -> int:
    """Return the tokens of a text; spellings of special tokens are ordinary text."""
    return len(encoding(vocabulary).encode_ordinary(text))


def least_tokens(value: dict[str, Any], dialect: str, model: str) -> int:
    """Tokens of a request's prompt, at the least."""
    vocabulary = vocabulary_of(model)
    text = _text_tokens(value, dialect, vocabulary)
    return text + sum(text_tokens(word, vocabulary) for word in _tool_words(value))


def billed_tokens(value: dict[str, Any], dialect: str, model: str) -> int:
    """Tokens that the provider reports."""
    vocabulary = vocabulary_of(model)
    weights = _CLAUDE if "claude" in model else _GEMINI if "gemini" in model else _OPENAI
    text = round(weights.text * _text_tokens(value, dialect, vocabulary))
    if not value.get("tools"):
        return text
    tools = text_tokens(json.dumps(list(shown(value))), vocabulary)
    bill = text + weights.tool_use + round(weights.tools * tools)
    # Long descriptions weigh more than the median of tools; nothing is billed that was not read.
    return max(bill, least_tokens(value, dialect, model))


def _text_tokens(value: dict[str, Any], dialect: str, vocabulary: str) -> int:
    messages = value.get(_LISTS.get(dialect, "input")) or []
    texts = [*words(messages), *words(_instructions(value))]
    total = sum(text_tokens(text, vocabulary) for text in texts)
    return total + _PER_MESSAGE * (len(messages) if isinstance(messages, list) else 1)


def _instructions(value: dict[str, Any]) -> list[Any]:
    names = ("system", "instructions", "systemInstruction", "system_instruction")
    return [value[name] for name in names if value.get(name)]


def words(value: Any) -> Iterator[str]:
    """Every text in a part of a request that a model reads."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name not in _NOT_READ:
                yield from words(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from words(inner)


def _tool_words(value: dict[str, Any]) -> Iterator[str]:
    for function in functions({**value, "tools": list(shown(value))}):
        yield str(function.get("name", ""))
        yield str(function.get("description", ""))
        names = ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema")
        for schema in names:
            yield from _schema_words(function.get(schema))


def functions(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every function that a request declares, in any dialect."""
    tools = value.get("tools") or []
    for tool in (value.get("toolConfig") or {}).get("tools") or ():  # Bedrock's, not Gemini's
        yield tool.get("toolSpec", {})
    for tool in [tools] if isinstance(tools, dict) else tools:
        for name in ("functionDeclarations", "function_declarations"):
            if name in tool:
                yield from tool[name]
                break
        else:
            yield tool.get("function", tool)


def _schema_words(schema: Any) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    yield str(schema.get("description", ""))
    for name, inner in (schema.get("properties") or {}).items():
        yield name
        yield from _schema_words(inner)
    yield from _schema_words(schema.get("items"))
