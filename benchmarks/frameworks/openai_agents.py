"""OpenAI Agents SDK: its items, its trimmer of tool outputs and our filter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agents import Agent
from agents.extensions.tool_output_trimmer import ToolOutputTrimmer
from agents.run_config import CallModelData, ModelInputData

from benchmarks.frameworks import Framework, Step
from holdfast import Holdfast
from holdfast.integrations.openai_agents import HoldfastFilter


def framework() -> Framework:
    """The framework, ready to be called."""

    def turn(n: int, text: str) -> list[Any]:
        call = {"type": "function_call", "call_id": f"call_{n}", "name": "look"}
        return [
            {"role": "user", "content": f"Look at {n}."},
            {**call, "arguments": json.dumps({"n": n})},
            {"type": "function_call_output", "call_id": f"call_{n}", "output": text},
            {"role": "assistant", "content": f"It is {n}."},
        ]

    def data(messages: list[Any], *tools: Any) -> CallModelData[Any]:
        agent: Agent[Any] = Agent("a", model="gpt-4o", tools=list(tools))
        return CallModelData(ModelInputData(messages, "Look."), agent, None)

    async def own(messages: list[Any]) -> list[Any]:
        return list(ToolOutputTrimmer()(data(messages)).input)

    def ours(engine: Holdfast, limit: int | None) -> Step:
        holdfast = HoldfastFilter(engine, limit=limit)

        async def step(messages: list[Any]) -> list[Any]:
            sent = (await holdfast(data(messages, holdfast.tool))).input
            await holdfast.host.await_background()
            return list(sent)

        return step

    def written(messages: Sequence[Any]) -> dict[str, Any]:
        return {"model": "gpt-4o", "input": list(messages)}

    return Framework("OpenAI Agents", "ToolOutputTrimmer", turn, own, ours, written)
