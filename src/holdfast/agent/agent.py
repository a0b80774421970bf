"""An agent: a loop over models and tools that stays inside every window and ends in an answer.

agent: after asking and calling, the last word of this room. Read `_loop` from top to bottom: it is
the walk of a turn in docs/discussions/agent.md. The conversation is one list of messages as
OpenAI's chat writes them; each target's client carries it over to its own dialect.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

import msgspec

from holdfast import models
from holdfast.agent.asking import Asking
from holdfast.agent.bounds import Bounds, Run
from holdfast.agent.calling import INTERRUPTED, Calling, CitedOutputs
from holdfast.agent.journal import Journal, Step, Transcript, bare
from holdfast.agent.outcome import Ending, Outcome, Report, Reporting
from holdfast.agent.targets import Line, Target, open_line
from holdfast.agent.telemetry import listener as telemetry
from holdfast.agent.tools import Tool, tool_of
from holdfast.budget import TokenBudgetManager, Usage
from holdfast.client import Reply
from holdfast.engine import Holdfast
from holdfast.errors import AgentError, BudgetExceededError, SettingsError
from holdfast.guard import ContextGuard, Listener
from holdfast.guard.final_turn import FINAL_REPORT_TOOL
from holdfast.guard.tool_budget import ToolPolicy
from holdfast.settings import Settings
from holdfast.wire import read

_MOST_ASKS = 3
"""Times that a model is asked for its final report, or for the META that is missing."""


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
        self._is_running = False

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opening:  # if a target cannot be opened, all is closed again
            if self._engine is None:
                engine = Holdfast.open(self._store, settings=self.settings)
                self._engine = await opening.enter_async_context(engine)
            lines = [self._line(number, self._engine) for number in range(len(self.targets))]
            for line in lines:
                await opening.enter_async_context(line.client)
            self._assemble(self._engine, lines)
            self._closing = opening.pop_all()
        return self

    def _line(self, number: int, engine: Holdfast) -> Line:
        name = self.session if number == 0 else f"{self.session}/{number}"
        return open_line(
            self.targets[number],
            engine,
            self.settings,
            session=name,
            manager=self.budget,
            strategy=self._strategy,
        )

    def _assemble(self, engine: Holdfast, lines: Sequence[Line]) -> None:
        """Put together what a run is made of."""
        outputs = CitedOutputs(engine, self.session)
        self._guard = ContextGuard(
            [line.config for line in lines],
            on_overflow="best_effort",
            tool_policy=self._tool_policy,
            extra_tools=self._extra_tools,
            store=outputs,
            tool_response_max_bytes=self._max_bytes,
            listener=telemetry(self._listener, debug=self.settings.context_debug),
            debug=self.settings.context_debug,
        )
        journal = Journal(engine.store, engine.scope.of(self.session))
        self._transcript = Transcript(journal, [line.config.tokenizer_id for line in lines])
        self._report = Reporting(self._required_meta)
        self._bounds = Bounds(self._guard, self.budget, self.max_turns)
        run = Run(self._guard, self._transcript, self._report, self._bounds)
        self._asking = Asking(lines, run, self.tools, self._extra_tools)
        self._calling = Calling(self.tools, outputs, run, self._extra_tools)

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
        self._bounds.begin()
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
        # Turns that this agent took itself are in its budget already; only others' are added.
        counted, turns = self._bounds.turns, 0
        for step in steps:
            turns += step.kind == "turn"
            self._replay(step, is_counted=turns <= counted)
        if steps[-1].kind == "ended":
            return self._outcome(msgspec.convert(steps[-1].why, Ending), steps[-1].text)
        await self._calling.close(INTERRUPTED)
        self._guard.commit()
        self._guard.rebase(self._transcript.tokens_of(self.messages))
        if self._report.state.ready:
            return await self._end("reported", self._report.text)
        return await self._running()

    def _replay(self, step: Step, *, is_counted: bool) -> None:
        self.messages.extend(step.messages)
        match step.kind:
            case "task":
                self._report.begin()
            case "turn" if not is_counted:
                self._bounds.answered(step.output)
                usage = Usage(step.input, step.output)
                self.budget.track_usage(step.provider, msgspec.to_builtins(usage))
            case "told":
                self._report.told |= {m["content"] for m in step.messages if m["role"] == "user"}
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
            await asyncio.shield(self._calling.close(INTERRUPTED))
            raise
        finally:
            self._is_running = False

    async def _loop(self) -> Outcome:
        while True:
            if self._report.state.ready:
                return await self._end("reported", self._report.text)
            if self._report.asks >= _MOST_ASKS:
                return await self._give_up()
            definitions = await self._asking.prepare()
            was_final = self._bounds.is_final
            try:
                reply = await self._asking.ask(definitions)
            except BudgetExceededError as error:
                return await self._quote(error)
            if reply is None:
                return await self._quote(None)
            if not reply.calls:
                if ended := await self._answered(reply):
                    return ended
                continue
            await self._calling.answer(reply.calls)
            if was_final and not self._report.state.captured:
                self._report.ask_again()  # a model that goes on calling is not asked for ever

    async def _answered(self, reply: Reply) -> Outcome | None:
        """A turn without calls is the answer; where META is asked for, it is the report."""
        if self._report.state.locked or not reply.text.strip():
            self._report.ask_again()  # asked for META, or for anything, it gave none
            return None
        if not self._required_meta:
            return await self._end("forced" if self._bounds.is_final else "answered", reply.text)
        await self._transcript.add(self._report.take(Report(report=reply.text)))
        return None

    # --- the end ---------------------------------------------------------------------------------

    async def _give_up(self) -> Outcome:
        """The model was asked often enough: what there is, is the answer."""
        if self._report.state.captured:
            return await self._end("forced", self._report.text)
        return await self._quote(None)

    async def _quote(self, error: BudgetExceededError | None) -> Outcome:
        """No model can be asked any more: the offline model quotes what the conversation holds."""
        self._bounds.why = "budget" if error is not None else self._bounds.why or "context"
        if self._report.state.captured:
            return await self._end("forced", self._report.text)
        said = [m["content"] for m in self.messages if m.get("role") == "assistant"]
        told = next((text for text in reversed(said) if isinstance(text, str) and text), "")
        asked = [m for m in bare(self.messages) if not self._is_guidance(m)]
        spoken = await asyncio.to_thread(
            lambda: models.answer(read({"messages": asked}, "openai-chat"))
        )
        text = "\n\n".join(filter(None, (told, spoken.text)))
        message = {"role": "assistant", "content": text}
        await self._transcript.add(Step(kind="told", messages=[message]))
        return await self._end("quoted", text)

    def _is_guidance(self, message: Mapping[str, Any]) -> bool:
        content = message.get("content")
        return isinstance(content, str) and content in self._report.told

    async def _end(self, ending: Ending, text: str) -> Outcome:
        if ending == "reported" and self._bounds.is_final:
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
            why=self._bounds.why if ending in ("forced", "quoted") else "",
            turns=self._bounds.turns,
            input_tokens=used.input.used,
            output_tokens=used.output.used,
            session=self.session,
        )
