"""Where a session may send its requests, and how much each of these places takes.

targets: the first step of the guard; knows nothing about counters. Configuration arrives as plain
mappings; what nobody states is a constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from holdfast.errors import SettingsError
from holdfast.tokens.limits import DEFAULT_BUFFER_TOKENS, DEFAULT_OUTPUT_TOKENS

DEFAULT_CONTEXT_WINDOW_TOKENS = 131_072
DEFAULT_CONTEXT_BUFFER_TOKENS = DEFAULT_BUFFER_TOKENS
_KEYS = "context_window, context_window_buffer_tokens, max_output_tokens and tokenizer"


class TargetContextConfig(msgspec.Struct, frozen=True):
    """One provider and model, and the room it has."""

    provider: str
    model: str
    context_window: int
    tokenizer_id: str | None = None
    """A model's id or a vocabulary's name; None: the target's own model."""
    buffer_tokens: int = DEFAULT_CONTEXT_BUFFER_TOKENS
    max_output_tokens: int | None = None
    """Room for the answer; None: 16,384, or a quarter of the window if that is less."""

    def __post_init__(self) -> None:
        for name in ("context_window", "buffer_tokens", "max_output_tokens"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise SettingsError(
                    f"{name} is below zero", where=self.id, fix="Give a number of tokens."
                )

    @property
    def id(self) -> str:
        """`provider:model`."""
        return f"{self.provider}:{self.model}"

    @property
    def output_tokens(self) -> int:
        """What is kept free for the answer."""
        if self.max_output_tokens is not None:
            return self.max_output_tokens
        return min(DEFAULT_OUTPUT_TOKENS, self.context_window // 4)

    @property
    def limit(self) -> int:
        """The most input tokens of a request; 0 means that none may be sent."""
        return max(self.context_window - self.buffer_tokens - self.output_tokens, 0)

    def admits(self, projected: int) -> bool:
        """Whether a request of so many tokens may be sent; one that fills the limit may."""
        return 0 < self.limit >= projected


def resolve_target(
    provider: str,
    model: str,
    *,
    session: Mapping[str, object] | None = None,
    model_config: Mapping[str, object] | None = None,
    provider_config: Mapping[str, object] | None = None,
    defaults: Mapping[str, object] | None = None,
) -> TargetContextConfig:
    """Return a target with each number from the first level that states it, else the constant.

    Keys: `context_window`, `context_window_buffer_tokens`, `max_output_tokens` and `tokenizer`;
    others are passed over, and None states nothing.
    """
    levels = {
        "session": session,
        f"model {provider}:{model}": model_config,
        f"provider {provider}": provider_config,
        "defaults": defaults,
    }
    window = _tokens(levels, "context_window")
    buffer = _tokens(levels, "context_window_buffer_tokens")
    return TargetContextConfig(
        provider,
        model,
        DEFAULT_CONTEXT_WINDOW_TOKENS if window is None else window,
        _tokenizer(levels),
        DEFAULT_CONTEXT_BUFFER_TOKENS if buffer is None else buffer,
        _tokens(levels, "max_output_tokens"),
    )


_Levels = Mapping[str, Mapping[str, object] | None]


def _stated(levels: _Levels, key: str) -> Iterator[tuple[str, object]]:
    for name, level in levels.items():
        value = (level or {}).get(key)
        if value is not None:
            yield f"{key} of {name}", value


def _tokens(levels: _Levels, key: str) -> int | None:
    for where, value in _stated(levels, key):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise SettingsError(
                "not a number of tokens",
                where=where,
                fix=f"Whole numbers from 0 on; the keys are {_KEYS}.",
            )
        return value
    return None


def _tokenizer(levels: _Levels) -> str | None:
    for where, value in _stated(levels, "tokenizer"):
        if not isinstance(value, str):
            raise SettingsError(
                "not the name of a tokenizer",
                where=where,
                fix="Give a model's id or a vocabulary's name as text.",
            )
        return value
    return None
