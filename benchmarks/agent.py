"""The agent's loop: what it adds to a call at 1,000 messages, beside a plain loop over a client.

Both send the same conversation to a model that is no work: it calls a tool at once, and ends after
some turns. The plain loop puts replies and results into a list; ours guards, journals and accounts
as well. It is CPU time of a call, so that other programs of the machine do not count.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from holdfast.agent import Agent
from holdfast.client import Client
from holdfast.client.transports import OfflineTransport
from holdfast.wire.responses import ModelCall, OfflineResponse, compose_response

MESSAGES = 1_000
TURNS = 20
ROUNDS = 3
_RESULT = "line 7: value 217"


def look(place: int) -> str:
    """Looks at a place."""
    return f"{_RESULT} at {place}"


class _Answer:
    status = 200
    headers: Mapping[str, str] = {"content-type": "application/json"}

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def chunks(self) -> AsyncGenerator[bytes]:
        yield self._body


class _Caller(OfflineTransport):
    """A model that calls the tool in every turn but the last."""

    def __init__(self) -> None:
        super().__init__("openai-chat")
        self._turn = 0

    @asynccontextmanager
    async def send(
        self,
        body: bytes,
        *,
        stream: bool,  # noqa: ARG002 - it never streams
    ) -> AsyncIterator[_Answer]:
        self._turn += 1
        call = ModelCall(f"call_{self._turn}", "look", f'{{"place": {self._turn}}}')
        said = OfflineResponse(
            id=f"{self._turn}",
            model=self.model,
            created=0,
            pieces=("The end.",) if self._turn > TURNS else (),
            calls=() if self._turn > TURNS else (call,),
            input_tokens=len(body) // 4,
            output_tokens=10,
        )
        yield _Answer(compose_response(said, self.dialect))


def run(console: Console) -> None:
    """Print the table."""
    history = [
        {"role": ("user", "assistant")[n % 2], "content": f"Message {n}: the value is {n * 31}."}
        for n in range(MESSAGES - 1)
    ]
    plain = min(asyncio.run(_plain(history)) for _ in range(ROUNDS))
    ours = min(asyncio.run(_ours(history)) for _ in range(ROUNDS))
    ratios.note(f"agent: a call at {MESSAGES:,} messages, a plain loop", plain, ours)
    table = Table(title=f"CPU time of a call at {MESSAGES:,} messages, in milliseconds")
    for column in ("plain loop over a client", "agent", "added"):
        table.add_column(column, justify="right")
    table.add_row(f"{plain:.2f}", f"{ours:.2f}", f"{ours - plain:.2f}")
    console.print(table)


async def _plain(history: list[dict[str, Any]]) -> float:
    tool = Agent(tools=[look]).tools["look"]
    messages = list(history)
    async with Client(store="memory:") as client:
        client.transport = _Caller()
        started = time.process_time()
        while (reply := await client.chat(messages, tools=[tool.definition])).calls:
            messages += reply.messages
            for call in reply.calls:
                result = await tool(tool.arguments(call.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        return (time.process_time() - started) * 1000 / (TURNS + 1)


async def _ours(history: list[dict[str, Any]]) -> float:
    async with Agent(tools=[look], store="memory:") as agent:
        for line in agent._asking.lines:
            line.client.transport = _Caller()
        started = time.process_time()
        outcome = await agent.run(history)
        took = time.process_time() - started
    if outcome.turns != TURNS + 1:
        raise RuntimeError("the agent did not go the whole way")
    return took * 1000 / (TURNS + 1)
