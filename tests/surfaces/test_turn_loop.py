"""The proxy and the client answer hidden calls alike, whole and streamed, in every dialect."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.client import Client
from holdfast.errors import ProviderError
from holdfast.settings import Settings
from holdfast.store.refs import REF
from tests.client.test_client import MODELS
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy.faults import status
from tests.surfaces.proxy.gatekeeper import KEY, Got
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    Running,
    ask_model,
    running_proxy,
    text_of,
)
from tests.surfaces.proxy.spoken import call, says, text
from tests.surfaces.proxy.upstream import Turn, Upstream
from tests.wire.responses.streams import Script

DONE = "That is all."
REFUSED = "Refused."
UNKNOWN = "ref:log:0123456789abcdef"


class Step(NamedTuple):
    """What the model says in one upstream answer."""

    calls: tuple[dict[str, str], ...] = ()
    before: str = ""
    """Text in front of the calls."""
    is_refused: bool = False
    """The provider refuses the request instead."""


_lines = st.builds(
    lambda first, more: {"lines": f"{first}-{first + more}"},
    st.integers(1, 590),
    st.integers(0, 300),
)
_other_arguments: list[dict[str, str]] = [
    {},
    {"find": "step 0-17"},
    {"find": "lines 3-4"},
    {"query": "…", "path": "$.…"},
    {"lines": "from the beginning"},
    {"ref_id": UNKNOWN},
    {"ref_id": ""},
]
_steps = st.builds(
    Step,
    st.lists(_lines | st.sampled_from(_other_arguments), max_size=3).map(tuple),
    st.sampled_from(["", "Let me look."]),
    st.integers(0, 7).map(lambda n: n == 0),
)


def turn_of(step: Step, number: int) -> Turn:
    """Return what the provider answers to a request."""
    if step.is_refused and number:  # the first request itself is taken
        return status(400)

    def turn(got: Got) -> Script:
        found = REF.search(got.texts)
        assert found, "the request holds no citation"
        made = [
            call("expand_ref", {"ref_id": found[0], **arguments}, f"call_{number}{n}")
            for n, arguments in enumerate(step.calls)
        ]
        return says(*([text(step.before)] if step.before else []), *made)

    return turn


def messages_of(*turns: str) -> list[dict[str, Any]]:
    """Return a chat about a long log, with what was said since."""
    messages: list[dict[str, Any]] = chat(log(600))["messages"]
    roles = itertools.cycle(("assistant", "user"))
    since = zip(roles, turns, strict=False)
    return [*messages, *({"role": role, "content": said} for role, said in since)]


def by_proxy(proxy: Running, dialect: str, *, stream: bool) -> list[str]:
    """Ask twice through the proxy; return the texts of both answers."""
    said: list[str] = []
    headers = {**KEYS, "x-holdfast-session": uuid.uuid4().hex}
    for turns in ((), ("{}", "Sure?")):
        messages = messages_of(*(turn.format(*said) for turn in turns))
        body = {**chat(), "messages": messages}
        answered = ask_model(proxy, dialect, body, stream=stream, headers=headers)
        is_answered = answered.status == 200 and b"refused to go on" not in answered.body
        said.append(text_of(dialect, answered, stream=stream) if is_answered else REFUSED)
    return said


def by_client(url: str, dialect: str, *, stream: bool) -> list[str]:
    """The same with the client."""

    async def work() -> list[str]:
        how: Any = {"url": url, "key": KEY, "dialect": dialect, "store": "memory:"}
        how["settings"] = Settings(cite_policy="always")
        said: list[str] = []
        async with Client(MODELS[dialect], **how) as client:
            for turns in ((), ("{}", "Sure?")):
                messages = messages_of(*(turn.format(*said) for turn in turns))
                try:
                    said.append(await ask(client, messages))
                except ProviderError:
                    said.append(REFUSED)
        return said

    async def ask(client: Client, messages: list[dict[str, Any]]) -> str:
        tools = chat()["tools"]
        if stream:
            return "".join([part.text async for part in client.stream(messages, tools=tools)])
        return (await client.chat(messages, tools=tools)).text

    return asyncio.run(work())


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as provider:
        provider.any_name = True
        yield provider


@pytest.fixture(scope="module")
def proxy(upstream: Upstream) -> Iterator[Running]:
    with running_proxy({}, upstream.url) as running:
        yield running


@pytest.mark.parametrize("dialect", DIALECTS)
@given(steps=st.lists(_steps, min_size=1, max_size=6))
@example(steps=[Step(({},), "Let me look."), Step(({},), "Let me look.")])
@settings(max_examples=15)
def test_every_way_to_ask_gives_one_conversation(
    upstream: Upstream, proxy: Running, dialect: str, steps: list[Step]
) -> None:
    seen: dict[str, tuple[list[str], list[str]]] = {}
    for stream in (False, True):
        for way in ("proxy", "client"):
            upstream.requests.clear()
            upstream.refused.clear()
            upstream.turns = deque(turn_of(step, n) for n, step in enumerate(steps))
            upstream.always = says(text(DONE))
            if way == "proxy":
                said = by_proxy(proxy, dialect, stream=stream)
            else:
                said = by_client(upstream.url, dialect, stream=stream)
            assert upstream.refused == []
            seen[f"{way} {stream}"] = said, [got.texts for got in upstream.requests]
    expected = seen["proxy False"]
    for way, conversation in seen.items():
        assert conversation == expected, way
