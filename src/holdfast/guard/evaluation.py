"""A projection held against every target of a session.

evaluation: after targets; knows nothing about where a projection comes from.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.errors import BudgetExceededError, SettingsError
from holdfast.guard.targets import TargetContextConfig


class ContextGuardBlockedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A target that a request does not fit."""

    provider: str
    model: str
    context_window: int
    buffer_tokens: int
    max_output_tokens: int
    limit: int
    projected: int

    @classmethod
    def of(cls, target: TargetContextConfig, projected: int) -> ContextGuardBlockedEntry:
        """Say what a target would have taken."""
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
    """What the next request will have, and every target that does not take it."""

    blocked: tuple[ContextGuardBlockedEntry, ...]
    projected_tokens: int

    @property
    def widest(self) -> ContextGuardBlockedEntry:
        """The blocked target with the highest limit; there must be one."""
        return max(self.blocked, key=lambda entry: entry.limit)


class Targets:
    """The targets of a session, at least one, each once."""

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
        """Say which targets do not take a request of so many tokens."""
        blocked = tuple(
            ContextGuardBlockedEntry.of(target, projected)
            for target in self.all
            if not target.admits(projected)
        )
        return ContextGuardEvaluation(blocked, projected)

    def all_in(self, evaluation: ContextGuardEvaluation) -> bool:
        """Whether every target is blocked."""
        return len(evaluation.blocked) == len(self.all)

    def named(self, provider: str, model: str) -> TargetContextConfig:
        """Return a target, or raise `SettingsError` if it is none of the session."""
        try:
            return self._by_name[provider, model]
        except KeyError:
            raise SettingsError(
                "not a target of this session",
                where=f"{provider[:80]}:{model[:80]}",
                fix=f"Its targets are {', '.join(target.id for target in self.all)}.",
            ) from None


def exceeded(evaluation: ContextGuardEvaluation, fix: str) -> BudgetExceededError:
    """Return the error of a request that no target takes, with the numbers of the widest."""
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
