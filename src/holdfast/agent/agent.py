"""An agent: a loop over models and tools that stays inside every window and ends in an answer.

agent: the last word of this room. Read `_loop` from top to bottom: it is the walk of a turn in
docs/discussions/agent.md. The conversation is one list of messages as OpenAI's chat writes them;
each target's client carries it over to its own dialect and makes it fit.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

import msgspec

from holdfast import models
from holdfast.agent.journal import Journal, Step
from holdfast.agent.outcome import Ending, Outcome, Report, report_definition
from holdfast.agent.outputs import CitedOutputs
from holdfast.agent.reporting import Reporting
from holdfast.agent.targets import Line, Target, open_line
from holdfast.agent.telemetry import listener as telemetry
from holdfast.agent.tools import Tool, outcome_of, tool_of
from holdfast.agent.transcript import Transcript, bare
from holdfast.budget import TokenBudgetManager, Usage
from holdfast.client import Reply
from holdfast.engine import Holdfast
from holdfast.errors import (
    AgentError,
    BudgetExceededError,
    ContextOptimizationError,
    ProviderError,
    SettingsError,
    ToolFailureError,
)
from holdfast.guard import ContextGuard, Listener
from holdfast.guard.final_turn import FINAL_REPORT_TOOL, final_turn_guidance
from holdfast.guard.tool_budget import ToolPolicy
from holdfast.settings import Settings
from holdfast.wire import read
from holdfast.wire.answers import Call

_MOST_FAILURES = 3
"""Times in a row that a call may fail with the same arguments."""
_MOST_ASKS = 3
"""Times that a model is asked for its final report, or for the META that is missing."""

NO_ROOM = "[No room is left for this result: token_budget_exceeded. Give your final report.]"
SKIPPED = "[Not run: no room is left for results: token_budget_exceeded.]"
INTERRUPTED = (
    "[The run was interrupted while this tool ran: it may or may not have taken effect. "
    "Call it again only if that is safe.]"
)
RECEIVED = "[Received.]"
LOCKED = "[Your report is locked; only its META is missing: {names}.]"


class Agent:
    """Runs a task with tools until there is an answer; used inside `async with`.

    `targets` are tried in their order. `tools` are functions, plain or async. `budget` is for all
    tokens of the agent; when it is used up, what was found is still answered. `required_meta` names
    what must come with the final report.
    """

    def __init__(  # noqa: PLR0913 - named arguments, of which most agents need two
        self,
        targets: str | Target | Sequence[str | Target] = "offline",
        *,
        tools: Iterable[Callable[..., Any] | Tool] = (),
        system: str = "",
        budget: int | None = None,
        required_meta: Iterable[str] = (),
        extra_tools: Iterable[str] = (),
        max_turns: int = 50,
        tool_response_max_bytes: int | None = None,
        tool_policy: ToolPolicy = "any",
        strategy: str = "auto",
        session: str = "",
        store: str | None = None,
        engine: Holdfast | None = None,
        settings: Settings | None = None,
        listener: Listener | None = None,
    ) -> None:
        given = (targets,) if isinstance(targets, str | Target) else tuple(targets)
        self.targets = tuple(t if isinstance(t, Target) else Target(model=t) for t in given)
        self.tools = {tool.name: tool for tool in map(tool_of, tools)}
        if FINAL_REPORT_TOOL in self.tools:
            raise SettingsError(
                "the name of this tool is taken",
                where=FINAL_REPORT_TOOL,
                fix="Rename the function.",
            )
        self.system = system
        self.session = session or uuid.uuid4().hex
        self.max_turns = max_turns
        self.budget = TokenBudgetManager(total_limit=budget)
        self.settings = settings or Settings.load()
        self._required_meta = frozenset(required_meta)
        self._extra_tools = tuple(extra_tools)
        self._max_bytes = tool_response_max_bytes
        self._tool_policy = tool_policy
        self._strategy = strategy
        self._store = store
        self._engine = engine
        self._listener = listener
        self._closing = AsyncExitStack()
        self._report = Reporting(self._required_meta)
        self._turns = 0
        self._why = ""
        self._failing: tuple[tuple[str, str], int] = (("", ""), 0)
        self._is_running = False

    async def __aenter__(self) -> Self:
        if self._engine is None:
            opening = Holdfast.open(self._store, settings=self.settings)
            self._engine = await self._closing.enter_async_context(opening)
        engine = self._engine
        self._lines: list[Line] = []
        for number, target in enumerate(self.targets):
            name = self.session if number == 0 else f"{self.session}/{number}"
            line = open_line(
                target,
                engine,
                self.settings,
                session=name,
                manager=self.budget,
                strategy=self._strategy,
            )
            self._lines.append(line)
            await self._closing.enter_async_context(line.client)
        self._outputs = CitedOutputs(engine, self.session)
        self._guard = ContextGuard(
            [line.config for line in self._lines],
            on_overflow="best_effort",
            tool_policy=self._tool_policy,
            extra_tools=self._extra_tools,
            store=self._outputs,
            tool_response_max_bytes=self._max_bytes,
            listener=telemetry(self._listener, debug=self.settings.context_debug),
            debug=self.settings.context_debug,
        )
        journal = Journal(engine.store, engine.scope.of(self.session))
        tokenizers = [line.config.tokenizer_id for line in self._lines]
        self._transcript = Transcript(journal, tokenizers)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._closing.aclose()

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far, valid at every moment outside of `run`."""
        return self._transcript.messages

    @property
    def guard(self) -> ContextGuard:
        """What holds the session inside its windows."""
        return self._guard

    # --- running ---------------------------------------------------------------------------------

    async def run(self, task: str | Sequence[Mapping[str, Any]]) -> Outcome:
        """Do a task, or go on with a further one in the same conversation.

        Raises:
            ToolFailureError: a tool failed three times in a row with the same arguments.
            ProviderError: no target answered; `resume` goes on from here.
            StoreError: the journal cannot be written.
        """
        given = [{"role": "user", "content": task}] if isinstance(task, str) else list(task)
        begun: list[dict[str, Any]] = []
        if not self.messages and not await self._transcript.read() and self.system:
            begun.append({"role": "system", "content": self.system})
        begun += [dict(message) for message in given]
        self._report.begin()
        await self._transcript.add(Step(kind="task", messages=begun))
        self._guard.add_pending(self._transcript.tokens_of(begun))
        return await self._running()

    async def resume(self, session: str = "") -> Outcome:
        """Go on after a crash, here or on another machine, from what the journal holds.

        A run that had ended gives its outcome again.

        Raises:
            AgentError: there is nothing to go on from.
        """
        if session and session != self.session:
            raise AgentError(
                "the agent is of another session",
                where="session",
                fix="Give the session to Agent(session=…), then resume.",
            )
        steps = await self._transcript.read()
        if not steps:
            raise AgentError("the session has no journal", where=self.session, fix="Run a task.")
        self.messages.clear()
        self._report.begin()
        for step in steps:
            self._replay(step)
        if steps[-1].kind == "ended":
            return self._outcome(msgspec.convert(steps[-1].why, Ending), steps[-1].text)
        await self._close_calls(INTERRUPTED)
        self._guard.commit()
        self._guard.rebase(self._transcript.tokens_of(self.messages))
        if self._report.state.ready:
            return await self._end("reported", self._report.text)
        return await self._running()

    def _replay(self, step: Step) -> None:
        self.messages.extend(step.messages)
        match step.kind:
            case "task":
                self._report.begin()
            case "turn":
                self._turns += 1
                usage = Usage(step.input, step.output)
                self.budget.track_usage(step.provider, msgspec.to_builtins(usage))
            case "report":
                self._report.replay(step)

    async def _running(self) -> Outcome:
        if self._is_running:
            raise AgentError("the agent is running", where=self.session, fix="Await its outcome.")
        self._is_running = True
        try:
            return await self._loop()
        except asyncio.CancelledError:
            # Whoever goes on finds a valid conversation: every call has a result.
            await asyncio.shield(self._close_calls(INTERRUPTED))
            raise
        finally:
            self._is_running = False

    async def _loop(self) -> Outcome:
        while True:
            if self._report.state.ready:
                return await self._end("reported", self._report.text)
            if self._report.asks >= _MOST_ASKS:
                return await self._give_up()
            definitions = self._definitions()
            await self._tell(self._guidance())
            await self._make_room(definitions)
            definitions = self._definitions()  # fewer, if that has forced the final turn
            await self._tell(self._guidance())
            was_final = self._is_final
            try:
                reply = await self._ask(definitions)
            except BudgetExceededError as error:
                return await self._quote(error)
            if reply is None:
                return await self._quote(None)
            if not reply.calls:
                if ended := await self._answered(reply):
                    return ended
                continue
            await self._run_tools(reply.calls)
            if was_final and not self._report.state.captured:
                self._report.ask_again()  # a model that goes on calling is not asked for ever

    # --- before a request ------------------------------------------------------------------------

    @property
    def _is_final(self) -> bool:
        return self._guard.forced_final_turn_reason is not None or self._turns >= self.max_turns

    def _definitions(self) -> list[dict[str, Any]]:
        """The tools of this turn; their tokens, and those of the last turn's, are counted."""
        every = {name: tool.definition for name, tool in self.tools.items()}
        every[FINAL_REPORT_TOOL] = report_definition(self._required_meta)
        names = self._report.state.tools_for_turn(
            every, final=self._is_final, extra_tools=self._extra_tools
        )
        last = self._report.state.tools_for_turn(every, final=True, extra_tools=self._extra_tools)
        self._guard.set_schema(
            self._transcript.schema_tokens([every[name] for name in names]),
            final_tokens=self._transcript.schema_tokens([every[name] for name in last]),
        )
        return [every[name] for name in names]

    def _guidance(self) -> str:
        if self._guard.forced_final_turn_reason is None and self._is_final:
            if self._report.state.locked or self._report.state.ready:
                return self._report.state.guidance(reason=None)
            meta = self._report.state.missing_meta
            return final_turn_guidance((FINAL_REPORT_TOOL,), self._extra_tools, meta)
        return self._guard.guidance(self._report.state)

    async def _tell(self, guidance: str) -> None:
        """Say to the model what its turn is for; once, for it stays in the conversation."""
        if guidance and guidance != self._report.guidance_told:
            message = {"role": "user", "content": guidance}
            await self._transcript.add(Step(kind="told", messages=[message]))
            self._guard.add_pending(self._transcript.tokens_of([message]))
            self._report.guidance_told = guidance

    async def _make_room(self, definitions: list[dict[str, Any]]) -> None:
        """Fold history where no target takes the next request; else the final turn is forced."""
        if len(self._guard.evaluate().blocked) < len(self._lines):
            return
        for line in self._lines:
            try:
                fitted = await line.client.fit(
                    self.messages, tools=definitions, limit=line.config.limit
                )
            except (ContextOptimizationError, BudgetExceededError):
                continue
            self._guard.commit()
            self._guard.rebase(max(fitted.tokens - self._guard.counters.schema, 0))
            return
        self._why = self._why or "context"
        self._guard.enforce_final_turn("turn_preflight")

    # --- a request -------------------------------------------------------------------------------

    async def _ask(self, definitions: list[dict[str, Any]]) -> Reply | None:
        """The answer of the first target that takes the request; None if none can.

        Raises:
            BudgetExceededError: the budget of all requests is used up.
            ProviderError: those that could take it failed.
        """
        failure: ProviderError | None = None
        for config, client in self._lines:
            if self._guard.preflight(config.provider, config.model) == "skip":
                continue
            self._guard.request_metrics(config.provider, config.model)
            try:
                reply = await client.chat(self.messages, tools=definitions, limit=config.limit)
            except ContextOptimizationError:
                continue  # it does not fit, whatever is folded: perhaps the next target is larger
            except BudgetExceededError as error:
                if error.where.startswith("budget."):  # of all requests, wherever they go
                    raise
                continue
            except ProviderError as error:
                failure = error
                continue
            self._guard.commit()
            self._guard.observe_usage(
                reply.context_tokens or reply.predicted, reply.usage.output or 0
            )
            self._turns += 1
            used = reply.usage
            await self._transcript.add(
                Step(
                    kind="turn",
                    messages=reply.messages or [{"role": "assistant", "content": reply.text}],
                    provider=config.provider,
                    input=used.input or 0,
                    output=used.output or 0,
                )
            )
            return reply
        if failure is not None:
            raise failure
        return None

    async def _answered(self, reply: Reply) -> Outcome | None:
        """A turn without calls is the answer; where META is asked for, it is the report."""
        if self._report.state.locked or not reply.text.strip():
            self._report.ask_again()  # asked for META, or for anything, it gave none
            return None
        if not self._required_meta:
            return await self._end("forced" if self._is_final else "answered", reply.text)
        await self._transcript.add(self._report.take(Report(report=reply.text)))
        return None

    # --- tools -----------------------------------------------------------------------------------

    async def _run_tools(self, calls: Sequence[Call]) -> None:
        """Run what was asked for, at once; each result is written down as it comes.

        A result that cannot be written ends the others too: nobody would know what they did, and
        if another process has gone on from here, they are its to run.
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

    async def _called(self, call: Call) -> bool:
        """Answer one call; whether it failed."""
        if call.name == FINAL_REPORT_TOOL:
            return await self._reported(call)
        tool = self.tools.get(call.name)
        if tool is None:
            names = ", ".join(sorted(self.tools)) or "none"
            await self._result(call, f"[There is no tool of this name. There are: {names}.]")
            return True
        allowed = self._report.state.tools_for_turn(
            (call.name,), final=self._is_final, extra_tools=self._extra_tools
        )
        if not allowed or not self._guard.can_execute_tool(call.name):
            await self._result(call, SKIPPED, pending=True)
            return False
        failed, output = await outcome_of(tool, call.arguments)
        await self._outputs.prepare(output, call.name)
        reservation = await self._guard.areserve_tool_output(output, call.name)
        self._outputs.forget(output)
        if reservation.ok:
            await self._result(call, reservation.text)
        else:
            self._why = self._why or "tools"
            await self._result(call, NO_ROOM, pending=True)
        return failed

    async def _reported(self, call: Call) -> bool:
        try:
            given = msgspec.json.decode(call.arguments or "{}", type=Report)
        except (msgspec.MsgspecError, RecursionError) as error:
            self._report.asks += 1
            why = str(error) if isinstance(error, msgspec.ValidationError) else "no JSON object"
            await self._result(call, f"[The report cannot be read: {why}.]", pending=True)
            return True
        await self._transcript.add(self._report.take(given))
        missing = self._report.state.missing_meta
        text = LOCKED.format(names=", ".join(sorted(missing))) if missing else RECEIVED
        await self._result(call, text, pending=True)
        return False

    async def _result(self, call: Call, text: str, *, pending: bool = False) -> None:
        message = {"role": "tool", "tool_call_id": call.id, "content": text}
        if pending:  # what the guard did not reserve itself
            self._guard.add_pending(self._transcript.tokens_of([message]))
        await self._transcript.add(Step(kind="result", messages=[message]))

    async def _close_calls(self, text: str) -> None:
        """Answer every call that has no result yet."""
        if results := await self._transcript.unanswered(text):
            self._guard.add_pending(self._transcript.tokens_of(results))
            await self._transcript.add(Step(kind="result", messages=results))
            self._guard.commit()

    # --- the end ---------------------------------------------------------------------------------

    async def _give_up(self) -> Outcome:
        """The model was asked often enough: what there is, is the answer."""
        if self._report.state.captured:
            return await self._end("forced", self._report.text)
        return await self._quote(None)

    async def _quote(self, error: BudgetExceededError | None) -> Outcome:
        """No model can be asked any more: the offline model quotes what the conversation holds."""
        self._why = "budget" if error is not None else self._why or "context"
        if self._report.state.captured:
            return await self._end("forced", self._report.text)
        said = [m["content"] for m in self.messages if m.get("role") == "assistant"]
        told = next((text for text in reversed(said) if isinstance(text, str) and text), "")
        spoken = await asyncio.to_thread(
            lambda: models.answer(read({"messages": bare(self.messages)}, "openai-chat"))
        )
        text = "\n\n".join(filter(None, (told, spoken.text)))
        message = {"role": "assistant", "content": text}
        await self._transcript.add(Step(kind="told", messages=[message]))
        return await self._end("quoted", text)

    async def _end(self, ending: Ending, text: str) -> Outcome:
        if ending == "reported" and self._is_final:
            ending = "forced"
        await self._transcript.add(Step(kind="ended", text=text, why=ending))
        return self._outcome(ending, text)

    def _outcome(self, ending: Ending, text: str) -> Outcome:
        used = self.budget.budget
        return Outcome(
            text=text,
            ending=ending,
            meta=dict(self._report.meta),
            missing_meta=tuple(sorted(self._report.state.missing_meta)),
            why=self._why if ending in ("forced", "quoted") else "",
            turns=self._turns,
            input_tokens=used.input.used,
            output_tokens=used.output.used,
            session=self.session,
        )
