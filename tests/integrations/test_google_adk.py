"""Google ADK with a model class of its interface: the promises hold for an app's requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from holdfast import Holdfast, Scope
from holdfast.fitting import FitOptions
from holdfast.integrations._adk_request import BY_PARTS, ContentForm
from holdfast.integrations.google_adk import HoldfastPlugin
from holdfast.trim import DEFAULT_ANCHORS, AnchorDefinition
from tests.integrations.reading import (
    ANSWER,
    LIMIT,
    LINES,
    LOGS,
    QUESTIONS,
    Broken,
    Move,
    Reader,
    check_record,
    judge,
    read_log,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # ADK warns about its experiments
MODEL = "gemini-2.5-flash"


def json_of(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


class Scripted(BaseLlm):
    """A model that follows a `Reader`."""

    model: str = MODEL
    reader: Any

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: ARG002 - ADK's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        tools = [json_of(tool) for tool in llm_request.config.tools or ()]
        contents = [json_of(content) for content in llm_request.contents]
        move = self.reader({"contents": contents, "tools": tools})
        call = types.FunctionCall(name=move.tool, args=dict(move.arguments))
        part = types.Part(function_call=call) if move.tool else types.Part(text=move.text)
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=9_000)
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=usage)


async def run(reader: Reader, *plugins: HoldfastPlugin, user: str = "ann") -> tuple[str, Any]:
    agent = LlmAgent(
        name="reader",
        model=Scripted(reader=reader),
        instruction="You read logs.",
        tools=[read_log],
    )
    runner = InMemoryRunner(agent, app_name="logs", plugins=list(plugins))
    session = await runner.session_service.create_session(app_name="logs", user_id=user)
    text = ""
    for question in QUESTIONS:
        async for event in runner.run_async(
            user_id=user, session_id=session.id, new_message=types.UserContent(question)
        ):
            parts = event.content.parts if event.content else None
            text = (parts[0].text if parts else None) or text
    kept = await runner.session_service.get_session(
        app_name="logs", user_id=user, session_id=session.id
    )
    return text, kept


@pytest.mark.slow
def test_sixty_calls_in_a_small_window_end_with_the_same_answer() -> None:
    async def main() -> None:
        unlimited = Reader()
        assert (await run(unlimited))[0] == ANSWER
        async with Holdfast.open("memory:") as engine:
            fitted, plugin = Reader(), HoldfastPlugin(engine, limit=LIMIT)
            answer, session = await run(fitted, plugin)
            assert answer == ANSWER
            kept = str([json_of(event.content) for event in session.events if event.content])
            assert kept.count("INFO step") >= LOGS * LINES  # ADK's own session stays whole
            judge(fitted, "gemini", MODEL)
            await plugin.host.await_background()
            ann = await engine.of(Scope("ann", "logs"))
            await check_record(ann, len(fitted.requests))
            assert not await engine.store.refs(Scope("bob", "logs"))

    asyncio.run(main())


def test_a_store_that_fails_does_not_break_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        reader = Reader(logs=12)
        answer, _ = await run(reader, HoldfastPlugin(Holdfast(Broken.in_memory()), limit=LIMIT))
        assert answer == ANSWER
        assert max(str(request).count("INFO step") for request in reader.requests) == 12 * LINES

    asyncio.run(main())
    ours = [record.getMessage() for record in caplog.records if "holdfast" in record.name]
    assert any("the disk is full" in message for message in ours)
    assert not any("INFO step" in message for message in ours)


def test_no_user_opens_what_another_was_cited() -> None:
    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            plugin = HoldfastPlugin(engine, limit=LIMIT)
            await run(Reader(logs=24), plugin, user="ann")
            ref = (await engine.store.refs(Scope("ann", "logs")))[0].ref_id
            told: list[str] = []

            def curious(request: dict[str, Any]) -> Any:
                told.append(str(request))
                if len(told) == 1:
                    return Move("expand_ref", {"ref_id": ref})
                return Move(text="Well.")

            await run(curious, plugin, user="bob")  # type: ignore[arg-type]
            assert "INFO step" not in told[1]

    asyncio.run(main())


def test_contents_that_adk_copies_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[types.Content] = []

    class Counting(ContentForm):
        def write(self, message: types.Content) -> Any:
            written.append(message)
            return super().write(message)

    monkeypatch.setattr("holdfast.integrations.google_adk.ContentForm", Counting)

    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            reader = Reader(logs=4)
            await run(reader, HoldfastPlugin(engine))
            assert len(written) == len(reader.requests[-1]["contents"])

    asyncio.run(main())


def test_a_content_whose_part_was_replaced_is_another() -> None:
    content = types.UserContent("Hello")
    note = BY_PARTS.note(content)
    assert content.parts is not None
    copies = [part.model_copy() for part in content.parts]
    assert BY_PARTS.knows(note, content.model_copy(update={"parts": copies}))
    assert not BY_PARTS.knows(note, content.model_copy(update={"role": "model"}))
    assert not BY_PARTS.knows(note, content.model_copy(update={"parts": [*copies, *copies]}))
    content.parts[0].text = "Good day"
    assert not BY_PARTS.knows(note, content)


def test_where_no_tool_fits_the_last_request_offers_none() -> None:
    """Instruction, tools and the second question do not fit together, and no tool was called."""
    requests: list[dict[str, Any]] = []

    def talker(request: dict[str, Any]) -> Move:
        requests.append(request)
        return Move(text="Well.")

    def look_up(number: int) -> str:
        return str(number)

    look_up.__doc__ = "Looks a number up. " * 600
    words = " ".join(f"Rule {n}: be brief." for n in range(530))

    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            answer = AnchorDefinition(type="custom", selector=lambda m, *_: m.role == "assistant")
            options = FitOptions(limit=8_000, anchors=(*DEFAULT_ANCHORS, answer))
            plugin = HoldfastPlugin(engine, options=options)
            model = Scripted(reader=talker)
            agent = LlmAgent(name="talker", model=model, instruction=words, tools=[look_up])
            runner = InMemoryRunner(agent, app_name="talk", plugins=[plugin])
            session = await runner.session_service.create_session(app_name="talk", user_id="ann")
            for question in ("Hello?", "And what about the number? " * 60):
                async for _ in runner.run_async(
                    user_id="ann", session_id=session.id, new_message=types.UserContent(question)
                ):
                    pass

    asyncio.run(main())
    first, last = requests
    assert "look_up" in str(first["tools"])
    assert last["tools"] == []
