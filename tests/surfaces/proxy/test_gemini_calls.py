"""Openings stay open for clients of Gemini that run tools by themselves.

Gemini before 3 sends calls without ids. google-genai's automatic function calling answers them by
name; Pydantic AI makes up ids, and returns those.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterable, Callable
from typing import Any

import pytest

from holdfast.store.refs import REF
from tests.fitting.test_citing import log
from tests.surfaces.proxy.gatekeeper import KEY, Got
from tests.surfaces.proxy.harness import running_proxy
from tests.surfaces.proxy.spoken import call, says, text
from tests.surfaces.proxy.talking import genai
from tests.surfaces.proxy.upstream import Upstream
from tests.wire.responses.streams import Script

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # only our own warnings are errors
    from google.genai import types
    from pydantic_ai import Agent
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

pytestmark = [
    pytest.mark.slow,  # the frameworks take seconds to import
    pytest.mark.filterwarnings("ignore:Inheritance class Aiohttp:DeprecationWarning"),
]

MODEL = "gemini-3-pro-preview"
Runs = Callable[[str, bool], str]
"""Asks through a client at an address, as a stream or not; gives the text of the answer."""


def read_log(path: str, depth: int) -> str:
    """Reads a log file."""
    return log(600) if path == "big" else f"{path} is well at {depth}"


def automatic(url: str, stream: bool) -> str:
    with genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=url)) as client:
        config = types.GenerateContentConfig(tools=[read_log])
        chat = client.chats.create(model=MODEL, config=config)
        if not stream:
            return chat.send_message("Look.").text or ""
        return "".join(chunk.text or "" for chunk in chat.send_message_stream("Look."))


def pydantic_ai(url: str, stream: bool) -> str:
    async def listen(_: Any, events: AsyncIterable[Any]) -> None:
        async for _ in events:
            pass

    async def run() -> str:
        whole_client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=url))
        async with whole_client.aio:
            provider = GoogleProvider(client=whole_client)
            agent = Agent(GoogleModel(MODEL, provider=provider), tools=[read_log])
            handler: Any = listen if stream else None  # with a listener it asks for streams
            return (await agent.run("Look.", event_stream_handler=handler)).output

    return asyncio.run(run())


def script(*, ids: bool, together: bool) -> list[Callable[[Got], Script] | Script]:
    """Read a big log; open it, and read another, in one turn or one after the other."""
    names = iter(["first", "opened", "second"]) if ids else iter([""] * 3)
    big = call("read_log", {"path": "big", "depth": 1}, next(names))
    opened, small = next(names), next(names)

    def opens(got: Got) -> Script:
        ref = REF.search(got.texts)
        assert ref, "the request holds no citation"
        parts = [
            text("Let me look. "),
            call("expand_ref", {"ref_id": ref[0], "lines": "1-5"}, opened),
        ]
        if together:
            parts.append(call("read_log", {"path": "small", "depth": 2}, small))
        return says(*parts)

    then = [] if together else [says(call("read_log", {"path": "small", "depth": 2}, small))]
    return [says(big), opens, *then, says(text("Done."))]


@pytest.mark.parametrize("run", [automatic, pydantic_ai])
@pytest.mark.parametrize("together", [False, True], ids=["apart", "together"])
@pytest.mark.parametrize("ids", [False, True], ids=["nameless", "named"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_what_was_opened_is_there_in_the_next_request(
    run: Runs, together: bool, ids: bool, stream: bool
) -> None:
    with Upstream(*script(ids=ids, together=together)) as upstream:
        with running_proxy({}, upstream.url) as proxy:
            assert run(proxy.url, stream).endswith("Done.")
        assert upstream.refused == []
        contents = upstream.requests[-1].value["contents"]
        calls = [p["functionCall"] for c in contents for p in c["parts"] if "functionCall" in p]
        results = [
            p["functionResponse"] for c in contents for p in c["parts"] if "functionResponse" in p
        ]
        assert [made["name"] for made in calls] == ["read_log", "expand_ref", "read_log"]
        assert "step 0-1 " in str(results[1]["response"])
        assert "small is well at 2" in str(results[2]["response"])
