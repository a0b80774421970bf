"""LlamaIndex: a memory block that recalls, and a function agent whose requests fit.

llama_index: over session. What falls out of `Memory`'s queue is remembered and comes back when a
question needs it. `FunctionAgent` has one place that sees all it sends, with the tool results of
the running turn; there requests are fitted. Only this module imports `llama_index`.

    memory = Memory.from_defaults(memory_blocks=[HoldfastMemoryBlock(store="sqlite:///work.db")])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.extras import missing_extra

try:
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.base.llms.types import ChatMessage, ChatResponse
    from llama_index.core.bridge.pydantic import Field, PrivateAttr
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.tools import AsyncBaseTool, FunctionTool, ToolMetadata
except ImportError as error:
    raise missing_extra("llama-index", error) from error

from holdfast.cite import count
from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError
from holdfast.expand.tool import DESCRIPTION, NAME, PARAMETERS
from holdfast.integrations._host import Host, log
from holdfast.integrations._llama_form import ChatForm
from holdfast.integrations._session import Fit, Threads

_FACTS = 5
"""Facts that a question is given beside what was said."""


class HoldfastMemoryBlock(BaseMemoryBlock[str]):
    """What was said before the queue begins, as far as the last question needs it."""

    name: str = "holdfast"
    priority: int = 1
    token_budget: int = Field(default=1_000, gt=0)
    """Most tokens of what is recalled."""
    store: Any = Field(default=None, exclude=True)
    """An open engine, the address of a store, or None for that of the settings."""
    _host: Host = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Begin to run the engine."""
        super().model_post_init(context)
        self._host = Host(self.store)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        said = (message.content for message in reversed(messages or ()) if message.role == "user")
        question = next(filter(None, said), "")
        return await self._recalled(question) if question else ""

    async def _recalled(self, question: str) -> str:
        async def work(engine: Holdfast) -> str:
            recalled = await engine.recall(question, token_budget=self.token_budget)
            facts = await engine.facts.top(question, k=_FACTS)
            lines = [f"- {ranked.fact.text}" for ranked in facts]
            return _within([recalled.text, *lines], self.token_budget)

        try:
            return await self._host.wait(work)
        except HoldfastError as error:
            log.warning("nothing is recalled: %s", error)
            return ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        sessions: dict[str, list[dict[str, str]]] = {}
        for message in messages:
            session = str(message.additional_kwargs.get("session_id") or self.name)
            if message.content:
                said = {"role": message.role.value, "content": message.content}
                sessions.setdefault(session, []).append(said)
        for session, turns in sessions.items():
            await self._remembered(session, turns)

    async def _remembered(self, session: str, said: list[dict[str, str]]) -> None:
        try:
            await self._host.wait(lambda engine: engine.remember(session, said))
        except HoldfastError as error:
            log.warning("%d messages are not remembered: %s", len(said), error)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """What of it fits in fewer tokens, by whole lines from its beginning."""
        return _within(content.splitlines(), count(content) - tokens_to_truncate) or None

    def close(self) -> None:
        """Let the store go."""
        self._host.close()


def _within(lines: Sequence[str], tokens: int) -> str:
    """As many lines as have room, in their order."""
    text = ""
    for line in filter(None, lines):
        longer = f"{text}\n{line}" if text else line
        if count(longer) > tokens:
            break
        text = longer
    return text


class HoldfastAgent(FunctionAgent):
    """A function agent whose requests fit, with the tool that opens what was cited."""

    store: Any = Field(default=None, exclude=True)
    """An open engine, the address of a store, or None for that of the settings."""
    limit: int | None = Field(default=None, gt=0)
    """Most input tokens of a request; None is what the model takes."""
    _threads: Threads[ChatMessage] = PrivateAttr()

    @property
    def threads(self) -> Threads[ChatMessage]:
        """The conversations of the agent."""
        return self._threads

    def model_post_init(self, context: Any) -> None:
        """Begin to run the engine."""
        super().model_post_init(context)
        self._threads = Threads(Host(self.store), ChatForm(), limit=self.limit)

    async def get_tools(self, input_str: str | None = None) -> Sequence[AsyncBaseTool]:
        """The agent's tools, and the one that opens refs."""
        return [*await super().get_tools(input_str), expand_tool(self._threads)]

    async def _get_response(
        self, current_llm_input: list[ChatMessage], tools: Sequence[AsyncBaseTool]
    ) -> ChatResponse:
        fit = await self._fit(current_llm_input, tools)
        response = await super()._get_response(fit.messages, _offered(tools, fit))
        self._threads.observe(fit)
        return response

    async def _get_streaming_response(
        self, ctx: Any, current_llm_input: list[ChatMessage], tools: Sequence[AsyncBaseTool]
    ) -> ChatResponse:
        fit = await self._fit(current_llm_input, tools)
        response = await super()._get_streaming_response(ctx, fit.messages, _offered(tools, fit))
        self._threads.observe(fit)
        return response

    async def _fit(
        self, messages: Sequence[ChatMessage], tools: Sequence[AsyncBaseTool]
    ) -> Fit[ChatMessage]:
        # No id of a conversation comes here: it is known by what it begins with.
        around = {
            "model": self.llm.metadata.model_name,
            "tools": [tool.metadata.to_openai_tool(skip_length_check=True) for tool in tools],
        }
        return await self._threads.afit(messages, around)

    def close(self) -> None:
        """Write down what is still to be written, and let the store go."""
        self._threads.host.close()


def expand_tool(threads: Threads[ChatMessage]) -> FunctionTool:
    """The tool that a model opens refs with."""

    async def expand_ref(**arguments: Any) -> str:
        return await threads.aexpand(arguments)

    return FunctionTool(async_fn=expand_ref, metadata=_ExpandMetadata(DESCRIPTION, NAME))


class _ExpandMetadata(ToolMetadata):
    """Its parameters as they stand: a pydantic model would write them longer."""

    def get_parameters_dict(self) -> dict[str, Any]:
        return PARAMETERS


def _offered(tools: Sequence[AsyncBaseTool], fit: Fit[ChatMessage]) -> Sequence[AsyncBaseTool]:
    if fit.tools is None:
        return tools
    return [tool for tool in tools if tool.metadata.name in fit.tools]
