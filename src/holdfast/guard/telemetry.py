"""What the guard tells: events, metrics, log lines, and debug topics.

telemetry: beside targets; knows the shapes, not when they are sent. Everything here is numbers and
names of providers, models and tools; nothing ever holds text of a conversation.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from holdfast.errors import HoldfastWarning

Trigger = Literal["turn_preflight", "tool_preflight"]
"""Before which step the guard looked: a request to a model, or the commit of a tool's output."""
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
    """The guard has acted on a target."""

    provider: str
    model: str
    trigger: Trigger
    outcome: Outcome
    limit_tokens: int
    projected_tokens: int
    remaining_tokens: int
    """Headroom; 0 when there is none."""

    @property
    def metric(self) -> ContextGuardMetric:
        """The event as a metric with its labels."""
        return ContextGuardMetric(
            provider=self.provider,
            model=self.model,
            trigger=self.trigger,
            outcome=self.outcome,
            remaining_tokens=self.remaining_tokens,
        )


class ContextGuardMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement: `remaining_tokens`, with the other fields as labels."""

    provider: str
    model: str
    trigger: Trigger
    outcome: Outcome
    remaining_tokens: int


class ContextLogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the `agent:context` log."""

    severity: Literal["info", "warning"]
    message: str
    projected_tokens: int
    limit_tokens: int
    remaining_tokens: int
    context_pct: float
    """The projection in percent of the window."""
    topic: Literal["agent:context"] = "agent:context"


class RequestMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """What the log of a request says about its context: the first three sum to the fourth."""

    ctx_tokens: int
    new_tokens: int
    schema_tokens: int
    expected_tokens: int
    context_pct: float
    """The expected tokens in percent of the window."""


class ContextDebugEvent(msgspec.Struct, frozen=True):
    """A look inside, if debugging was asked for."""

    topic: DebugTopic
    fields: Mapping[str, object]


GuardMessage = (
    ContextGuardEvent | ContextGuardMetric | ContextLogEntry | RequestMetrics | ContextDebugEvent
)
Listener = Callable[[GuardMessage], None]


def headroom(limit: int, projected: int) -> int:
    """What is left of a limit, never below zero."""
    return max(limit - projected, 0)


def percent(tokens: int, window: int) -> float:
    """Tokens in percent of a window; a window of nothing is full."""
    return round(100 * tokens / window, 1) if window else 100.0


def deliver(listener: Listener | None, messages: Iterable[GuardMessage]) -> None:
    """Hand messages to a listener; one that fails must not stop the session."""
    if listener is None:
        return
    for message in messages:
        try:
            listener(message)
        except Exception as error:  # noqa: BLE001 - code of others, which may raise anything
            warnings.warn(
                f"the listener of the context guard failed: {type(error).__name__}",
                HoldfastWarning,
                stacklevel=3,
            )


def log(message: GuardMessage) -> None:
    """Write a message to the logger `holdfast.guard`: a listener for those who have none."""
    level = logging.DEBUG
    if isinstance(message, ContextLogEntry):
        level = logging.WARNING if message.severity == "warning" else logging.INFO
    name = getattr(message, "topic", type(message).__name__)
    logging.getLogger("holdfast.guard").log(level, "%s %s", name, msgspec.to_builtins(message))
