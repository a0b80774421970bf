"""The agent: a loop over models and tools within every window that ends in an answer.

`_loop` follows the steps of a turn in docs/discussions/agent.md. The conversation is one list of
Chat Completions messages; each target's client converts it to its own dialect.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

import msgspec

from holdfast import models
from holdfast.agent.bounds import Bounds, RunParts
from holdfast.agent.journal import Journal, JournalStep, Transcript, without_holdfast_keys
from holdfast.agent.model_requests import ModelRequests
from holdfast.agent.outcome import AttemptEnd, Outcome, ReportArguments, ReportProgress
from holdfast.agent.targets import OpenTarget, Target, open_target
from holdfast.agent.telemetry import build_listener
from holdfast.agent.tool_calls import INTERRUPTED, CitedOutputs, ToolCalls
from holdfast.agent.tools import AgentTool, build_tool
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
"""How often a model is asked for its final report or the missing META."""


class Agent:
    """Runs a task with tools until it has an answer. Use it in an `async with` statement.

    `targets` are tried in order. `tools` are plain or async functions. `budget` limits all tokens
    of the agent; when it is used up, the agent answers from what it has. `required_meta` names
    values that must come with the final report.
    """

    def __init__(  # noqa: PLR0913 - named arguments, of which most agents need two
        self,
        targets: str | Target | Sequence[str | Target] = "offline",
        *,
        tools: Iterable[Callable[..., Any] | AgentTool] = (),
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
        target_list = (targets,) if isinstance(targets, str | Target) else tuple(targets)
        self.targets = tuple(t if isinstance(t, Target) else Target(model=t) for t in target_list)
        self.tools = {tool.name: tool for tool in map(build_tool, tools)}
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
        self._exit_stack = AsyncExitStack()
        self._is_running = False

    async def __aenter__(self) -> Self:
        # closes everything again if a target cannot be opened
        async with AsyncExitStack() as opening:
            if self._engine is None:
                engine = Holdfast.open(self._store, settings=self.settings)
                self._engine = await opening.enter_async_context(engine)
            lines = [self._line(number, self._engine) for number in range(len(self.targets))]
            for line in lines:
                await opening.enter_async_context(line.client)
            self._build_parts(self._engine, lines)
            self._exit_stack = opening.pop_all()
        return self

    def _line(self, number: int, engine: Holdfast) -> OpenTarget:
        name = self.session if number == 0 else f"{self.session}/{number}"
        return open_target(
            self.targets[number],
            engine,
            self.settings,
            session=name,
            manager=self.budget,
            strategy=self._strategy,
        )

    def _build_parts(self, engine: Holdfast, lines: Sequence[OpenTarget]) -> None:
        """Create the parts of a run."""
        outputs = CitedOutputs(engine, self.session)
        self._guard = ContextGuard(
            [line.config for line in lines],
            on_overflow="best_effort",
            tool_policy=self._tool_policy,
            extra_tools=self._extra_tools,
            store=outputs,
            tool_response_max_bytes=self._max_bytes,
            listener=build_listener(self._listener, debug=self.settings.context_debug),
            debug=self.settings.context_debug,
        )
        journal = Journal(engine.store, engine.scope.of(self.session))
        self._transcript = Transcript(journal, [line.config.tokenizer_id for line in lines])
        self._report = ReportProgress(self._required_meta)
        self._bounds = Bounds(self._guard, self.budget, self.max_turns)
        run = RunParts(self._guard, self._transcript, self._report, self._bounds)
        self._requests = ModelRequests(lines, run, self.tools, self._extra_tools)
        self._calls = ToolCalls(self.tools, outputs, run, self._extra_tools)

    async def __aexit__(self, *_: object) -> None:
        await self._exit_stack.aclose()

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Return the conversation so far, which is valid whenever `run` is not active."""
        return self._transcript.messages

    @property
    def guard(self) -> ContextGuard:
        """Return the guard that keeps the session within its windows."""
        return self._guard

    # --- running ---------------------------------------------------------------------------------

    async def run(self, task: str | Sequence[Mapping[str, Any]]) -> Outcome:
        """Run a task, or continue the same conversation with another one.

        Raises:
            ToolFailureError: if a tool fails three times in a row with the same arguments.
            ProviderError: if no target answers; `resume` continues from here.
            StoreError: if the journal cannot be written.
        """
        messages = [{"role": "user", "content": task}] if isinstance(task, str) else list(task)
        opening_messages: list[dict[str, Any]] = []
        if not self.messages and not await self._transcript.read() and self.system:
            opening_messages.append({"role": "system", "content": self.system})
        opening_messages += [dict(message) for message in messages]
        self._report.begin()
        self._bounds.begin()
        await self._transcript.add(JournalStep(kind="task", messages=opening_messages))
        self._guard.add_pending(self._transcript.tokens_of(opening_messages))
        return await self._run_exclusively()

    async def resume(self, session: str = "") -> Outcome:
        """Continue after a crash, here or on another machine, from the journal.

        A run that has ended returns its outcome again.

        Raises:
            AgentError: if the session has no journal.
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
        # Turns of this agent are in its budget already; only those of other processes are added.
        counted, turns = self._bounds.turns, 0
        for step in steps:
            turns += step.kind == "turn"
            self._replay(step, is_counted=turns <= counted)
        if steps[-1].kind == "ended":
            return self._outcome(msgspec.convert(steps[-1].why, AttemptEnd), steps[-1].text)
        await self._calls.close(INTERRUPTED)
        self._guard.commit()
        self._guard.rebase(self._transcript.tokens_of(self.messages))
        if self._report.state.ready:
            return await self._end("reported", self._report.text)
        return await self._run_exclusively()

    def _replay(self, step: JournalStep, *, is_counted: bool) -> None:
        self.messages.extend(step.messages)
        match step.kind:
            case "task":
                self._report.begin()
            case "turn" if not is_counted:
                self._bounds.count_turn(step.output)
                usage = Usage(step.input, step.output)
                self.budget.track_usage(step.provider, msgspec.to_builtins(usage))
            case "told":
                self._report.guidance |= {
                    m["content"] for m in step.messages if m["role"] == "user"
                }
            case "report":
                self._report.replay(step)

    async def _run_exclusively(self) -> Outcome:
        if self._is_running:
            raise AgentError("the agent is running", where=self.session, fix="Await its outcome.")
        self._is_running = True
        try:
            return await self._loop()
        except asyncio.CancelledError:
            # The conversation stays valid for the next process: every call has a result.
            await asyncio.shield(self._calls.close(INTERRUPTED))
            raise
        finally:
            self._is_running = False

    async def _loop(self) -> Outcome:
        while True:
            if self._report.state.ready:
                return await self._end("reported", self._report.text)
            if self._report.asks >= _MOST_ASKS:
                return await self._end_without_report()
            definitions = await self._requests.prepare()
            was_final = self._bounds.is_final
            try:
                reply = await self._requests.ask(definitions)
            except BudgetExceededError as error:
                return await self._end_with_quotations(error)
            if reply is None:
                return await self._end_with_quotations(None)
            if not reply.calls:
                if ended := await self._take_answer(reply):
                    return ended
                continue
            await self._calls.answer(reply.calls)
            if was_final and not self._report.state.captured:
                self._report.ask_again()  # a model that keeps calling is not asked forever

    async def _take_answer(self, reply: Reply) -> Outcome | None:
        """End with an answer without calls; if META is required, take it as the report."""
        if self._report.state.locked or not reply.text.strip():
            self._report.ask_again()  # asked for META or an answer, it gave neither
            return None
        if not self._required_meta:
            return await self._end("forced" if self._bounds.is_final else "answered", reply.text)
        await self._transcript.add(self._report.take(ReportArguments(report=reply.text)))
        return None

    # --- the end ---------------------------------------------------------------------------------

    async def _end_without_report(self) -> Outcome:
        """End after too many requests, with the report if there is one."""
        if self._report.state.captured:
            return await self._end("forced", self._report.text)
        return await self._end_with_quotations(None)

    async def _end_with_quotations(self, error: BudgetExceededError | None) -> Outcome:
        """End without a model: the offline model quotes the conversation."""
        self._bounds.why = "budget" if error is not None else self._bounds.why or "context"
        if self._report.state.captured:
            return await self._end("forced", self._report.text)
        replies = [m["content"] for m in self.messages if m.get("role") == "assistant"]
        last_reply = next(
            (text for text in reversed(replies) if isinstance(text, str) and text), ""
        )
        question_messages = [
            m for m in without_holdfast_keys(self.messages) if not self._is_guidance(m)
        ]
        quotations = await asyncio.to_thread(
            lambda: models.answer(read({"messages": question_messages}, "openai-chat"))
        )
        text = "\n\n".join(filter(None, (last_reply, quotations.text)))
        message = {"role": "assistant", "content": text}
        await self._transcript.add(JournalStep(kind="told", messages=[message]))
        return await self._end("quoted", text)

    def _is_guidance(self, message: Mapping[str, Any]) -> bool:
        content = message.get("content")
        return isinstance(content, str) and content in self._report.guidance

    async def _end(self, ending: AttemptEnd, text: str) -> Outcome:
        if ending == "reported" and self._bounds.is_final:
            ending = "forced"
        await self._transcript.add(JournalStep(kind="ended", text=text, why=ending))
        return self._outcome(ending, text)

    def _outcome(self, ending: AttemptEnd, text: str) -> Outcome:
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
