"""A real language model behind the proxy: its small context is never exceeded.

Its text is not checked; the test checks that each request fits, and that each is answered.
tests/support/tiny_llm.py names the model.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from holdfast.cite import CitingRules
from tests.fitting.test_citing import log
from tests.support.tiny_llm import served
from tests.surfaces.proxy.harness import ask, running_proxy

pytestmark = [
    pytest.mark.slow,  # minutes, where it is installed
    pytest.mark.filterwarnings("ignore:the tokens of 'smollm2' are estimated"),
]

told = logging.getLogger(__name__)

CONTEXT = 2_048
ANSWER_TOKENS = 8
TURNS = 30
LIMIT = 1_200
"""Input tokens as we count them: the model's vocabulary is not ours, and its numbers cost more."""


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    """The address of the model's own server."""
    yield from served(CONTEXT, ANSWER_TOKENS)


def request(history: list[dict[str, Any]]) -> dict[str, Any]:
    tool = {"name": "read_log", "description": "Reads a log.", "parameters": {"type": "object"}}
    return {
        "model": "smollm2",
        "messages": history,
        "tools": [{"type": "function", "function": tool}],
        "max_tokens": ANSWER_TOKENS,
        "temperature": 0,
        "ignore_eos": True,  # so that it never returns an empty answer
    }


def turn(number: int) -> list[dict[str, Any]]:
    """Return the client's messages: a question, and a tool result that nearly fills the context."""
    function = {"name": "read_log", "arguments": json.dumps({"path": f"{number}.log"})}
    calls = [{"id": f"call_{number}", "type": "function", "function": function}]
    return [
        {"role": "user", "content": f"How did step {number}-7 go?"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": log(80, number)},
    ]


def test_thirty_turns_never_exceed_the_context(model: str) -> None:
    history: list[dict[str, Any]] = []
    short = patch("holdfast.engine.options.CitingRules", partial(CitingRules, most_tokens=120))
    with short, running_proxy({"request_limit": LIMIT}, model) as proxy:
        for number in range(TURNS):
            history += turn(number)
            answered = ask(f"{proxy.url}/v1/chat/completions", request(history), patience=600)
            assert answered.status == 200, answered.body
            said = answered.json["choices"][0]["message"]
            assert said["content"]
            history.append({"role": "assistant", "content": said["content"]})
            used = answered.json["usage"]
            counted = answered.headers["x-holdfast-tokens"]
            cached = used["prompt_tokens_details"]["cached_tokens"]
            told.info("counted %s, was %s, cached %s", counted, used["prompt_tokens"], cached)
            assert used["prompt_tokens"] + ANSWER_TOKENS <= CONTEXT
            proxy.settled()  # the reported usage calibrates before the next turn

    refused = ask(f"{model}/v1/chat/completions", request(history))
    assert refused.status == 400, "without the proxy the conversation does not fit"
    assert b"exceed_context_size" in refused.body
