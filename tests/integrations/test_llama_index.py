"""LlamaIndex with a fake model: an agent whose requests fit, and a block with recall."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata, MockLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context

from holdfast import Holdfast
from holdfast.integrations._llama_form import ChatForm
from holdfast.integrations.llama_index import HoldfastAgent, HoldfastMemoryBlock
from tests.integrations.reading import (
    ANSWER,
    LIMIT,
    QUESTIONS,
    Broken,
    Reader,
    check_record,
    judge,
    read_log,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # LlamaIndex's workflows warn of themselves


class Scripted(MockLLM, FunctionCallingLLM):
    """A model that follows a `Reader`."""

    _reader: Any = PrivateAttr()

    def __init__(self, reader: Any) -> None:
        super().__init__()
        self._reader = reader

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, model_name="gpt-4o")

    def _prepare_chat_with_tools(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {}

    async def achat_with_tools(  # type: ignore[override]
        self, tools: Sequence[Any], chat_history: list[ChatMessage] | None = None, **_: Any
    ) -> ChatResponse:
        form = ChatForm()
        values = [dict(value) for m in chat_history or () for value in form.write(m)]
        offered = [tool.metadata.to_openai_tool() for tool in tools]
        move = self._reader({"model": "gpt-4o", "messages": values, "tools": offered})
        if not move.tool:
            return ChatResponse(message=ChatMessage(role="assistant", content=move.text))
        call_id = f"call_{len(self._reader.requests)}"
        call = ToolCallBlock(
            tool_call_id=call_id, tool_name=move.tool, tool_kwargs=dict(move.arguments)
        )
        return ChatResponse(message=ChatMessage(role="assistant", blocks=[call]))

    def get_tool_calls_from_response(
        self,
        response: ChatResponse,
        error_on_no_tool_call: bool = True,  # noqa: ARG002 - LlamaIndex's signature
        **_: Any,
    ) -> list[ToolSelection]:
        return [
            ToolSelection(
                tool_id=block.tool_call_id or "",
                tool_name=block.tool_name,
                tool_kwargs=block.tool_kwargs,
            )
            for block in response.message.blocks
            if isinstance(block, ToolCallBlock) and isinstance(block.tool_kwargs, dict)
        ]


async def run(reader: Reader, kind: type[FunctionAgent], **more: Any) -> str:
    agent = kind(
        llm=Scripted(reader=reader),
        tools=[FunctionTool.from_defaults(read_log)],
        system_prompt="You read logs.",
        streaming=False,
        timeout=None,
        **more,
    )
    context = Context(agent)
    memory = Memory.from_defaults(token_limit=10_000_000)
    output = ""
    for question in QUESTIONS:
        result = await agent.run(question, ctx=context, memory=memory, max_iterations=500)
        output = str(result)
    if isinstance(agent, HoldfastAgent):
        await agent.threads.host.await_background()
    return output


@pytest.mark.slow
def test_sixty_calls_in_a_small_window_end_with_the_same_answer() -> None:
    async def main() -> None:
        assert await run(Reader(), FunctionAgent) == ANSWER
        async with Holdfast.open("memory:") as engine:
            fitted = Reader()
            assert await run(fitted, HoldfastAgent, store=engine, limit=LIMIT) == ANSWER
            judge(fitted, "openai-chat", "gpt-4o")
            await check_record(engine, len(fitted.requests))

    asyncio.run(main())


def test_a_store_that_fails_does_not_break_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        reader = Reader(logs=12)
        broken = Holdfast(Broken.in_memory())
        assert await run(reader, HoldfastAgent, store=broken, limit=LIMIT) == ANSWER

    asyncio.run(main())
    assert "the disk is full" in caplog.text
    assert "INFO step" not in caplog.text


def test_what_fell_out_of_the_queue_is_recalled() -> None:
    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            block = HoldfastMemoryBlock(store=engine, token_budget=200)
            memory = Memory.from_defaults(token_limit=600, token_flush_size=100)
            memory.memory_blocks = [block]
            await memory.aput(ChatMessage(role="user", content="My dog is called Balthasar."))
            await memory.aput(ChatMessage(role="assistant", content="A fine name."))
            for n in range(60):
                await memory.aput(ChatMessage(role="user", content=f"Tell me of town {n}. " * 3))
                await memory.aput(ChatMessage(role="assistant", content=f"Town {n} is small."))
            await memory.aput(ChatMessage(role="user", content="What is my dog called?"))
            queue = await memory.aget_all(status=MessageStatus.ACTIVE)
            assert "Balthasar" not in str([message.content for message in queue])
            shown = await memory.aget()
            assert "Balthasar" in str(shown[0].content)
            content = await block.aget(queue)
            shorter = await block.atruncate(content, 40)
            assert shorter is None or len(shorter) < len(content)

    asyncio.run(main())


def test_a_memory_that_cannot_be_stored_does_not_break_the_chat(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        block = HoldfastMemoryBlock(store="sqlite:////proc/nowhere/store.db")
        said = [ChatMessage(role="user", content="My dog is called Balthasar.")]
        await block.aput(said)
        assert await block.aget(said) == ""

    asyncio.run(main())
    assert "not remembered" in caplog.text
    assert "Balthasar" not in caplog.text
