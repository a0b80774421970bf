"""Pydantic AI: its messages, a history processor as its documentation has it, our capability."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.test import TestModel

from benchmarks.frameworks import Framework, Step, written_as_chat
from holdfast import Holdfast
from holdfast.integrations._pydantic_form import PydanticForm
from holdfast.integrations.pydantic_ai import HoldfastCapability


def framework() -> Framework:
    """The framework, ready to be called."""

    async def keep_recent(messages: list[Any]) -> list[Any]:
        return messages[-(10**6) :]

    trimming: Any = ProcessHistory(keep_recent)
    run: Any = SimpleNamespace(conversation_id="c", run_id="r")

    def turn(n: int, text: str) -> list[Any]:
        return [
            ModelRequest([UserPromptPart(f"Look at {n}.")]),
            ModelResponse([ToolCallPart("look", {"n": n}, f"call_{n}")]),
            ModelRequest([ToolReturnPart("look", text, f"call_{n}")]),
            ModelResponse([TextPart(f"It is {n}.")]),
        ]

    def context(messages: list[Any]) -> ModelRequestContext:
        model = TestModel(model_name="gpt-4o")
        return ModelRequestContext(
            model=model,
            messages=messages,
            model_settings=None,
            model_request_parameters=ModelRequestParameters(),
        )

    async def own(messages: list[Any]) -> list[Any]:
        processed: list[Any] = (
            await trimming.before_model_request(run, context(messages))
        ).messages
        return processed

    def ours(engine: Holdfast, limit: int | None) -> Step:
        capability: HoldfastCapability[None] = HoldfastCapability(engine, limit=limit)

        async def step(messages: list[Any]) -> list[Any]:
            sent: list[Any] = []

            async def handler(request: Any) -> Any:
                sent.extend(request.messages)
                return ModelResponse([TextPart("Well.")])

            asked = context(messages)
            await capability.wrap_model_request(run, request_context=asked, handler=handler)
            await capability.host.await_background()
            return sent

        return step

    name = "a history processor"
    return Framework("Pydantic AI", name, turn, own, ours, written_as_chat(PydanticForm()))
