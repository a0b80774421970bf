"""The official clients and three frameworks, with nothing changed but the base URL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from holdfast.store.refs import REF
from tests.fitting.test_citing import log
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.gatekeeper import KEY, Got
from tests.surfaces.proxy.harness import DIALECTS, running_proxy
from tests.surfaces.proxy.spoken import call, opens, says, text, thinking
from tests.surfaces.proxy.talking import (
    CLIENTS,
    TOOL,
    Chat,
    Gemini,
    Messages,
    Talk,
    anthropic,
    close_clients,
    genai,
    openai,
)
from tests.surfaces.proxy.upstream import Upstream
from tests.wire.responses.streams import Script

pytestmark = [
    pytest.mark.slow,  # the clients take seconds to import
    pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning"),
]

LINES = 600
OPENED = "\n".join(log(LINES).splitlines()[76:79])
WINDOW = 4_000
"""Less than the log has: a request that held it would be refused."""


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_clients()


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
            assert second.usage[0] == spent(upstream, 2)
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


@pytest.mark.parametrize("dialect", DIALECTS)
def test_thoughts_go_back_to_the_model_that_had_them(dialect: str, stream: bool) -> None:
    opening = opens("77-79")
    script = (
        says(thinking("A log it is."), call("read_log", {"path": "a.log"}, "call_00")),
        lambda got: says(thinking("Line 77 is missing."), *opening(got).parts),
        says(thinking("There it is."), text("Step 77 went well.")),
        says(text("You are welcome.")),
    )
    with Upstream(*script, window=WINDOW) as upstream:
        with running_proxy({"request_limit": WINDOW}, upstream.url) as proxy:
            talk: Talk = CLIENTS[dialect](proxy.url, stream=stream)
            first = talk.ask("How did step 77 go?")
            second = talk.give(first.calls[0], log(LINES))
            assert second.text.endswith("Step 77 went well.")
            assert talk.ask("Thank you.").text == "You are welcome."
        assert upstream.refused == []
        going_on, last = upstream.requests[2], upstream.requests[3]
        if dialect in ("anthropic", "openai-responses"):  # these providers sign thinking
            assert b"signed Line 77 is missing." in going_on.body
            assert b"signed Line 77 is missing." in last.body
            assert b"signed There it is." in last.body


def test_a_clients_own_tool_of_our_name_stays_its_own(stream: bool) -> None:
    """The proxy's tool takes another name, and each calls its own."""
    own = call("expand_ref", {"path": "b.log"}, "call_10")

    def both(got: Got) -> Script:
        found = REF.search(got.texts)
        assert found
        return says(call("holdfast_expand_ref", {"ref_id": found[0]}, "call_01"), own)

    script = (says(call("expand_ref", {"path": "a.log"}, "call_00")), both, says(text("Done.")))
    with Upstream(*script) as upstream:
        with running_proxy({}, upstream.url) as proxy:
            talk = Chat(proxy.url, stream=stream, tool={**TOOL, "name": "expand_ref"})
            first = talk.ask("How did step 77 go?")
            assert first.calls == [("call_00", "expand_ref", {"path": "a.log"})]
            second = talk.give(first.calls[0], log(LINES))
            assert second.calls == [("call_10", "expand_ref", {"path": "b.log"})]
            assert talk.give(second.calls[0], "all well").text == "Done."
        assert upstream.refused == []
        assert b"holdfast_expand_ref" in upstream.requests[2].body


def test_clients_count_what_would_be_sent() -> None:
    with Upstream() as upstream, running_proxy({}, upstream.url) as proxy:
        words = log(LINES)
        claude = Messages(proxy.url, stream=False).client
        asked: Any = [{"role": "user", "content": words}]
        counted = claude.messages.count_tokens(model="claude-sonnet-4-5", messages=asked)
        assert counted.input_tokens > LINES
        gemini = Gemini(proxy.url, stream=False).client
        total = gemini.models.count_tokens(model="gemini-2.5-flash", contents=words).total_tokens
        assert total is not None
        assert total > LINES
        assert upstream.requests == []


def test_what_the_proxy_does_not_know_passes_through() -> None:
    with Upstream() as upstream, running_proxy({}, upstream.url) as proxy:
        assert list(Chat(proxy.url, stream=False).client.models.list()) == []
        [got] = upstream.requests
        assert (got.method, got.path) == ("GET", "/v1/models")
        assert got.headers["Authorization"] == f"Bearer {KEY}"


def test_errors_are_raised_as_the_clients_own(stream: bool) -> None:
    with Upstream() as upstream, running_proxy({}, upstream.url) as proxy:
        upstream.always = faults.status(429, **{"retry-after": "7"})
        with pytest.raises(openai.RateLimitError) as limited:
            Chat(proxy.url, stream=stream).ask("Now?")
        assert limited.value.response.headers["retry-after"] == "7"
        with pytest.raises(anthropic.RateLimitError):
            Messages(proxy.url, stream=stream).ask("Now?")
        with pytest.raises(genai.errors.ClientError):
            Gemini(proxy.url, stream=stream).ask("Now?")
