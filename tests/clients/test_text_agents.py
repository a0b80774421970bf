"""An agent whose tools are Python functions, not tools of the API: smolagents' CodeAgent.

Its requests offer no tools, and what its code printed comes back as text of the user. It gives the
same answers through the proxy in a window in which its history does not fit.
"""

from __future__ import annotations

import re

import pytest

from tests.clients.frameworks import KEY, MOST_STEPS, smolagents
from tests.clients.story import ANSWERS, LOGS, QUESTIONS, Reader, read_log
from tests.clients.test_frameworks import NATIVE, direct, proxied
from tests.proxy.gatekeeper import Got
from tests.proxy.spoken import REF, says, text
from tests.wire.answers.streams import Script

pytestmark = [
    pytest.mark.slow,  # the framework takes seconds to import
    pytest.mark.filterwarnings("ignore"),  # only our own warnings are errors
]

WINDOW = 9_500
"""The last log has 7,000 tokens and the instructions 2,000: hardly anything else fits."""
_QUESTION = re.compile(r"the code of step (\d+) in (\d+)\.log\?")


def code_agent(url: str) -> list[str]:
    model = smolagents.OpenAIModel(
        "gpt-4o", api_base=f"{url}/v1", api_key=KEY, client_kwargs={"max_retries": 0}
    )
    agent = smolagents.CodeAgent(
        tools=[smolagents.tool(read_log)],
        model=model,
        max_steps=MOST_STEPS,
        verbosity_level=smolagents.LogLevel.OFF,
    )
    return [str(agent.run(QUESTIONS[0])), str(agent.run(QUESTIONS[1], reset=False))]


class CodeReader(Reader):
    """The scripted model, which answers with code as CodeAgent's models do."""

    def __call__(self, got: Got) -> Script:
        if self.read < LOGS:
            self.read += 1
            return _code(f'print(read_log("{self.read - 1}.log"))')
        step, number = _QUESTION.findall(got.texts)[-1]
        line = re.search(rf"step {number}-{step} done, code (\w+)", got.texts)
        answer = f"The code is {line[1]}." if line else "I cannot find it."
        return _code(f'final_answer("{answer}")')


def _code(line: str) -> Script:
    return says(text(f"Thought: go on.\n<code>\n{line}\n</code>"))


def test_at_the_native_window_nothing_changes() -> None:
    assert direct(code_agent, CodeReader()) == ANSWERS
    answers, upstream = proxied(code_agent, CodeReader(), NATIVE)
    assert answers == ANSWERS
    assert len(upstream.requests) == LOGS + 2


def test_a_history_that_does_not_fit_is_shortened_for_the_task() -> None:
    answers, upstream = proxied(code_agent, CodeReader(), WINDOW)
    assert answers == ANSWERS
    assert len(upstream.requests) == LOGS + 2
    assert not any(got.tools or REF.search(got.texts) for got in upstream.requests)
    assert max(got.least for got in upstream.requests) <= WINDOW
