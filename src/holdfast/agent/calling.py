"""The calls of a turn: each is run, finds room for its result, and is answered.

calling: after bounds, before agent. Parallel calls reserve room by one lock; every call gets one
result, whatever becomes of it.

Tool outputs outside of the conversation: stored, with a citation in their place (C43). A citation
is short, quotes what matters and says how to open the rest; the original is durable before it is
shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence

import msgspec

from holdfast.agent.bounds import Run
from holdfast.agent.journal import Step
from holdfast.agent.outcome import Report
from holdfast.agent.tools import Tool, outcome_of
from holdfast.cite import Citation, cite
from holdfast.engine import Holdfast
from holdfast.errors import ToolFailureError
from holdfast.guard.final_turn import FINAL_REPORT_TOOL
from holdfast.wire.responses import Call

_LARGE = 16_000
"""Characters from which on a content is cited off the event loop, before the guard looks at it."""


class CitedOutputs:
    """Keeps outputs in the engine's store."""

    def __init__(self, engine: Holdfast, session: str) -> None:
        self._engine = engine
        self._session = session
        self._citations: dict[str, Citation] = {}

    async def prepare(self, output: str, tool: str) -> None:
        """Cite a large output now, where that holds nobody up."""
        if len(output) >= _LARGE:
            citation = await self._engine.cite(output, tool=tool, session=self._session)
            self._citations[output] = citation

    def handle(self, output: str) -> str:
        """The citation of an output."""
        if output not in self._citations:
            self._citations[output] = cite(output, rules=self._engine.options.rules)
        return self._citations[output].text

    def keep(self, output: str) -> Awaitable[None] | None:
        """Store the original behind its citation."""
        return self._keep(output)

    async def _keep(self, output: str) -> None:
        self.handle(output)
        content = self._citations[output].content
        if content is not None:
            scope = self._engine.scope.of(self._session)
            await self._engine.store.put(scope, [content])

    def forget(self, output: str) -> None:
        """Let go of what was only needed for a moment."""
        self._citations.pop(output, None)


_MOST_FAILURES = 3
"""Times in a row that a call may fail with the same arguments."""

NO_ROOM = "[No room is left for this result: token_budget_exceeded. Give your final report.]"
SKIPPED = "[Not run: no room is left for results: token_budget_exceeded.]"
INTERRUPTED = (
    "[The run was interrupted while this tool ran: it may or may not have taken effect. "
    "Call it again only if that is safe.]"
)
RECEIVED = "[Received.]"
LOCKED = "[Your report is locked; only its META is missing: {names}.]"


class Calling:
    """Runs the tools of a run."""

    def __init__(
        self, tools: Mapping[str, Tool], outputs: CitedOutputs, run: Run, extra_tools: Sequence[str]
    ) -> None:
        """Take the tools; `extra_tools` may be called to the end."""
        self._tools = tools
        self._outputs = outputs
        self._run = run
        self._extra_tools = extra_tools
        self._failing: tuple[tuple[str, str], int] = (("", ""), 0)

    async def answer(self, calls: Sequence[Call]) -> None:
        """Run what was asked for, at once; each result is written down as it comes.

        A result that cannot be written ends the others too: nobody would know what they did, and
        if another process has gone on from here, they are its to run.

        Raises:
            ToolFailureError: a tool failed three times in a row with the same arguments.
        """
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._called(call)) for call in calls]
        except BaseExceptionGroup as failed_writes:
            raise failed_writes.exceptions[0] from None
        for call, task in zip(calls, tasks, strict=True):
            failed = task.result()
            key = (call.name, call.arguments)
            times = self._failing[1] + 1 if failed and self._failing[0] == key else int(failed)
            self._failing = (key, times) if failed else (("", ""), 0)
            if times >= _MOST_FAILURES:
                raise ToolFailureError(
                    f"the tool failed {times} times in a row with the same arguments",
                    where=call.name[:64],
                    fix="Look at the tool; `resume` goes on from here.",
                )

    async def close(self, text: str) -> None:
        """Answer every call that has no result yet."""
        guard, transcript, _, _ = self._run
        if results := await transcript.unanswered(text):
            guard.add_pending(transcript.tokens_of(results))
            await transcript.add(Step(kind="result", messages=results))
            guard.commit()

    async def _called(self, call: Call) -> bool:
        """Answer one call; whether it failed."""
        guard, _, report, bounds = self._run
        if call.name == FINAL_REPORT_TOOL:
            return await self._reported(call)
        tool = self._tools.get(call.name)
        if tool is None:
            names = ", ".join(sorted(self._tools)) or "none"
            await self._result(call, f"[There is no tool of this name. There are: {names}.]")
            return True
        allowed = report.state.tools_for_turn(
            (call.name,), final=bounds.is_final, extra_tools=self._extra_tools
        )
        if not allowed or not guard.can_execute_tool(call.name):
            await self._result(call, SKIPPED, pending=True)
            return False
        failed, output = await outcome_of(tool, call.arguments)
        await self._outputs.prepare(output, call.name)
        reservation = await guard.areserve_tool_output(output, call.name)
        self._outputs.forget(output)
        if reservation.ok:
            await self._result(call, reservation.text)
        else:
            bounds.why = bounds.why or "tools"
            await self._result(call, NO_ROOM, pending=True)
        return failed

    async def _reported(self, call: Call) -> bool:
        _, transcript, report, _ = self._run
        try:
            given = msgspec.json.decode(call.arguments or "{}", type=Report)
        except (msgspec.MsgspecError, RecursionError) as error:
            report.asks += 1
            why = str(error) if isinstance(error, msgspec.ValidationError) else "no JSON object"
            await self._result(call, f"[The report cannot be read: {why}.]", pending=True)
            return True
        await transcript.add(report.take(given))
        missing = report.state.missing_meta
        text = LOCKED.format(names=", ".join(sorted(missing))) if missing else RECEIVED
        await self._result(call, text, pending=True)
        return False

    async def _result(self, call: Call, text: str, *, pending: bool = False) -> None:
        guard, transcript, _, _ = self._run
        message = {"role": "tool", "tool_call_id": call.id, "content": text}
        if pending:  # what the guard did not reserve itself
            guard.add_pending(transcript.tokens_of([message]))
        await transcript.add(Step(kind="result", messages=[message]))
