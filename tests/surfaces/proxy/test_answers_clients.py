"""The official clients make the same of an answer from memory as of the provider's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.surfaces.proxy.harness import DIALECTS, running_proxy
from tests.surfaces.proxy.spoken import says, text, thinking
from tests.surfaces.proxy.talking import CLIENTS, Talk, close_clients
from tests.surfaces.proxy.upstream import Upstream

pytestmark = [
    pytest.mark.slow,  # the clients take seconds to import
    pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_clients()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_hears_the_same_from_memory(dialect: str) -> None:
    """Complete, as a stream, with thinking, and in the other form; then the client continues."""
    said = [
        says(text("It is ", "330 m.")),
        says(thinking("A tower."), text("It is 324 m.")),
    ]
    with Upstream() as upstream:
        upstream.always = lambda got: said["again" in got.texts]
        with running_proxy({"answer_rules": {"*": "exact"}}, upstream.url) as proxy:
            for stream in (False, True):
                for words in (f"How tall is it? {stream}", f"How tall is it, again? {stream}"):
                    before = len(upstream.requests)
                    talks: list[Talk] = [
                        CLIENTS[dialect](proxy.url, stream=stream) for _ in range(2)
                    ]
                    first, second = (talk.ask(words) for talk in talks)
                    assert first == second
                    assert "It is 3" in first.text
                    assert len(upstream.requests) == before + 1
                    assert talks[1].ask("Thank you.").text
            other: Talk = CLIENTS[dialect](proxy.url, stream=True)
            before = len(upstream.requests)
            heard = other.ask("How tall is it? False")
            assert (heard.text, heard.calls) == ("It is 330 m.", [])
            assert len(upstream.requests) == before
        assert upstream.refused == []
