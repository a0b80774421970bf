"""LlamaIndex: its messages, its memory buffer and our agent."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.llms import ChatMessage, LLMMetadata, MockLLM
from llama_index.core.memory import ChatMemoryBuffer

from benchmarks.frameworks import Framework, Step, written_as_chat
from holdfast import Holdfast
from holdfast.integrations._llama_form import ChatForm
from holdfast.integrations.llama_index import HoldfastAgent


def framework() -> Framework:
    """The framework, ready to be called."""

    class Mock(MockLLM):
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(is_function_calling_model=True, model_name="gpt-4o")

    def turn(n: int, text: str) -> list[Any]:
        call = ToolCallBlock(tool_call_id=f"call_{n}", tool_name="look", tool_kwargs={"n": n})
        back = {"tool_call_id": f"call_{n}"}
        return [
            ChatMessage(role="user", content=f"Look at {n}."),
            ChatMessage(role="assistant", blocks=[call]),
            ChatMessage(role="tool", content=text, additional_kwargs=back),
            ChatMessage(role="assistant", content=f"It is {n}."),
        ]

    buffer = ChatMemoryBuffer.from_defaults(token_limit=10**9)

    async def own(messages: list[Any]) -> list[Any]:
        buffer.chat_store.store = {buffer.chat_store_key: messages}  # type: ignore[attr-defined]
        return buffer.get()

    def ours(engine: Holdfast, limit: int | None) -> Step:
        agent = HoldfastAgent(llm=Mock(), tools=[], store=engine, limit=limit)

        async def step(messages: list[Any]) -> list[Any]:
            fit = await agent._fit(messages, await agent.get_tools())
            agent.threads.observe(fit)
            await agent.threads.host.await_background()
            return fit.messages

        return step

    return Framework("LlamaIndex", "ChatMemoryBuffer", turn, own, ours, written_as_chat(ChatForm()))
