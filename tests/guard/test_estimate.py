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
