"""LlamaIndex: a memory block with recall, and a function agent whose requests fit.

Messages that leave `Memory`'s queue are remembered and recalled for later questions.
`FunctionAgent` has one method through which all its requests pass, where they are fitted.

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
"""Maximum facts that are added to the recalled turns."""


class HoldfastMemoryBlock(BaseMemoryBlock[str]):
    """Recalls messages from before the queue that the last question needs."""

    name: str = "holdfast"
    priority: int = 1
    token_budget: int = Field(default=1_000, gt=0)
    """Maximum tokens of recalled messages."""
    store: Any = Field(default=None, exclude=True)
    """An open engine, a store URL, or None for the store of the settings."""
    _host: Host = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Start the engine's host."""
        super().model_post_init(context)
        self._host = Host(self.store)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        questions = (
            message.content for message in reversed(messages or ()) if message.role == "user"
        )
        question = next(filter(None, questions), "")
        return await self._recall(question) if question else ""

    async def _recall(self, question: str) -> str:
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
                turn = {"role": message.role.value, "content": message.content}
                sessions.setdefault(session, []).append(turn)
        for session, turns in sessions.items():
            await self._remember(session, turns)

    async def _remember(self, session: str, said: list[dict[str, str]]) -> None:
        try:
            await self._host.wait(lambda engine: engine.remember(session, said))
        except HoldfastError as error:
            log.warning("%d messages are not remembered: %s", len(said), error)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return the first whole lines of a content that fit into fewer tokens."""
        return _within(content.splitlines(), count(content) - tokens_to_truncate) or None

    def close(self) -> None:
        """Close the store."""
        self._host.close()


def _within(lines: Sequence[str], tokens: int) -> str:
    """Return the first lines that fit."""
    text = ""
    for line in filter(None, lines):
        longer = f"{text}\n{line}" if text else line
        if count(longer) > tokens:
            break
        text = longer
    return text


class HoldfastAgent(FunctionAgent):
    """A function agent whose requests fit, with the tool that opens citations."""

    store: Any = Field(default=None, exclude=True)
    """An open engine, a store URL, or None for the store of the settings."""
    limit: int | None = Field(default=None, gt=0)
    """Maximum input tokens of a request; None for the model's limit."""
    _threads: Threads[ChatMessage] = PrivateAttr()

    @property
    def threads(self) -> Threads[ChatMessage]:
        """Return the conversations of the agent."""
        return self._threads

    def model_post_init(self, context: Any) -> None:
        """Start the engine's host."""
        super().model_post_init(context)
        self._threads = Threads(Host(self.store), ChatForm(), limit=self.limit)

    async def get_tools(self, input_str: str | None = None) -> Sequence[AsyncBaseTool]:
        """Return the agent's tools and the one that opens refs."""
        return [*await super().get_tools(input_str), expand_tool(self._threads)]

    async def _get_response(
        self, current_llm_input: list[ChatMessage], tools: Sequence[AsyncBaseTool]
    ) -> ChatResponse:
        fit = await self._fit(current_llm_input, tools)
        response = await super()._get_response(fit.messages, _offered_tools(tools, fit))
        self._threads.observe(fit)
        return response

    async def _get_streaming_response(
        self, ctx: Any, current_llm_input: list[ChatMessage], tools: Sequence[AsyncBaseTool]
    ) -> ChatResponse:
        fit = await self._fit(current_llm_input, tools)
        response = await super()._get_streaming_response(
            ctx, fit.messages, _offered_tools(tools, fit)
        )
        self._threads.observe(fit)
        return response

    async def _fit(
        self, messages: Sequence[ChatMessage], tools: Sequence[AsyncBaseTool]
    ) -> Fit[ChatMessage]:
        # LlamaIndex passes no conversation id here, so the beginning of the conversation identifies
        # it.
        around = {
            "model": self.llm.metadata.model_name,
            "tools": [tool.metadata.to_openai_tool(skip_length_check=True) for tool in tools],
        }
        return await self._threads.afit(messages, around)

    def close(self) -> None:
        """Finish recording and close the store."""
        self._threads.host.close()


def expand_tool(threads: Threads[ChatMessage]) -> FunctionTool:
    """Return the tool that opens refs."""

    async def expand_ref(**arguments: Any) -> str:
        return await threads.aexpand(arguments)

    return FunctionTool(async_fn=expand_ref, metadata=_ExpandMetadata(DESCRIPTION, NAME))


class _ExpandMetadata(ToolMetadata):
    """The tool's own parameters: a pydantic model would write them longer."""

    def get_parameters_dict(self) -> dict[str, Any]:
        return PARAMETERS


def _offered_tools(
    tools: Sequence[AsyncBaseTool], fit: Fit[ChatMessage]
) -> Sequence[AsyncBaseTool]:
    if fit.tools is None:
        return tools
    return [tool for tool in tools if tool.metadata.name in fit.tools]
