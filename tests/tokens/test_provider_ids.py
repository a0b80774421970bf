from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import SettingsError
from holdfast.tokens import prices
from holdfast.tokens.provider_ids import (
    MAX_LENGTH,
    ProviderId,
    normalize_provider_id,
    provider_named,
)
from tests.support.recorded import needs_usage, requests

SPELLINGS = {
    "openai:gpt-4o": "openai:gpt-4o",
    "OpenAI:gpt-4o": "openai:gpt-4o",
    " openai : gpt-4o ": "openai:gpt-4o",
    "openai-responses:gpt-4o": "openai:gpt-4o",
    "gpt-4o": "openai:gpt-4o",
    "o3": "openai:o3",
    "openai/gpt-4o": "openai:gpt-4o",
    "claude:sonnet": "claude:sonnet",
    "sonnet": "claude:sonnet",
    "anthropic:sonnet": "claude:sonnet",
    "claude-code:opus": "claude:opus",
    "[cli]claude:haiku": "claude:haiku",
    "[cli]gemini:flash": "gemini:flash",
    "[CLI] gemini:pro": "gemini:pro",
    "google:pro": "gemini:pro",
    "opencode:openai/gpt-5.2-codex": "opencode:openai/gpt-5.2-codex",
    "cursor-agent:gpt-4.1": "cursor-agent:gpt-4.1",
    "claude-sonnet-4-5": "anthropic:claude-sonnet-4-5",
    "anthropic/claude-sonnet-4.5": "anthropic:claude-sonnet-4.5",
    "claude-3-7-sonnet@20250219": "anthropic:claude-3-7-sonnet@20250219",
    "google-gla:gemini-2.5-pro": "gemini:gemini-2.5-pro",
    "x-ai/grok-4-fast:free": "xai:grok-4-fast:free",
    "openrouter:anthropic/claude-sonnet-4.5": "openrouter:anthropic/claude-sonnet-4.5",
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0": (
        "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    ),
    "bedrock/us.anthropic.claude-sonnet-4-6": "bedrock:us.anthropic.claude-sonnet-4-6",
    "amazon.nova-lite-v1:0": "bedrock:amazon.nova-lite-v1:0",
    "llama3.2:3b-instruct-fp16": "ollama:llama3.2:3b-instruct-fp16",
    "gpt-oss:120b": "ollama:gpt-oss:120b",
    "deepseek-r1:latest": "ollama:deepseek-r1:latest",
    "Qwen/Qwen3-Coder-480B-A35B-Instruct:cerebras": "qwen:Qwen3-Coder-480B-A35B-Instruct:cerebras",
    "@cf/meta/llama-3.3-70b-instruct": "cloudflare:@cf/meta/llama-3.3-70b-instruct",
    "someone/their-model:0.5b": "unknown:someone/their-model:0.5b",
    "my-gateway:my-model": "my-gateway:my-model",
    "my-model": "unknown:my-model",
}


@pytest.mark.parametrize(("spelling", "id_"), SPELLINGS.items())
def test_spellings_of_an_id_are_understood(spelling: str, id_: str) -> None:
    assert normalize_provider_id(spelling) == id_
    assert normalize_provider_id(id_) == id_


def test_transport_is_kept_in_the_value_and_left_out_of_the_normal_form() -> None:
    id_ = ProviderId.parse("[cli]gemini:flash")
    assert id_ == ProviderId("cli", "gemini", "flash")
    assert id_.id == "gemini:flash"
    assert id_.format() == "[cli]gemini:flash"


@pytest.mark.parametrize(
    ("id_", "says"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("a\nb", "control characters"),
        ("openai:\x1b[31m", "control characters"),
        ("openai:\ud800", "control characters"),
        ("x" * 10_240, f"longer than {MAX_LENGTH}"),
        ("openai:", "names no model"),
        (":", "names no model"),
        ("[cli]", "names no model"),
        (None, "must be text"),
        (b"openai:gpt-4o", "must be text"),
    ],
)
def test_what_cannot_be_an_id_is_refused_in_words(id_: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        normalize_provider_id(id_)


PIECES = (
    "openai claude [cli] [x] : / . @ us anthropic google gpt-4o models/ sonnet llama3 qwen -v1 free"
    " latest 20250101 é * _default unknown ollama bedrock [ ] - opus gemini flash deepseek-"
).split()


@given(st.lists(st.sampled_from([*PIECES, " "]), max_size=7).map("".join) | st.text())
def test_any_text_is_read_or_refused_and_the_normal_form_is_final(text: str) -> None:
    try:
        id_ = ProviderId.parse(text)
    except SettingsError:
        return
    assert ProviderId.parse(id_.id).id == id_.id
    assert ProviderId.parse(id_.format()) == id_
    assert id_.references()[0] == id_


@needs_usage
@pytest.mark.slow
def test_every_recorded_model_has_a_normal_form() -> None:
    for model in {str(record["model"]) for _, record in requests()}:
        id_ = normalize_provider_id(model)
        assert normalize_provider_id(id_) == id_
        assert id_.endswith(model.rpartition("/")[2])


def test_ids_of_the_price_lists_are_in_normal_form() -> None:
    ids = [one.id for one in prices.bundled().models(at=datetime.now(UTC))]
    assert [id_ for id_ in ids if normalize_provider_id(id_) != id_] == []


@pytest.mark.parametrize(
    ("id_", "other"),
    [
        ("claude:sonnet", "anthropic:claude-sonnet-4-5"),
        ("codex:gpt-5", "openai:gpt-5"),
        ("opencode:openai/gpt-5", "openai:gpt-5"),
        ("cursor-agent:gpt-5", "openai:gpt-5"),
        ("openai:gpt-4o-2024-08-06", "openai:gpt-4o"),
        ("gemini:gemini-2.0-flash-001", "gemini:gemini-2.0-flash"),
        ("models/gemini-2.0-flash", "gemini:gemini-2.0-flash"),
        ("anthropic:claude-sonnet-4-5-20250929", "anthropic:claude-sonnet-4-5"),
        ("anthropic/claude-3.7-sonnet:thinking", "anthropic:claude-3-7-sonnet"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic:claude-sonnet-4-5"),
    ],
)
def test_a_model_is_also_known_by_the_name_its_vendor_gives_it(id_: str, other: str) -> None:
    assert other in [reference.id for reference in ProviderId.parse(id_).references()]


def test_local_model_is_nobody_elses() -> None:
    id_ = ProviderId.parse("ollama:gpt-oss:120b")
    assert id_.is_local
    assert id_.references() == (id_,)


def test_provider_is_told_from_model() -> None:
    assert provider_named("Google") == "gemini"
    assert provider_named("my-gateway:*") == "my-gateway"
    assert provider_named("gpt-4o") is None
    assert provider_named("openai:gpt-4o") is None
