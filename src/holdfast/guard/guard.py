"""Keep a session inside the windows of all its targets, and end it in time.

The guard decides and counts but never sends, trims or stores. Its lock covers only arithmetic:
texts are counted and stored before, and listeners are called after, so that threads and tasks may
share a guard. Each turn calls `set_schema`, `preflight`, `commit`, then `observe_usage`, and for
each tool `can_execute_tool` and `reserve_tool_output`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Literal

from holdfast.guard.estimate import Tokenizer, tool_output_tokens
from holdfast.guard.final_turn import (
    FINAL_REPORT_TOOL,
    PROGRESS_TOOL,
    FinalReport,
    FinalTurnReason,
)
from holdfast.guard.reports import Counters, Outbox
from holdfast.guard.targets import ContextGuardEvaluation, TargetContextConfig, Targets, limit_error
from holdfast.guard.telemetry import Listener, RequestMetrics, Trigger, log
from holdfast.guard.tool_budget import (
    OutputStore,
    OverflowMode,
    ToolPolicy,
    ToolReservation,
    check_choice,
    make_reservation,
    must_be_awaited,
)

Status = Literal["ok", "skip", "final"]
"""Send the request, try another target, or end the session because no target accepts more."""

_NO_REPORT = FinalReport()


class ContextGuard:
    """Counts a session's tokens and decides before each step whether the next one fits.

    `current_tokens` is the size of the existing conversation. `estimate` counts a tool's output as
    a message (default: the largest count of the targets' tokenizers). `store` keeps outputs that
    exceed `tool_response_max_bytes` or do not fit; their handles replace them.
    """

    def __init__(  # noqa: PLR0913 - named arguments, of which most sessions need one
        self,
        targets: Iterable[TargetContextConfig],
        *,
        on_overflow: OverflowMode = "force_final",
        tool_policy: ToolPolicy = "any",
        final_tools: Iterable[str] = (FINAL_REPORT_TOOL,),
        extra_tools: Iterable[str] = (),
        internal_tools: Iterable[str] = (PROGRESS_TOOL,),
        current_tokens: int = 0,
        estimate: Tokenizer | None = None,
        store: OutputStore | None = None,
        tool_response_max_bytes: int | None = None,
        listener: Listener | None = None,
        debug: bool = False,
    ) -> None:
        self._targets = Targets(targets)
        self.on_overflow: OverflowMode = check_choice("on_overflow", on_overflow, OverflowMode)
        self.tool_policy: ToolPolicy = check_choice("tool_policy", tool_policy, ToolPolicy)
        self.final_tools = tuple(final_tools)
        self.extra_tools = tuple(extra_tools)
        self.internal_tools = frozenset(internal_tools) | set(self.final_tools)
        self._estimate = estimate or tool_output_tokens(self._targets.all)
        self._store = store
        self._max_bytes = tool_response_max_bytes
        self._lock = threading.Lock()
        self._counters = Counters(current=current_tokens)
        self._final_schema: int | None = None
        self._reason: FinalTurnReason | None = None
        self._tool_budget_exceeded = False
        self._listener = log if debug and listener is None else listener
        self._debug = debug
        self._outbox().counters("init-counters", self._counters).deliver()

    # --- state -----------------------------------------------------------------------------------

    @property
    def targets(self) -> tuple[TargetContextConfig, ...]:
        """Return the targets of the session."""
        return self._targets.all

    @property
    def counters(self) -> Counters:
        """Return the current counters."""
        return self._counters

    @property
    def forced_final_turn_reason(self) -> FinalTurnReason | None:
        """Return why the final turn was forced; None if it was not."""
        return self._reason

    @property
    def tool_budget_exceeded(self) -> bool:
        """Return whether an output was refused."""
        return self._tool_budget_exceeded

    def evaluate(self, extra_tokens: int = 0) -> ContextGuardEvaluation:
        """Evaluate the next request plus `extra_tokens` against every target."""
        return self._targets.judge(self._counters.projected + extra_tokens)

    # --- counting --------------------------------------------------------------------------------

    def add_pending(self, tokens: int) -> None:
        """Count a message that the next request will contain."""
        with self._lock:
            self._counters = self._counters.with_pending(tokens)

    def set_schema(self, tokens: int, *, final_tokens: int | None = None) -> None:
        """Count the tool schemas of the next request, replacing the previous ones.

        `final_tokens` are those of the final-turn tools, which apply once the final turn is forced.
        """
        outbox = self._outbox()
        with self._lock:
            self._final_schema = final_tokens
            if self._reason is not None and final_tokens is not None:
                tokens = final_tokens
            self._counters = self._counters.with_schema(tokens)
            outbox.counters("schema-estimate", self._counters)
        outbox.deliver()

    def commit(self) -> None:
        """Mark the request as sent: pending and new tokens become current."""
        with self._lock:
            self._counters = self._counters.committed()

    def observe_usage(self, input_tokens: int, output_tokens: int = 0) -> None:
        """Record the usage that the provider reported for the last committed request.

        Its numbers replace the estimates. Input includes cached tokens. The answer is
        `output_tokens`, so do not add it again. Call this before the next `commit`.
        """
        with self._lock:
            self._counters = self._counters.reported(input_tokens, output_tokens)

    def rebase(self, tokens: int) -> None:
        """Set the size of a conversation that was folded; raise if a turn is in progress."""
        with self._lock:
            self._counters = self._counters.rebased(tokens)

    # --- before a request ----------------------------------------------------------------------

    def evaluate_for(self, provider: str, model: str) -> Status:
        """Return whether a target accepts the next request; report `skip` to the listener."""
        target = self._targets.named(provider, model)
        counters = self._counters
        evaluation = self._targets.judge(counters.projected)
        outbox = self._outbox().counters("loop-init", counters)
        status: Status = "ok"
        if evaluation.blocked:
            outbox.blocked(evaluation)
            if self._targets.all_in(evaluation):
                status = "final"
            elif not target.admits(evaluation.projected_tokens):
                status = "skip"
                outbox.skipped(target, evaluation.projected_tokens)
        outbox.deliver()
        return status

    def preflight(self, provider: str, model: str) -> Status:
        """Prepare a request: evaluate, force the final turn if needed, and evaluate again.

        `final` means that the request must be sent as the final turn. Raise `BudgetExceededError`
        if `on_overflow` requires it.
        """
        status = self.evaluate_for(provider, model)
        if status == "final":
            self.enforce_final_turn("turn_preflight")
            status = self.evaluate_for(provider, model)
        return "final" if status == "ok" and self._reason is not None else status

    def enforce_final_turn(self, trigger: Trigger) -> ContextGuardEvaluation:
        """Force the final turn, replace the schemas by those of its tools, and evaluate again.

        The turn is forced and reported once; tools' reservations are kept. Before a request, raise
        `BudgetExceededError` if all targets are blocked and `on_overflow` does not allow it:
        immediately with `raise`, after replacing the schemas with `force_final`.
        """
        outbox = self._outbox()
        with self._lock:
            evaluation_before = self.evaluate()
            if self.on_overflow == "raise" and self._targets.all_in(evaluation_before):
                raise limit_error(
                    evaluation_before, "Shorten the conversation, or name a larger target."
                )
            evaluation_after = self._force(trigger, evaluation_before, outbox)
        outbox.deliver()
        over = self.on_overflow == "force_final" and self._targets.all_in(evaluation_after)
        if over and trigger == "turn_preflight":
            raise limit_error(
                evaluation_after,
                "Even the final turn does not fit: shorten the conversation, or allow it with "
                "on_overflow='best_effort'.",
            )
        return evaluation_after

    def request_metrics(self, provider: str, model: str) -> RequestMetrics:
        """Return the figures for the log entry of the next request; call it before `commit`."""
        outbox = self._outbox()
        metrics = outbox.request(self._targets.named(provider, model), self._counters)
        outbox.deliver()
        return metrics

    # --- the final turn ------------------------------------------------------------------------

    def tools_for_turn(
        self, tools: Iterable[str], report: FinalReport = _NO_REPORT
    ) -> tuple[str, ...]:
        """Return the tools to offer, given the progress of the final report."""
        return report.tools_for_turn(
            tools,
            final=self._reason is not None,
            final_tools=self.final_tools,
            extra_tools=self.extra_tools,
        )

    def guidance(self, report: FinalReport = _NO_REPORT) -> str:
        """Return the guidance for the model's next turn; empty in an ordinary turn."""
        return report.guidance(
            reason=self._reason, final_tools=self.final_tools, extra_tools=self.extra_tools
        )

    # --- before a tool and its output ----------------------------------------------------------

    def can_execute_tool(self, tool: str = "") -> bool:
        """Return whether a tool may run: all until an output is refused, internal ones always."""
        return not self._tool_budget_exceeded or tool in self.internal_tools

    def reserve_tool_output(self, output: str, tool: str = "") -> ToolReservation:
        """Reserve the tokens of a tool's output, or refuse it and force the final turn.

        Concurrent reservations see each other. With a store, an output that does not fit is
        replaced by its handle, and refused only if that does not fit either. Internal tools are
        never refused. It never raises `BudgetExceededError`; with `raise` it only refuses.

        Raises:
            SettingsError: the store is asynchronous; use `areserve_tool_output`.
        """
        outcome = self._reserve_whole(output, tool)
        if isinstance(outcome, ToolReservation):
            return outcome
        keeping = outcome.keep(output)
        if keeping is not None:
            raise must_be_awaited(keeping)
        return self._reserve(outcome.handle(output), stored=True, last=True)

    async def areserve_tool_output(self, output: str, tool: str = "") -> ToolReservation:
        """Reserve like `reserve_tool_output`, with a store that may be asynchronous."""
        outcome = self._reserve_whole(output, tool)
        if isinstance(outcome, ToolReservation):
            return outcome
        keeping = outcome.keep(output)
        if keeping is not None:
            await keeping
        return self._reserve(outcome.handle(output), stored=True, last=True)

    def _ways(self, output: str, tool: str) -> tuple[bool, OutputStore | None]:
        """Return whether an output may stay complete, and the store whose handle may replace it."""
        if self._store is None or tool in self.internal_tools:
            return True, None
        max_bytes = self._max_bytes
        return max_bytes is None or len(output.encode(errors="replace")) <= max_bytes, self._store

    def _reserve_whole(self, output: str, tool: str) -> ToolReservation | OutputStore:
        """Reserve a complete output, or return the store that must keep it."""
        fits_whole, store = self._ways(output, tool)
        if store is None or fits_whole:
            internal = tool in self.internal_tools
            output_reservation = self._reserve(
                output, stored=False, last=store is None, always=internal
            )
            if store is None or output_reservation.ok:
                return output_reservation
        return store

    def _reserve(
        self, text: str, *, stored: bool, last: bool, always: bool = False
    ) -> ToolReservation:
        """Reserve if there is room; otherwise, if no other form remains, force the final turn."""
        tokens = self._estimate(text)
        outbox = self._outbox()
        with self._lock:
            evaluation = self.evaluate(tokens)
            ok = always or self._has_room(evaluation)
            if ok:
                self._counters = self._counters.with_new(tokens)
            elif last and not self._tool_budget_exceeded:
                self._tool_budget_exceeded = True
                if self.on_overflow != "raise":
                    self._force("tool_preflight", evaluation, outbox)
            outbox.tool(tokens, evaluation, ok=ok, stored=stored)
        outbox.deliver()
        return make_reservation(ok, tokens, text, stored=stored)

    # --- under the lock ------------------------------------------------------------------------

    def _force(
        self, trigger: Trigger, before: ContextGuardEvaluation, outbox: Outbox
    ) -> ContextGuardEvaluation:
        if self._reason is None:
            self._reason = "context"
            outbox.forced(trigger, before, self._targets.all[0])
        if self._final_schema is not None:
            self._counters = self._counters.with_schema(self._final_schema)
            outbox.counters("schema-tokens", self._counters)
        after = self.evaluate()
        if self._targets.all_in(after):
            outbox.still_over(after)
        return after

    # --- small rules ---------------------------------------------------------------------------

    def _has_room(self, evaluation: ContextGuardEvaluation) -> bool:
        if self.tool_policy == "any":
            return not evaluation.blocked
        return not self._targets.all_in(evaluation)

    def _outbox(self) -> Outbox:
        return Outbox(self._listener, debug=self._debug)
