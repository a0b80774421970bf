"""LangChain 1.x: a middleware that keeps every model call of an agent within its window.

The agent's state stays complete, so that checkpoints and other middleware see everything; citations
and folds are only in the messages for the model. Put it last in the list of middleware.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from holdfast.extras import missing_extra

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import ToolCallRequest
    from langchain_core.messages import (
        BaseMessage,
        HumanMessage,
        SystemMessage,
        ToolMessage,
        get_buffer_string,
    )
    from langchain_core.runnables import RunnableLambda
    from langchain_core.tools import StructuredTool
    from langchain_core.utils.function_calling import convert_to_openai_tool
except ImportError as error:
    raise missing_extra("langchain", error) from error

from holdfast.engine import Holdfast
from holdfast.expand.tool import DESCRIPTION, NAME, PARAMETERS
from holdfast.fitting import FitOptions
from holdfast.integrations._host import Host
from holdfast.integrations._langchain_call import answer_tools, session_name, usage_of
from holdfast.integrations._langchain_messages import Messages
from holdfast.integrations._session import Fit, Threads
from holdfast.settings import Settings
from holdfast.store import Scope
from holdfast.tokens import count


class HoldfastMiddleware(AgentMiddleware[Any, Any, Any]):
    """Cites long tool results, folds history if necessary, and lets the model open both."""

    def __init__(
        self,
        store: Host | Holdfast | str | None = None,
        *,
        limit: int | None = None,
        model: str = "",
        options: FitOptions | None = None,
        settings: Settings | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Keep an agent's calls within `limit` input tokens; by default, the model's limit.

        `store` is for originals: a URL, an open engine, or a host that several adapters share.
        `model` is the provider's name of the model, if LangChain uses another.
        """
        super().__init__()
        self.host = (
            store if isinstance(store, Host) else Host(store, settings=settings, scope=scope)
        )
        self._threads = Threads(self.host, Messages(), limit=limit, options=options)
        self._model = model
        self._schemas: dict[int, tuple[Any, Any]] = {}
        self.tools = [
            StructuredTool(
                name=NAME,
                description=DESCRIPTION,
                args_schema=PARAMETERS,
                func=lambda **arguments: self._threads.expand(arguments),
                coroutine=lambda **arguments: self._threads.aexpand(arguments),
            )
        ]

    def close(self) -> None:
        """Record the last turns and close the store; the end of the program does so too."""
        self.host.close()

    # --- hooks -----------------------------------------------------------------------------------

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Send a request that fits."""
        messages, around, name = self._call(request)
        fit = self._threads.fit(messages, around, name, opens=_opens(request))
        response = handler(_fitted_request(request, fit))
        self._threads.observe(fit, usage_of(response))
        return response

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Send a request that fits."""
        messages, around, name = self._call(request)
        fit = await self._threads.afit(messages, around, name, opens=_opens(request))
        response = await handler(_fitted_request(request, fit))
        self._threads.observe(fit, usage_of(response))
        return response

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]
    ) -> Any:
        """Answer `expand_ref` with any arguments; other tools are passed on."""
        if request.tool_call["name"] != NAME:
            return handler(request)
        return _answer(request, self._threads.expand(request.tool_call["args"]))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Answer `expand_ref` with any arguments; other tools are passed on."""
        if request.tool_call["name"] != NAME:
            return await handler(request)
        return _answer(request, await self._threads.aexpand(request.tool_call["args"]))

    # --- for LangChain's own middleware
    # ---------------------------------------------------------------

    def token_counter(self, messages: Iterable[Any]) -> int:
        """Count messages like the provider, for `SummarizationMiddleware(token_counter=)`."""
        values = [value for message in messages for value in Messages().write(message)]
        return count({"model": self._model or "gpt-4o", "messages": values}).tokens if values else 0

    @property
    def summarizer(self) -> RunnableLambda[list[Any], str]:
        """A lossless summary for `SummarizationMiddleware(summarizer=)`.

        It is a citation: the important lines of the messages, and the ref that opens all of them.
        """

        def cite(messages: list[BaseMessage]) -> Callable[[Holdfast], Awaitable[str]]:
            async def work(engine: Holdfast) -> str:
                questions = [m.text for m in messages if isinstance(m, HumanMessage)]
                transcript = get_buffer_string(messages)
                return (
                    await engine.cite(transcript, question=questions[-1] if questions else None)
                ).text

            return work

        return RunnableLambda(
            lambda messages: self.host.run(cite(messages)),
            lambda messages: self.host.wait(cite(messages)),
        )

    # --- a call ----------------------------------------------------------------------------------

    def _call(self, request: ModelRequest[Any]) -> tuple[list[BaseMessage], dict[str, Any], str]:
        system = [] if request.system_message is None else [request.system_message]
        model = request.model
        named = getattr(model, "model_name", None) or getattr(model, "model", None)
        around: dict[str, Any] = {"model": self._model or (named if isinstance(named, str) else "")}
        tools = [*request.tools, *answer_tools(request)]
        if tools:
            around["tools"] = [self._schema(tool) for tool in tools]
        return [*system, *request.messages], around, session_name(request.messages)

    def _schema(self, tool: Any) -> Any:
        """Return a tool in the provider's form; cached, as pydantic takes a millisecond."""
        schema = self._schemas.get(id(tool))
        if schema is None:
            schema = self._schemas[id(tool)] = (tool, convert_to_openai_tool(tool))
        return schema[1]


def _opens(request: ModelRequest[Any]) -> bool:
    """Return whether the model gets our tool; another middleware may have removed it."""
    return any(getattr(tool, "name", "") == NAME for tool in request.tools)


def _fitted_request(request: ModelRequest[Any], fit: Fit[BaseMessage]) -> ModelRequest[Any]:
    messages: list[Any] = list(fit.messages)
    system = request.system_message
    if system is not None and isinstance(messages[0], SystemMessage):
        system = messages.pop(0)
    tools = [
        tool
        for tool in request.tools
        if fit.tools is None or getattr(tool, "name", "") in fit.tools or isinstance(tool, dict)
    ]
    return request.override(messages=messages, system_message=system, tools=tools)


def _answer(request: ToolCallRequest, text: str) -> ToolMessage:
    return ToolMessage(content=text, name=NAME, tool_call_id=request.tool_call["id"] or "")
