"""Families: every way to write a model's id leads to the numbers that count it."""

from __future__ import annotations

import pytest

from holdfast import count
from holdfast.tokens import UnknownModelWarning
from holdfast.tokens.families import family_constants, family_of
from holdfast.tokens.limits import DEFAULT_MODEL_LIMITS


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-4o", "openai"),
        ("openai:gpt-4o", "openai"),
        ("OpenAI:GPT-4o", "openai"),
        ("openai:o3", "openai/o-series"),
        ("codex:o3", "openai/o-series"),
        ("openai:o1", "openai/o1"),
        ("ft:gpt-4o-2024-08-06:acme::abc123", "openai"),
        ("opencode:openai/gpt-5.2-codex", "openai/gpt-5.x"),
        ("claude:sonnet", "claude/4-5"),
        ("claude:sonnet[1m]", "claude/4-5"),
        ("[cli]gemini:flash", "gemini"),
        ("[cli]gemini:flash-lite", "gemini"),
        ("anthropic/claude-sonnet-4.5", "claude/4-5"),
        ("bedrock:us.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude/3-5-sonnet"),
        ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude/3-5-sonnet"),
        ("bedrock:amazon.nova-lite-v1:0", "nova"),
        ("ollama:qwen3:8b", "qwen"),
        ("qwen3:8b", "qwen"),
        ("openrouter:qwen/qwen3-8b:free", "qwen"),
        ("vllm:Qwen/Qwen2.5-7B-Instruct", "qwen/2.5"),
        ("accounts/fireworks/models/llama-v3p1-8b-instruct", "llama/3.1"),
        ("nobody:knows", "unknown"),
        ("", "unknown"),
        ("gpt-4o\n", "openai"),
        ("x" * 10_000_000, "unknown"),
    ],
)
def test_every_spelling_of_an_id_leads_to_the_family(model: str, family: str) -> None:
    assert family_of(model) == family


def test_every_model_of_the_limits_table_is_counted_by_a_family() -> None:
    unknown = [id_ for id_ in DEFAULT_MODEL_LIMITS if family_of(id_) == "unknown"]
    assert unknown == ["_default"]


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("groq:llama-3.3-70b-versatile", "llama/3.1@groq"),
        ("openrouter:openai/gpt-5", "openai/gpt-5@openrouter"),
        ("qwen3:8b", "qwen@ollama"),
        ("openrouter:google/gemini-2.5-pro", "gemini/2.0@openrouter"),
    ],
)
def test_an_id_tells_the_platform_if_nobody_else_does(model: str, family: str) -> None:
    assert family_constants(model, "openai-chat").family == family


@pytest.mark.parametrize("model", ["openai:gpt-9", "claude:limerick", "gemini:ultra"])
def test_a_newer_model_is_counted_like_its_kin_and_flagged(model: str) -> None:
    with pytest.warns(UnknownModelWarning, match=model.split(":")[1]):
        counted = count({"messages": [{"role": "user", "content": "hello"}]}, model=model)
    assert counted.family.endswith("/newer")
    assert counted.accuracy == "heuristic"
