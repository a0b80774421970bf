"""Events, metrics, log entries and debug messages of the context guard.

They contain numbers and names of providers, models and tools, never conversation text.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from holdfast.errors import HoldfastWarning

Trigger = Literal["turn_preflight", "tool_preflight"]
"""The step before which the guard evaluated: a model request, or the commit of a tool's output."""
Outcome = Literal["forced_final", "skipped_provider"]
DebugTopic = Literal[
    "context-guard/init-counters",
    "context-guard/loop-init",
    "context-guard/schema-estimate",
    "context-guard/schema-tokens",
    "context-guard/provider-eval",
    "context-guard/enforce",
    "context-guard/log-entry",
    "context-guard/tool-eval",
    "context-guard/request-metrics",
]

OVER_LIMIT_WARNING = "Context limit exceeded; forcing final turn."


class ContextGuardEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An action of the guard on a target."""

    provider: str
    model: str
    trigger: Trigger
    outcome: Outcome
    limit_tokens: int
    projected_tokens: int
    remaining_tokens: int
    """Remaining tokens of the limit; 0 if it is exceeded."""

    @property
    def metric(self) -> ContextGuardMetric:
        """Return the event as a metric with labels."""
        return ContextGuardMetric(
            provider=self.provider,
            model=self.model,
            trigger=self.trigger,
            outcome=self.outcome,
            remaining_tokens=self.remaining_tokens,
        )


class ContextGuardMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement of `remaining_tokens`, with the other fields as labels."""

    provider: str
    model: str
    trigger: Trigger
    outcome: Outcome
    remaining_tokens: int


class ContextLogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the `agent:context` log."""

    severity: Literal["info", "warning"]
    message: str
    projected_tokens: int
    limit_tokens: int
    remaining_tokens: int
    context_pct: float
    """Projected tokens in percent of the window."""
    topic: Literal["agent:context"] = "agent:context"


class RequestMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Context figures for a request's log entry; the first three sum to the fourth."""

    ctx_tokens: int
    new_tokens: int
    schema_tokens: int
    expected_tokens: int
    context_pct: float
    """Expected tokens in percent of the window."""


class ContextDebugEvent(msgspec.Struct, frozen=True):
    """Internal state, sent only in debug mode."""

    topic: DebugTopic
    fields: Mapping[str, object]


GuardMessage = (
    ContextGuardEvent | ContextGuardMetric | ContextLogEntry | RequestMetrics | ContextDebugEvent
)
Listener = Callable[[GuardMessage], None]


def headroom(limit: int, projected: int) -> int:
    """Return the remaining tokens of a limit, never below zero."""
    return max(limit - projected, 0)


def percent(tokens: int, window: int) -> float:
    """Return tokens in percent of a window; an empty window is full."""
    return round(100 * tokens / window, 1) if window else 100.0


def deliver(listener: Listener | None, messages: Iterable[GuardMessage]) -> None:
    """Pass messages to a listener; warn if it raises, because it must not stop the session."""
    if listener is None:
        return
    for message in messages:
        try:
            listener(message)
        except Exception as error:  # noqa: BLE001 - a caller's listener may raise anything
            warnings.warn(
                f"the listener of the context guard failed: {type(error).__name__}",
                HoldfastWarning,
                stacklevel=3,
            )


def log(message: GuardMessage) -> None:
    """Write a message to the logger `holdfast.guard`; the default listener in debug mode."""
    level = logging.DEBUG
    if isinstance(message, ContextLogEntry):
        level = logging.WARNING if message.severity == "warning" else logging.INFO
    name = getattr(message, "topic", type(message).__name__)
    logging.getLogger("holdfast.guard").log(level, "%s %s", name, msgspec.to_builtins(message))
