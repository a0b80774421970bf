"""HoldfastMiddleware in LangChain's own agent, with its own fake model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver

from holdfast import Holdfast
from holdfast.errors import StoreUnavailableError
from holdfast.integrations._host import Host
from holdfast.integrations._langchain_messages import Messages
from holdfast.integrations.langchain import HoldfastMiddleware
from holdfast.store import Turn
from holdfast.store.sqlite import SqliteStore
from tests.integrations.story import ANSWER, CALLS, QUESTION, WINDOW, Reader, read_log
from tests.provider.chat_rules import violations
from tests.provider.tokens import least_tokens


class Scripted(GenericFakeChatModel):
    """LangChain's fake model, which answers like a `Reader` and records its requests."""

    messages: Any = iter(())
    model_name: str = "gpt-4o"
    reader: Any = None
    calls: Any = None
    offered: Any = None

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Scripted:
        self.offered.append([convert_to_openai_tool(tool) for tool in tools])
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        self.calls.append(messages)
        last = messages[-1]
        step = self.reader.next(last.text if isinstance(last, ToolMessage) else None)
        if isinstance(step, str):
            said = AIMessage(content=step)
        else:
            call = {"name": step[0], "args": step[1], "id": f"call_{len(self.calls)}"}
            said = AIMessage(content="", tool_calls=[call])
        self.messages = iter([said])
        return super()._generate(messages, *args, **kwargs)


def scripted() -> Scripted:
    return Scripted(reader=Reader(), calls=[], offered=[])


def body(messages: Sequence[BaseMessage], tools: Any = ()) -> dict[str, Any]:
    values = [value for message in messages for value in Messages().write(message)]
    around = {"tools": list(tools)} if tools else {}
    return {"model": "gpt-4o", "messages": values, **around}


def recounted(messages: Sequence[BaseMessage], tools: Any = ()) -> int:
    """Tokens as the provider of the tests counts them."""
    return least_tokens(body(messages, tools), "openai-chat", "gpt-4o")


