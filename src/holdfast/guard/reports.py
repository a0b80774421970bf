"""The guard's token counters, and the messages of each action.

Messages are collected under the guard's lock and delivered after it. The five counters:

- `current`: sent before, as reported by the provider where possible
- `pending`: waiting for the next request
- `new`: tool results since the last request
- `schema`: estimated tool schemas of the next request
- `counted`: schema tokens that `current` already includes, because the provider reported them

Schemas are projected in full until a report includes them, and then as the difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from holdfast.errors import ContextOptimizationError
from holdfast.guard.targets import (
    ContextGuardBlockedEntry,
    ContextGuardEvaluation,
    TargetContextConfig,
)
from holdfast.guard.telemetry import (
    OVER_LIMIT_WARNING,
    ContextDebugEvent,
    ContextGuardEvent,
    ContextLogEntry,
    DebugTopic,
    GuardMessage,
    Listener,
    Outcome,
    RequestMetrics,
    Trigger,
    deliver,
    headroom,
    percent,
)


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """The counters at one moment; each step returns the next state."""

    current: int = 0
    pending: int = 0
    new: int = 0
    schema: int = 0
    counted: int = 0
    """Schema tokens that the last report included."""
    sent: int = 0
    """Schema tokens of the last committed request."""

    @property
    def projected(self) -> int:
        """Return the input tokens of the next request."""
        return self.conversation + self.schema

    @property
    def conversation(self) -> int:
        """Return the tokens of the next request without its schemas."""
        return self.current - self.counted + self.pending + self.new

    def with_pending(self, tokens: int) -> Counters:
        """Add tokens that the next request will contain."""
        return msgspec.structs.replace(self, pending=self.pending + _checked_tokens(tokens))

    def with_new(self, tokens: int) -> Counters:
        """Add the tokens of a tool's result."""
        return msgspec.structs.replace(self, new=self.new + _checked_tokens(tokens))

    def with_schema(self, tokens: int) -> Counters:
        """Replace the schemas of the next request."""
        return msgspec.structs.replace(self, schema=_checked_tokens(tokens))

    def committed(self) -> Counters:
        """Return the counters after sending: pending and new become current."""
        return msgspec.structs.replace(
            self,
            current=self.current + self.pending + self.new,
            pending=0,
            new=0,
            sent=self.schema,
        )

    def reported(self, input_tokens: int, output_tokens: int) -> Counters:
        """Apply the provider's numbers for the last request and its answer.

        Tokens added since the commit were not in that request and stay in addition.
        """
        input_count = _checked_tokens(input_tokens)
        return msgspec.structs.replace(
            self,
            current=input_count + _checked_tokens(output_tokens),
            counted=min(self.sent, input_count),
        )

    def rebased(self, tokens: int) -> Counters:
        """Replace the conversation by a shorter one, between turns."""
        if self.pending or self.new:
            raise ContextOptimizationError(
                f"the conversation was replaced in the middle of a turn, with "
                f"{self.pending + self.new:,} tokens not yet committed",
                fix="Call commit() before rebase().",
            )
        return msgspec.structs.replace(self, current=_checked_tokens(tokens), counted=0, sent=0)


def _checked_tokens(tokens: int) -> int:
    if tokens < 0:
        raise ValueError("a number of tokens is below zero")
    return tokens


_CounterTopic = Literal["init-counters", "loop-init", "schema-estimate", "schema-tokens"]
_TOPICS: dict[_CounterTopic, DebugTopic] = {
    "init-counters": "context-guard/init-counters",
    "loop-init": "context-guard/loop-init",
    "schema-estimate": "context-guard/schema-estimate",
    "schema-tokens": "context-guard/schema-tokens",
}


