"""Unsent content, in tokens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import count, read
from holdfast.guard import (
    ContextGuard,
    TargetContextConfig,
    estimate_messages_tokens,
    estimate_tool_schema_tokens,
    resolve_tokenizer,
)
from holdfast.tokens import UnknownModelWarning

MODELS = ["openai:gpt-4o", "anthropic:claude-sonnet-4-5", "google:gemini-2.5-pro"]
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is the weather in Rome?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "Sunny, 21 degrees."},
]
TOOL = {
    "type": "function",
    "function": {"name": "f", "description": "A tool.", "parameters": {"type": "object"}},
}


@pytest.mark.parametrize("model", MODELS)
def test_a_conversation_is_estimated_as_it_is_counted_without_its_tools(model: str) -> None:
    counted = count(read({"messages": MESSAGES, "tools": [TOOL]}), model=model)
    with_tools = read({"messages": MESSAGES, "tools": [TOOL]})
    assert estimate_messages_tokens(with_tools, model) == counted.tokens - counted.parts.tools


@pytest.mark.parametrize("tokenizer", [*MODELS, "o200k_base", None])
def test_role_content_calls_and_structure_all_count(tokenizer: str | None) -> None:
    sizes = [estimate_messages_tokens(MESSAGES[:n], tokenizer) for n in range(1, 5)]
    assert sizes == sorted(set(sizes))
    assert estimate_messages_tokens([], tokenizer) == 0
    text = "Be brief."
    assert sizes[0] > resolve_tokenizer(tokenizer)(text)


LONG = "word " * 3000
RESULTS: dict[str, list[dict[str, Any]]] = {
    "openai-chat": [MESSAGES[2], {"role": "tool", "tool_call_id": "c1", "content": LONG}],
    "anthropic": [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": LONG}]}
    ],
    "anthropic, in parts": [
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c",
                    "content": [{"type": "text", "text": LONG}],
                }
            ],
        }
    ],
    "anthropic, behind plain texts": [
        *({"role": role, "content": "-"} for role in ("user", "assistant") * 20),
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": LONG}]},
    ],
    "gemini": [
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "f", "response": {"result": LONG}}}],
        }
    ],
    "converse": [
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": LONG}]}}],
        }
    ],
    "openai-responses": [
        {"role": "user", "content": "-"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": LONG},
    ],
    "openai-responses, in parts": [
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": [{"type": "input_text", "text": LONG}],
        }
    ],
}


@pytest.mark.parametrize("tokenizer", [*MODELS, "o200k_base", None])
@pytest.mark.parametrize("written", RESULTS)
def test_a_tools_result_counts_in_whatever_dialect_it_is_written(
    written: str, tokenizer: str | None
) -> None:
    assert 3750 <= estimate_messages_tokens(RESULTS[written], tokenizer) <= 4200


TEXT = {"type": "text", "text": LONG}
UNREAD: dict[str, list[dict[str, Any]]] = {
    "anthropic, of an MCP server": [{"type": "mcp_tool_result", "content": [TEXT]}],
    "anthropic, search result": [{"type": "search_result", "content": [TEXT]}],
    "anthropic, compaction": [{"type": "compaction", "content": LONG}],
    "anthropic, document": [{"type": "document", "source": {"type": "text", "data": LONG}}],
    "anthropic, of a sandbox": [
        {"type": "bash_code_execution_tool_result", "content": {"stdout": LONG}}
    ],
}


@pytest.mark.parametrize("tokenizer", [*MODELS, "o200k_base", None])
@pytest.mark.parametrize("written", UNREAD)
def test_what_no_dialect_reads_is_not_taken_for_nothing(
    written: str, tokenizer: str | None
) -> None:
    messages = [{"role": "user", "content": [{"type": "tool_result", "content": "-"}]}]
    messages.append({"role": "assistant", "content": UNREAD[written]})
    assert 3000 <= estimate_messages_tokens(messages, tokenizer) <= 4200


def test_new_kinds_of_items_count_too() -> None:
    item = {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": LONG}]}
    code = {"role": "user", "parts": [{"executableCode": {"code": LONG}}]}
    for tokenizer in (None, "openai:gpt-4o"):
        assert estimate_messages_tokens([item], tokenizer) >= 3750
        assert estimate_messages_tokens([code], tokenizer) >= 3750


def test_an_image_is_not_measured_by_its_bytes() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 30_000}
    messages = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    for tokenizer in (None, "anthropic:claude-sonnet-4-5"):
        assert estimate_messages_tokens(messages, tokenizer) < 5_000


SCHEMA = {
    "type": "object",
    "properties": {
        f"p{n}": {"type": "string", "description": "words that say what it is"} for n in range(30)
    },
}
NAMED = {"name": "f", "description": "A tool."}
TOOLS: dict[str, dict[str, Any]] = {
    "openai-chat": {"type": "function", "function": NAMED | {"parameters": SCHEMA}},
    "anthropic": NAMED | {"input_schema": SCHEMA},
    "gemini": {"functionDeclarations": [NAMED | {"parameters": SCHEMA}]},
    "converse": {"toolSpec": NAMED | {"inputSchema": {"json": SCHEMA}}},
    "openai-responses": {"type": "function", **NAMED, "parameters": SCHEMA},
}


@pytest.mark.parametrize("tokenizer", [*MODELS, None])
@pytest.mark.parametrize("written", TOOLS)
def test_a_tools_schema_counts_in_whatever_dialect_it_is_written(
    written: str, tokenizer: str | None
) -> None:
    assert estimate_tool_schema_tokens([TOOLS[written]], tokenizer) > 350


@pytest.mark.parametrize("tokenizer", [*MODELS, "o200k_base", "cl100k_base"])
def test_a_text_is_never_estimated_below_a_quarter_of_its_bytes(tokenizer: str) -> None:
    spaces = " " * 4000  # few tokens in any vocabulary
    assert resolve_tokenizer(tokenizer)(spaces) == 1000
    assert resolve_tokenizer(tokenizer)("1 2 3 4 5") > resolve_tokenizer(None)("1 2 3 4 5")


def test_without_a_tokenizer_a_quarter_of_the_bytes_is_the_estimate() -> None:
    assert [resolve_tokenizer(None)(text) for text in ("", "abc", "abcd", "abcde", "é" * 4)] == [
        0,
        1,
        1,
        2,
        2,
    ]


@given(st.text())
def test_any_text_is_estimated_lone_surrogates_included(text: str) -> None:
    for tokenizer in (None, "openai:gpt-4o", "o200k_base"):
        assert resolve_tokenizer(tokenizer)(text + "\ud800") >= 1


def test_a_model_nobody_knows_is_estimated_with_a_warning() -> None:
    with pytest.warns(UnknownModelWarning):
        assert resolve_tokenizer("nobody:guarded")("some words of text") >= 4


@pytest.mark.parametrize("tokenizer", [*MODELS, None])
def test_fewer_tools_cost_less_and_none_nothing(tokenizer: str | None) -> None:
    assert estimate_tool_schema_tokens([], tokenizer) == 0
    one, two = ([TOOL] * number for number in (1, 2))
    assert (
        0
        < estimate_tool_schema_tokens(one, tokenizer)
        < estimate_tool_schema_tokens(two, tokenizer)
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", ["", "Sunny, 21 degrees.", "line\n" * 2000, '{"a": [1, 2]}'])
def test_a_reserved_output_is_not_less_than_its_message_really_costs(model: str, text: str) -> None:
    provider, _, name = model.partition(":")
    guard = ContextGuard([TargetContextConfig(provider, name, 1_000_000)])
    without, full = MESSAGES[:3], [*MESSAGES[:3], {**MESSAGES[3], "content": text}]
    real = (
        count(read({"messages": full}, "openai-chat"), model=model).tokens
        - count(read({"messages": without}, "openai-chat"), model=model).tokens
    )
    assert guard.reserve_tool_output(text).tokens >= real


def test_the_target_that_needs_most_decides_what_an_output_costs() -> None:
    text = "def f(x):\n    return x + 1\n" * 50
    alone = []
    for model in MODELS:
        provider, _, name = model.partition(":")
        alone.append(TargetContextConfig(provider, name, 1_000_000))
    each = [ContextGuard([one]).reserve_tool_output(text).tokens for one in alone]
    assert ContextGuard(alone).reserve_tool_output(text).tokens == max(each)


def test_an_output_that_looks_like_a_request_counts_as_text() -> None:
    guard = ContextGuard([TargetContextConfig("openai", "gpt-4o", 1_000_000)])
    text = '{"messages": [{"role": "user", "content": "' + "word " * 1000 + '"}]}'
    assert guard.reserve_tool_output(text).tokens > 1250


def test_a_session_starts_from_the_tokens_of_its_conversation() -> None:
    current = estimate_messages_tokens(MESSAGES, "openai:gpt-4o")
    guard = ContextGuard([TargetContextConfig("openai", "gpt-4o", 128_000)], current_tokens=current)
    assert guard.evaluate().projected_tokens == current > 0
