"""Responses that continue another one by its id: their session is known, also after a restart.

The provider here keeps histories itself, and checks each request with its history: every call has
its output and every output its call, or it returns 400 as OpenAI does.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.store.refs import REF
from tests.fitting.test_citing import log
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.gatekeeper import KEY, Got
from tests.surfaces.proxy.harness import Answered, Running, ask, running_proxy
from tests.surfaces.proxy.spoken import call, says, text, whole
from tests.surfaces.proxy.talking import openai
from tests.surfaces.proxy.upstream import Fault, Upstream
from tests.wire.responses.streams import Script

KEYS = {"authorization": f"Bearer {KEY}"}
TOOL = {
    "type": "function",
    "name": "read_log",
    "description": "Reads a log file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    "strict": False,
}
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
Said = Script | Callable[[str], Script]
"""An answer, or one that is made from all that the model reads."""


class Holding:
    """The provider's side: histories by name, and the next answers."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.histories: dict[str, list[dict[str, Any]]] = {}
        self.turns: deque[Said] = deque()
        upstream.always = self._answer

    def _answer(self, got: Got) -> Script | Fault:
        body = got.value
        given = body["input"]
        new = [{"role": "user", "content": given}] if isinstance(given, str) else given
        held: str = body.get("previous_response_id") or body.get("conversation") or ""
        if held and held not in self.histories:
            return self._refused(f"Previous response with id '{held}' not found.")
        items = [*self.histories.get(held, []), *new]
        calls = {item["call_id"] for item in items if item.get("type") == "function_call"}
        outputs = {item["call_id"] for item in items if item.get("type") == "function_call_output"}
        if calls - outputs:
            return self._refused(f"No tool output found for function call {calls - outputs}.")
        if outputs - calls:
            return self._refused(f"No tool call found for function call output {outputs - calls}.")
        turn = self.turns.popleft()
        script = turn if isinstance(turn, Script) else turn(json.dumps(items))
        answer = [*items, *whole(script, "openai-responses")["output"]]
        if body.get("store") is not False:
            self.histories[f"resp_{len(self.upstream.requests)}"] = answer
        if body.get("conversation"):
            self.histories[body["conversation"]] = answer
        return script

    def _refused(self, why: str) -> Fault:
        self.upstream.refused.append(why)
        return faults.status(400)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running
        assert running.refused == []


@pytest.fixture
def provider(upstream: Upstream) -> Holding:
    return Holding(upstream)


@pytest.fixture
def proxy(upstream: Upstream) -> Iterator[Running]:
    with running_proxy({}, upstream.url) as running:
        yield running


def send(proxy: Running, given: Any, *, stream: bool = False, **more: Any) -> Answered:
    value = {"model": "gpt-5", "input": given, "tools": [TOOL], "stream": stream, **more}
    body = json.dumps(value).encode()
    answered = ask(f"{proxy.url}/v1/responses", body, KEYS)
    assert answered.status == 200, answered.body
    proxy.settled()
    session = proxy.service.engine.session(session_of(answered))
    rebuilt = proxy.do(session.rebuild(session.record.turns))
    assert rebuilt == body, "what the client asked can be told from what was sent"
    return answered


def id_of(answered: Answered, *, stream: bool = False) -> str:
    return str(answered.events[-1]["response"]["id"] if stream else answered.json["id"])


def session_of(answered: Answered) -> str:
    return answered.headers["x-holdfast-session"]


def output(call_id: str, words: str) -> list[dict[str, str]]:
    return [{"type": "function_call_output", "call_id": call_id, "output": words}]


def opening(call_id: str, *more: Any) -> Callable[[str], Script]:
    """Open the first ref of all that the provider holds."""

    def turn(read: str) -> Script:
        ref = REF.search(read)
        assert ref, "nothing that the model reads has a ref"
        given = {"ref_id": ref[0], "lines": "1-2"}
        return says(text("Let me look. "), call("expand_ref", given, call_id), *more)

    return turn


