"""LiteLLM against an upstream on this machine: requests that fit, and refs opened in its loop."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network when imported
import litellm

from holdfast import Holdfast
from holdfast.integrations.litellm import HoldfastLogger
from tests.integrations.reading import (
    ANSWER,
    LIMIT,
    LOGS,
    QUESTIONS,
    Broken,
    Reader,
    judge,
    read_log,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # LiteLLM warns about its own code
TOOL = {
    "type": "function",
    "function": {
        "name": "read_log",
        "description": "Reads a log.",
        "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}},
    },
}


@asynccontextmanager
async def upstream(reader: Reader) -> AsyncIterator[str]:
    """A provider that answers with a `Reader`'s decisions."""

    async def complete(request: web.Request) -> web.Response:
        body = await request.json()
        move = reader(body)
        message: dict[str, Any] = {"role": "assistant", "content": move.text or None}
        if move.tool:
            function = {"name": move.tool, "arguments": json.dumps(move.arguments)}
            call_id = f"call_{len(reader.requests)}"
            message["tool_calls"] = [{"id": call_id, "type": "function", "function": function}]
        reason = "tool_calls" if move.tool else "stop"
        choice = {"index": 0, "finish_reason": reason, "message": message}
        usage = {"prompt_tokens": 9_000, "completion_tokens": 9, "total_tokens": 9_009}
        answer = {"id": "a", "object": "chat.completion", "created": 1, "model": "gpt-4o"}
        return web.json_response({**answer, "choices": [choice], "usage": usage})

    app = web.Application(client_max_size=10**8)
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}/v1"
    await runner.cleanup()


async def run(reader: Reader, *callbacks: HoldfastLogger, **more: Any) -> str:
    """An agent as its author writes it: no tool but its own is ever asked of it."""
    litellm.callbacks = list(callbacks)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You read logs."}]
    text = ""
    try:
        async with upstream(reader) as address:
            for question in QUESTIONS:
                messages.append({"role": "user", "content": question})
                text = await _answered(messages, address, more)
    finally:
        litellm.callbacks = []
    return text


async def _answered(messages: list[dict[str, Any]], address: str, more: dict[str, Any]) -> str:
    while True:
        response: Any = await litellm.acompletion(
            model="openai/gpt-4o",
            messages=messages,
            tools=[TOOL],
            api_base=address,
            api_key="none",
            **more,
        )
        if more.get("stream"):
            response = litellm.stream_chunk_builder([chunk async for chunk in response])
        message = response.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return str(message.content)
        for call in message.tool_calls:
            assert call.function.name == "read_log"
            number = json.loads(call.function.arguments)["number"]
            messages.append({"role": "tool", "tool_call_id": call.id, "content": read_log(number)})


@pytest.mark.slow
@pytest.mark.parametrize("session", ["", "mine"])
def test_sixty_calls_in_a_small_window_end_with_the_same_answer(session: str) -> None:
    more = {"litellm_session_id": session} if session else {}

    async def main() -> None:
        assert await run(Reader()) == ANSWER
        async with Holdfast.open("memory:") as engine:
            fitted, logger = Reader(), HoldfastLogger(engine, limit=LIMIT)
            assert await run(fitted, logger, **more) == ANSWER
            assert fitted.opened  # in LiteLLM's own loop: the agent was asked for nothing
            judge(fitted, "openai-chat", "gpt-4o")
            await logger.threads.host.await_background()
            sessions = await engine.store.sessions(engine.scope)
            assert sum(record.turns for record in sessions) == len(fitted.requests)
            refs = await engine.store.refs(engine.scope, limit=1000)
            stored = [await engine.store.get(engine.scope, ref.ref_id) for ref in refs]
            texts = {each.data.decode() for each in stored if each is not None}
            assert sum(read_log(n) in texts for n in range(LOGS)) > LOGS / 2

    asyncio.run(main())


def test_a_stream_ends_with_the_same_answer() -> None:
    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            fitted, logger = Reader(logs=20), HoldfastLogger(engine, limit=LIMIT)
            assert await run(fitted, logger, stream=True) == ANSWER
            await logger.threads.host.await_background()

    asyncio.run(main())


def test_a_store_that_fails_does_not_break_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        logger = HoldfastLogger(Holdfast(Broken.in_memory()), limit=LIMIT)
        assert await run(Reader(logs=12), logger) == ANSWER

    asyncio.run(main())
    ours = [record.getMessage() for record in caplog.records if "holdfast" in record.name]
    assert any("the disk is full" in message for message in ours)
    assert not any("INFO step" in message for message in ours)
