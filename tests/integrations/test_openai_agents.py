"""The OpenAI Agents SDK with our session, filter and tools, and a model class of its interface."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    Usage,
    function_tool,
)
from agents.tool_context import ToolContext
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from holdfast import Holdfast
from holdfast.errors import StoreUnavailableError
from holdfast.integrations._host import Host
from holdfast.integrations.openai_agents import HoldfastFilter, HoldfastSession
from holdfast.store.sqlite import SqliteStore
from tests.integrations.story import ANSWER, CALLS, QUESTION, WINDOW, Reader, read_log
from tests.integrations.test_langchain import original
from tests.provider.responses_rules import violations
from tests.provider.tokens import least_tokens


class Scripted(Model):
    """Answers like a `Reader` and records its requests."""

    def __init__(self) -> None:
        self.reader = Reader()
        self.bodies: list[dict[str, Any]] = []

    async def get_response(self, *args: Any, **named: Any) -> ModelResponse:
        instructions, items, _, tools = [*args, *named.values()][:4]
        items = list(items)
        declared = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.params_json_schema,
            }
            for tool in tools
        ]
        around = {"model": "gpt-4o", "instructions": instructions, "tools": declared}
        self.bodies.append({**around, "input": items})
        last = items[-1]
        step = self.reader.next(
            str(last["output"]) if last.get("type") == "function_call_output" else None
        )
        return ModelResponse(
            output=[_said(step, len(self.bodies))], usage=Usage(), response_id=None
        )

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the agents of these tests ask for whole answers")


def _said(step: Any, number: int) -> Any:
    if isinstance(step, str):
        text = ResponseOutputText(annotations=[], text=step, type="output_text")
        return ResponseOutputMessage(
            id=f"msg_{number}", content=[text], role="assistant", status="completed", type="message"
        )
    return ResponseFunctionToolCall(
        call_id=f"call_{number}", name=step[0], arguments=json.dumps(step[1]), type="function_call"
    )


def agent(model: Model, *tools: Any) -> Agent[None]:
    read = function_tool(read_log)
    return Agent("reader", instructions="Read logs.", model=model, tools=[read, *tools])


async def ran(model: Scripted, holdfast: HoldfastFilter | None = None, **how: Any) -> str:
    config = RunConfig(call_model_input_filter=holdfast, tracing_disabled=True)
    tools = [holdfast.tool] if holdfast else []
    result = await Runner.run(
        agent(model, *tools), QUESTION, max_turns=500, run_config=config, **how
    )
    return str(result.final_output)


def test_sixty_large_results_end_in_the_same_answer_as_without_a_window() -> None:
    unlimited, fitted = Scripted(), Scripted()
    assert asyncio.run(ran(unlimited)) == ANSWER
    with Host("memory:") as host:
        holdfast = HoldfastFilter(host, limit=WINDOW, model="gpt-4o")
        assert asyncio.run(ran(fitted, holdfast)) == ANSWER
        host.wait_for_background()
        sessions = host.run(lambda engine: engine.store.sessions(engine.scope))
        [session] = sessions
        turns = host.run(lambda engine: engine.store.turns(engine.scope.of(session.session)))
        refs = [edit.ref_id for turn in turns for edit in turn.edits if edit.action == "cite"]
        originals = {original(host, ref) for ref in refs if ref}
    assert least_tokens(unlimited.bodies[-1], "openai-responses", "gpt-4o") > 15 * WINDOW
    sizes = [least_tokens(body, "openai-responses", "gpt-4o") for body in fitted.bodies]
    assert max(sizes) <= WINDOW
    assert [why for body in fitted.bodies for why in violations(body, body["input"], {})] == []
    broken = sum(b["input"][: len(a["input"])] != a["input"] for a, b in pairwise(fitted.bodies))
    folds = sum(any(e.action in ("fold", "drop", "shorten") for e in t.edits) for t in turns)
    assert len(turns) == len(fitted.bodies)
    assert 0 < broken <= folds < len(turns) / 10
    assert originals == {read_log(n) for n in range(CALLS)}


def test_without_the_tool_nothing_is_cited_and_no_ref_is_shown() -> None:
    model = Scripted()
    model.reader.sums = dict.fromkeys(range(CALLS - 1), 0)
    with Host("memory:") as host:
        holdfast = HoldfastFilter(host, limit=WINDOW, model="gpt-4o")
        config = RunConfig(call_model_input_filter=holdfast, tracing_disabled=True)
        asyncio.run(Runner.run(agent(model), QUESTION, run_config=config))
    assert "ref:" not in str(model.bodies)


def test_a_failing_store_does_not_break_the_run(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(SqliteStore):
        async def put(self, *_: Any, **__: Any) -> Any:
            raise StoreUnavailableError("the disk is full")

    async def main() -> str:
        return await ran(
            Scripted(), HoldfastFilter(Holdfast(Broken.in_memory()), limit=WINDOW, model="gpt-4o")
        )

    assert asyncio.run(main()) == ANSWER
    assert "the disk is full" in caplog.text


async def _invoked(tool: FunctionTool, context: Any) -> str:
    return str(await tool.on_invoke_tool(context, '{"number": 3}'))


def test_a_wrapped_tool_gives_a_citation_of_what_is_long() -> None:
    with Host("memory:") as host:
        holdfast = HoldfastFilter(host)
        tool = holdfast.cites(function_tool(read_log))
        context: Any = ToolContext(
            None, tool_name="read_log", tool_call_id="1", tool_arguments='{"number": 3}'
        )
        shown = asyncio.run(_invoked(tool, context))
    assert "ref:" in shown
    assert len(shown) < len(read_log(3)) / 5


def test_a_session_outlives_its_process(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"

    async def begin() -> None:
        session = HoldfastSession("a", url)
        await session.add_items([{"role": "user", "content": str(n)} for n in range(5)])
        assert await session.pop_item() == {"role": "user", "content": "4"}
        session.host.close()

    async def go_on() -> None:
        session, other = HoldfastSession("a", url), HoldfastSession("b", url)
        assert [i["content"] for i in await session.get_items()] == list("0123")  # type: ignore[typeddict-item]
        assert [i["content"] for i in await session.get_items(2)] == ["2", "3"]  # type: ignore[typeddict-item]
        assert await other.get_items() == []
        await session.clear_session()
        assert await session.get_items() == []
        assert await session.pop_item() is None
        session.host.close()
        other.host.close()

    asyncio.run(begin())
    asyncio.run(go_on())


def test_two_who_take_the_last_item_take_two() -> None:
    async def main() -> None:
        session = HoldfastSession("a", "memory:")
        await session.add_items([{"role": "user", "content": str(n)} for n in range(20)])
        taken = await asyncio.gather(*(session.pop_item() for _ in range(20)))
        assert sorted(str(i["content"]) for i in taken if i) == sorted(map(str, range(20)))  # type: ignore[typeddict-item]
        session.host.close()

    asyncio.run(main())
