from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import SettingsError
from holdfast.settings import Settings
from holdfast.tokens.limits import (
    CLI_OVERHEAD_PROVENANCE,
    CLI_SYSTEM_PROMPT_OVERHEAD,
    DEFAULT_MODEL_LIMITS,
    LIMIT_SOURCES,
    ModelContextLimits,
    ModelContextRegistry,
    get_effective_context,
    input_limit,
    output_reserve,
)
from holdfast.tokens.prices import Prices

SEED_LIMITS = {
    "codex:gpt-5.2-codex": (400_000, 128_000),
    "cursor-agent:gpt-5.2-codex": (400_000, 128_000),
    "opencode:openai/gpt-5.2-codex": (400_000, 128_000),
    "codex:gpt-4.1": (1_000_000, 32_000),
    "cursor-agent:gpt-4.1": (1_000_000, 32_000),
    "opencode:openai/gpt-4.1": (1_000_000, 32_000),
    "codex:o3": (200_000, 100_000),
    "codex:o4-mini": (200_000, 100_000),
    "opencode:openai/o3": (200_000, 100_000),
    "opencode:openai/o4-mini": (200_000, 100_000),
    "claude:opus": (200_000, 64_000),
    "claude:sonnet": (200_000, 64_000),
    "claude:haiku": (200_000, 64_000),
    "gemini:flash": (1_000_000, 32_000),
    "gemini:pro": (1_000_000, 64_000),
}
GPT_4O = ModelContextLimits("openai", "gpt-4o", 128_000, 16_384, mode="combined")


@dataclass(frozen=True)
class Config:
    model_context_overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Manager:
    stated: Mapping[str, Mapping[str, Any]]

    def model_limits(self, provider_id: str) -> Mapping[str, Any] | None:
        return self.stated.get(provider_id)


class BrokenManager:
    def model_limits(self, provider_id: str) -> Mapping[str, Any] | None:
        raise ConnectionError(provider_id)


# The seed's table


@pytest.mark.parametrize(("id_", "numbers"), SEED_LIMITS.items())
def test_a_number_of_the_seeds_table_is_resolved_as_it_stands(
    id_: str, numbers: tuple[int, int]
) -> None:
    limits = ModelContextRegistry().resolve(id_)
    assert (limits.context_window, limits.max_output_tokens) == numbers
    assert limits == DEFAULT_MODEL_LIMITS[id_]
    assert f"{limits.provider}:{limits.model}" == id_
    assert limits.input_budget == numbers[0]


def test_cursor_has_no_rows_for_the_reasoning_models() -> None:
    assert not {"cursor-agent:o3", "cursor-agent:o4-mini"} & set(DEFAULT_MODEL_LIMITS)


def test_default_is_the_seeds_and_keeps_room_for_output() -> None:
    assert DEFAULT_MODEL_LIMITS["_default"] == ModelContextLimits(
        "unknown", "unknown", 128_000, 8192, mode="combined"
    )


def test_every_row_names_its_source_and_is_sound() -> None:
    assert set(LIMIT_SOURCES) == set(DEFAULT_MODEL_LIMITS)
    assert all(LIMIT_SOURCES.values())
    for id_, limits in DEFAULT_MODEL_LIMITS.items():
        assert 0 < limits.max_output_tokens < limits.context_window
        assert id_ == id_.lower()
        assert id_ in ("_default", f"{limits.provider}:{limits.model}")


def test_limits_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        GPT_4O.context_window = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        DEFAULT_MODEL_LIMITS["x"] = GPT_4O  # type: ignore[index]


# The prompt of a command-line program


def test_overhead_is_the_seeds_and_says_how_it_is_known() -> None:
    assert CLI_SYSTEM_PROMPT_OVERHEAD == {
        "claude": 60_000,
        "gemini": 40_000,
        "cursor-agent": 40_000,
        "codex": 40_000,
        "opencode": 40_000,
        "_default": 40_000,
    }
    assert "measured" in CLI_OVERHEAD_PROVENANCE["claude"].source
    for other in ("gemini", "cursor-agent", "codex", "opencode"):
        assert "estimated" in CLI_OVERHEAD_PROVENANCE[other].source


