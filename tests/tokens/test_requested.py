"""A request's room for the answer, and the remaining input."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import read
from holdfast.settings import ModelLimits, Settings
from holdfast.tokens.limits import ModelContextRegistry, input_limit
from holdfast.tokens.requested import request_limit, requested_output

CHAT = {"messages": [{"role": "user", "content": "hi"}]}
CLAUDE = {"model": "claude-sonnet-4-5", **CHAT}
CONVERSE = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def thinking(tokens: object) -> dict[str, Any]:
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


@pytest.mark.parametrize(
    ("dialect", "body", "tokens"),
    [
        ("anthropic", CLAUDE | {"max_tokens": 64_000}, 64_000),
        ("anthropic", CLAUDE | {"max_tokens": 0}, 0),
        ("anthropic", CLAUDE | {"max_tokens": 64_000} | thinking(32_000), 64_000),
        # Interleaved thinking: the budget is that of the whole turn.
        ("anthropic", CLAUDE | {"max_tokens": 8_000} | thinking(100_000), 100_000),
        ("openai-chat", CHAT, None),
        ("openai-chat", CHAT | {"max_tokens": 500}, 500),
        ("openai-chat", CHAT | {"max_completion_tokens": 600}, 600),
        ("openai-chat", CHAT | {"max_tokens": 500, "max_completion_tokens": 600}, 600),
        ("openai-chat", CHAT | {"max_tokens": 700, "max_completion_tokens": 600}, 700),
        ("openai-chat", CHAT | {"max_tokens": None}, None),
        ("openai-chat", CHAT | {"reasoning": {"max_tokens": 1000}}, None),
        ("openai-chat", CHAT | {"reasoning": {"max_tokens": 20_000}}, 20_000),
        ("openai-responses", {"input": "hi", "max_output_tokens": 700}, 700),
        ("openai-responses", {"input": "hi"}, None),
        ("gemini", GEMINI | {"generationConfig": {"maxOutputTokens": 800}}, 800),
        ("gemini", GEMINI | {"generation_config": {"max_output_tokens": 800}}, 800),
        (
            "gemini",
            {"generateContentRequest": GEMINI | {"generationConfig": {"maxOutputTokens": 800}}},
            800,
        ),
        (
            "gemini",
            GEMINI | {"generationConfig": {"thinkingConfig": {"thinkingBudget": 24_576}}},
            24_576,
        ),
        ("gemini", GEMINI | {"generationConfig": {"thinkingConfig": {"thinkingBudget": -1}}}, None),
        ("gemini", GEMINI | {"generationConfig": None}, None),
        ("converse", CONVERSE | {"inferenceConfig": {"maxTokens": 900}}, 900),
        ("converse", {"input": {"converse": CONVERSE | {"inferenceConfig": {"maxTokens": 9}}}}, 9),
        (
            "converse",
            CONVERSE
            | {"inferenceConfig": {"maxTokens": 900}}
            | {"additionalModelRequestFields": thinking(24_000)},
            24_000,
        ),
        ("cohere", CHAT | {"max_tokens": 300}, 300),
        ("openai-chat", CHAT | {"max_tokens": 64_000.0}, 64_000),
    ],
)
def test_the_room_for_the_answer_is_read_from_the_field_of_the_dialect(
    dialect: str, body: dict[str, Any], tokens: int | None
) -> None:
    assert requested_output(read(body, dialect)) == tokens


@pytest.mark.parametrize("nonsense", [-1, "64000", True, [], {}, None])
def test_what_is_no_number_of_tokens_is_left_to_the_provider(nonsense: object) -> None:
    body = CHAT | {"max_tokens": nonsense}
    assert requested_output(read(body, "openai-chat")) is None


def test_claude_with_max_tokens_of_64_000_leaves_that_much_of_its_window() -> None:
    limits = ModelContextRegistry().resolve("claude-sonnet-4-5")
    asked = read(CLAUDE | {"max_tokens": 64_000}, "anthropic")
    assert input_limit(limits, output=requested_output(asked)) == 200_000 - 64_000 - 256
    assert input_limit(limits, output=None) == 200_000 - 16_384 - 256


def test_the_limit_of_a_request_obeys_overrides_the_request_and_the_caller() -> None:
    registry = ModelContextRegistry(
        Settings(model_context_overrides={"claude-sonnet-4-5": ModelLimits(context_window=10_000)})
    )
    plain = read(CLAUDE | {"max_tokens": 4_000}, "anthropic")
    assert request_limit(plain, registry) == 10_000 - 4_000 - 256
    assert request_limit(plain, registry, output=1_000) == 10_000 - 1_000 - 256
    assert request_limit(plain, registry, model="gpt-4o") == 128_000 - 4_000 - 256
    assert request_limit(read(CHAT, "openai-chat"), registry) == 111_360  # a model nobody names


def test_a_window_for_input_alone_is_not_made_smaller_by_the_answer() -> None:
    limits = ModelContextRegistry().resolve("gemini-2.5-pro")
    asked = read(GEMINI | {"generationConfig": {"maxOutputTokens": 65_000}}, "gemini")
    assert input_limit(limits, output=requested_output(asked)) == 1_048_576 - 256
