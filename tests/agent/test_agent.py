"""The loop: inside every window, one result for every call, and an answer at the end."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import prometheus_client
import pytest

from holdfast.agent import Agent, AgentTool, Outcome, Target
from holdfast.agent.journal import Journal, JournalStep
from holdfast.engine import Holdfast, Session
from holdfast.errors import (
    AgentError,
    ProviderError,
    SettingsError,
    StoreConflictError,
    ToolFailureError,
)
from holdfast.guard import ContextGuardEvent, GuardMessage, RequestMetrics
from holdfast.settings import Settings
from holdfast.workers import Workers
from tests.agent.scripted import (
    REPORT,
    agent_of,
    call,
    calls,
    is_valid,
    limit_of,
    reports,
    says,
    target,
)
from tests.provider.tokens import text_tokens
from tests.surfaces.proxy.faults import status
from tests.surfaces.proxy.upstream import Upstream
from tests.wire.responses.streams import Script


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(work())


async def read_file(path: str, lines: int = 10) -> str:
    """Reads a file.

    Args:
        path: Where it is.
        lines: How many lines of it.
    """
    return "\n".join(f"{path} line {n}: value {n * 31}" for n in range(lines))


def add(numbers: list[int]) -> int:
    """Adds numbers."""
    return sum(numbers)


def fails(why: str) -> str:
    """Always fails."""
    raise RuntimeError(why)


def outcome_of(agent: Agent, task: str = "Do it.") -> tuple[Outcome, Agent]:
    async def work() -> Outcome:
        async with agent:
            return await agent.run(task)

    return run(work), agent


def test_tools_run_and_the_answer_ends_it() -> None:
    script = (
        calls(call("read_file", path="a.py"), call("add", numbers=[1, 2, 3])),
        says("The sum is 6."),
    )
    with Upstream(*script) as upstream:
        outcome, agent = outcome_of(agent_of(upstream, tools=[read_file, add], system="Be brief."))
        assert upstream.refused == []
        assert (outcome.text, outcome.ending, outcome.turns) == ("The sum is 6.", "answered", 2)
        assert outcome.complete
        assert outcome.input_tokens == sum(got.tokens for got in upstream.requests)
        results = [m["content"] for m in agent.messages if m["role"] == "tool"]
        assert "value 31" in results[0] + results[1]
        assert "6" in results
        assert is_valid(agent.messages)
        offered = upstream.requests[0].value["tools"]
        assert {tool["function"]["name"] for tool in offered} >= {"read_file", "add", REPORT}


def test_schemas_come_from_types_and_docstrings() -> None:
    [tool] = Agent(tools=[read_file]).tools.values()
    assert tool.description == "Reads a file."
    assert tool.parameters["required"] == ["path"]
    assert tool.parameters["properties"]["path"] == {
        "type": "string",
        "description": "Where it is.",
    }
    assert tool.parameters["properties"]["lines"]["default"] == 10
    assert tool.parameters["additionalProperties"] is False


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ('{"path": 5}', "Expected `str`, got `int` - at `$.path`"),
        ('{"path": "a", "rm": "-rf"}', "unknown field `rm`"),
        ("{}", "missing required field `path`"),
        ("[1]", "Expected `object`, got `array`"),
        ("{", "no JSON object"),
        ("[" * 100_000, "Expected `object`, got `array`"),
        ('{"path": "' + "x" * 1_000_001 + '"}', "more than 1,000,000 bytes"),
    ],
)
def test_hostile_arguments_get_a_reason_and_nothing_runs(arguments: str, why: str) -> None:
    from holdfast.agent.tools import ArgumentsError, build_tool  # noqa: PLC0415

    with pytest.raises(ArgumentsError) as caught:
        build_tool(read_file).arguments(arguments)
    assert why in str(caught.value)


def test_a_tool_with_a_schema_of_its_own_is_checked_against_that() -> None:
    from holdfast.agent.tools import ArgumentsError  # noqa: PLC0415

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tool = AgentTool(name="twice", description="", parameters=schema, run=lambda n: 2 * n)
    assert tool.arguments('{"n": 4}') == {"n": 4}
    with pytest.raises(ArgumentsError, match="n does not match"):
        tool.arguments('{"n": "secret"}')


@pytest.mark.parametrize("wrong", [lambda x: x, lambda *many: many])
def test_functions_that_cannot_be_tools_are_refused(wrong: Any) -> None:
    with pytest.raises(SettingsError):
        Agent(tools=[wrong])


def test_a_report_without_meta_is_locked_and_only_meta_is_asked_for() -> None:
    def meta_only(got: Any) -> Script:
        names = [tool["function"]["name"] for tool in got.value["tools"]]
        assert "read_file" not in names
        assert "locked" in json.dumps(got.value["messages"])
        return reports("another one", confidence=0.9)

    with Upstream(reports("It is done."), meta_only) as upstream:
        outcome, agent = outcome_of(
            agent_of(upstream, tools=[read_file], required_meta=["confidence"])
        )
        assert (outcome.text, outcome.meta) == ("It is done.", {"confidence": 0.9})
        assert outcome.ending == "reported"
        assert upstream.refused == []
        assert is_valid(agent.messages)


def test_a_model_that_never_gives_meta_still_ends_in_its_report() -> None:
    with Upstream() as upstream:
        upstream.always = says("It is done.")
        outcome, _ = outcome_of(agent_of(upstream, required_meta=["confidence"]))
        assert (outcome.text, outcome.missing_meta) == ("It is done.", ("confidence",))
        assert not outcome.complete


def test_large_results_become_citations_that_can_be_opened() -> None:
    def big() -> str:
        """Reads everything."""
        rows = [f"{n:06} INFO request {n * 7} served" for n in range(30_000)]
        return "\n".join([*rows, "ERROR cannot reach db-3"])

    with Upstream(calls(call("big"), call("big")), says("db-3")) as upstream:
        outcome, agent = outcome_of(agent_of(upstream, tools=[big]))
        assert outcome.text == "db-3"
        results = [m["content"] for m in agent.messages if m["role"] == "tool"]
        assert all("ref:" in text and "cannot reach db-3" in text for text in results)
        assert all(got.tokens <= limit_of(16_000) for got in upstream.requests)
        assert upstream.refused == []


def test_a_session_that_grows_is_folded_between_turns_and_goes_on() -> None:
    with Upstream() as upstream:
        scripts = [calls(call("read_file", path=f"{n}.py", lines=150)) for n in range(25)]
        upstream.turns.extend([*scripts, says("All read.")])
        outcome, agent = outcome_of(agent_of(upstream, window=8_000, tools=[read_file]))
        assert outcome.text == "All read."
        assert upstream.refused == []
        assert all(got.tokens <= limit_of(8_000) for got in upstream.requests)
        assert is_valid(agent.messages)


def test_parallel_results_that_find_no_room_force_the_final_turn() -> None:
    told: list[GuardMessage] = []

    def last(got: Any) -> Script:
        names = [tool["function"]["name"] for tool in got.value["tools"]]
        assert "read_file" not in names  # the schemas shrink
        assert "final turn" in json.dumps(got.value["messages"])
        return reports("What I have.")

    script = calls(*(call("read_file", path=f"{n}.py", lines=60) for n in range(40)))
    with Upstream(script) as upstream:
        upstream.always = last
        before = _metric("tool_preflight", "forced_final")
        outcome, agent = outcome_of(
            agent_of(upstream, window=6_000, tools=[read_file], listener=told.append)
        )
        assert outcome.ending == "forced"
        assert outcome.text == "What I have."
        assert agent.guard.tool_budget_exceeded
        assert not agent.guard.can_execute_tool("read_file")
        assert is_valid(agent.messages)
        assert upstream.refused == []
        assert all(got.tokens <= limit_of(6_000) for got in upstream.requests)
        [event] = [each for each in told if isinstance(each, ContextGuardEvent)]
        assert (event.trigger, event.outcome) == ("tool_preflight", "forced_final")
        assert any(isinstance(each, RequestMetrics) for each in told)
        assert _metric("tool_preflight", "forced_final") == before + 1


def _metric(trigger: str, outcome: str) -> float:
    labels = {
        "provider": "openai",
        "model": "gpt-5",
        "trigger": trigger,
        "outcome": outcome,
    }
    value = prometheus_client.REGISTRY.get_sample_value("holdfast_context_guard_total", labels)
    return value or 0.0


def test_a_target_that_fails_is_passed_over() -> None:
    with Upstream(status(500)) as first, Upstream(says("From the second.")) as second:
        outcome, _ = outcome_of(agent_of(first, second))
        assert outcome.text == "From the second."
        assert second.refused == []


def test_a_small_target_is_skipped_for_a_larger_one() -> None:
    told: list[GuardMessage] = []
    with Upstream() as small, Upstream(says("Fits here.")) as large:
        small.always = says("Never asked.")
        targets = [
            target(small, 2_000, "openai:gpt-5"),
            target(large, 30_000, "anthropic:claude-sonnet-4-5"),
        ]
        agent = Agent(targets, store="memory:", listener=told.append)
        outcome, _ = outcome_of(agent, "Look: " + "many different words " * 2_000)
        assert outcome.text == "Fits here."
        assert small.requests == []
        assert "skipped_provider" in {
            each.outcome for each in told if isinstance(each, ContextGuardEvent)
        }


def test_all_targets_failing_is_a_typed_error_and_the_run_can_go_on() -> None:
    with Upstream(status(500), says("Back again.")) as upstream:

        async def work() -> Outcome:
            async with agent_of(upstream) as agent:
                with pytest.raises(ProviderError, match="status 500"):
                    await agent.run("Do it.")
                assert is_valid(agent.messages)
                return await agent.resume()

        assert run(work).text == "Back again."


def test_a_budget_that_is_used_up_still_ends_in_an_answer() -> None:
    with Upstream() as upstream:
        upstream.always = lambda _: Script((call("read_file", path="a.py", lines=100),))
        task = "What is the value of line 7 of a.py?"
        outcome, agent = outcome_of(agent_of(upstream, budget=9_000, tools=[read_file]), task)
        assert (outcome.ending, outcome.why) == ("quoted", "budget")
        assert "value 217" in outcome.text  # to the user's question, not to guidance
        assert outcome.input_tokens + outcome.output_tokens <= 9_000
        assert is_valid(agent.messages)


def test_before_the_budget_is_used_up_the_model_ends_the_run_itself() -> None:
    def script(got: Any) -> Script:
        if "read_file" in got.tools:
            # Another file each time: repeated lines would be replaced by a pointer.
            return calls(call("read_file", path=f"{len(got.value['messages'])}.py", lines=100))
        assert "budget of tokens" in got.value["messages"][-1]["content"]
        return reports("What I have read so far.")

    with Upstream() as upstream:
        upstream.always = script
        outcome, agent = outcome_of(agent_of(upstream, budget=20_000, tools=[read_file]))
        assert (outcome.text, outcome.ending) == ("What I have read so far.", "forced")
        assert outcome.why == "budget"
        assert outcome.turns > 2
        used = agent.budget.budget.total.used
        assert used <= 20_000
        # It ran as long as possible: another turn of that size would not have fitted.
        assert used + upstream.requests[-1].tokens + 1_000 > 20_000


def test_a_budget_that_was_raised_lets_a_further_task_go_on() -> None:
    with Upstream() as upstream:
        upstream.always = lambda got: says("Ended." if "add" not in got.tools else "Answered.")

        async def work() -> tuple[Outcome, Outcome]:
            async with agent_of(upstream, budget=2_600, tools=[add]) as agent:
                first = await agent.run("Look: " + "many words " * 500)
                agent.budget.set_limit("total", 20_000)
                return first, await agent.run("Look again.")

        first, second = run(work)
        assert (first.text, first.ending, first.why) == ("Ended.", "forced", "budget")
        assert (second.text, second.ending, second.why) == ("Answered.", "answered", "")


def test_a_target_that_cannot_be_opened_leaves_nothing_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[Workers] = []
    close = Workers.close

    def watched(self: Workers) -> None:
        closed.append(self)
        close(self)

    monkeypatch.setattr(Workers, "close", watched)

    async def work() -> None:
        targets = [Target(model="offline"), Target(model="offline", window=-1)]
        with pytest.raises(SettingsError, match="not a number of tokens"):
            await Agent(targets, store="memory:").__aenter__()
        assert len(closed) == 1  # those of the engine

    run(work)


@pytest.mark.filterwarnings("ignore:the tokens of 'somebody")
def test_the_numbers_of_a_target_come_from_the_first_that_states_them() -> None:
    overrides = {
        "openai:gpt-5": {"context_window": 50_000, "output_reserved": 2_000},
        "openai": {"context_window": 40_000},
    }
    settings = Settings.load(model_context_overrides=overrides)

    async def configs() -> list[tuple[int, int, int]]:
        targets = [
            Target(model="openai:gpt-5", window=9_000, max_output_tokens=500, buffer_tokens=10),
            Target(model="openai:o3"),
            Target(model="somebody:new", url="http://127.0.0.1:9", dialect="openai-chat"),
        ]
        async with Agent(targets, settings=settings, store="memory:") as agent:
            return [
                (each.context_window, each.output_tokens, each.buffer_tokens)
                for each in agent.guard.targets
            ]

    async def stated_by_the_model() -> tuple[int, int]:
        async with Agent("openai:gpt-5", settings=settings, store="memory:") as agent:
            [each] = agent.guard.targets
            return each.context_window, each.output_tokens

    assert run(configs) == [(9_000, 500, 10), (40_000, 10_000, 256), (128_000, 16_384, 256)]
    assert run(stated_by_the_model) == (50_000, 2_000)


def test_what_does_not_fit_any_window_still_ends_in_an_answer() -> None:
    with Upstream() as upstream:
        upstream.always = says("Never asked.")
        outcome, _ = outcome_of(
            agent_of(upstream, window=1_600), "Never forget: you must " + "obey " * 3_000
        )
        assert outcome.text
        assert all(got.tokens <= limit_of(1_600) for got in upstream.requests)


def test_turns_are_counted_and_the_last_one_is_final() -> None:
    with Upstream() as upstream:
        upstream.always = lambda got: (
            reports("Enough.")
            if "add" not in {tool["function"]["name"] for tool in got.value["tools"]}
            else calls(call("add", numbers=[len(got.value["messages"])]))
        )
        outcome, _ = outcome_of(agent_of(upstream, tools=[add], max_turns=3))
        assert outcome.text == "Enough."
        assert outcome.turns == 4
        assert outcome.ending == "forced"


def test_a_model_that_goes_on_calling_in_its_final_turn_is_not_asked_for_ever() -> None:
    with Upstream() as upstream:
        upstream.always = lambda got: calls(call("add", numbers=[len(got.value["messages"])]))
        outcome, agent = outcome_of(agent_of(upstream, tools=[add], max_turns=3))
        assert outcome.ending == "quoted"
        assert outcome.text
        assert len(upstream.requests) == 6
        assert is_valid(agent.messages)


def test_a_tool_that_fails_three_times_with_the_same_arguments_is_a_clear_error() -> None:
    with Upstream() as upstream:
        upstream.always = lambda _: calls(call("fails", why="no disk"))

        async def work() -> Agent:
            async with agent_of(upstream, tools=[fails]) as agent:
                with pytest.raises(ToolFailureError, match="3 times in a row"):
                    await agent.run("Do it.")
                return agent

        agent = run(work)
        assert len(upstream.requests) == 3
        assert is_valid(agent.messages)
        assert "RuntimeError: no disk" in agent.messages[-1]["content"]


def test_after_a_tool_that_failed_the_same_agent_resumes_and_counts_nothing_twice() -> None:
    failing = (calls(call("fails", why="no disk")) for _ in range(3))
    with Upstream(*failing, says("Done.")) as upstream:

        async def work() -> tuple[Agent, Outcome]:
            async with agent_of(upstream, tools=[fails]) as agent:
                with pytest.raises(ToolFailureError):
                    await agent.run("Do it.")
                # The last result is counted, and no request has been sent with it.
                assert agent.guard.counters.pending + agent.guard.counters.new > 0
                return agent, await agent.resume()

        agent, outcome = run(work)
        assert outcome.text == "Done."
        assert outcome.turns == 4
        assert agent.budget.budget.input.used == sum(got.tokens for got in upstream.requests)


def test_an_unknown_tool_and_bad_arguments_are_told_to_the_model() -> None:
    script = (calls(call("add", numbers="three")), says("Sorry."))
    with Upstream(*script) as upstream:
        outcome, agent = outcome_of(agent_of(upstream, tools=[add]))
        assert outcome.text == "Sorry."
        [result] = [m["content"] for m in agent.messages if m["role"] == "tool"]
        assert "Expected `array`" in result


async def cancelled(agent: Agent, task: str, at: asyncio.Event) -> None:
    """Cancel a run when the event is set; the conversation is valid then."""
    running = asyncio.create_task(agent.run(task))
    await at.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert is_valid(agent.messages)


def test_cancelled_in_a_tool_the_conversation_is_valid_and_goes_on() -> None:
    started = asyncio.Event()

    async def slow() -> str:
        """Takes for ever."""
        started.set()
        await asyncio.Event().wait()
        return ""

    with Upstream(calls(call("slow"), call("add", numbers=[1])), says("Done.")) as upstream:

        async def work() -> tuple[Agent, Outcome]:
            async with agent_of(upstream, tools=[slow, add]) as agent:
                await cancelled(agent, "Do it.", started)
                return agent, await agent.resume()

        agent, outcome = run(work)
        assert outcome.text == "Done."
        assert upstream.refused == []
        assert "interrupted" in json.dumps(agent.messages)


def test_results_of_parallel_tools_have_one_order_in_the_journal(tmp_path: Any) -> None:
    script = calls(*(call("read_file", path=f"{n}.py") for n in range(8))), says("Read.")
    with Upstream(*script) as upstream:
        outcome, agent = outcome_of(
            agent_of(upstream, tools=[read_file], store=f"sqlite:///{tmp_path}/store.db")
        )
        assert outcome.text == "Read."
        assert is_valid(agent.messages)


def test_cancelled_while_a_result_is_written_it_is_there_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    append, written = Journal.add, asyncio.Event()

    async def slow(self: Journal, *steps: JournalStep) -> None:
        await append(self, *steps)
        if any(step.kind == "result" for step in steps):
            written.set()
            for _ in range(5):  # the cancel comes before this returns
                await asyncio.sleep(0)

    monkeypatch.setattr(Journal, "add", slow)
    with Upstream(calls(call("add", numbers=[1, 2])), says("Three.")) as upstream:

        async def work() -> None:
            async with agent_of(upstream, tools=[add]) as agent:
                await cancelled(agent, "Add.", written)
                assert agent.messages[-1]["content"] == "3"
                assert (await agent.resume()).text == "Three."

        run(work)


def test_a_result_that_cannot_be_written_ends_the_other_tools(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    append = Journal.add
    ended: list[str] = []

    async def refusing(self: Journal, *steps: JournalStep) -> None:
        if any(step.kind == "result" for step in steps):
            raise StoreConflictError("another process has gone on from here")
        await append(self, *steps)

    async def wait(what: str) -> str:
        """Waits for what never comes."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(what)
        return "it came"

    monkeypatch.setattr(Journal, "add", refusing)
    script = calls(call("wait", what="a"), call("add", numbers=[1]), call("wait", what="b"))
    with Upstream(script) as upstream:

        async def work() -> None:
            async with agent_of(upstream, tools=[add, wait]) as agent:
                with pytest.raises(StoreConflictError, match="gone on"):
                    await agent.run("Do it.")
                assert sorted(ended) == ["a", "b"]

        run(work)