class Outbox:
    """The messages of one action; empty without a listener."""

    __slots__ = ("_debug", "_listener", "_messages")

    def __init__(self, listener: Listener | None, *, debug: bool) -> None:
        self._listener = listener
        self._debug = debug and listener is not None
        self._messages: list[GuardMessage] = []

    def deliver(self) -> None:
        """Deliver all messages to the listener, in order."""
        deliver(self._listener, self._messages)

    def counters(self, topic: _CounterTopic, counters: Counters) -> Outbox:
        """Add the counters in debug mode."""
        if self._debug:
            fields = {**msgspec.structs.asdict(counters), "projected": counters.projected}
            self._messages.append(ContextDebugEvent(_TOPICS[topic], fields))
        return self

    def blocked(self, evaluation: ContextGuardEvaluation) -> None:
        """Add the blocked targets in debug mode."""
        self._look("context-guard/provider-eval", _builtins(evaluation))

    def skipped(self, target: TargetContextConfig, projected: int) -> None:
        """Report that a target was skipped."""
        entry = ContextGuardBlockedEntry.of(target, projected)
        self._acted(entry, "turn_preflight", "skipped_provider")
        self._warn(entry, f"Context limit of {target.id} exceeded; target skipped.")

    def forced(
        self, trigger: Trigger, evaluation: ContextGuardEvaluation, first: TargetContextConfig
    ) -> None:
        """Report that the final turn was forced, for each blocking target."""
        projected = evaluation.projected_tokens
        entries = evaluation.blocked or (ContextGuardBlockedEntry.of(first, projected),)
        for entry in entries:
            self._acted(entry, trigger, "forced_final")
        why = {"trigger": trigger, "reason": "context"}
        self._look("context-guard/enforce", {**why, **_builtins(evaluation)})
        self._warn(max(entries, key=lambda entry: entry.limit), OVER_LIMIT_WARNING)

    def still_over(self, evaluation: ContextGuardEvaluation) -> None:
        """Warn that the request exceeds the limit even with the final turn's schemas."""
        self._warn(evaluation.widest, OVER_LIMIT_WARNING)

    def tool(
        self, tokens: int, evaluation: ContextGuardEvaluation, *, ok: bool, stored: bool
    ) -> None:
        """Add a reservation in debug mode."""
        answer = {"ok": ok, "tokens": tokens, "stored": stored}
        self._look("context-guard/tool-eval", {**answer, **_builtins(evaluation)})

    def request(self, target: TargetContextConfig, counters: Counters) -> RequestMetrics:
        """Report the context of the next request and return its figures."""
        expected = counters.projected
        metrics = RequestMetrics(
            ctx_tokens=counters.current - counters.counted,
            new_tokens=counters.pending + counters.new,
            schema_tokens=counters.schema,
            expected_tokens=expected,
            context_pct=percent(expected, target.context_window),
        )
        self._messages.append(metrics)
        self._log(
            ContextLogEntry(
                severity="info" if target.admits(expected) else "warning",
                message=f"Context usage {metrics.context_pct:g}%.",
                projected_tokens=expected,
                limit_tokens=target.limit,
                remaining_tokens=headroom(target.limit, expected),
                context_pct=metrics.context_pct,
            )
        )
        self._look("context-guard/request-metrics", _builtins(metrics))
        return metrics

    def _acted(self, entry: ContextGuardBlockedEntry, trigger: Trigger, outcome: Outcome) -> None:
        event = ContextGuardEvent(
            provider=entry.provider,
            model=entry.model,
            trigger=trigger,
            outcome=outcome,
            limit_tokens=entry.limit,
            projected_tokens=entry.projected,
            remaining_tokens=headroom(entry.limit, entry.projected),
        )
        self._messages += event, event.metric

    def _warn(self, entry: ContextGuardBlockedEntry, message: str) -> None:
        self._log(
            ContextLogEntry(
                severity="warning",
                message=message,
                projected_tokens=entry.projected,
                limit_tokens=entry.limit,
                remaining_tokens=headroom(entry.limit, entry.projected),
                context_pct=percent(entry.projected, entry.context_window),
            )
        )

    def _log(self, entry: ContextLogEntry) -> None:
        self._messages.append(entry)
        self._look("context-guard/log-entry", _builtins(entry))

    def _look(self, topic: DebugTopic, fields: Mapping[str, object]) -> None:
        if self._debug:
            self._messages.append(ContextDebugEvent(topic, fields))


def _builtins(value: msgspec.Struct) -> dict[str, object]:
    return msgspec.to_builtins(value)  # type: ignore[no-any-return]
