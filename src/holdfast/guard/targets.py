"""The targets of a session, their limits, and the evaluation of a projection against them.

Configuration arrives as plain mappings; a missing value takes the default constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from holdfast.errors import BudgetExceededError, SettingsError
from holdfast.tokens.limits import DEFAULT_BUFFER_TOKENS, DEFAULT_OUTPUT_TOKENS

DEFAULT_CONTEXT_WINDOW_TOKENS = 131_072
DEFAULT_CONTEXT_BUFFER_TOKENS = DEFAULT_BUFFER_TOKENS
_KEYS = "context_window, context_window_buffer_tokens, max_output_tokens and tokenizer"


class TargetContextConfig(msgspec.Struct, frozen=True):
    """A provider's model with its token limits."""

    provider: str
    model: str
    context_window: int
    tokenizer_id: str | None = None
    """Model id or vocabulary name; None uses the target's own model."""
    buffer_tokens: int = DEFAULT_CONTEXT_BUFFER_TOKENS
    max_output_tokens: int | None = None
    """Tokens reserved for the answer; None reserves 16,384, at most a quarter of the window."""

    def __post_init__(self) -> None:
        for name in ("context_window", "buffer_tokens", "max_output_tokens"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise SettingsError(
                    f"{name} is below zero", where=self.id, fix="Give a number of tokens."
                )

    @property
    def id(self) -> str:
        """Return `provider:model`."""
        return f"{self.provider}:{self.model}"

    @property
    def output_tokens(self) -> int:
        """Return the tokens reserved for the answer."""
        if self.max_output_tokens is not None:
            return self.max_output_tokens
        return min(DEFAULT_OUTPUT_TOKENS, self.context_window // 4)

    @property
    def limit(self) -> int:
        """Return the maximum input tokens of a request; 0 means that none may be sent."""
        return max(self.context_window - self.buffer_tokens - self.output_tokens, 0)

    def admits(self, projected: int) -> bool:
        """Return whether a request of `projected` tokens may be sent; the limit is inclusive."""
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
    """Return a target with each number from the first level that states it, or the default.

    The keys are `context_window`, `context_window_buffer_tokens`, `max_output_tokens` and
    `tokenizer`; other keys and None are ignored.
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


def _stated_values(levels: _Levels, key: str) -> Iterator[tuple[str, object]]:
    for name, level in levels.items():
        value = (level or {}).get(key)
        if value is not None:
            yield f"{key} of {name}", value


def _tokens(levels: _Levels, key: str) -> int | None:
    for where, value in _stated_values(levels, key):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise SettingsError(
                "not a number of tokens",
                where=where,
                fix=f"Whole numbers from 0 on; the keys are {_KEYS}.",
            )
        return value
    return None


def _tokenizer(levels: _Levels) -> str | None:
    for where, value in _stated_values(levels, "tokenizer"):
        if not isinstance(value, str):
            raise SettingsError(
                "not the name of a tokenizer",
                where=where,
                fix="Give a model's id or a vocabulary's name as text.",
            )
        return value
    return None


class ContextGuardBlockedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A target whose limit a request exceeds."""

    provider: str
    model: str
    context_window: int
    buffer_tokens: int
    max_output_tokens: int
    limit: int
    projected: int

    @classmethod
    def of(cls, target: TargetContextConfig, projected: int) -> ContextGuardBlockedEntry:
        """Return the entry for a target and a projection."""
        return cls(
            provider=target.provider,
            model=target.model,
            context_window=target.context_window,
            buffer_tokens=target.buffer_tokens,
            max_output_tokens=target.output_tokens,
            limit=target.limit,
            projected=projected,
        )


class ContextGuardEvaluation(msgspec.Struct, frozen=True):
    """The projected tokens of the next request, and the targets that block it."""

    blocked: tuple[ContextGuardBlockedEntry, ...]
    projected_tokens: int

    @property
    def widest(self) -> ContextGuardBlockedEntry:
        """Return the blocked target with the highest limit; raise if none is blocked."""
        return max(self.blocked, key=lambda entry: entry.limit)


class Targets:
    """The targets of a session, at least one, without duplicates."""

    __slots__ = ("_by_name", "all")

    def __init__(self, targets: Iterable[TargetContextConfig]) -> None:
        self.all = tuple(targets)
        self._by_name = {(target.provider, target.model): target for target in self.all}
        if not self.all:
            raise SettingsError("a session needs a target", where="targets", fix="Name one model.")
        if len(self._by_name) < len(self.all):
            raise SettingsError(
                "a target is named twice", where="targets", fix="Give each model once."
            )

    def judge(self, projected: int) -> ContextGuardEvaluation:
        """Evaluate a projection against every target."""
        blocked = tuple(
            ContextGuardBlockedEntry.of(target, projected)
            for target in self.all
            if not target.admits(projected)
        )
        return ContextGuardEvaluation(blocked, projected)

    def all_in(self, evaluation: ContextGuardEvaluation) -> bool:
        """Return whether every target is blocked."""
        return len(evaluation.blocked) == len(self.all)

    def named(self, provider: str, model: str) -> TargetContextConfig:
        """Return a target; raise `SettingsError` if the session does not have it."""
        try:
            return self._by_name[provider, model]
        except KeyError:
            raise SettingsError(
                "not a target of this session",
                where=f"{provider[:80]}:{model[:80]}",
                fix=f"Its targets are {', '.join(target.id for target in self.all)}.",
            ) from None


def limit_error(evaluation: ContextGuardEvaluation, fix: str) -> BudgetExceededError:
    """Return the error if no target accepts a request, with the widest target's numbers."""
    widest = evaluation.widest
    return BudgetExceededError(
        f"the next request would have {widest.projected:,} tokens, "
        f"{widest.projected - widest.limit:,} more than the limit of {widest.limit:,} "
        f"(window {widest.context_window:,}, less {widest.buffer_tokens:,} of buffer and "
        f"{widest.max_output_tokens:,} for the answer)",
        where=f"{widest.provider}:{widest.model}",
        fix=fix,
        kind="input",
        limit=widest.limit,
        planned=widest.projected,
    )