READS = says(call("read_log", {"path": "a"}, "call_a"))


@BOTH
def test_a_chain_is_one_session_with_citations_and_their_tool(
    proxy: Running, upstream: Upstream, provider: Holding, stream: bool
) -> None:
    provider.turns.extend([READS, says(text("Long.")), says(text("Bye."))])
    first = send(proxy, "What is in the log?", stream=stream)
    second = send(
        proxy,
        output("call_a", log(300)),
        stream=stream,
        previous_response_id=id_of(first, stream=stream),
    )
    third = send(proxy, "Thanks.", stream=stream, previous_response_id=id_of(second, stream=stream))
    assert len({session_of(answered) for answered in (first, second, third)}) == 1
    assert int(second.headers["x-holdfast-saved"]) > 1000
    assert REF.search(upstream.requests[1].texts)
    assert "expand_ref" in upstream.requests[0].tools
    assert "expand_ref" in upstream.requests[1].tools
    assert "expand_ref" in upstream.requests[2].tools, "the provider holds a ref, so it can open"
    proxy.settled()
    store, scope = proxy.service.engine.store, proxy.service.engine.scope
    turns = proxy.do(store.turns(scope.of(session_of(first))))
    assert [turn.number for turn in turns] == [1, 2, 3]


@BOTH
def test_a_chain_goes_on_from_the_last_of_several_hidden_hops(
    proxy: Running, upstream: Upstream, provider: Holding, stream: bool
) -> None:
    provider.turns.extend([READS, opening("call_x"), opening("call_y"), says(text("Found."))])
    first = send(proxy, "What is in the log?", stream=stream)
    name = id_of(first, stream=stream)
    second = send(proxy, output("call_a", log(300)), stream=stream, previous_response_id=name)
    assert b"expand_ref" not in second.body
    provider.turns.extend([opening("call_z"), says(text("Again."))])
    name = id_of(second, stream=stream)
    assert name == "resp_2", "the client knows the first of three"
    third = send(proxy, "And now?", stream=stream, previous_response_id=name)
    assert upstream.requests[4].value["previous_response_id"] == "resp_4"
    provider.turns.append(says(text("Bye.")))
    name = id_of(third, stream=stream)
    fourth = send(proxy, "Thanks.", stream=stream, previous_response_id=name)
    assert len({session_of(answered) for answered in (first, second, third, fourth)}) == 1


@BOTH
def test_what_was_opened_beside_a_visible_call_goes_with_its_output(
    proxy: Running, provider: Holding, stream: bool
) -> None:
    both = opening("call_x", call("read_log", {"path": "b"}, "call_b"))
    provider.turns.extend([READS, both, says(text("Found."))])
    first = send(proxy, "What is in the log?", stream=stream)
    name = id_of(first, stream=stream)
    second = send(proxy, output("call_a", log(300)), stream=stream, previous_response_id=name)
    name = id_of(second, stream=stream)
    send(proxy, output("call_b", "short"), stream=stream, previous_response_id=name)


@pytest.mark.parametrize("kind", ["hops", "beside a visible call"])
@BOTH
def test_a_chain_goes_on_after_a_restart(
    upstream: Upstream, provider: Holding, tmp_path: Path, stream: bool, kind: str
) -> None:
    settings = {"store_url": f"sqlite:///{tmp_path}/holdfast.db"}
    more = [call("read_log", {"path": "b"}, "call_b")] if kind != "hops" else []
    provider.turns.extend([READS, opening("call_x", *more)])
    if not more:
        provider.turns.append(says(text("Found.")))
    with running_proxy(settings, upstream.url) as proxy:
        first = send(proxy, "What is in the log?", stream=stream)
        name = id_of(first, stream=stream)
        second = send(proxy, output("call_a", log(300)), stream=stream, previous_response_id=name)
        name = id_of(second, stream=stream)
    provider.turns.extend([opening("call_z"), says(text("Again."))])
    with running_proxy(settings, upstream.url) as proxy:
        given = output("call_b", "short") if more else "And now?"
        third = send(proxy, given, stream=stream, previous_response_id=name)
        assert session_of(third) == session_of(first)
        assert b"expand_ref" not in third.body


