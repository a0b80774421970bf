"""Models for tests: scripts that call tools and end, checked by the providers' rules."""

from __future__ import annotations

import json
from typing import Any

from holdfast.agent import Agent, Target
from tests.surfaces.proxy.upstream import Upstream
from tests.wire.responses.streams import Part, Script

REPORT = "agent__final_report"
_numbers = iter(range(10**9))


def says(text: str) -> Script:
    return Script((Part("text", (text,)),))


def call(name: str, **arguments: Any) -> Part:
    return Part("call", (json.dumps(arguments),), id=f"call_{next(_numbers)}", name=name)


def calls(*parts: Part) -> Script:
    return Script(parts)


def reports(report: str, **meta: Any) -> Script:
    more = {"meta": meta} if meta else {}
    return calls(call(REPORT, report=report, **more))


def target(upstream: Upstream, window: int = 16_000, model: str = "openai:gpt-5") -> Target:
    return Target(
        model=model,
        window=window,
        max_output_tokens=1_000,
        url=upstream.url,
        key="key-of-the-test",
    )


def agent_of(*upstreams: Upstream, window: int = 16_000, **more: Any) -> Agent:
    models = ("openai:gpt-5", "anthropic:claude-sonnet-4-5")
    targets = [target(up, window, model) for up, model in zip(upstreams, models, strict=False)]
    return Agent(targets, **{"store": "memory:", **more})


def limit_of(window: int) -> int:
    return window - 256 - 1_000


def is_valid(messages: list[dict[str, Any]]) -> bool:
    """Return whether every call has one result, directly after its turn."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return False
            waiting.discard(message["tool_call_id"])
            continue
        if waiting:
            return False
        waiting = {each["id"] for each in message.get("tool_calls") or ()}
    return not waiting