def refused(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the violations of the provider's rules."""
    return list(violations(body(messages), "gpt-4o"))


def run(middleware: Sequence[Any], model: Scripted, **config: Any) -> list[BaseMessage]:
    agent = create_agent(model, [read_log], system_prompt="Read logs.", middleware=middleware)
    result = agent.invoke(
        {"messages": [HumanMessage(QUESTION)]}, {"recursion_limit": 1000, "configurable": config}
    )
    return list(result["messages"])


def original(host: Host, ref: str) -> str:
    """Return the content stored under a ref."""
    stored = host.run(lambda engine: engine.store.get(engine.scope, ref))
    assert stored is not None
    return stored.data.decode()


class Run(NamedTuple):
    """A run in a narrow window, and what became of it."""

    middleware: HoldfastMiddleware
    model: Scripted
    state: list[BaseMessage]
    turns: list[Turn]


@pytest.fixture(scope="module")
def fitted() -> Iterator[Run]:
    middleware, model = HoldfastMiddleware("memory:", limit=WINDOW), scripted()
    state = run([middleware], model, thread_id="a")
    middleware.host.wait_for_background()
    turns = middleware.host.run(lambda engine: engine.store.turns(engine.scope.of("a")))
    yield Run(middleware, model, state, turns)
    middleware.close()


@pytest.fixture
def memory() -> Iterator[HoldfastMiddleware]:
    middleware = HoldfastMiddleware("memory:", limit=WINDOW)
    yield middleware
    middleware.close()


def test_sixty_large_results_end_in_the_same_answer_as_without_a_window(fitted: Run) -> None:
    unlimited = scripted()
    assert run([], unlimited)[-1].text == ANSWER
    assert fitted.state[-1].text == ANSWER
    assert recounted(unlimited.calls[-1]) > 15 * WINDOW
    tools = fitted.model.offered[-1]
    assert max(recounted(call, tools) for call in fitted.model.calls) <= WINDOW
    assert [why for call in fitted.model.calls for why in refused(call)] == []
    assert fitted.model.reader.opened >= CALLS / 2


def test_the_agents_own_state_is_whole(fitted: Run) -> None:
    results = [m for m in fitted.state if isinstance(m, ToolMessage) and m.name == "read_log"]
    assert [m.text for m in results] == [read_log(n) for n in range(CALLS)]


def test_what_was_sent_is_sent_again_byte_for_byte_but_for_folds(fitted: Run) -> None:
    calls = fitted.model.calls
    broken = sum(
        body(later)["messages"][: len(earlier)] != body(earlier)["messages"]
        for earlier, later in pairwise(calls)
    )
    turns = fitted.turns
    assert len(turns) == len(calls)
    folds = sum(any(e.action in ("fold", "drop", "shorten") for e in t.edits) for t in turns)
    assert 0 < broken <= folds < len(turns) / 10


def test_nothing_is_changed_without_an_edit_in_the_record(fitted: Run) -> None:
    host, calls = fitted.middleware.host, fitted.model.calls
    session = host.run(lambda engine: engine.session("a").load())
    asked = json.loads(host.run(lambda _: session.rebuild(len(calls))))
    system = SystemMessage("Read logs.")
    assert asked["messages"] == body([system, *fitted.state[:-1]])["messages"]
    assert session.state is not None
    assert [m.value for m in session.state.sent.messages] == body(calls[-1])["messages"]


def test_originals_come_back_byte_for_byte(fitted: Run) -> None:
    edits = [edit for turn in fitted.turns for edit in turn.edits if edit.action == "cite"]
    originals = {read_log(n) for n in range(CALLS)}
    for ref in {edit.ref_id for edit in edits if edit.ref_id}:
        originals.discard(original(fitted.middleware.host, ref))
    assert originals == set()


def test_unedited_messages_are_the_agents_own_objects(fitted: Run) -> None:
    own = {id(message) for message in fitted.state}
    last = fitted.model.calls[-1]
    assert isinstance(last[0], SystemMessage)
    assert sum(id(message) in own for message in last) > len(last) / 2


def test_a_run_that_awaits_gives_the_same_calls(fitted: Run) -> None:
    other = scripted()

    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            middleware = HoldfastMiddleware(engine, limit=WINDOW)
            agent = create_agent(
                other, [read_log], system_prompt="Read logs.", middleware=[middleware]
            )
            asked: Any = {"messages": [HumanMessage(QUESTION)]}
            result = await agent.ainvoke(asked, {"recursion_limit": 1000})
            assert result["messages"][-1].text == ANSWER

    asyncio.run(main())
    assert [body(call) for call in fitted.model.calls] == [body(call) for call in other.calls]


def test_a_run_goes_on_in_another_process_with_what_was_sent(tmp_path: Any) -> None:
    saver, url = InMemorySaver(), f"sqlite:///{tmp_path / 'store.db'}"
    sent: list[list[Any]] = []
    for question in (QUESTION, "And once more?"):
        middleware, model = HoldfastMiddleware(url, limit=WINDOW), scripted()
        if sent:
            model.reader.sums = dict.fromkeys(range(CALLS), 1)
        agent = create_agent(model, [read_log], middleware=[middleware], checkpointer=saver)
        config: Any = {"recursion_limit": 1000, "configurable": {"thread_id": "a"}}
        agent.invoke({"messages": [HumanMessage(question)]}, config)
        middleware.close()
        sent.append(body(model.calls[-1])["messages"])
    assert sent[1][: len(sent[0])] == sent[0]


def test_a_failing_store_does_not_break_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(SqliteStore):
        async def put(self, *_: Any, **__: Any) -> Any:
            raise StoreUnavailableError("the disk is full")

    model = scripted()

    async def main() -> str:
        middleware = HoldfastMiddleware(Holdfast(Broken.in_memory()), limit=WINDOW)
        agent = create_agent(model, [read_log], middleware=[middleware])
        asked: Any = {"messages": [HumanMessage(QUESTION)]}
        result = await agent.ainvoke(asked, {"recursion_limit": 1000})
        return str(result["messages"][-1].text)

    assert asyncio.run(main()) == ANSWER
    assert "the disk is full" in caplog.text
    assert "checksum" not in caplog.text


def test_a_ref_that_is_not_there_is_told_to_the_model(memory: HoldfastMiddleware) -> None:
    [tool] = memory.tools
    assert "ref:log:0000" in tool.invoke({"ref_id": "ref:log:0000000000000000"})
    assert "names no ref" in asyncio.run(tool.ainvoke({}))


def test_langchains_own_summaries_use_our_count_and_keep_the_original(
    memory: HoldfastMiddleware,
) -> None:
    summaries = SummarizationMiddleware(
        scripted(),
        trigger=("tokens", 3_000),
        keep=("messages", 4),
        token_counter=memory.token_counter,
        summarizer=memory.summarizer,
        trim_tokens_to_summarize=None,
    )
    model = scripted()
    model.reader.sums = dict.fromkeys(range(57), 0)
    agent = create_agent(model, [read_log], middleware=[summaries, memory])
    history = [HumanMessage(f"word {n} " * 300) for n in range(12)]
    result = agent.invoke({"messages": [*history, HumanMessage(QUESTION)]})
    first = result["messages"][0].text
    assert "ref:" in first
    assert memory.token_counter(history) > 3_000
