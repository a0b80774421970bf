"""The official clients and three frameworks, with nothing changed but the base URL."""

from __future__ import annotations

import pytest

import holdfast
from tests.fitting.test_citing import log
from tests.proxy.harness import DIALECTS, running_proxy
from tests.proxy.spoken import call, opens, says, text
from tests.proxy.talking import CLIENTS, Talk
from tests.proxy.upstream import Upstream

pytestmark = [
    pytest.mark.slow,  # the clients take seconds to import
    pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning"),
]

LINES = 600
OPENED = "\n".join(log(LINES).splitlines()[76:79])
WINDOW = 4_000
"""Less than the log has: a request that held it would be refused."""


@pytest.fixture(params=[False, True], ids=["whole", "stream"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def spent(upstream: Upstream, *numbers: int) -> int:
    """Input tokens that the upstream counted for some of its requests."""
    return sum(upstream.requests[n].tokens for n in numbers)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_reads_a_log_that_would_not_fit(dialect: str, stream: bool) -> None:
    script = (
        says(text("I will read it. "), call("read_log", {"path": "a.log"}, "call_00")),
        opens("77-79"),
        says(text("Step 77 ", "went well.")),
        says(text("You are welcome.")),
    )
    with Upstream(*script, window=WINDOW) as upstream:
        with running_proxy({"request_limit": WINDOW}, upstream.url) as proxy:
            talk: Talk = CLIENTS[dialect](proxy.url, stream=stream)
            first = talk.ask("How did step 77 go?")
            assert first.text == "I will read it. "
            assert first.calls == [("call_00", "read_log", {"path": "a.log"})]
            assert first.usage[0] == spent(upstream, 0)

            second = talk.give(first.calls[0], log(LINES))
            assert "Let me look." in second.text
            assert second.text.endswith("Step 77 went well.")
            assert second.calls == [], "the proxy's own tool is not the client's to see"
            assert second.usage[0] == spent(upstream, 1, 2)
            assert OPENED in upstream.requests[2].texts

            assert talk.ask("Thank you.").text == "You are welcome."
        assert upstream.refused == []
        asked, opened, _, last = upstream.requests
        assert "expand_ref" in opened.tools
        assert OPENED in last.texts, "what the model opened stays in its sight"
        assert last.tokens <= WINDOW
        assert asked.model == last.model


@pytest.mark.parametrize("dialect", DIALECTS)
def test_hidden_and_own_calls_of_one_turn_are_joined_again(dialect: str, stream: bool) -> None:
    script = (
        says(call("read_log", {"path": "a.log"}, "call_00")),
        opens("77-79", "b.log"),
        says(text("Both went well.")),
    )
    with Upstream(*script, window=WINDOW) as upstream:
        with running_proxy({"request_limit": WINDOW}, upstream.url) as proxy:
            talk: Talk = CLIENTS[dialect](proxy.url, stream=stream)
            first = talk.ask("How did step 77 go?")
            second = talk.give(first.calls[0], log(LINES))
            assert second.calls == [("call_10", "read_log", {"path": "b.log"})]
            assert talk.give(second.calls[0], "all well").text == "Both went well."
        assert upstream.refused == []
        results = [
            result.text
            for message in holdfast.read(upstream.requests[2].body, dialect).messages
            for result in message.results
        ]
        assert len(results) == 3
        assert any(OPENED in result for result in results)
        assert any("all well" in result for result in results)
