"""The guard's events and metrics."""

from __future__ import annotations

import logging
import subprocess
import sys

import msgspec
import pytest

from holdfast.guard import (
    ContextDebugEvent,
    ContextGuard,
    ContextGuardEvent,
    ContextGuardMetric,
    ContextLogEntry,
    RequestMetrics,
)
from tests.guard.harness import MODEL, PROVIDER, Handles, Told, guard, target

# 002-47, by hand: a list that was taken from the code would prove nothing about it.
TOPICS = {
    "context-guard/init-counters",
    "context-guard/loop-init",
    "context-guard/schema-estimate",
    "context-guard/schema-tokens",
    "context-guard/provider-eval",
    "context-guard/enforce",
    "context-guard/log-entry",
    "context-guard/tool-eval",
    "context-guard/request-metrics",
}


def a_session(told: Told, *, debug: bool) -> None:
    """Run a session with every event of a guard."""
    it = guard(1000, 500, current_tokens=400, listener=told, debug=debug)
    it.set_schema(200, final_tokens=50)
    it.preflight(PROVIDER, f"{MODEL}-1")
    it.request_metrics(PROVIDER, MODEL)
    it.commit()
    it.reserve_tool_output("5000")


def test_an_event_has_the_fields_of_the_seed() -> None:
    told = Told()
    guard(1000, current_tokens=1100, listener=told, on_overflow="best_effort").preflight(
        PROVIDER, MODEL
    )
    (event,) = told.of(ContextGuardEvent)
    assert msgspec.to_builtins(event) == {
        "provider": PROVIDER,
        "model": MODEL,
        "trigger": "turn_preflight",
        "outcome": "forced_final",
        "limit_tokens": 1000,
        "projected_tokens": 1100,
        "remaining_tokens": 0,
    }


def test_a_metric_has_the_fields_of_the_seed() -> None:
    told = Told()
    a_session(told, debug=False)
    metrics = [msgspec.to_builtins(metric) for metric in told.of(ContextGuardMetric)]
    assert metrics == [
        {
            "provider": PROVIDER,
            "model": model,
            "trigger": trigger,
            "outcome": outcome,
            "remaining_tokens": 0,
        }
        for model, trigger, outcome in [
            (f"{MODEL}-1", "turn_preflight", "skipped_provider"),
            (MODEL, "tool_preflight", "forced_final"),
            (f"{MODEL}-1", "tool_preflight", "forced_final"),
        ]
    ]


def test_the_log_of_a_request_has_the_fields_of_the_seed_and_they_add_up() -> None:
    told = Told()
    it = guard(1000, current_tokens=100, listener=told)
    it.set_schema(50)
    it.commit()
    it.observe_usage(160, 20)
    it.add_pending(10)
    it.reserve_tool_output("30")
    it.set_schema(70)
    metrics = it.request_metrics(PROVIDER, MODEL)
    assert msgspec.to_builtins(metrics) == {
        "ctx_tokens": 130,
        "new_tokens": 40,
        "schema_tokens": 70,
        "expected_tokens": 240,
        "context_pct": 24.0,
    }
    assert metrics.expected_tokens == it.evaluate().projected_tokens
    assert told.of(RequestMetrics) == [metrics]


@pytest.mark.parametrize(("current", "severity"), [(1000, "info"), (1001, "warning")])
def test_the_context_log_informs_of_usage_and_warns_when_over(current: int, severity: str) -> None:
    told = Told()
    guard(1000, current_tokens=current, listener=told).request_metrics(PROVIDER, MODEL)
    (entry,) = told.of(ContextLogEntry)
    assert (entry.topic, entry.severity) == ("agent:context", severity)
    assert (entry.projected_tokens, entry.limit_tokens, entry.remaining_tokens) == (
        current,
        1000,
        0,
    )
    assert entry.context_pct == current / 10
    assert f"{current / 10:g}%" in entry.message
    assert f"{current / 10:g}%" in entry.message


def test_debugging_shows_every_topic_and_otherwise_none() -> None:
    told = Told()
    a_session(told, debug=True)
    assert {event.topic for event in told.of(ContextDebugEvent)} == TOPICS
    quiet = Told()
    a_session(quiet, debug=False)
    assert quiet.of(ContextDebugEvent) == []
    assert quiet == [message for message in told if not isinstance(message, ContextDebugEvent)]


def test_nothing_of_an_output_is_told() -> None:
    class ReportingHandles(Handles):
        def handle(self, output: str) -> str:
            return f"handle of {output}"

    told = Told()
    secret = "sk-hunter2"
    it = ContextGuard(
        [target(100)],
        debug=True,
        listener=told,
        store=ReportingHandles(0),
    )
    it.reserve_tool_output(secret)
    it.reserve_tool_output(secret * 1000)
    assert told
    assert secret not in repr(list(told))


def test_debugging_without_a_listener_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "holdfast.guard"):
        it = ContextGuard([target(10)], debug=True, estimate=int)
        it.reserve_tool_output("11")
    assert "context-guard/init-counters" in caplog.text
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert [text.split()[0] for text in warnings] == ["agent:context"]


def test_without_listener_and_debugging_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "holdfast.guard"):
        ContextGuard([target(10)], estimate=int).reserve_tool_output("11")
    assert caplog.records == []


def test_a_program_that_set_up_no_logging_sees_nothing_on_its_standard_error() -> None:
    warn = "import holdfast\n"
    warn += "import logging\nlogging.getLogger('holdfast.guard').warning('told to nobody')\n"
    done = subprocess.run([sys.executable, "-c", warn], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
