"""LiteLLM: chat messages, its function that trims them and our logger."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from litellm.types.utils import CallTypes
from litellm.utils import trim_messages

from benchmarks.frameworks import Framework, Step, written_as_chat
from holdfast import Holdfast
from holdfast.integrations.litellm import HoldfastLogger, _ChatForm


def framework() -> Framework:
    """The framework, ready to be called."""

    def turn(n: int, text: str) -> list[Any]:
        function = {"name": "look", "arguments": json.dumps({"n": n})}
        call = {"id": f"call_{n}", "type": "function", "function": function}
        return [
            {"role": "user", "content": f"Look at {n}."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{n}", "content": text},
            {"role": "assistant", "content": f"It is {n}."},
        ]

    async def own(messages: list[Any]) -> list[Any]:
        trimmed: list[Any] = trim_messages(messages, model="gpt-4o", max_tokens=10**9)
        return trimmed

    def ours(engine: Holdfast, limit: int | None) -> Step:
        logger = HoldfastLogger(engine, limit=limit)

        async def step(messages: list[Any]) -> list[Any]:
            asked = {"model": "gpt-4o", "messages": messages, "litellm_call_id": "1"}
            kind = CallTypes.acompletion
            changed = await logger.async_pre_call_deployment_hook(asked, kind)
            answer = SimpleNamespace(usage=None)
            await logger.async_post_call_success_deployment_hook(asked, answer, kind)
            await logger.threads.host.await_background()
            return (changed or asked)["messages"]  # type: ignore[return-value]

        return step

    return Framework("LiteLLM", "trim_messages", turn, own, ours, written_as_chat(_ChatForm()))
