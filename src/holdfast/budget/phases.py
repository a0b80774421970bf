"""Divide a context window into phases with one safety margin.

Limits arrive as numbers; this module does not know models.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType

import msgspec

from holdfast.budget.usage import MOST_TOKENS, token_count
from holdfast.errors import SettingsError

TOKEN_BUDGET: Mapping[str, int] = MappingProxyType(
    {"total": 3000, "header": 600, "history": 1000, "facts": 800, "summaries": 600}
)
"""Tokens of an assembled turn and of each of its sections."""


def phase_budget(effective_context: int, percent: float) -> int:
    """Return the tokens of a phase with a share (0 to 1) of the context, rounded down.

    `effective_context` excludes overhead and output. No margin is subtracted here; set it once, on
    `PhaseBudget`.
    """
    return math.floor(_share(percent, "percent") * _tokens(effective_context, "effective_context"))


@dataclass
class PhaseBudget:
    """Allocates the tokens of one phase. Safe to share between threads.

    The answer's reserve is subtracted from the total (unless the total excludes it already), then
    the margin for counting errors, a share of the remainder, rounded up.
    """

    total_budget: int
    reserved_output: int = 0
    safety_margin: float = 0.0
    used_tokens: int = 0
    _lock: threading.Lock = field(
        default_factory=threading.Lock, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for name in ("total_budget", "reserved_output", "used_tokens"):
            _tokens(getattr(self, name), name)
        _share(self.safety_margin, "safety_margin")

    def effective_budget(self) -> int:
        """Return the maximum tokens that can be allocated, including those already used."""
        usable = max(self.total_budget - self.reserved_output, 0)
        return usable - math.ceil(_share(self.safety_margin, "safety_margin") * usable)

    @property
    def remaining(self) -> int:
        """Return the tokens that can still be allocated."""
        return max(self.effective_budget() - self.used_tokens, 0)

    def can_fit(self, tokens: int) -> bool:
        """Return whether `tokens` more fit; an invalid count never does."""
        counted = token_count(tokens)
        return counted is not None and self.used_tokens + counted <= self.effective_budget()

    def allocate(self, tokens: int) -> bool:
        """Allocate tokens if they fit; otherwise change nothing."""
        with self._lock:
            if not self.can_fit(tokens):
                return False
            self.used_tokens += int(tokens)
            return True


class Ceilings(msgspec.Struct, frozen=True, kw_only=True):
    """Nested limits, of which the smallest applies.

    Each limit already excludes its reserves and none is subtracted here, so that a margin applies
    once at any depth.
    """

    guard_limit: int | None = None
    """Maximum tokens for the model; see `holdfast.tokens.limits.input_limit`."""
    phase_budget: int | None = None
    """Maximum tokens for the phase; see `PhaseBudget.effective_budget`."""
    turn_target: int | None = None
    """Target tokens for a turn; `TOKEN_BUDGET["total"]`."""

    def __post_init__(self) -> None:
        for name, limit in self._set():
            _tokens(limit, name)
        if not self._set():
            raise SettingsError("no ceiling is given", fix="Give at least one of the three.")

    @property
    def effective(self) -> int:
        """Return the smallest limit."""
        return min(limit for _, limit in self._set())

    @property
    def binding(self) -> str:
        """Return the name of the smallest limit; among equal ones, the outermost."""
        return min(self._set(), key=lambda named: named[1])[0]

    def _set(self) -> list[tuple[str, int]]:
        named = [(name, getattr(self, name)) for name in self.__struct_fields__]
        return [(name, limit) for name, limit in named if limit is not None]


def _tokens(value: object, where: str) -> int:
    counted = token_count(value)
    if counted is None:
        raise SettingsError(f"not a count of tokens from 0 to {MOST_TOKENS:,}", where=where)
    return counted


def _share(value: object, where: str) -> Decimal:
    """Return the share as a decimal of its written digits: 0.1 is exactly a tenth."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise SettingsError("the share is not between 0 and 1", where=where)
    return Decimal(str(value))
