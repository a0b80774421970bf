"""Pydantic AI through its own function model: the promises, as an agent's requests keep them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import UsageLimits

from holdfast import Holdfast
from holdfast.integrations._pydantic_form import PydanticForm
from holdfast.integrations.pydantic_ai import HoldfastCapability, HoldfastOverflowStore
from tests.integrations.reading import (
    ANSWER,
    LIMIT,
    LINES,
    LOGS,
    QUESTIONS,
    Broken,
    Reader,
    check_record,
    judge,
    read_log,
)

MANY = UsageLimits(request_limit=500)


def agent(reader: Reader, *capabilities: HoldfastCapability[None]) -> Agent[None, str]:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        form = PydanticForm()
        values = [dict(value) for message in messages for value in form.write(message)]
        tools = [{"function": {"name": tool.name}} for tool in info.function_tools]
        move = reader({"model": "gpt-4o", "messages": values, "tools": tools})
        if move.tool:
            return ModelResponse([ToolCallPart(move.tool, dict(move.arguments))])
        return ModelResponse([TextPart(move.text)])

    model = FunctionModel(answer, model_name="gpt-4o")
    return Agent(model, tools=[read_log], instructions="You read logs.", capabilities=capabilities)


async def run(reading: Agent[None, str]) -> tuple[str, list[ModelMessage]]:
    history: list[ModelMessage] = []
    output = ""
    for question in QUESTIONS:
        result = await reading.run(question, message_history=history, usage_limits=MANY)
        history, output = result.all_messages(), result.output
    return output, history


def results(history: list[ModelMessage]) -> list[str]:
    parts = [part for message in history for part in message.parts]
    return [
        str(part.content)
        for part in parts
        if isinstance(part, ToolReturnPart) and part.tool_name == "read_log"
    ]


@pytest.mark.slow
def test_sixty_calls_in_a_small_window_end_with_the_same_answer() -> None:
    async def main() -> None:
        unlimited = Reader()
        assert (await run(agent(unlimited)))[0] == ANSWER
        async with Holdfast.open("memory:") as engine:
            fitted, capability = Reader(), HoldfastCapability[None](engine, limit=LIMIT)
            output, history = await run(agent(fitted, capability))
            assert output == ANSWER
            assert results(history) == [read_log(n) for n in range(LOGS)]  # theirs stays whole
            judge(fitted, "openai-chat", "gpt-4o")
            await capability.host.await_background()
            await check_record(engine, len(fitted.requests))

    asyncio.run(main())


def test_a_store_that_fails_does_not_break_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        reader = Reader(logs=12)
        capability = HoldfastCapability[None](Holdfast(Broken.in_memory()), limit=LIMIT)
        output, _ = await run(agent(reader, capability))
        assert output == ANSWER
        assert max(str(request).count("INFO step") for request in reader.requests) == 12 * LINES

    asyncio.run(main())
    assert "the disk is full" in caplog.text
    assert "INFO step" not in caplog.text


def test_an_agent_that_fits_is_sent_its_own_objects() -> None:
    sent: list[ModelMessage] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        sent[:] = messages
        assert [tool.name for tool in info.function_tools] == ["expand_ref"]
        return ModelResponse([TextPart("Hello.")])

    capability = HoldfastCapability[None]("memory:")
    model = FunctionModel(answer, model_name="gpt-4o")
    # Not `run_sync`: it leaves an event loop open that the next test is blamed for.
    result = asyncio.run(Agent(model, capabilities=[capability]).run("Hello"))
    assert sent[0] is result.all_messages()[0]
    capability.host.close()


def test_a_huge_result_stays_whole_in_the_history_and_its_citation_is_an_edit() -> None:
    def dump() -> str:
        """Gives everything."""
        return "\n".join(f"{n:06} line" for n in range(20_000))

    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            capability = HoldfastCapability[None](engine)
            model = TestModel(call_tools=["dump"], model_name="gpt-4o")
            result = await Agent(model, tools=[dump], capabilities=[capability]).run("Go")
            parts = [part for message in result.all_messages() for part in message.parts]
            [back] = [part for part in parts if isinstance(part, ToolReturnPart)]
            assert back.content == dump()
            await capability.host.await_background()
            [session] = await engine.store.sessions(engine.scope)
            turns = await engine.store.turns(engine.scope.of(session.session))
            edits = [edit for turn in turns for edit in turn.edits if edit.action == "cite"]
            stored = await engine.store.get(engine.scope, edits[0].ref_id)
            assert stored is not None
            assert stored.data.decode() == dump()

    asyncio.run(main())


def test_every_kind_of_part_is_written_and_an_edited_one_read_back() -> None:
    form = PydanticForm()
    back = ToolReturnPart("look", {"rows": [1, 2]}, "call_1")
    picture = BinaryContent(b"1234", media_type="image/png")
    request = ModelRequest(
        [
            SystemPromptPart("Be kind."),
            back,
            RetryPromptPart("Try again.", tool_name="look", tool_call_id="call_2"),
            RetryPromptPart("Say it in JSON."),
            UserPromptPart(["What is this?", ImageUrl("https://example.com/a.png"), picture]),
        ]
    )
    values: list[Any] = list(form.write(request))
    assert [value["role"] for value in values] == ["system", "tool", "tool", "user", "user"]
    values[1] = {**values[1], "content": "[ref:json:abc]"}
    [edited] = form.read([(value, request) for value in values])
    assert isinstance(edited, ModelRequest)
    assert edited.parts[0] is request.parts[0]
    assert edited.parts[2:] == request.parts[2:]
    assert isinstance(edited.parts[1], ToolReturnPart)
    assert edited.parts[1].content == "[ref:json:abc]"
    assert edited.parts[1].tool_call_id == back.tool_call_id
    response = ModelResponse(
        [ThinkingPart("Hm."), TextPart("I look."), ToolCallPart("look", {"n": 1}, "call_1")]
    )
    [value] = form.write(response)
    assert form.read([(dict(value), response)])[0] is response
    [shorter] = form.read([({**value, "content": "I l…"}, response)])
    assert [type(part) for part in shorter.parts] == [ThinkingPart, TextPart, ToolCallPart]
    assert (shorter.parts[0], shorter.parts[2]) == (response.parts[0], response.parts[2])
    assert shorter.parts[0] is response.parts[0]  # with its signature, before any later text
    [unbound] = form.read([({**value, "reasoning_content": None}, response)])
    assert [type(part) for part in unbound.parts] == [TextPart, ToolCallPart]
    [digest] = form.read([({"role": "user", "content": "[Folded: 3 messages]"}, None)])
    assert isinstance(digest.parts[0], UserPromptPart)


def test_thinking_goes_out_as_it_came_while_results_around_it_are_cited() -> None:
    sent: list[list[ModelMessage]] = []

    def think(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        sent.append(messages)
        if len(sent) > 6:
            return ModelResponse([TextPart("Done.")])
        thought = ThinkingPart(f"I look at {len(sent)}.", signature=f"signed-{len(sent)}")
        return ModelResponse([thought, ToolCallPart("read_log", {"number": len(sent)})])

    async def main() -> list[ModelMessage]:
        async with Holdfast.open("memory:") as engine:
            capability = HoldfastCapability[None](engine, limit=8_000)
            model = FunctionModel(think, model_name="gpt-4o")
            reading = Agent(model, tools=[read_log], capabilities=[capability])
            return (await reading.run("Read them.")).all_messages()

    history = asyncio.run(main())
    own = [part for m in history for part in m.parts if isinstance(part, ThinkingPart)]
    assert len(own) == 6
    assert any("ref:" in str(part) for m in sent[-1] for part in m.parts)
    for messages in sent:
        thoughts = [part for m in messages for part in m.parts if isinstance(part, ThinkingPart)]
        answers = [m for m in messages if isinstance(m, ModelResponse)]
        assert len(thoughts) == len(answers)  # none without its thinking
        assert all(any(part is each for each in own) for part in thoughts)


def test_the_overflow_store_gives_back_the_very_bytes() -> None:
    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            store = HoldfastOverflowStore(engine)
            data = b"\x00\xff spilled \r\n" * 1000
            handle = await store.write("run/call/0", data)
            assert await store.read(handle) == data
            assert handle == await store.write("run/other/0", data)
            with pytest.raises(FileNotFoundError):
                await store.read("ref:text:" + "0" * 64)
        broken = HoldfastOverflowStore(Holdfast(Broken.in_memory()))
        with pytest.raises(OSError, match="the disk is full"):
            await broken.write("run/call/0", b"text")

    asyncio.run(main())


def test_the_overflow_store_is_one_of_the_harness() -> None:
    limits = pytest.importorskip(
        "pydantic_ai_harness.tool_output_limits", reason="pydantic-ai-harness is not installed"
    )
    store: Any = HoldfastOverflowStore("memory:")
    assert limits.ToolOutputLimits(store=store)
    store.host.close()


def test_a_response_without_words_or_calls_is_written_as_an_empty_text() -> None:
    form = PydanticForm()
    empty = ({"role": "assistant", "content": ""},)  # providers refuse null without calls
    assert tuple(form.write(ModelResponse([]))) == empty
    [thought] = form.write(ModelResponse([ThinkingPart("hm")]))
    assert (thought["content"], thought["reasoning_content"]) == ("", "hm")
    [called] = form.write(ModelResponse([ToolCallPart("look", {})]))
    assert called["content"] is None
