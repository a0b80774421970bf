"""The calls of a turn: each is run, finds room for its result, and is answered.

calling: after bounds, before agent. Parallel calls reserve room by one lock; every call gets one
result, whatever becomes of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from holdfast.agent.bounds import Run
from holdfast.agent.journal import Step
from holdfast.agent.outcome import Report
from holdfast.agent.outputs import CitedOutputs
from holdfast.agent.tools import Tool, outcome_of
from holdfast.errors import ToolFailureError
from holdfast.guard.final_turn import FINAL_REPORT_TOOL
from holdfast.wire.answers import Call

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
