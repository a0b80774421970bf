"""Google ADK: its contents as it copies them for each request, its filter plugin and ours."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from google.adk.flows.llm_flows.contents import _copy_content_for_request
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from google.genai import types

from benchmarks.frameworks import Framework, Step
from holdfast import Holdfast
from holdfast.integrations._adk_request import ContentForm
from holdfast.integrations.google_adk import HoldfastPlugin


def framework() -> Framework:
    """The framework, ready to be called."""
    session = SimpleNamespace(id="s", user_id="ann", app_name="logs")
    context: Any = SimpleNamespace(session=session, agent_name="a", branch=None)
    filtering = ContextFilterPlugin(num_invocations_to_keep=10**6)

    def turn(n: int, text: str) -> list[Any]:
        call = types.FunctionCall(id=f"call_{n}", name="look", args={"n": n})
        back = types.FunctionResponse(id=f"call_{n}", name="look", response={"result": text})
        return [
            types.Content(role="user", parts=[types.Part(text=f"Look at {n}.")]),
            types.Content(role="model", parts=[types.Part(function_call=call)]),
            types.Content(role="user", parts=[types.Part(function_response=back)]),
            types.Content(role="model", parts=[types.Part(text=f"It is {n}.")]),
        ]

    def request(messages: list[Any]) -> LlmRequest:
        return LlmRequest(model="gemini-2.5-flash", contents=messages)

    async def own(messages: list[Any]) -> list[Any]:
        asked = request(messages)
        await filtering.before_model_callback(callback_context=context, llm_request=asked)
        return asked.contents

    def ours(engine: Holdfast, limit: int | None) -> Step:
        plugin = HoldfastPlugin(engine, limit=limit)

        async def step(messages: list[Any]) -> list[Any]:
            asked = request(messages)
            await plugin.before_model_callback(callback_context=context, llm_request=asked)
            answer = LlmResponse(content=types.Content(role="model", parts=[]))
            await plugin.after_model_callback(callback_context=context, llm_response=answer)
            await plugin.host.await_background()
            return asked.contents

        return step

    def written(messages: Sequence[Any]) -> dict[str, Any]:
        contents = [value for message in messages for value in ContentForm().write(message)]
        return {"model": "gemini-2.5-flash", "contents": contents}

    def copied(history: list[Any]) -> list[Any]:
        return [
            _copy_content_for_request(content, strip_client_function_call_ids=False)
            for content in history
        ]

    return Framework("Google ADK", "ContextFilterPlugin", turn, own, ours, written, copied)
