"""A provider at the network's edge, with OpenAI's protocol, that follows a test's script.

It shares nothing with the package: it reads the prompt between its boundaries as a model would,
and answers with its script: a summary, an essay, a lie, nothing, an error, or not at all.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from holdfast.settings import Settings, UpstreamEntry

_BETWEEN = re.compile(r"BOUNDARY ([0-9a-f]{32})\n(.*)\nBOUNDARY \1\n", re.DOTALL)

Answer = Callable[["Asked"], "web.StreamResponse | Awaitable[web.StreamResponse]"]


class Asked:
    """A request as the provider sees it."""

    def __init__(self, body: dict[str, Any], request: web.Request) -> None:
        self.body = body
        self.request = request
        self.headers = {name.lower(): value for name, value in request.headers.items()}
        self.prompt = body["messages"][-1]["content"]
        between = _BETWEEN.search(self.prompt)
        assert between is not None, "the content stands between boundaries"
        self.boundary, self.content = between.groups()


def says(text: str, **more: Any) -> Answer:
    """An answer with a text."""
    return lambda _: completion(text, **more)


def completion(text: str | None, *, finish: str = "stop", **message: Any) -> web.Response:
    return web.json_response(
        {
            "model": "small-2026",
            "choices": [{"message": {"content": text, **message}, "finish_reason": finish}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        }
    )


def status(code: int, text: str = "<html>Bad day</html>", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: web.Response(status=code, text=text, headers=named)


def first_words(share: float) -> Answer:
    """An honest summariser: the beginning of each sentence, a share of the words of all."""

    def answer(asked: Asked) -> web.Response:
        words = asked.content.split()
        return completion(" ".join(words[: max(3, int(len(words) * share))]) + ".")

    return answer


async def never(_: Asked) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError


class Provider:
    """A running provider: its requests, and its script; it repeats its last answer."""

    def __init__(self, script: tuple[Answer, ...]) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.url = ""
        self.at_once = self.most_at_once = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(await request.json(), request)
        self.asked.append(asked)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            answer = self.script[min(len(self.asked), len(self.script)) - 1](asked)
            return await answer if isinstance(answer, Awaitable) else answer
        finally:
            self.at_once -= 1

    def settings(self, key: str = "", **more: Any) -> Settings:
        """Settings that name this provider, and wait for nothing."""
        usual: dict[str, Any] = {
            "upstreams": {"openai": UpstreamEntry(self.url, key=key)},
            "summarization_provider": "openai:small",
            "summarization_retry_delay": 0.0,
            "forbid_model_calls": True,
        }
        return Settings(**usual | more)


@asynccontextmanager
async def running(*script: Answer) -> AsyncIterator[Provider]:
    provider = Provider(script)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/chat/completions", provider.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    provider.url = f"http://{host}:{port}"
    try:
        yield provider
    finally:
        await runner.cleanup()