def test_another_process_goes_on_from_the_journal_and_only_one_of_two(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with Upstream(calls(call("add", numbers=[1, 2])), status(500), says("3."), says("x")) as up:

        async def work() -> None:
            how: dict[str, Any] = {"store": url, "session": "s1", "tools": [add]}
            async with agent_of(up, **how) as first:
                with pytest.raises(ProviderError):
                    await first.run("Add.")
                async with agent_of(up, **how) as second:
                    outcome = await second.resume("s1")
                    assert outcome.text == "3."
                    assert outcome.turns == 2
                    assert second.messages[: len(first.messages)] == first.messages
                    assert (await second.resume()).text == "3."  # it had ended
                with pytest.raises(StoreConflictError):
                    await first.run("And on.")
            async with agent_of(up, **{**how, "session": "nobody"}) as third:
                with pytest.raises(AgentError, match="no journal"):
                    await third.resume()

        run(work)


def test_a_resumed_agent_counts_the_conversation_before_it_asks(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    how: dict[str, Any] = {"store": f"sqlite:///{tmp_path}/store.db", "session": "s1"}
    with Upstream(calls(call("read_file", path="a.py", lines=50)), status(500)) as upstream:

        async def work() -> None:
            async with agent_of(upstream, tools=[read_file], **how) as first:
                with pytest.raises(ProviderError):
                    await first.run("Read.")
            async with agent_of(upstream, tools=[read_file], **how) as second:
                counted: list[int] = []

                async def running() -> None:
                    counted.append(second.guard.counters.conversation)

                monkeypatch.setattr(second, "_run_exclusively", running)
                await second.resume("s1")
                lines = [m for m in second.messages if m["role"] == "tool"]
                assert counted[0] > text_tokens(lines[0]["content"]) > 300

        run(work)


def test_a_further_task_goes_on_in_the_same_conversation() -> None:
    with Upstream(says("One."), says("Two.")) as upstream:

        async def work() -> None:
            async with agent_of(upstream) as agent:
                assert (await agent.run("First.")).text == "One."
                assert (await agent.run("Second.")).text == "Two."

        run(work)
        texts = [m["content"] for m in upstream.requests[1].value["messages"]]
        assert texts == ["First.", "One.", "Second."]


def test_debug_topics_are_logged_without_content(caplog: pytest.LogCaptureFixture) -> None:
    secret = "SECRET-WORDS"
    with Upstream(says(secret)) as upstream, caplog.at_level("DEBUG", logger="holdfast.guard"):
        settings = Settings.load(context_debug=True)
        outcome_of(agent_of(upstream, settings=settings), secret)
    topics = {record.getMessage().split(" ", 1)[0] for record in caplog.records}
    assert {
        "context-guard/init-counters",
        "context-guard/loop-init",
        "context-guard/schema-estimate",
        "context-guard/request-metrics",
    } <= topics
    assert secret not in caplog.text


def test_an_engine_that_others_use_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_to_end: list[bool] = []
    fit = Session.fit

    async def watched(self: Session, request: Any, options: Any = None) -> Any:
        asked_to_end.append(options.ends)
        return await fit(self, request, options)

    monkeypatch.setattr(Session, "fit", watched)
    with Upstream(says("Done.")) as upstream:

        async def work() -> None:
            async with Holdfast.open("memory:") as engine:
                before = engine.options
                async with agent_of(upstream, store=None, engine=engine) as agent:
                    assert (await agent.run("Do it.")).text == "Done."
                assert engine.options is before
                assert before.ends

        run(work)
    assert asked_to_end == [False]


def test_outcomes_and_tools_show_no_content() -> None:
    assert "hello" not in repr(Outcome(text="hello", ending="answered"))
    assert msgspec.json.encode(Outcome(text="hello", ending="answered"))


def test_nothing_is_fetched_for_the_schema_of_a_tool() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/schema.json"
        tool = AgentTool(name="x", description="", parameters={"$ref": address}, run=str)
        assert tool.arguments('{"a": 1}') == {"a": 1}
        with pytest.raises(BlockingIOError):
            listening.accept()
