"""An agent whose tools are Python functions, not tools of the API: smolagents' CodeAgent.

Its requests offer no tools, and what its code printed comes back as text of the user. It gives the
same answers through the proxy in a window in which its history does not fit.
"""

from __future__ import annotations

import pytest

from tests.clients.frameworks import ask_code_agent
from tests.clients.story import ANSWERS, LOGS, QUESTIONS, Coder
from tests.clients.test_frameworks import NATIVE, direct, proxied
from tests.surfaces.proxy.spoken import REF

pytestmark = [
    pytest.mark.slow,  # the framework takes seconds to import
    pytest.mark.filterwarnings("ignore"),  # only our own warnings are errors
]

WINDOW = 9_500
"""The last log has 7,000 tokens and the instructions 2,000: hardly anything else fits."""


def code_agent(url: str) -> list[str]:
    return [ask_code_agent(url, QUESTIONS[0])]


def test_at_the_native_window_nothing_changes() -> None:
    assert direct(code_agent, Coder()) == ANSWERS[:1]
    answers, upstream = proxied(code_agent, Coder(), NATIVE)
    assert answers == ANSWERS[:1]
    assert len(upstream.requests) == LOGS + 1


def test_a_history_that_does_not_fit_is_shortened_for_the_task() -> None:
    answers, upstream = proxied(code_agent, Coder(), WINDOW)
    assert answers == ANSWERS[:1]
    assert len(upstream.requests) == LOGS + 1
    assert not any(got.tools or REF.search(got.texts) for got in upstream.requests)
    assert max(got.least for got in upstream.requests) <= WINDOW