@pytest.mark.parametrize(
    ("id_", "left"),
    [
        ("claude:sonnet", 140_000),
        ("gemini:pro", 960_000),
        ("codex:gpt-4.1", 960_000),
        ("[cli]gemini:pro", 960_000),
        ("[cli]claude:haiku", 140_000),
        ("nobody:knows", 88_000),
    ],
)
def test_effective_context_is_the_window_less_the_programs_prompt(id_: str, left: int) -> None:
    assert get_effective_context(id_, ModelContextRegistry()) == left


@pytest.mark.parametrize(
    "id_",
    [
        "openai:gpt-4o",
        "gpt-4o",
        "anthropic:claude-sonnet-4-5",
        "google:gemini-2.5-pro",
        "gemini:gemini-2.5-pro",
        "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "openrouter:anthropic/claude-sonnet-4.5",
        "ollama:llama3.2",
        "some-model-of-mine",
    ],
)
def test_an_api_has_no_program_that_takes_a_part_of_its_window(id_: str) -> None:
    registry = ModelContextRegistry()
    assert registry.overhead(id_) == 0
    assert get_effective_context(id_, registry) == registry.resolve(id_).context_window


def test_a_model_whose_window_no_price_list_states_is_not_cut_to_the_default() -> None:
    for name in ("gemini-3-pro-preview", "google:gemini-3.1-pro-preview"):
        limits = ModelContextRegistry().resolve(name)
        assert (limits.context_window, limits.mode) == (1_048_576, "input_only")


def test_a_small_local_window_is_the_users_own() -> None:
    registry = ModelContextRegistry(Config({"ollama": {"context_window": 32_768}}))
    assert get_effective_context("ollama:llama3.2", registry) == 32_768


@pytest.mark.parametrize(
    ("id_", "overhead"),
    [
        ("[cli]openai:gpt-4o", 40_000),
        ("[cli]gemini:gemini-2.5-pro", 40_000),
        ("[cli]claude:sonnet", 60_000),
        ("[api]claude:sonnet", 0),
        ("opencode:openai/gpt-5.2-codex", 40_000),
    ],
)
def test_the_transport_says_whether_a_program_stands_before_the_model(
    id_: str, overhead: int
) -> None:
    assert ModelContextRegistry().overhead(id_) == overhead


def test_overhead_can_be_overridden_by_provider_and_by_model() -> None:
    config = Config({"claude": {"cli_overhead": 50_000}, "claude:haiku": {"cli_overhead": 0}})
    registry = ModelContextRegistry(config)
    assert get_effective_context("claude:sonnet", registry) == 150_000
    assert get_effective_context("claude:haiku", registry) == 200_000


def test_overhead_that_fills_the_window_is_refused() -> None:
    registry = ModelContextRegistry(Config({"claude:sonnet": {"context_window": 60_000}}))
    with pytest.raises(SettingsError, match="leaves nothing"):
        get_effective_context("claude:sonnet", registry)


def test_overhead_above_half_of_the_window_warns() -> None:
    registry = ModelContextRegistry(Config({"claude:sonnet": {"context_window": 119_999}}))
    with pytest.warns(UserWarning, match="more than half"):
        assert get_effective_context("claude:sonnet", registry) == 59_999


def test_overhead_of_exactly_half_does_not_warn() -> None:
    registry = ModelContextRegistry(Config({"claude:sonnet": {"context_window": 120_000}}))
    assert get_effective_context("claude:sonnet", registry) == 60_000


# The order of sources


def test_sources_win_in_their_order_field_by_field() -> None:
    config = Config(
        {
            "gemini:flash": {"output_reserved": 8192},
            "gemini": {"output_reserved": 1, "max_output_tokens": 50_000},
        }
    )
    manager = Manager({"gemini:flash": {"max_output_tokens": 2, "context_window": 900_000}})
    registry = ModelContextRegistry(config, manager)

    limits, origins = registry.trace("[cli]gemini:flash")
    assert limits == ModelContextLimits("gemini", "flash", 900_000, 50_000, 8192, "input_only")
    assert origins == {
        "output_reserved": "config gemini:flash",
        "max_output_tokens": "config gemini",
        "context_window": "provider",
        "mode": "built-in",
    }
    session = registry.resolve("gemini:flash", session={"context_window": 10_000})
    assert session.context_window == 10_000
    assert session.output_reserved == 8192


