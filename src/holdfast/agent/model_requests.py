"""Send the agent's requests: their tools, guidance and room, and the target that takes them.

History is folded only if no target can take the next request. If no fold helps, the final turn is
forced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.agent.bounds import RunParts
from holdfast.agent.journal import JournalStep
from holdfast.agent.outcome import report_definition
from holdfast.agent.targets import OpenTarget
from holdfast.agent.tools import AgentTool
from holdfast.client import Reply
from holdfast.errors import BudgetExceededError, ContextOptimizationError, ProviderError
from holdfast.guard.final_turn import FINAL_REPORT_TOOL, final_turn_guidance

Definitions = list[dict[str, Any]]

BUDGET_ENDS = "The budget of tokens for this work is nearly used up."
TURNS_END = "You have taken as many turns as you may."


class ModelRequests:
    """Sends the requests of a run to its targets, in order."""

    def __init__(
        self,
        lines: Sequence[OpenTarget],
        run: RunParts,
        tools: Mapping[str, AgentTool],
        extra_tools: Sequence[str],
    ) -> None:
        """Set the targets and tools; `extra_tools` are offered in the final turn too."""
        self.lines = lines
        self._run = run
        self._tools = tools
        self._extra_tools = extra_tools

    # --- before a request ------------------------------------------------------------------------

    async def prepare(self) -> Definitions:
        """Make room for the next request, add guidance for its turn, and return its tools."""
        definitions = self._definitions()  # fewer, if this has become the final turn
        self._run.bounds.look_ahead(self.lines[0].config.output_tokens)
        await self._add_guidance(self._guidance())
        await self._make_room(definitions)
        definitions = self._definitions()  # fewer, if this has become the final turn
        await self._add_guidance(self._guidance())
        return definitions

    def _definitions(self) -> Definitions:
        """Return the tools of this turn; their tokens and those of a final turn are counted."""
        guard, transcript, report, bounds = self._run
        every = {name: tool.definition for name, tool in self._tools.items()}
        every[FINAL_REPORT_TOOL] = report_definition(report.required_meta)
        names = report.state.tools_for_turn(
            every, final=bounds.is_final, extra_tools=self._extra_tools
        )
        last = report.state.tools_for_turn(every, final=True, extra_tools=self._extra_tools)
        guard.set_schema(
            transcript.schema_tokens([every[name] for name in names]),
            final_tokens=transcript.schema_tokens([every[name] for name in last]),
        )
        return [every[name] for name in names]

    def _guidance(self) -> str:
        guard, _, report, bounds = self._run
        if guard.forced_final_turn_reason is None and bounds.is_final:
            if report.state.locked or report.state.ready:
                return report.state.guidance(reason=None)
            return final_turn_guidance(
                (FINAL_REPORT_TOOL,),
                self._extra_tools,
                report.state.missing_meta,
                because=BUDGET_ENDS if bounds.why == "budget" else TURNS_END,
            )
        return guard.guidance(report.state)

    async def _add_guidance(self, guidance: str) -> None:
        """Add guidance for the turn, once, since it stays in the conversation."""
        guard, transcript, report, _ = self._run
        if guidance and guidance != report.current_guidance:
            message = {"role": "user", "content": guidance}
            await transcript.add(JournalStep(kind="told", messages=[message]))
            guard.add_pending(transcript.tokens_of([message]))
            report.current_guidance = guidance
            report.guidance.add(guidance)

    async def _make_room(self, definitions: Definitions) -> None:
        """Fold history if no target can take the next request; otherwise force the final turn."""
        guard, transcript, _, bounds = self._run
        if len(guard.evaluate().blocked) < len(self.lines):
            return
        for line in self.lines:
            try:
                fitted = await line.client.fit(
                    transcript.messages, tools=definitions, limit=line.config.limit
                )
            except (ContextOptimizationError, BudgetExceededError):
                continue
            guard.commit()
            guard.rebase(max(fitted.tokens - guard.counters.schema, 0))
            return
        bounds.why = bounds.why or "context"
        guard.enforce_final_turn("turn_preflight")

    # --- a request -------------------------------------------------------------------------------

    async def ask(self, definitions: Definitions) -> Reply | None:
        """Return the answer of the first target that can take the request; None if none can.

        Raises:
            BudgetExceededError: if the budget of the whole run is used up.
            ProviderError: if the targets that could take it failed.
        """
        guard, transcript, _, _ = self._run
        failure: ProviderError | None = None
        for config, client in self.lines:
            if guard.preflight(config.provider, config.model) == "skip":
                continue
            guard.request_metrics(config.provider, config.model)
            try:
                reply = await client.chat(
                    transcript.messages, tools=definitions, limit=config.limit
                )
            except ContextOptimizationError:
                continue  # does not fit even when folded; the next target may be larger
            except BudgetExceededError as error:
                # This budget covers all targets.
                if error.where.startswith("budget."):
                    raise
                continue
            except ProviderError as error:
                failure = error
                continue
            await self._record(reply, config.provider)
            return reply
        if failure is not None:
            raise failure
        return None

    async def _record(self, reply: Reply, provider: str) -> None:
        """Count an answer and write it to the journal."""
        guard, transcript, _, bounds = self._run
        used = reply.usage
        guard.commit()
        guard.observe_usage(reply.context_tokens or reply.predicted, used.output or 0)
        bounds.count_turn(used.output or 0)
        await transcript.add(
            JournalStep(
                kind="turn",
                messages=reply.messages or [{"role": "assistant", "content": reply.text}],
                provider=provider,
                input=used.input or 0,
                output=used.output or 0,
            )
        )
