"""Chained requests and bound thinking: what clients did that the proxy breaks today.

At the models' own windows, where long results are cited and opened again, and in windows so small
that the history must be folded. The upstream judges every request by its own rules.
"""

from __future__ import annotations

import pytest

from tests.clients.frameworks import CHAINED, PRESERVED, Client
from tests.clients.story import ANSWERS, Reader
from tests.proxy.harness import running_proxy
from tests.proxy.upstream import Upstream

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
    """What a client answers that talks to the provider itself."""
    with Upstream(window=NATIVE) as upstream:
        upstream.always, upstream.names_calls = reader, names_calls
        answers = client(upstream.url)
        assert upstream.refused == []
    return answers


def proxied(
    client: Client, reader: Reader, window: int, *, names_calls: bool = True
) -> tuple[list[str], Upstream]:
    """What it answers through the proxy, and what then reached the provider."""
    with Upstream(window=window) as upstream:
        upstream.always, upstream.names_calls = reader, names_calls
        settings = {} if window == NATIVE else {"request_limit": window}
        with running_proxy(settings, upstream.url) as proxy:
            answers = client(proxy.url)
        assert upstream.refused == []
    return answers, upstream


@pytest.mark.parametrize("window", ["native", "folding"])
@pytest.mark.parametrize("name", CHAINED)
def test_a_client_may_send_only_what_is_new(name: str, window: str) -> None:
    """openai-agents with `previous_response_id` (issue 10, 4.1)."""
    size = NATIVE if window == "native" else window_of(name)
    answers, _ = proxied(CHAINED[name], Reader(), size)
    assert answers == ANSWERS


@pytest.mark.parametrize("window", ["native", "folding"])
@pytest.mark.parametrize("name", PRESERVED)
def test_an_edit_leaves_no_thought_bound_to_another_conversation(name: str, window: str) -> None:
    """Preserved thinking (issue 10, 4.8)."""
    size = NATIVE if window == "native" else window_of(name)
    answers, _ = proxied(PRESERVED[name], Reader(), size)
    assert answers == ANSWERS