def test_registry_keeps_what_it_was_given() -> None:
    config, manager = Config({"gemini:flash": {"context_window": 5}}), Manager({})
    registry = ModelContextRegistry(config, manager)
    assert registry.overrides == config.model_context_overrides
    assert registry.provider_manager is manager
    assert registry.normalize_provider_id("[cli]gemini:flash") == "gemini:flash"


def test_price_lists_give_the_window_where_our_table_has_none() -> None:
    limits, origins = ModelContextRegistry().trace("xai:grok-4.3")
    assert limits.context_window == 1_000_000
    assert origins["context_window"] == "prices"
    assert origins["max_output_tokens"] == "default"


def test_dated_and_rehosted_names_have_the_limits_of_their_model() -> None:
    registry = ModelContextRegistry()
    for id_ in (
        "anthropic:claude-sonnet-4-5-20250929",
        "anthropic/claude-sonnet-4.5",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "openrouter:anthropic/claude-sonnet-4.5",
    ):
        limits = registry.resolve(id_)
        assert (limits.context_window, limits.max_output_tokens) == (200_000, 64_000), id_


def test_override_of_a_model_holds_for_its_dated_names_and_no_other_provider() -> None:
    registry = ModelContextRegistry(Config({"openai:gpt-4o": {"context_window": 7}}))
    assert registry.resolve("gpt-4o-2024-08-06").context_window == 7
    assert registry.resolve("azure:gpt-4o").context_window == 128_000


def test_provider_without_a_known_name_is_overridden_with_a_star() -> None:
    registry = ModelContextRegistry(Config({"my-gateway:*": {"context_window": 7}}))
    assert registry.resolve("my-gateway:anything").context_window == 7


def test_unknown_limit_is_none_where_it_would_clamp() -> None:
    registry = ModelContextRegistry()
    assert registry.resolve("nobody:knows").context_window == 128_000
    assert registry.known_window("nobody:knows") is None
    assert registry.known_window("ollama:llama3.2") is None
    assert registry.known_window("claude:sonnet") == 200_000


def test_provider_that_fails_to_answer_is_passed_over_with_a_warning() -> None:
    registry = ModelContextRegistry(provider_manager=BrokenManager())
    with pytest.warns(UserWarning, match="passed over: ConnectionError"):
        assert registry.resolve("claude:sonnet").context_window == 200_000


def test_nonsense_of_a_provider_is_passed_over_with_a_warning() -> None:
    manager = Manager({"claude:sonnet": {"context_window": -1}})
    with pytest.warns(UserWarning, match="passed over"):
        limits = ModelContextRegistry(provider_manager=manager).resolve("claude:sonnet")
    assert limits.context_window == 200_000


@pytest.mark.parametrize(
    "overrides",
    [
        {"claude:sonnet": {"context_window": 0}},
        {"claude:sonnet": {"context_window": "many"}},
        {"claude:sonnet": {"windows": 1}},
        {"claude:sonnet": {"output_reserved": -1}},
        {"claude:sonnet": 5},
        {"": {"context_window": 1}},
        {"a\x00b": {"context_window": 1}},
    ],
)
def test_bad_override_is_refused(overrides: Mapping[str, Any]) -> None:
    with pytest.raises(SettingsError):
        ModelContextRegistry(Config(overrides))


def test_prices_can_be_the_users_own() -> None:
    own = {"id": "openai", "models": [{"id": "x", "match": {"equals": "x"}, "prices": {}}]}
    own["models"][0]["context_window"] = 9  # type: ignore[index]
    prices = Prices.read(msgspec.json.encode([own]))
    assert ModelContextRegistry(prices=prices).known_window("openai:x") == 9


# From the settings


def test_overrides_of_the_settings_reach_the_limits(tmp_path: Any) -> None:
    (tmp_path / "holdfast.toml").write_text(
        "model_context_overrides = "
        '{ "gemini:flash" = { context_window = 1000000, output_reserved = 8192 } }\n'
    )
    settings = Settings.load(cwd=tmp_path, environ={})
    limits = ModelContextRegistry(settings).resolve("[cli]gemini:flash")
    assert (limits.context_window, limits.output_reserved) == (1_000_000, 8192)
    assert limits.input_budget == 1_000_000 - 8192


