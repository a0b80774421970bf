"""LangChain 1.x: a middleware that keeps every model call of an agent within its window.

langchain: after session. The agent's own state stays whole, so that checkpoints and other
middleware see what happened; what is cited or folded is so only in what the model is sent, and the
record says so. Put it last in the list of middleware: then it sees the call as it goes out.
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
    """Cites long tool results, folds history when it must, and lets the model open both."""

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
        """Keep the calls of an agent within `limit` input tokens; by default, what its model takes.

        `store` is where originals go: an address, an engine that is open, or a host that several
        adapters share. `model` names the model where LangChain's own name is not the provider's.
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
        """Write down the last turns and let the store go; the end of the program does so too."""
        self.host.close()

    # --- hooks -----------------------------------------------------------------------------------

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Send what fits."""
        messages, around, name = self._call(request)
        fit = self._threads.fit(messages, around, name, opens=_opens(request))
        response = handler(_fitted(request, fit))
        self._threads.observe(fit, usage_of(response))
        return response

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Send what fits."""
        messages, around, name = self._call(request)
        fit = await self._threads.afit(messages, around, name, opens=_opens(request))
        response = await handler(_fitted(request, fit))
        self._threads.observe(fit, usage_of(response))
        return response

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]
    ) -> Any:
        """Answer `expand_ref`, whatever its arguments; other tools are not ours."""
        if request.tool_call["name"] != NAME:
            return handler(request)
        return _answer(request, self._threads.expand(request.tool_call["args"]))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Answer `expand_ref`, whatever its arguments; other tools are not ours."""
        if request.tool_call["name"] != NAME:
            return await handler(request)
        return _answer(request, await self._threads.aexpand(request.tool_call["args"]))

    # --- slots of LangChain's own middleware -----------------------------------------------------

    def token_counter(self, messages: Iterable[Any]) -> int:
        """Count messages as the provider will: for `SummarizationMiddleware(token_counter=)`."""
        values = [value for message in messages for value in Messages().write(message)]
        return count({"model": self._model or "gpt-4o", "messages": values}).tokens if values else 0

    @property
    def summarizer(self) -> RunnableLambda[list[Any], str]:
        """A summary that loses nothing, for `SummarizationMiddleware(summarizer=)`.

        It is a citation: what matters of the messages, and the ref that opens all of them.
        """

        def cite(messages: list[BaseMessage]) -> Callable[[Holdfast], Awaitable[str]]:
            async def work(engine: Holdfast) -> str:
                asked = [m.text for m in messages if isinstance(m, HumanMessage)]
                transcript = get_buffer_string(messages)
                return (await engine.cite(transcript, question=asked[-1] if asked else None)).text

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
        """A tool as the provider is told of it; pydantic takes a millisecond for each."""
        schema = self._schemas.get(id(tool))
        if schema is None:
            schema = self._schemas[id(tool)] = (tool, convert_to_openai_tool(tool))
        return schema[1]


def _opens(request: ModelRequest[Any]) -> bool:
    """Whether the model is offered our tool: another middleware may have chosen among them."""
    return any(getattr(tool, "name", "") == NAME for tool in request.tools)


def _fitted(request: ModelRequest[Any], fit: Fit[BaseMessage]) -> ModelRequest[Any]:
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
