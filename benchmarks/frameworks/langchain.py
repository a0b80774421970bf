"""LangChain: its messages, its summarising middleware and ours."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import ModelRequest, ModelResponse, SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from benchmarks.frameworks import Framework, Step, written_as_chat
from holdfast import Holdfast
from holdfast.integrations._langchain_messages import Messages
from holdfast.integrations.langchain import HoldfastMiddleware


def framework() -> Framework:
    """The framework, ready to be called."""

    class Fake(GenericFakeChatModel):
        model_name: str = "gpt-4o"

    model = Fake(messages=iter(()))
    summarising: Any = SummarizationMiddleware(model, trigger=("tokens", 10**9))

    def turn(n: int, text: str) -> list[Any]:
        call = {"name": "look", "args": {"n": n}, "id": f"call_{n}"}
        return [
            HumanMessage(f"Look at {n}.", id=f"question-{n}"),
            AIMessage("", tool_calls=[call], id=f"call-{n}"),
            ToolMessage(text, tool_call_id=f"call_{n}", id=f"result-{n}"),
            AIMessage(f"It is {n}.", id=f"answer-{n}"),
        ]

    async def own(messages: list[Any]) -> list[Any]:
        await summarising.abefore_model({"messages": messages}, None)
        return messages

    def ours(engine: Holdfast, limit: int | None) -> Step:
        middleware = HoldfastMiddleware(engine, limit=limit)

        async def step(messages: list[Any]) -> list[Any]:
            sent: list[Any] = []

            async def handler(request: Any) -> Any:
                sent.extend(request.messages)
                return ModelResponse(result=[AIMessage("Well.")])

            request: Any = ModelRequest(model=model, messages=messages, tools=middleware.tools)
            await middleware.awrap_model_call(request, handler)
            await middleware.host.await_background()
            return sent

        return step

    name = "SummarizationMiddleware"
    return Framework("LangChain", name, turn, own, ours, written_as_chat(Messages()))
