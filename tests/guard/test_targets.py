"""Where a session may send, and how much it takes: 002-01, 002-09 to 002-13, 002-41, 002-49, C2."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import SettingsError
from holdfast.guard import (
    DEFAULT_CONTEXT_BUFFER_TOKENS,
    DEFAULT_CONTEXT_WINDOW_TOKENS,
    ContextGuard,
    TargetContextConfig,
    resolve_target,
)

WINDOW = "context_window"
BUFFER = "context_window_buffer_tokens"
OUTPUT = "max_output_tokens"


@pytest.mark.parametrize(
    ("window", "buffer", "output", "limit"),
    [
        (128_000, 256, 16_384, 111_360),  # 002-13
        (128_000, 256, None, 111_360),  # C42: 16,384 by default
        (8_000, 256, None, 5_744),  # … or a quarter of the window
        (131_072, 256, 0, 130_816),
        (1_000, 0, 0, 1_000),
        (100, 256, None, 0),  # never below zero
        (100, 0, 200, 0),
        (0, 0, 0, 0),
    ],
)
def test_limit_is_the_window_less_buffer_and_answer(
    window: int, buffer: int, output: int | None, limit: int
) -> None:
    target = TargetContextConfig("openai", "gpt-4o", window, None, buffer, output)
    assert target.limit == limit


def test_the_defaults_of_a_target_are_256_and_its_own_tokenizer() -> None:
    target = TargetContextConfig("openai", "gpt-4o", 128_000)
    assert (target.tokenizer_id, target.buffer_tokens, target.max_output_tokens) == (
        None,
        256,
        None,
    )


@pytest.mark.parametrize("field", ["context_window", "buffer_tokens", "max_output_tokens"])
def test_a_number_below_zero_is_refused_with_its_target(field: str) -> None:
    numbers: dict[str, Any] = {"context_window": 1000, field: -1}
    with pytest.raises(SettingsError, match=rf"{field} is below zero \(at openai:gpt-4o\)"):
        TargetContextConfig("openai", "gpt-4o", **numbers)


@given(window=st.integers(0, 10**7), buffer=st.integers(0, 10**5), output=st.integers(0, 10**6))
def test_buffer_and_answer_are_always_left_free(window: int, buffer: int, output: int) -> None:
    limit = TargetContextConfig("p", "m", window, None, buffer, output).limit
    assert limit == 0 or limit + buffer + output == window


# The order of C17, level by level: the first that states a number wins

LEVELS = ("session", "model_config", "provider_config", "defaults")


@pytest.mark.parametrize("key", [WINDOW, BUFFER, OUTPUT])
@pytest.mark.parametrize("first", range(4))
def test_the_first_level_that_states_a_number_wins(key: str, first: int) -> None:
    levels: dict[str, Any] = {
        level: {key: 1000 + number} for number, level in enumerate(LEVELS) if number >= first
    }
    target = resolve_target("openai", "gpt-4o", **levels)
    stated = {
        WINDOW: target.context_window,
        BUFFER: target.buffer_tokens,
        OUTPUT: target.max_output_tokens,
    }
    assert stated[key] == 1000 + first


def test_what_nobody_states_is_a_constant() -> None:
    assert resolve_target("openai", "gpt-4o") == TargetContextConfig(
        "openai", "gpt-4o", 131_072, None, 256, None
    )
    assert (DEFAULT_CONTEXT_WINDOW_TOKENS, DEFAULT_CONTEXT_BUFFER_TOKENS) == (131_072, 256)


def test_each_number_is_resolved_by_itself_and_none_states_nothing() -> None:
    target = resolve_target(
        "openai",
        "gpt-4o",
        session={WINDOW: None, "temperature": 1},
        model_config={WINDOW: 64_000, "tokenizer": "o200k_base"},
        provider_config={BUFFER: 0, WINDOW: 9},
        defaults={OUTPUT: 1000, BUFFER: 8192},
    )
    assert target == TargetContextConfig("openai", "gpt-4o", 64_000, "o200k_base", 0, 1000)


@pytest.mark.parametrize("value", [-1, True, "many", 1.5])
def test_an_ill_typed_number_is_refused_with_its_level(value: object) -> None:
    with pytest.raises(SettingsError, match="context_window of provider openai"):
        resolve_target("openai", "gpt-4o", provider_config={WINDOW: value})


def test_an_ill_typed_tokenizer_is_refused() -> None:
    with pytest.raises(SettingsError, match="tokenizer of session"):
        resolve_target("openai", "gpt-4o", session={"tokenizer": 7})


# The targets of a session


def test_a_session_without_targets_is_refused() -> None:
    with pytest.raises(SettingsError, match="needs a target"):
        ContextGuard([])


def test_a_target_named_twice_is_refused() -> None:
    target = TargetContextConfig("openai", "gpt-4o", 1000)
    with pytest.raises(SettingsError, match="named twice"):
        ContextGuard([target, target])


def test_a_stranger_is_refused_with_the_names_of_the_targets() -> None:
    guard = ContextGuard([TargetContextConfig("openai", "gpt-4o", 1000)])
    with pytest.raises(SettingsError, match=r"at openai:gpt-5\).*openai:gpt-4o"):
        guard.evaluate_for("openai", "gpt-5")


@pytest.mark.parametrize("name", ["on_overflow", "tool_policy"])
def test_an_unknown_mode_is_refused_with_the_choices(name: str) -> None:
    wrong: dict[str, Any] = {name: "rais"}
    with pytest.raises(SettingsError, match="Choose one of"):
        ContextGuard([TargetContextConfig("openai", "gpt-4o", 1000)], **wrong)
