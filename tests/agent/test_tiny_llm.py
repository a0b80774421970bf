"""A real language model as an agent with two tools: its small context is never exceeded.

SmolLM2 with 135 million parameters, as in `tests/surfaces/proxy`. Its template has no tools:
`offering.py` describes them and makes it call one for each task. Its words are not judged. Every
request must fit by the model's own count, every call must be answered and every run must end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress

import pytest

from holdfast.agent import Agent, Target
from holdfast.errors import ToolFailureError
from tests.agent.offering import Offering, offering_tools
from tests.agent.scripted import REPORT, is_valid
from tests.fitting.test_citing import log
from tests.support.tiny_llm import served

pytestmark = [
    pytest.mark.slow,  # minutes, where it is installed
    pytest.mark.filterwarnings("ignore:the tokens of 'openai"),
]

told = logging.getLogger(__name__)

CONTEXT = 2_048
ANSWER_TOKENS = 96
LIMIT = 1_200
"""Input tokens as we count them: the model's vocabulary is not ours, and its numbers cost more."""
TURNS = 20
REFUSED = ("[The arguments do not fit the tool", "[The report cannot be read")


@pytest.fixture(scope="module")
def model() -> Iterator[Offering]:
    """The model's own server, and one before it that offers tools."""
    for address in served(CONTEXT, ANSWER_TOKENS):
        with offering_tools(address) as offering:
            yield offering


def read_log(path: str) -> str:
    """Reads a log."""
    return log(80, len(path))


def add(numbers: list[int]) -> int:
    """Adds numbers."""
    return sum(numbers)


def test_twenty_turns_with_two_tools_never_exceed_the_context(model: Offering) -> None:
    sizes = model.sizes
    window = LIMIT + 256 + ANSWER_TOKENS
    target = Target(
        model="openai:smollm2", window=window, max_output_tokens=ANSWER_TOKENS, url=model.url
    )

    async def work() -> Agent:
        async with Agent([target], tools=[read_log, add], store="memory:") as agent:
            while len(sizes) < TURNS:
                step = len(sizes)
                task = f"Step {step} said:\n{log(12, step)}\nRead its log."
                with suppress(ToolFailureError):  # it may insist on arguments that make no sense
                    assert (await agent.run(task)).text
            return agent

    agent = asyncio.run(work())
    assert is_valid(agent.messages)
    assert len(sizes) >= TURNS
    assert all(0 < size <= CONTEXT for size in sizes)  # by the model's own count
    made, valid = calls_of(agent)
    assert made  # with tools that nobody calls there would be nothing to see
    told.info(
        "%d turns, %d calls, %d valid, at most %d tokens", len(sizes), made, valid, max(sizes)
    )


def calls_of(agent: Agent) -> tuple[int, int]:
    """How often it called something, and how often that was a tool with arguments of its kind."""
    names = {
        call["id"]: call["function"]["name"]
        for message in agent.messages
        for call in message.get("tool_calls") or ()
    }
    results = {m["tool_call_id"]: m["content"] for m in agent.messages if m["role"] == "tool"}
    named = [id_ for id_, name in names.items() if name in (*agent.tools, REPORT)]
    return len(names), sum(not results[id_].startswith(REFUSED) for id_ in named)
