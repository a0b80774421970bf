"""Agents of real frameworks: each takes the address of a provider and gives its two answers.

They are set up as their documentation shows. Only the address and the key are ours. As a program,
`python -m tests.clients.frameworks NAME QUESTION` asks one of them at the address that the
variables of the vendors' SDKs name.
"""

from __future__ import annotations

import asyncio
import os
import sys
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from tests.clients.story import QUESTIONS, read_log
from tests.surfaces.proxy.gatekeeper import KEY

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # only our own warnings are errors
    import agents
    import anthropic
    import openai
    import smolagents  # type: ignore[import-untyped]  # it ships no types
    import strands
    from deepagents import create_deep_agent
    from google import genai
    from google.genai import types as gemini_types
    from langchain.agents import create_agent
    from langchain_anthropic import ChatAnthropic
    from langchain_openai import ChatOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.google import GoogleProvider
    from pydantic_ai.providers.openai import OpenAIProvider
    from strands.models.openai import OpenAIModel as StrandsOpenAI

GPT, CLAUDE, GEMINI, GEMINI_3 = "gpt-5", "claude-sonnet-4-5", "gemini-2.5-flash", "gemini-3-pro"
PRESERVING = "claude-sonnet-5-5"
"""Its thinking is bound to the conversation before it."""
MOST_STEPS = 60
"""More than any of them needs; some stop after ten by themselves."""
Client = Callable[[str], list[str]]


def _openai(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)


# --- OpenAI Agents -----------------------------------------------------------------------------


def _agents(model: Callable[[openai.AsyncOpenAI], Any], *, chained: bool) -> Client:
    async def run(url: str) -> list[str]:
        async with _openai(url) as client:
            tools: Any = [agents.function_tool(read_log)]
            agent = agents.Agent("reader", model=model(client), tools=tools)
            how: Any = {
                "run_config": agents.RunConfig(tracing_disabled=True),
                "max_turns": MOST_STEPS,
            }
            if chained:
                how["auto_previous_response_id"] = True
            first = await agents.Runner.run(agent, QUESTIONS[0], **how)
            if chained:
                how["previous_response_id"] = first.last_response_id
                second = await agents.Runner.run(agent, QUESTIONS[1], **how)
            else:
                history: Any = [
                    *first.to_input_list(),
                    {"role": "user", "content": QUESTIONS[1]},
                ]
                second = await agents.Runner.run(agent, history, **how)
            return [first.final_output, second.final_output]

    return _blocking(run)


def _blocking(run: Callable[[str], Coroutine[Any, Any, list[str]]]) -> Client:
    return lambda url: asyncio.run(run(url))


# --- Pydantic AI -------------------------------------------------------------------------------


def _pydantic(connect: Callable[[str], Any], model: Callable[[Any], Any]) -> Client:
    async def run(url: str) -> list[str]:
        async with connect(url) as client:
            agent = Agent(model(client), tools=[read_log])
            first = await agent.run(QUESTIONS[0])
            second = await agent.run(QUESTIONS[1], message_history=first.all_messages())
            return [first.output, second.output]

    return _blocking(run)


async def _ask_pydantic_google(url: str, question: str) -> str:
    async with _google(url) as client:
        return (await Agent(_pydantic_google(client), tools=[read_log]).run(question)).output


def _anthropic(url: str) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0)


@asynccontextmanager
async def _google(url: str) -> AsyncIterator[genai.Client]:
    # Pydantic AI's own way to make this client sends two `User-Agent`s, which aiohttp refuses.
    client = genai.Client(api_key=KEY, http_options=gemini_types.HttpOptions(base_url=url))
    async with client.aio:
        yield client


def _pydantic_chat(client: Any) -> Any:
    return OpenAIChatModel(GPT, provider=OpenAIProvider(openai_client=client))


def _pydantic_responses(client: Any) -> Any:
    return OpenAIResponsesModel(GPT, provider=OpenAIProvider(openai_client=client))


def _pydantic_anthropic(client: Any) -> Any:
    return AnthropicModel(CLAUDE, provider=AnthropicProvider(anthropic_client=client))


def _pydantic_preserved(client: Any) -> Any:
    thinking: Any = {"anthropic_thinking": {"type": "adaptive"}}
    provider = AnthropicProvider(anthropic_client=client)
    return AnthropicModel(PRESERVING, provider=provider, settings=thinking)


def _pydantic_google(client: Any) -> Any:
    return GoogleModel(GEMINI, provider=GoogleProvider(client=client))


# --- google-genai ------------------------------------------------------------------------------


def _genai(model: str) -> Client:
    def run(url: str) -> list[str]:
        options = gemini_types.HttpOptions(base_url=url)
        calling = gemini_types.AutomaticFunctionCallingConfig(maximum_remote_calls=MOST_STEPS)
        config = gemini_types.GenerateContentConfig(
            tools=[read_log], automatic_function_calling=calling
        )
        with genai.Client(api_key=KEY, http_options=options) as client:
            chat = client.chats.create(model=model, config=config)
            return [str(chat.send_message(question).text) for question in QUESTIONS]

    return run


