"""Run the tool calls of a turn: run each tool, make room for its result, add the result.

Parallel calls reserve room under one lock, and every call gets exactly one result. Large outputs
are stored and cited; the original is durable before its citation is shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence

import msgspec

from holdfast.agent.bounds import RunParts
from holdfast.agent.journal import JournalStep
from holdfast.agent.outcome import ReportArguments
from holdfast.agent.tools import AgentTool, run_tool
from holdfast.cite import Citation, cite
from holdfast.engine import Holdfast
from holdfast.errors import ToolFailureError
from holdfast.guard.final_turn import FINAL_REPORT_TOOL
from holdfast.wire.responses import ModelCall

_LARGE = 16_000
"""Characters above which an output is cited in a thread, before the guard needs it."""


class CitedOutputs:
    """Stores outputs in the engine's store."""

    def __init__(self, engine: Holdfast, session: str) -> None:
        self._engine = engine
        self._session = session
        self._citations: dict[str, Citation] = {}

    async def prepare(self, output: str, tool: str) -> None:
        """Cite a large output now, in a thread."""
        if len(output) >= _LARGE:
            citation = await self._engine.cite(output, tool=tool, session=self._session)
            self._citations[output] = citation

    def handle(self, output: str) -> str:
        """Return the citation of an output."""
        if output not in self._citations:
            self._citations[output] = cite(output, rules=self._engine.options.rules)
        return self._citations[output].text

    def keep(self, output: str) -> Awaitable[None] | None:
        """Store the original of a citation."""
        return self._keep(output)

    async def _keep(self, output: str) -> None:
        self.handle(output)
        content = self._citations[output].content
        if content is not None:
            scope = self._engine.scope.of(self._session)
            await self._engine.store.put(scope, [content])

    def forget(self, output: str) -> None:
        """Forget the citation of an output."""
        self._citations.pop(output, None)


_MOST_FAILURES = 3
"""How often in a row a call may fail with the same arguments."""

NO_ROOM = "[No room is left for this result: token_budget_exceeded. Give your final report.]"
SKIPPED = "[Not run: no room is left for results: token_budget_exceeded.]"
INTERRUPTED = (
    "[The run was interrupted while this tool ran: it may or may not have taken effect. "
    "Call it again only if that is safe.]"
)
RECEIVED = "[Received.]"
LOCKED = "[Your report is locked; only its META is missing: {names}.]"


class ToolCalls:
    """Runs the tools of a run."""

    def __init__(
        self,
        tools: Mapping[str, AgentTool],
        outputs: CitedOutputs,
        run: RunParts,
        extra_tools: Sequence[str],
    ) -> None:
        """Set the tools; `extra_tools` may be called in the final turn too."""
        self._tools = tools
        self._outputs = outputs
        self._run = run
        self._extra_tools = extra_tools
        self._last_failure: tuple[tuple[str, str], int] = (("", ""), 0)

    async def answer(self, calls: Sequence[ModelCall]) -> None:
        """Run the calls concurrently; each result is written to the journal when it arrives.

        A result that cannot be written cancels the others: its effects would be unrecorded. If
        another process has continued from here, that process runs the calls.

        Raises:
            ToolFailureError: if a tool fails three times in a row with the same arguments.
        """
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._answer_call(call)) for call in calls]
        except BaseExceptionGroup as failed_writes:
            raise failed_writes.exceptions[0] from None
        for call, task in zip(calls, tasks, strict=True):
            failed = task.result()
            key = (call.name, call.arguments)
            times = (
                self._last_failure[1] + 1
                if failed and self._last_failure[0] == key
                else int(failed)
            )
            self._last_failure = (key, times) if failed else (("", ""), 0)
            if times >= _MOST_FAILURES:
                raise ToolFailureError(
                    f"the tool failed {times} times in a row with the same arguments",
                    where=call.name[:64],
                    fix="Look at the tool; `resume` goes on from here.",
                )

    async def close(self, text: str) -> None:
        """Add a result to every call that has none."""
        guard, transcript, _, _ = self._run
        if results := await transcript.unanswered(text):
            guard.add_pending(transcript.tokens_of(results))
            await transcript.add(JournalStep(kind="result", messages=results))
            guard.commit()

    async def _answer_call(self, call: ModelCall) -> bool:
        """Answer one call; return whether it failed."""
        guard, _, report, bounds = self._run
        if call.name == FINAL_REPORT_TOOL:
            return await self._take_report(call)
        tool = self._tools.get(call.name)
        if tool is None:
            names = ", ".join(sorted(self._tools)) or "none"
            await self._result(call, f"[There is no tool with this name. There are: {names}.]")
            return True
        allowed = report.state.tools_for_turn(
            (call.name,), final=bounds.is_final, extra_tools=self._extra_tools
        )
        if not allowed or not guard.can_execute_tool(call.name):
            await self._result(call, SKIPPED, pending=True)
            return False
        failed, output = await run_tool(tool, call.arguments)
        await self._outputs.prepare(output, call.name)
        reservation = await guard.areserve_tool_output(output, call.name)
        self._outputs.forget(output)
        if reservation.ok:
            await self._result(call, reservation.text)
        else:
            bounds.why = bounds.why or "tools"
            await self._result(call, NO_ROOM, pending=True)
        return failed

    async def _take_report(self, call: ModelCall) -> bool:
        _, transcript, report, _ = self._run
        try:
            arguments = msgspec.json.decode(call.arguments or "{}", type=ReportArguments)
        except (msgspec.MsgspecError, RecursionError) as error:
            report.asks += 1
            why = str(error) if isinstance(error, msgspec.ValidationError) else "no JSON object"
            await self._result(call, f"[The report cannot be read: {why}.]", pending=True)
            return True
        await transcript.add(report.take(arguments))
        missing = report.state.missing_meta
        text = LOCKED.format(names=", ".join(sorted(missing))) if missing else RECEIVED
        await self._result(call, text, pending=True)
        return False

    # the guard has not reserved it
    async def _result(self, call: ModelCall, text: str, *, pending: bool = False) -> None:
        guard, transcript, _, _ = self._run
        message = {"role": "tool", "tool_call_id": call.id, "content": text}
        if pending:  # what the guard did not reserve itself
            guard.add_pending(transcript.tokens_of([message]))
        await transcript.add(JournalStep(kind="result", messages=[message]))