def test_a_conversation_at_the_provider_is_one_session(
    upstream: Upstream, provider: Holding, tmp_path: Path
) -> None:
    settings = {"store_url": f"sqlite:///{tmp_path}/holdfast.db"}
    provider.histories["conv_1"] = []
    provider.turns.extend([READS, says(text("Long.")), says(text("Bye."))])
    with running_proxy(settings, upstream.url) as proxy:
        first = send(proxy, "What is in the log?", conversation="conv_1")
        second = send(proxy, output("call_a", log(300)), conversation="conv_1")
    with running_proxy(settings, upstream.url) as proxy:
        third = send(proxy, "Thanks.", conversation="conv_1")
    assert len({session_of(answered) for answered in (first, second, third)}) == 1
    assert "expand_ref" in upstream.requests[2].tools


def test_a_response_from_before_the_proxy_begins_a_session(
    proxy: Running, upstream: Upstream, provider: Holding
) -> None:
    before = [{"role": "user", "content": "Hello?"}]
    provider.histories["resp_before"] = upstream.ledger.stored["resp_before"] = before
    provider.turns.extend([says(text("Yes.")), says(text("Still.")), says(text("Bye."))])
    first = send(proxy, "Are you there?", previous_response_id="resp_before")
    again = send(proxy, "Are you there?", previous_response_id="resp_before")
    second = send(proxy, "Still?", previous_response_id=id_of(first))
    assert len({session_of(answered) for answered in (first, again, second)}) == 1
    assert upstream.requests[0].value["previous_response_id"] == "resp_before"


def test_the_same_words_in_another_conversation_are_another_session(
    proxy: Running, provider: Holding
) -> None:
    """A chained request holds only "yes"; so may the first message of somebody else."""
    provider.turns.extend([says(text("Shall I?")), *[says(text("Done."))] * 3])
    first = send(proxy, "Clean up.")
    second = send(proxy, "yes", previous_response_id=id_of(first))
    proxy.settled()
    other = send(proxy, "yes")
    assert session_of(second) == session_of(first) != session_of(other)
    proxy.settled()
    third = send(proxy, "yes", previous_response_id=id_of(second))
    assert session_of(third) == session_of(first)


def test_what_the_provider_does_not_keep_is_not_noted(proxy: Running, provider: Holding) -> None:
    provider.turns.append(says(text("Hello.")))
    answered = send(proxy, "Hello?", store=False)
    proxy.settled()
    engine = proxy.service.engine
    assert proxy.do(engine.store.session_linked(engine.scope, id_of(answered))) == ""


@BOTH
def test_the_official_client_chains_through_the_proxy(
    proxy: Running, upstream: Upstream, provider: Holding, stream: bool
) -> None:
    provider.turns.extend([READS, opening("call_x"), says(text("It is full.")), says(text("Bye."))])
    tools: Any = [TOOL]
    with openai.OpenAI(base_url=f"{proxy.url}/v1", api_key=KEY, max_retries=0) as client:

        def create(given: Any, previous: str | None) -> Any:
            how: Any = {"model": "gpt-5", "input": given, "tools": tools}
            if previous:
                how["previous_response_id"] = previous
            if not stream:
                return client.responses.create(**how)
            with client.responses.stream(**how) as events:
                for _ in events:
                    pass
                return events.get_final_response()

        asked = create("What is in the log?", None)
        [reading] = [item for item in asked.output if item.type == "function_call"]
        told = create(output(reading.call_id, log(300)), asked.id)
        assert told.output_text.endswith("It is full.")
        assert create("Thanks.", told.id).output_text == "Bye."
    assert len(upstream.requests) == 4
