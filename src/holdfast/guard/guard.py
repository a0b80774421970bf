"""Keep a session inside the windows of all its targets, and end it in time.

guard: after targets, counters, tool_budget and final_turn, before surfaces. It decides and counts;
it never sends or trims, and what is to be stored it hands to the caller's store. One lock is held
around pure arithmetic only: texts are counted and stored before it is taken, and listeners are
called after it is released, so that threads and tasks of an event loop can use the same guard.

A turn goes: `set_schema`, `preflight`, `commit` and send, `observe_usage`, then for each tool
`can_execute_tool` and `reserve_tool_output`.
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
from holdfast.guard.targets import ContextGuardEvaluation, TargetContextConfig, Targets, exceeded
from holdfast.guard.telemetry import Listener, RequestMetrics, Trigger, log
from holdfast.guard.tool_budget import (
    OutputStore,
    OverflowMode,
    ToolPolicy,
    ToolReservation,
    answered,
    checked,
    must_be_awaited,
)

Status = Literal["ok", "skip", "final"]
"""Send it; try another target; end the session, for no target takes more."""

_NO_REPORT = FinalReport()


class ContextGuard:
    """Counts what a session holds and says, before each step, whether the next one fits.

    `current_tokens` is the conversation so far; `estimate` counts a tool's output as a message (by
    default with the tokenizers of the targets, the largest count); `store` keeps outputs that are
    larger than `tool_response_max_bytes` or do not fit, and their handles take their place.
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
        self.on_overflow: OverflowMode = checked("on_overflow", on_overflow, OverflowMode)
        self.tool_policy: ToolPolicy = checked("tool_policy", tool_policy, ToolPolicy)
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

    # --- what it knows -------------------------------------------------------------------------

    @property
    def targets(self) -> tuple[TargetContextConfig, ...]:
        """Where the session may send its requests."""
        return self._targets.all

    @property
    def counters(self) -> Counters:
        """The counters at this moment."""
        return self._counters

    @property
    def forced_final_turn_reason(self) -> FinalTurnReason | None:
        """Why the final turn was forced; None if it was not."""
        return self._reason

    @property
    def tool_budget_exceeded(self) -> bool:
        """Whether an output was refused."""
        return self._tool_budget_exceeded

    def evaluate(self, extra_tokens: int = 0) -> ContextGuardEvaluation:
        """Hold the next request, and so many tokens more, against every target."""
        return self._targets.judge(self._counters.projected + extra_tokens)

    # --- what goes in --------------------------------------------------------------------------

    def add_pending(self, tokens: int) -> None:
        """Count a message that the next request will hold."""
        with self._lock:
            self._counters = self._counters.with_pending(tokens)

    def set_schema(self, tokens: int, *, final_tokens: int | None = None) -> None:
        """Count the tool schemas of the next request, in place of the former ones.

        `final_tokens` are those of the final-turn tools alone; they hold from the moment that the
        final turn is forced.
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
        """The request goes out with all that was counted: pending and new become current."""
        with self._lock:
            self._counters = self._counters.committed()

    def observe_usage(self, input_tokens: int, output_tokens: int = 0) -> None:
        """Take what the provider reported for the request that was committed last.

        Its numbers win over the estimates. Input includes what was read from a cache; the answer
        is `output_tokens`, so do not add it again. Call it before the next `commit`.
        """
        with self._lock:
            self._counters = self._counters.reported(input_tokens, output_tokens)

    def rebase(self, tokens: int) -> None:
        """Count a conversation that was folded between turns; refused in the middle of one."""
        with self._lock:
            self._counters = self._counters.rebased(tokens)

    # --- before a request ----------------------------------------------------------------------

    def evaluate_for(self, provider: str, model: str) -> Status:
        """Say whether a target takes the next request; `skip` is told to the listener."""
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
        """Do all that comes before a request: evaluate, force the final turn, evaluate again.

        `final` means: send it as the final turn, for it is forced. Raises `BudgetExceededError`
        where `on_overflow` says so.
        """
        status = self.evaluate_for(provider, model)
        if status == "final":
            self.enforce_final_turn("turn_preflight")
            status = self.evaluate_for(provider, model)
        return "final" if status == "ok" and self._reason is not None else status

    def enforce_final_turn(self, trigger: Trigger) -> ContextGuardEvaluation:
        """Force the final turn, shrink the schemas to its tools, and evaluate again.

        It is forced, and told, once; what tools have reserved is kept. Before a request,
        `BudgetExceededError` is raised if all targets are blocked and `on_overflow` does not allow
        it: at once with `raise`, after the shrink with `force_final`.
        """
        outbox = self._outbox()
        with self._lock:
            before = self.evaluate()
            if self.on_overflow == "raise" and self._targets.all_in(before):
                raise exceeded(before, "Shorten the conversation, or name a larger target.")
            after = self._force(trigger, before, outbox)
        outbox.deliver()
        over = self.on_overflow == "force_final" and self._targets.all_in(after)
        if over and trigger == "turn_preflight":
            raise exceeded(
                after,
                "Even the final turn does not fit: shorten the conversation, or allow it with "
                "on_overflow='best_effort'.",
            )
        return after

    def request_metrics(self, provider: str, model: str) -> RequestMetrics:
        """Return what the log of the next request says; call it before `commit`."""
        outbox = self._outbox()
        metrics = outbox.request(self._targets.named(provider, model), self._counters)
        outbox.deliver()
        return metrics

    # --- the final turn ------------------------------------------------------------------------

    def tools_for_turn(
        self, tools: Iterable[str], report: FinalReport = _NO_REPORT
    ) -> tuple[str, ...]:
        """Return which tools to offer, given how far the final report is."""
        return report.tools_for_turn(
            tools,
            final=self._reason is not None,
            final_tools=self.final_tools,
            extra_tools=self.extra_tools,
        )

    def guidance(self, report: FinalReport = _NO_REPORT) -> str:
        """Return what to tell the model before its turn; empty in an ordinary turn."""
        return report.guidance(
            reason=self._reason, final_tools=self.final_tools, extra_tools=self.extra_tools
        )

    # --- before a tool and its output ----------------------------------------------------------

    def can_execute_tool(self, tool: str = "") -> bool:
        """Whether a tool may still run: all until an output is refused, internal ones always."""
        return not self._tool_budget_exceeded or tool in self.internal_tools

    def reserve_tool_output(self, output: str, tool: str = "") -> ToolReservation:
        """Make room for a tool's output, or refuse it and force the final turn.

        Reservations made at the same time see each other. With a store, an output that does not
        fit is replaced by its handle, and refused only if that does not fit either. Internal tools
        are never refused. Never raises `BudgetExceededError`: with `raise` it refuses alone.

        Raises:
            SettingsError: the store must be awaited; see `areserve_tool_output`.
        """
        outcome = self._reserve_whole(output, tool)
        if isinstance(outcome, ToolReservation):
            return outcome
        keeping = outcome.keep(output)
        if keeping is not None:
            raise must_be_awaited(keeping)
        return self._reserve(outcome.handle(output), stored=True, last=True)

    async def areserve_tool_output(self, output: str, tool: str = "") -> ToolReservation:
        """Do as `reserve_tool_output`, with a store that may have to be awaited."""
        outcome = self._reserve_whole(output, tool)
        if isinstance(outcome, ToolReservation):
            return outcome
        keeping = outcome.keep(output)
        if keeping is not None:
            await keeping
        return self._reserve(outcome.handle(output), stored=True, last=True)

    def _ways(self, output: str, tool: str) -> tuple[bool, OutputStore | None]:
        """Whether an output may stand whole, and the store whose handle may take its place."""
        if self._store is None or tool in self.internal_tools:
            return True, None
        most = self._max_bytes
        return most is None or len(output.encode(errors="replace")) <= most, self._store

    def _reserve_whole(self, output: str, tool: str) -> ToolReservation | OutputStore:
        """Reserve an output as it is; else return the store that is to keep it."""
        whole, store = self._ways(output, tool)
        if store is None or whole:
            internal = tool in self.internal_tools
            reservation = self._reserve(output, stored=False, last=store is None, always=internal)
            if store is None or reservation.ok:
                return reservation
        return store

    def _reserve(
        self, text: str, *, stored: bool, last: bool, always: bool = False
    ) -> ToolReservation:
        """Try to reserve; if there is no room and no other form to try, force the final turn."""
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
        return answered(ok, tokens, text, stored=stored)

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
