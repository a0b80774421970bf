"""Pydantic AI, LangChain and the OpenAI Agents SDK, with nothing changed but the base URL.

Each runs an agent with a tool whose result is larger than the window; the model opens a part of it.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.fitting.test_citing import log
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import running_proxy
from tests.surfaces.proxy.spoken import call, opens, says, text
from tests.surfaces.proxy.upstream import Upstream

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # only our own warnings are errors
    import agents
    import anthropic
    import openai
    from langchain_anthropic import ChatAnthropic
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider

pytestmark = [
    pytest.mark.slow,  # the frameworks take seconds to import
    pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning"),
]

WINDOW = 4_000
ANSWER = "Step 77 went well."


@contextmanager
def proxied() -> Iterator[str]:
    """The address of a proxy before an upstream on which the log does not fit."""
    script = (
        says(text("I will read it. "), call("read_log", {"path": "a.log"}, "call_00")),
        opens("77-79"),
        says(text(ANSWER)),
    )
    with Upstream(*script, window=WINDOW) as upstream:
        with running_proxy({"request_limit": WINDOW}, upstream.url) as proxy:
            yield proxy.url
        assert upstream.refused == []
        assert len(upstream.requests) == 3
        assert log(600).splitlines()[76] in upstream.requests[2].texts


def read_log(path: str) -> str:
    """Reads a log file."""
    assert path == "a.log"
    return log(600)


def _openai(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)


def _anthropic(url: str) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0)


def _chat_model(client: Any) -> Any:
    return OpenAIChatModel("gpt-5", provider=OpenAIProvider(openai_client=client))


def _responses_model(client: Any) -> Any:
    return OpenAIResponsesModel("gpt-5", provider=OpenAIProvider(openai_client=client))


def _anthropic_model(client: Any) -> Any:
    return AnthropicModel("claude-sonnet-4-5", provider=AnthropicProvider(anthropic_client=client))


@pytest.mark.parametrize(
    ("connect", "model"),
    [(_openai, _chat_model), (_openai, _responses_model), (_anthropic, _anthropic_model)],
    ids=["openai-chat", "openai-responses", "anthropic"],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_pydantic_ai(connect: Any, model: Any, stream: bool) -> None:
    async def listen(_: Any, events: AsyncIterable[Any]) -> None:
        async for _ in events:
            pass

    async def run(url: str) -> tuple[str, Any]:
        async with connect(url) as client:
            agent = Agent(model(client), tools=[read_log])
            handler: Any = listen if stream else None  # with a listener it asks for streams
            result = await agent.run("How did step 77 go?", event_stream_handler=handler)
            return result.output, result.all_messages()

    with proxied() as url:
        said, messages = asyncio.run(run(url))
        assert said.endswith(ANSWER)
        assert "expand_ref" not in str(messages)


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_langchain(vendor: str, stream: bool) -> None:
    with proxied() as url:
        how: dict[str, Any] = {"api_key": KEY, "max_retries": 0}
        if vendor == "openai":
            how |= {"model": "gpt-5", "base_url": f"{url}/v1", "stream_usage": True}
            model: Any = ChatOpenAI(**how)
        else:
            how |= {"model": "claude-sonnet-4-5", "base_url": url, "max_tokens": 1000}
            model = ChatAnthropic(**how)
        bound = model.bind_tools([read_log])

        def ask(messages: list[Any]) -> Any:
            if not stream:
                return bound.invoke(messages)
            first, *others = bound.stream(messages)
            for other in others:
                first += other
            return first

        history: list[Any] = [HumanMessage("How did step 77 go?")]
        history.append(ask(history))
        [asked] = history[-1].tool_calls
        assert asked["name"] == "read_log"
        history.append(ToolMessage(read_log(**asked["args"]), tool_call_id=asked["id"]))
        last = ask(history)
        assert last.text.endswith(ANSWER)
        assert last.tool_calls == []
        assert last.usage_metadata["input_tokens"] > 0


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_openai_agents(api: str, stream: bool) -> None:
    async def run(url: str) -> Any:
        async with _openai(url) as client:
            model: Any = (
                agents.OpenAIChatCompletionsModel("gpt-5", client)
                if api == "chat"
                else agents.OpenAIResponsesModel("gpt-5", client)
            )
            agent = agents.Agent("reader", model=model, tools=[agents.function_tool(read_log)])
            config = agents.RunConfig(tracing_disabled=True)
            if not stream:
                return await agents.Runner.run(agent, "How did step 77 go?", run_config=config)
            result = agents.Runner.run_streamed(agent, "How did step 77 go?", run_config=config)
            async for _ in result.stream_events():
                pass
            return result

    with proxied() as url:
        result = asyncio.run(run(url))
        assert result.final_output.endswith(ANSWER)
        assert "expand_ref" not in str(result.to_input_list())
