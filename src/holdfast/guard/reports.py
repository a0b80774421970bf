"""Which messages each act of the guard sends, gathered under its lock and delivered after it.

reports: after telemetry and counters, before the guard.

What a session's context holds, as five numbers.
current   sent before, as the provider reported it where it did
    pending   written, and waiting for the next request
    new       what tools answered since the last request
    schema    the tool schemas of the next request, as estimated
    counted   how much of `schema`'s predecessor is inside `current`, because it was reported

The first three only grow until the turn commits. Schemas are not part of the conversation: they are
projected in full until a report includes them, and from then on as the difference.
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
    """A state of the counters; each step returns the next one."""

    current: int = 0
    pending: int = 0
    new: int = 0
    schema: int = 0
    counted: int = 0
    """Schema tokens that the last report included."""
    sent: int = 0
    """Schema tokens of the last request that was committed."""

    @property
    def projected(self) -> int:
        """The input tokens of the next request."""
        return self.conversation + self.schema

    @property
    def conversation(self) -> int:
        """The next request without its schemas."""
        return self.current - self.counted + self.pending + self.new

    def with_pending(self, tokens: int) -> Counters:
        """Add what will be sent."""
        return msgspec.structs.replace(self, pending=self.pending + _grown(tokens))

    def with_new(self, tokens: int) -> Counters:
        """Add what a tool answered."""
        return msgspec.structs.replace(self, new=self.new + _grown(tokens))

    def with_schema(self, tokens: int) -> Counters:
        """Replace the schemas of the next request."""
        return msgspec.structs.replace(self, schema=_grown(tokens))

    def committed(self) -> Counters:
        """All of it goes out: pending and new become current, none is lost or counted twice."""
        return msgspec.structs.replace(
            self,
            current=self.current + self.pending + self.new,
            pending=0,
            new=0,
            sent=self.schema,
        )

    def reported(self, input_tokens: int, output_tokens: int) -> Counters:
        """Take the provider's numbers for the last request and its answer.

        What was added since the commit was not in that request, and stays on top.
        """
        given = _grown(input_tokens)
        return msgspec.structs.replace(
            self, current=given + _grown(output_tokens), counted=min(self.sent, given)
        )

    def rebased(self, tokens: int) -> Counters:
        """Start from a conversation that was made shorter, between turns."""
        if self.pending or self.new:
            raise ContextOptimizationError(
                f"the conversation was replaced in the middle of a turn, with "
                f"{self.pending + self.new:,} tokens not yet committed",
                fix="Call commit() before rebase().",
            )
        return msgspec.structs.replace(self, current=_grown(tokens), counted=0, sent=0)


def _grown(tokens: int) -> int:
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
    """The messages of one act; without a listener nothing is gathered."""

    __slots__ = ("_debug", "_listener", "_messages")

    def __init__(self, listener: Listener | None, *, debug: bool) -> None:
        self._listener = listener
        self._debug = debug and listener is not None
        self._messages: list[GuardMessage] = []

    def deliver(self) -> None:
        """Hand everything to the listener, in order."""
        deliver(self._listener, self._messages)

    def counters(self, topic: _CounterTopic, counters: Counters) -> Outbox:
        """Show the counters, if debugging."""
        if self._debug:
            shown = {**msgspec.structs.asdict(counters), "projected": counters.projected}
            self._messages.append(ContextDebugEvent(_TOPICS[topic], shown))
        return self

    def blocked(self, evaluation: ContextGuardEvaluation) -> None:
        """Show which targets are blocked, if debugging."""
        self._look("context-guard/provider-eval", _builtins(evaluation))

    def skipped(self, target: TargetContextConfig, projected: int) -> None:
        """Tell that one target was passed over."""
        entry = ContextGuardBlockedEntry.of(target, projected)
        self._acted(entry, "turn_preflight", "skipped_provider")
        self._warn(entry, f"Context limit of {target.id} exceeded; target skipped.")

    def forced(
        self, trigger: Trigger, evaluation: ContextGuardEvaluation, first: TargetContextConfig
    ) -> None:
        """Tell that the final turn was forced, for each target that was in the way."""
        projected = evaluation.projected_tokens
        entries = evaluation.blocked or (ContextGuardBlockedEntry.of(first, projected),)
        for entry in entries:
            self._acted(entry, trigger, "forced_final")
        why = {"trigger": trigger, "reason": "context"}
        self._look("context-guard/enforce", {**why, **_builtins(evaluation)})
        self._warn(max(entries, key=lambda entry: entry.limit), OVER_LIMIT_WARNING)

    def still_over(self, evaluation: ContextGuardEvaluation) -> None:
        """Warn that the shrink was not enough."""
        self._warn(evaluation.widest, OVER_LIMIT_WARNING)

    def tool(
        self, tokens: int, evaluation: ContextGuardEvaluation, *, ok: bool, stored: bool
    ) -> None:
        """Show a reservation, if debugging."""
        answer = {"ok": ok, "tokens": tokens, "stored": stored}
        self._look("context-guard/tool-eval", {**answer, **_builtins(evaluation)})

    def request(self, target: TargetContextConfig, counters: Counters) -> RequestMetrics:
        """Tell what the next request will hold, and return it."""
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
