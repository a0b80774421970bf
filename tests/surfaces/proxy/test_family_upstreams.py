"""The default upstream of each API family: its address and its key."""

from __future__ import annotations

import pytest

from holdfast.settings import UpstreamEntry
from tests.fitting.test_citing import chat
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import PASSING, Answered, Running, ask, path_of, request_in
from tests.surfaces.proxy.harness import running_proxy as running
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.upstream import Upstream

HEADERS = {
    "authorization": f"Bearer {KEY}",
    "x-api-key": KEY,
    "x-goog-api-key": KEY,
    "anthropic-version": "2023-06-01",
}
FAMILIES = [
    ("openai", "openai-chat", "authorization"),
    ("openai", "openai-responses", "authorization"),
    ("anthropic", "anthropic", "x-api-key"),
    ("gemini", "gemini", "x-goog-api-key"),
    ("bedrock", "converse", "authorization"),
    ("cohere", "cohere", "authorization"),
]


def asked(proxy: Running, dialect: str) -> Answered:
    body = request_in(dialect, chat(question="Hello?"))
    return ask(proxy.url + path_of(dialect), body, HEADERS)


@pytest.mark.parametrize(("family", "dialect"), [row[:2] for row in FAMILIES])
def test_a_family_is_asked_at_its_address_or_else_offline(family: str, dialect: str) -> None:
    with Upstream() as upstream:
        upstream.always = says(text("Well."))
        with running({"upstreams": {family: UpstreamEntry(upstream.url)}}) as proxy:
            assert asked(proxy, dialect).status == 200
        assert len(upstream.requests) == 1
        with running() as proxy:
            assert asked(proxy, dialect).status == (404 if dialect in PASSING else 200)
        assert len(upstream.requests) == 1


@pytest.mark.parametrize(("family", "dialect", "header"), FAMILIES)
@pytest.mark.parametrize("key", ["", "sk-ours"])
def test_a_family_gets_its_key_or_else_the_clients(
    family: str, dialect: str, header: str, key: str
) -> None:
    with Upstream() as upstream:
        upstream.always = says(text("Well."))
        entry = UpstreamEntry(upstream.url, key=key)
        with running({"upstreams": {family: entry}}) as proxy:
            asked(proxy, dialect)
        [got] = upstream.requests
        sent = {name.lower(): value for name, value in got.headers.items()}
        assert sent[header].removeprefix("Bearer ") == (key or KEY)
