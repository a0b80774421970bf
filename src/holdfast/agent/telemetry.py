"""Telemetry of an agent's context: log lines, Prometheus metrics and span events.

It has numbers and the names of providers, models and tools, never text.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import msgspec

from holdfast.guard import (
    ContextDebugEvent,
    ContextGuardEvent,
    ContextGuardMetric,
    GuardMessage,
    Listener,
    RequestMetrics,
    log,
)


@cache
def _metrics() -> dict[str, Any]:
    """Return the metrics in the program's registry, created once per process."""
    from prometheus_client import Counter, Gauge  # noqa: PLC0415 - only where an agent runs

    labels = ("provider", "model", "trigger", "outcome")
    return {
        "acts": Counter(
            "holdfast_context_guard", "Times that the guard acted on a target.", labels
        ),
        "remaining": Gauge(
            "holdfast_context_guard_remaining_tokens",
            "Headroom of the target when the guard acted last.",
            labels,
        ),
        "expected": Gauge(
            "holdfast_agent_expected_tokens", "Input tokens that the last request had, as counted."
        ),
    }


def measure(message: GuardMessage) -> None:
    """Record a message in the metrics."""
    if isinstance(message, ContextGuardMetric):
        labels = (message.provider, message.model, message.trigger, message.outcome)
        _metrics()["acts"].labels(*labels).inc()
        _metrics()["remaining"].labels(*labels).set(message.remaining_tokens)
    elif isinstance(message, RequestMetrics):
        _metrics()["expected"].set(message.expected_tokens)


def trace(message: GuardMessage) -> None:
    """Add an event to the current span if the program uses OpenTelemetry."""
    if "opentelemetry.trace" not in sys.modules:
        return
    from opentelemetry.trace import get_current_span  # noqa: PLC0415 - it is loaded already

    if isinstance(message, ContextGuardEvent | RequestMetrics):
        name = "context_guard" if isinstance(message, ContextGuardEvent) else "agent_request"
        fields = msgspec.to_builtins(message)
        get_current_span().add_event(f"holdfast.{name}", fields)


def build_listener(custom: Listener | None, *, debug: bool) -> Listener:
    """Return a listener that logs, records metrics and span events, and calls a custom listener."""

    def hear(message: GuardMessage) -> None:
        if debug or not isinstance(message, ContextDebugEvent):
            log(message)
        measure(message)
        trace(message)
        if custom is not None:
            custom(message)

    return hear
