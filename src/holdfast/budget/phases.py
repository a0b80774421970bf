"""Divide a window: phases by percent, ceilings inside ceilings, one margin.

It knows nothing about models; limits arrive as numbers.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType

import msgspec

from holdfast.budget.usage import MOST_TOKENS, whole
from holdfast.errors import SettingsError

TOKEN_BUDGET: Mapping[str, int] = MappingProxyType(
    {"total": 3000, "header": 600, "history": 1000, "facts": 800, "summaries": 600}
)
"""The tokens of an assembled turn, and of each of its sections."""


def phase_budget(effective_context: int, percent: float) -> int:
    """The tokens of a phase that may use a share (0 to 1) of the context, rounded down.

    The effective context is what overhead and output leave. No margin is taken here: give one to
    the `PhaseBudget`, once.
    """
    return math.floor(_share(percent, "percent") * _tokens(effective_context, "effective_context"))


@dataclass
class PhaseBudget:
    """Hands out the tokens of one phase; safe to share between threads.

    From the total go the room for the answer (if the total does not leave it out already) and then
    the margin for errors of counting, as a share of the rest, rounded up.
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
        """The most tokens that can be handed out in all, used ones included."""
        usable = max(self.total_budget - self.reserved_output, 0)
        return usable - math.ceil(_share(self.safety_margin, "safety_margin") * usable)

    @property
    def remaining(self) -> int:
        """What can still be handed out."""
        return max(self.effective_budget() - self.used_tokens, 0)

    def can_fit(self, tokens: int) -> bool:
        """Whether so many more fit; what is no count of tokens fits nowhere."""
        counted = whole(tokens)
        return counted is not None and self.used_tokens + counted <= self.effective_budget()

    def allocate(self, tokens: int) -> bool:
        """Take the tokens if they fit; otherwise nothing changes."""
        with self._lock:
            if not self.can_fit(tokens):
                return False
            self.used_tokens += int(tokens)
            return True


class Ceilings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits inside one another; the smallest holds.

    Each arrives with its reserves already taken, and none is taken here: so a margin is applied
    once, however deep the nesting.
    """

    guard_limit: int | None = None
    """What the model can take; see `holdfast.tokens.limits.input_limit`."""
    phase_budget: int | None = None
    """What the phase may use; see `PhaseBudget.effective_budget`."""
    turn_target: int | None = None
    """What a turn should use; `TOKEN_BUDGET["total"]`."""

    def __post_init__(self) -> None:
        for name, limit in self._set():
            _tokens(limit, name)
        if not self._set():
            raise SettingsError("no ceiling is given", fix="Give at least one of the three.")

    @property
    def effective(self) -> int:
        """The most tokens there may be."""
        return min(limit for _, limit in self._set())

    @property
    def binding(self) -> str:
        """The name of the ceiling that holds; of equal ones the outermost."""
        return min(self._set(), key=lambda named: named[1])[0]

    def _set(self) -> list[tuple[str, int]]:
        named = [(name, getattr(self, name)) for name in self.__struct_fields__]
        return [(name, limit) for name, limit in named if limit is not None]


def _tokens(value: object, where: str) -> int:
    counted = whole(value)
    if counted is None:
        raise SettingsError(f"not a count of tokens from 0 to {MOST_TOKENS:,}", where=where)
    return counted


def _share(value: object, where: str) -> Decimal:
    """The share as it is written: 0.1 is a tenth, not the float beside it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise SettingsError("the share is not between 0 and 1", where=where)
    return Decimal(str(value))
