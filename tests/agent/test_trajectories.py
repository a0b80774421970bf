"""Recorded agents, replayed through the loop with a window of 16,000: all end, none exceeds it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.agent import Agent, AgentTool, Outcome
from tests.agent.scripted import is_valid, limit_of, says, target
from tests.support.recorded import needs_trajectories, trajectories
from tests.surfaces.proxy.gatekeeper import Got
from tests.surfaces.proxy.upstream import Upstream
from tests.wire.responses.streams import Part, Script

WINDOW = 16_000
MOST_TURNS = 400


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content)


class Recording:
    """A recorded agent as a model and its tools: its own words, arguments and results.

    Ids are new, for recordings use one twice. Arguments are kept where they are an object, as every
    tool takes any.
    """

    def __init__(self, record: dict[str, Any]) -> None:
        messages = record["messages"]
        self._turns = deque(m for m in messages if m["role"] == "assistant")
        self._results = {
            m.get("tool_call_id"): text_of(m["content"]) for m in messages if m["role"] == "tool"
        }
        self._waiting: dict[str, deque[str]] = {}
        """By name and arguments: the results of calls that were made and did not run yet."""
        self._ids = iter(range(10**6))
        self.task = self._first(messages, "user") or "Do it."
        self.system = self._first(messages, "system")
        called = [call["function"] for turn in self._turns for call in turn.get("tool_calls") or ()]
        self.tools = [self._tool(name) for name in sorted({call["name"] for call in called})]

    @staticmethod
    def _first(messages: Sequence[dict[str, Any]], role: str) -> str:
        return next((text_of(m["content"]) for m in messages if m["role"] == role), "")

    def _tool(self, name: str) -> AgentTool:
        def run(**arguments: Any) -> str:
            return self._waiting[_key(name, arguments)].popleft()

        parameters = {"type": "object", "properties": {}}
        return AgentTool(name=name, description="A tool.", parameters=parameters, run=run)

    def speak(self, got: Got) -> Script:
        """Return the next recorded turn whose calls can be made, or the end after the last one."""
        while self._turns:
            turn = self._turns.popleft()
            calls = [c for c in turn.get("tool_calls") or () if c["function"]["name"] in got.tools]
            if calls:
                words = text_of(turn.get("content") or "")
                spoken = (Part("text", (words,)),) if words.strip() else ()
                return Script((*spoken, *map(self._called, calls)))
        return says("All done.")

    def _called(self, call: dict[str, Any]) -> Part:
        name, arguments = call["function"]["name"], _object(call["function"].get("arguments"))
        result = self._results.get(call["id"], "")
        self._waiting.setdefault(_key(name, arguments), deque()).append(result)
        id_ = f"call_{next(self._ids)}"
        return Part("call", (json.dumps(arguments),), id=id_, name=name)


def _object(given: Any) -> dict[str, Any]:
    try:
        value = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"given": given}


def _key(name: str, arguments: dict[str, Any]) -> str:
    return json.dumps([name, arguments], sort_keys=True)


async def replayed(recording: Recording, upstream: Upstream) -> tuple[Outcome, Agent]:
    agent = Agent(
        [target(upstream, WINDOW)],
        tools=recording.tools,
        system=recording.system,
        store="memory:",
        max_turns=MOST_TURNS,
    )
    async with agent:
        return await agent.run(recording.task), agent


def replay(most: int) -> Counter[str]:
    """Replay a number of recordings, spread over all of them, and return how they ended."""
    records = [r for r in trajectories() if any(m.get("tool_calls") for m in r["messages"])]
    endings: Counter[str] = Counter()
    for record in records[:: max(len(records) // most, 1)][:most]:
        recording = Recording(record)
        with Upstream() as upstream:
            upstream.always = recording.speak
            outcome, agent = asyncio.run(replayed(recording, upstream))
            assert upstream.refused == []
            assert all(got.tokens <= limit_of(WINDOW) for got in upstream.requests)
        assert outcome.text
        assert is_valid(agent.messages)
        endings[outcome.ending] += 1
    return endings


@needs_trajectories
@pytest.mark.slow
def test_a_few_recorded_agents_end_and_fit() -> None:
    assert replay(4).total() == 4


@needs_trajectories
@pytest.mark.campaign
def test_two_hundred_recorded_agents_end_and_fit() -> None:
    endings = replay(200)
    assert endings.total() == 200
    assert endings["answered"] >= 190