# --- LangGraph, deepagents ---------------------------------------------------------------------


def _lang_openai(url: str) -> Any:
    how: Any = {"model": GPT, "base_url": f"{url}/v1", "api_key": KEY, "max_retries": 0}
    return ChatOpenAI(**how)


def _lang_anthropic(url: str) -> Any:
    how: Any = {"model": CLAUDE, "base_url": url, "api_key": KEY, "max_tokens": 1000}
    return ChatAnthropic(**how, max_retries=0)


def _lang_preserved(url: str) -> Any:
    how: Any = {"model": PRESERVING, "base_url": url, "api_key": KEY, "max_tokens": 1000}
    return ChatAnthropic(**how, thinking={"type": "adaptive"}, max_retries=0)


def _lang(build: Callable[..., Any], model: Callable[[str], Any]) -> Client:
    def run(url: str) -> list[str]:
        agent: Any = build(model(url), tools=[read_log])
        config = {"recursion_limit": 10 * MOST_STEPS}
        messages: list[Any] = []
        answers = []
        for question in QUESTIONS:
            asked = [*messages, {"role": "user", "content": question}]
            messages = agent.invoke({"messages": asked}, config)["messages"]
            answers.append(messages[-1].text)
        return answers

    return run


# --- smolagents, Strands -----------------------------------------------------------------------


def _smol_agent(kind: Any, url: str) -> Any:
    model = smolagents.OpenAIModel(
        "gpt-4o", api_base=f"{url}/v1", api_key=KEY, client_kwargs={"max_retries": 0}
    )
    return kind(
        tools=[smolagents.tool(read_log)],
        model=model,
        max_steps=MOST_STEPS,
        verbosity_level=smolagents.LogLevel.OFF,
    )


def _smolagents(url: str) -> list[str]:
    agent = _smol_agent(smolagents.ToolCallingAgent, url)
    return [str(agent.run(QUESTIONS[0])), str(agent.run(QUESTIONS[1], reset=False))]


def ask_code_agent(url: str, question: str) -> str:
    """An agent whose model writes Python instead of calling tools."""
    return str(_smol_agent(smolagents.CodeAgent, url).run(question))


def _strands(url: str) -> list[str]:
    arguments = {"base_url": f"{url}/v1", "api_key": KEY, "max_retries": 0}
    model = StrandsOpenAI(client_args=arguments, model_id=GPT)
    agent: Any = strands.Agent(model=model, tools=[strands.tool(read_log)], callback_handler=None)
    return [str(agent(question)).strip() for question in QUESTIONS]


CLIENTS: dict[str, Client] = {
    "openai-agents, history": _agents(
        lambda client: agents.OpenAIResponsesModel(GPT, client), chained=False
    ),
    "openai-agents, chat": _agents(
        lambda client: agents.OpenAIChatCompletionsModel(GPT, client), chained=False
    ),
    "pydantic-ai, openai": _pydantic(_openai, _pydantic_chat),
    "pydantic-ai, responses": _pydantic(_openai, _pydantic_responses),
    "pydantic-ai, anthropic": _pydantic(_anthropic, _pydantic_anthropic),
    "pydantic-ai, google": _pydantic(_google, _pydantic_google),
    "google-genai": _genai(GEMINI),
    "google-genai, signatures": _genai(GEMINI_3),
    "langgraph, openai": _lang(create_agent, _lang_openai),
    "langgraph, anthropic": _lang(create_agent, _lang_anthropic),
    "deepagents, openai": _lang(create_deep_agent, _lang_openai),
    "deepagents, anthropic": _lang(create_deep_agent, _lang_anthropic),
    "smolagents": _smolagents,
    "strands": _strands,
}
THINKING: dict[str, Client] = {
    "openai-agents": CLIENTS["openai-agents, history"],
    "pydantic-ai, responses": CLIENTS["pydantic-ai, responses"],
}
"""Clients of models that think aloud and whose thoughts go back to them."""
CHAINED: dict[str, Client] = {
    "openai-agents, chained": _agents(
        lambda client: agents.OpenAIResponsesModel(GPT, client), chained=True
    ),
}
"""Clients that send new messages only, and the id of the previous answer."""
PRESERVED: dict[str, Client] = {
    "pydantic-ai": _pydantic(_anthropic, _pydantic_preserved),
    "langgraph": _lang(create_agent, _lang_preserved),
    "deepagents": _lang(create_deep_agent, _lang_preserved),
}
"""Clients of a model whose thinking is bound to the conversation before it."""


def main(name: str, question: str) -> None:
    """Print the answer of one agent, at the address that the environment names."""
    if name == "smolagents, code":
        answer = ask_code_agent(os.environ["OPENAI_BASE_URL"].removesuffix("/v1"), question)
    else:
        answer = asyncio.run(_ask_pydantic_google(os.environ["GOOGLE_GEMINI_BASE_URL"], question))
    sys.stdout.write(answer + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
