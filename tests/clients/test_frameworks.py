"""Agents of real frameworks give the same answers through the proxy as without it.

At the models' own windows, where long results are cited and opened again, and in windows so small
that the history must be folded. The upstream judges every request by its own rules.
"""

from __future__ import annotations

import pytest

from tests.clients.frameworks import CHAINED, CLIENTS, PRESERVED, THINKING, Client
from tests.clients.story import ANSWERS, Reader
from tests.surfaces.proxy.harness import running_proxy
from tests.surfaces.proxy.spoken import REF
from tests.surfaces.proxy.upstream import Upstream

pytestmark = [
    pytest.mark.slow,  # the frameworks take seconds to import
    pytest.mark.filterwarnings("ignore"),  # only our own warnings are errors
]

NATIVE = 200_000
FOLDING = {"deepagents": 9_500, "smolagents": 6_000}
"""Windows in which the story does not fit, by client: some bring thousands of tokens of tools."""
LEAST = 4_000


def window_of(name: str) -> int:
    return FOLDING.get(name.partition(",")[0], LEAST)


def direct(client: Client, reader: Reader, *, names_calls: bool = True) -> list[str]:
    """Return the answers of a client without the proxy."""
    with Upstream(window=NATIVE) as upstream:
        upstream.always, upstream.names_calls = reader, names_calls
        answers = client(upstream.url)
        assert upstream.refused == []
    return answers


def proxied(
    client: Client, reader: Reader, window: int, *, names_calls: bool = True
) -> tuple[list[str], Upstream]:
    """Return its answers through the proxy, and the provider's requests."""
    with Upstream(window=window) as upstream:
        upstream.always, upstream.names_calls = reader, names_calls
        settings = {} if window == NATIVE else {"request_limit": window}
        with running_proxy(settings, upstream.url) as proxy:
            answers = client(proxy.url)
        assert upstream.refused == []
    return answers, upstream


@pytest.mark.parametrize("name", CLIENTS)
def test_the_answers_are_those_of_the_upstream_itself(name: str) -> None:
    assert direct(CLIENTS[name], Reader()) == ANSWERS
    answers, upstream = proxied(CLIENTS[name], Reader(), NATIVE)
    assert answers == ANSWERS
    cited = any(REF.search(got.texts) for got in upstream.requests)
    # smolagents sends tool results to its models as user text, which fits here.
    assert cited or name == "smolagents"


@pytest.mark.parametrize("name", CLIENTS)
def test_a_folded_history_changes_no_answer(name: str) -> None:
    answers, upstream = proxied(CLIENTS[name], Reader(), window_of(name))
    assert answers == ANSWERS
    assert max(got.least for got in upstream.requests) <= window_of(name)


@pytest.mark.parametrize("window", ["native", "folding"])
@pytest.mark.parametrize("name", THINKING)
def test_models_that_think_get_their_thoughts_back(name: str, window: str) -> None:
    assert direct(THINKING[name], Reader(thinks=True)) == ANSWERS
    size = NATIVE if window == "native" else window_of(name)
    answers, _ = proxied(THINKING[name], Reader(thinks=True), size)
    assert answers == ANSWERS


@pytest.mark.parametrize("window", ["native", "folding"])
@pytest.mark.parametrize("name", ["google-genai", "pydantic-ai, google"])
def test_gemini_may_leave_the_ids_of_calls_out(name: str, window: str) -> None:
    assert direct(CLIENTS[name], Reader(), names_calls=False) == ANSWERS
    size = NATIVE if window == "native" else window_of(name)
    answers, _ = proxied(CLIENTS[name], Reader(), size, names_calls=False)
    assert answers == ANSWERS


@pytest.mark.parametrize("name", [*CHAINED, *PRESERVED])
def test_the_upstream_serves_chained_and_bound_clients(name: str) -> None:
    """The proxy must keep these: ids of previous answers, and thinking bound to its place."""
    assert direct((CHAINED | PRESERVED)[name], Reader()) == ANSWERS
