"""Random conversations through aliases, fallbacks and other dialects: all can be rebuilt.

One proxy has three upstreams for every model: a named one that is sometimes busy, a second one that
may use another dialect, and the vendor's. For any route of a request, the client's bytes can be
restored exactly, and every difference is an edit of its turn.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.settings import UpstreamEntry
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    PASSING,
    Running,
    ask,
    path_of,
    request_in,
    running_proxy,
    turns_of,
)
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.upstream import Upstream

SAID = says(text("Well, ", "well."))
SPEAKS: tuple[Any, ...] = ("openai", "openai-chat", "anthropic", "gemini", "bedrock", "cohere")
NAMES = {
    "openai": "gpt-4o",
    "openai-chat": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
    "bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "cohere": "command-a-03-2025",
}
ASKED_FOR = {
    "openai": "gpt-4.1",
    "openai-chat": "gpt-4.1-mini",
    "anthropic": "claude-haiku-4-5",
    "gemini": "gemini-2.5-pro",
    "bedrock": "claude-opus-4-5",
    "cohere": "gpt-4.1-nano",
}
"""The vendor's model of each alias; the named upstream gets its own name."""
RUNS = count()
"""Each conversation is separate: all edits are in its one turn."""
FAMILY = {"openai-chat": "openai", "openai-responses": "openai", "converse": "bedrock"}


@dataclass(frozen=True)
class World:
    """A proxy with upstreams in every dialect, each of which can be made busy."""

    proxy: Running
    by_name: dict[str, Upstream]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Each alias `to-X` uses first an upstream with dialect X, then the vendor's own."""
    providers = {speaks: Upstream() for speaks in (*SPEAKS, "vendor")}
    for provider in providers.values():
        provider.__enter__()
        provider.always = SAID
    entries: dict[str, Any] = {
        f"{speaks}_one": UpstreamEntry(
            providers[speaks].url, speaks, [ASKED_FOR[speaks]], NAMES[speaks], KEY
        )
        for speaks in SPEAKS
    }
    chosen = {
        "upstreams": entries,
        "model_aliases": {f"to-{speaks}": name for speaks, name in ASKED_FOR.items()},
    }
    try:
        with running_proxy(chosen, providers["vendor"].url) as proxy:
            yield World(proxy, providers)
    finally:
        for provider in providers.values():
            provider.__exit__(None, None, None)


RESULTS = st.sampled_from(["short", "ä" * 40, log(12), log(150), '{"rows": [1, 2, 3]}'])
ASKED = st.fixed_dictionaries(
    {
        "dialect": st.sampled_from([*DIALECTS, *PASSING]),
        "speaks": st.sampled_from(SPEAKS),
        "stream": st.booleans(),
        "busy": st.sampled_from([0, 0, 429, 500, 503, 529]),
        "limit": st.sampled_from(["", "", "4000"]),
        "results": st.lists(RESULTS, min_size=1, max_size=5),
    }
)


def travels(world: World, asked: dict[str, Any]) -> None:
    """Send one conversation, and compare the sent request with the record."""
    dialect, speaks, stream = asked["dialect"], asked["speaks"], asked["stream"]
    model = f"to-{speaks}"
    first = world.by_name[speaks]
    before = {name: len(provider.requests) for name, provider in world.by_name.items()}
    if asked["busy"]:
        first.turns.append(faults.status(asked["busy"]))
    question = f"What went wrong in run {next(RUNS)}?"
    body = request_in(
        dialect, chat(*asked["results"], question=question) | {"model": model}, stream=stream
    )
    headers = KEYS | ({"x-holdfast-budget": asked["limit"]} if asked["limit"] else {})
    answered = ask(world.proxy.url + path_of(dialect, stream=stream, model=model), body, headers)
    assert answered.status == 200, (asked, answered.body)
    arrived = {name: provider.requests[before[name] :] for name, provider in world.by_name.items()}
    assert not any(provider.refused for provider in world.by_name.values()), asked
    # Bedrock's and Cohere's upstreams answer their own clients, and these nobody else's.
    family = FAMILY.get(dialect, dialect)
    spoken = speaks.removesuffix("-chat")
    asks_first = family == spoken or not {family, spoken} & {"bedrock", "cohere"}
    fell_back = asks_first and bool(asked["busy"])
    vendors = not asks_first or fell_back
    assert bool(arrived[speaks]) == asks_first
    assert bool(arrived["vendor"]) == vendors
    first.turns.clear()  # where it was not asked, it was not busy either
    sent = arrived["vendor" if vendors else speaks][-1]
    assert sent.model == (ASKED_FOR if vendors else NAMES)[speaks]

    turn = turns_of(world.proxy, answered)[-1]
    session = world.proxy.service.engine.session(answered.headers["x-holdfast-session"])
    assert world.proxy.do(session.rebuild(turn.number)) == body
    [route] = [edit for edit in turn.edits if edit.action == "route"]  # another name, at the least
    assert f"as {sent.dialect}, model {sent.model}" in route.what
    if fell_back:
        assert f"{speaks}_one {asked['busy']} in vain" in route.why
    if sent.dialect == dialect and turn.edits == (route,):
        assert named(sent.value) == named(json.loads(body))  # the name is all that differs
    if asked["limit"]:
        assert sent.least <= int(asked["limit"])


def named(value: dict[str, Any]) -> dict[str, Any]:
    return {key: inner for key, inner in value.items() if key != "model"}


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(asked=ASKED)
def test_what_was_routed_can_be_rebuilt_and_differs_by_edits_alone(
    world: World, asked: dict[str, Any]
) -> None:
    travels(world, asked)


@pytest.mark.campaign
def test_whatever_is_routed_can_be_rebuilt(world: World) -> None:
    until = time.monotonic() + float(os.environ.get("FUZZ_SECONDS", "60"))

    @settings(max_examples=200, deadline=None)
    @given(asked=ASKED)
    def some(asked: dict[str, Any]) -> None:
        travels(world, asked)

    while time.monotonic() < until:
        some()