def test_a_mode_in_the_settings_reaches_the_limits(tmp_path: Any) -> None:
    (tmp_path / "holdfast.toml").write_text(
        "[model_context_overrides]\n"
        '"gemini:pro" = { mode = "combined" }\n'
        'ollama = { context_window = 32768, mode = "input_only" }\n'
    )
    settings = Settings.load(cwd=tmp_path, environ={})
    registry = ModelContextRegistry(settings)
    assert registry.resolve("gemini:pro").mode == "combined"
    assert registry.resolve("ollama:llama3.2").input_budget == 32_768


@pytest.mark.parametrize(
    "text",
    [
        '"a:b" = 5',
        '"a:b" = { context_window = -1 }',
        '"a:b" = { window = 1 }',
        '"a:b" = { mode = "shared" }',
        '"a:b" = { context_window = "combined" }',
    ],
)
def test_bad_overrides_in_the_file_are_found_when_it_is_read(tmp_path: Any, text: str) -> None:
    (tmp_path / "holdfast.toml").write_text(f"[model_context_overrides]\n{text}\n")
    (problem,) = Settings.check(cwd=tmp_path, environ={})
    assert "model_context_overrides must be a table: " in problem.what


# How much of the window may be used


def test_worked_example_of_seed_002() -> None:
    assert input_limit(GPT_4O, output=16_384) == 111_360
    assert input_limit(GPT_4O) == 111_360
    assert input_limit(ModelContextRegistry().resolve("nobody:knows")) == 111_360


def test_one_off_request_to_an_input_only_model_may_use_the_window() -> None:
    pro = DEFAULT_MODEL_LIMITS["gemini:pro"]
    assert pro.input_budget == 1_000_000
    assert input_limit(pro, output=64_000, buffer_tokens=0) == 1_000_000


def test_agent_loop_keeps_room_for_output_in_every_mode() -> None:
    pro = DEFAULT_MODEL_LIMITS["gemini:pro"]
    assert output_reserve(pro, agent_loop=True) == 16_384
    assert output_reserve(pro, output=64_000, agent_loop=True) == 64_000


def test_room_for_output_is_the_requests_then_the_configured_then_a_quarter_at_most() -> None:
    configured = msgspec.structs.replace(GPT_4O, output_reserved=5000)
    assert output_reserve(configured, output=7) == 7
    assert output_reserve(configured) == 5000
    small = ModelContextLimits("x", "y", 8192, 8192, mode="combined")
    assert output_reserve(small) == 2048
    assert small.input_budget == 6144


def test_reserve_is_the_larger_of_buffer_and_margin_and_taken_once() -> None:
    assert input_limit(GPT_4O, margin=0.10) == 111_616 - 11_162
    assert input_limit(GPT_4O, margin=0.001) == 111_616 - 256
    assert input_limit(GPT_4O, margin=0.0, buffer_tokens=8192) == 111_616 - 8192


def test_output_larger_than_the_window_leaves_nothing() -> None:
    assert input_limit(GPT_4O, output=1_000_000) == 0
    assert msgspec.structs.replace(GPT_4O, output_reserved=10**9).input_budget == 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"output": -1},
        {"buffer_tokens": -1},
        {"margin": -0.1},
        {"margin": 1.1},
        {"margin": math.nan},
    ],
)
def test_impossible_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        input_limit(GPT_4O, **arguments)


@given(
    window=st.integers(1, 10_000_000),
    output=st.none() | st.integers(0, 10_000_000),
    buffer=st.integers(0, 100_000),
    percent=st.integers(0, 100),
    agent_loop=st.booleans(),
)
def test_limit_is_never_negative_and_never_more_than_is_left(
    window: int, output: int | None, buffer: int, percent: int, agent_loop: bool
) -> None:
    limits = ModelContextLimits("x", "y", window, 1, mode="combined")
    kept = output_reserve(limits, output=output, agent_loop=agent_loop)
    share = math.ceil(Fraction(percent, 100) * max(window - kept, 0))
    expected = max(window - kept - max(buffer, share), 0)
    limit = input_limit(
        limits,
        output=output,
        buffer_tokens=buffer,
        margin=percent / 100,
        agent_loop=agent_loop,
    )
    assert limit == expected
