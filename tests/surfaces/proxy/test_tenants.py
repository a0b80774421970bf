"""Clients with different keys share nothing; two conversations of one key are two sessions."""

from __future__ import annotations

import asyncio
import http.client
import json
import select
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from holdfast.errors import SettingsError
from holdfast.settings import Settings, UpstreamEntry
from holdfast.store import Scope
from holdfast.store.records import SessionRecord
from holdfast.store.refs import REF
from holdfast.surfaces.proxy.incoming_request import IncomingRequest
from holdfast.surfaces.proxy.routes import Route
from holdfast.surfaces.proxy.seen import RequestSeen
from holdfast.surfaces.proxy.server import listen
from holdfast.surfaces.proxy.switches import Switches
from holdfast.surfaces.proxy.tenants import credentials, load_key
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy.faults import stall
from tests.surfaces.proxy.gatekeeper import KEY, Got
from tests.surfaces.proxy.harness import (
    DIALECTS,
    Answered,
    Running,
    ask,
    path_of,
    request_in,
    running_proxy,
)
from tests.surfaces.proxy.spoken import call, says, text
from tests.surfaces.proxy.upstream import PATIENCE, Upstream
from tests.wire.responses.streams import Script

ANN, BEN = f"{KEY}-ann", f"{KEY}-ben"
SECRET = "step 7-444 went well"
"""A line of the log that only its first page's citation does not show."""


def bearing(key: str, **more: str) -> dict[str, str]:
    headers = {"authorization": f"Bearer {key}", "x-goog-api-key": key} if key else {}
    return headers | {"anthropic-version": "2023-06-01"} | more


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as provider:
        yield provider
        assert provider.refused == []


@pytest.fixture
def proxy(upstream: Upstream) -> Iterator[Running]:
    with running_proxy({"tenant_by": "key"}, upstream.url) as running:
        yield running


def sends(
    proxy: Running, key: str, body: Mapping[str, Any], dialect: str = "openai-chat", **more: str
) -> Answered:
    return ask(proxy.url + path_of(dialect), request_in(dialect, dict(body)), bearing(key, **more))


def opens(got: Got) -> Script:
    """Open the line that is secret."""
    ref = REF.search(got.texts)
    assert ref, "the request holds no citation"
    return says(call("expand_ref", {"ref_id": ref[0], "lines": "445-445"}, "c1"))


def going_on(body: dict[str, Any], answer: str, question: str) -> dict[str, Any]:
    """The next request of a client that was given an answer."""
    more = [{"role": "assistant", "content": answer}, {"role": "user", "content": question}]
    return {**body, "messages": [*body["messages"], *more]}


def records(proxy: Running, key: str = "") -> list[SessionRecord]:
    """The sessions that are written down, of a key or of all."""
    proxy.settled()

    async def work() -> list[SessionRecord]:
        scopes = await proxy.service.engine.store.scopes()
        if key:
            scopes = [await scope_of(proxy, key)]
        return [
            record
            for scope in scopes
            for record in await proxy.service.engine.store.sessions(scope)
        ]

    return proxy.do(work())


async def scope_of(proxy: Running, key: str) -> Scope:
    incoming = request_with(("authorization", f"Bearer {key}"))
    return (await proxy.service.tenants.of(incoming)).scope


def request_with(*headers: tuple[str, str], query: str = "") -> IncomingRequest:
    route = Route("openai", "openai-chat")
    seen = RequestSeen("openai-chat")
    path = "/v1/chat/completions"
    return IncomingRequest(route, path, path, query, headers, b"", Switches(), seen)


@contextmanager
def waiting_for_an_answer(
    proxy: Running, upstream: Upstream, key: str, **more: str
) -> Iterator[http.client.HTTPConnection]:
    """Yield a client whose upstream does not answer, and that leaves at the end.

    If it stayed, the proxy would wait for it, because open responses may continue for a while after
    the stop signal.
    """
    client = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=PATIENCE)
    upstream.turns.append(stall)
    with closing(client):
        body = request_in("openai-chat", chat("short"))
        client.request("POST", path_of("openai-chat"), body, bearing(key, **more))
        assert upstream.waiting.acquire(timeout=PATIENCE)
        yield client
    assert upstream.left.acquire(timeout=PATIENCE), "the upstream call goes on"


# --- two keys ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_model_opened_under_one_key_never_goes_out_under_another(
    proxy: Running, upstream: Upstream, dialect: str
) -> None:
    body = chat(log(600, 7))
    upstream.turns.extend([opens, says(text("All is well.")), says(text("All is well."))])
    upstream.always = says(text("Indeed."))
    answers = [sends(proxy, key, body, dialect) for key in (ANN, BEN)]
    sends(proxy, BEN, going_on(body, "All is well.", "And now?"), dialect)
    assert SECRET not in upstream.requests[-1].texts
    sends(proxy, ANN, going_on(body, "All is well.", "And now?"), dialect)
    assert SECRET in upstream.requests[-1].texts
    sessions = {answered.headers["x-holdfast-session"] for answered in answers}
    assert len(sessions) == 2
    assert {record.turns for record in records(proxy)} == {2}


def test_a_ref_of_another_key_cannot_be_opened_by_its_hash(
    proxy: Running, upstream: Upstream
) -> None:
    upstream.always = says(text("Fine."))
    sends(proxy, ANN, chat(log(600, 7)))
    ref = REF.search(upstream.requests[-1].texts)
    assert ref
    upstream.turns.extend(
        [says(call("expand_ref", {"ref_id": ref[0], "lines": "445-445"}, "c1")), says(text("No."))]
    )
    sends(proxy, BEN, chat(log(700, 8), question=f"Open {ref[0]}, please."))
    assert SECRET not in upstream.requests[-1].texts
    assert "no content is stored under this ref" in upstream.requests[-1].texts


def test_a_tool_that_was_not_offered_opens_nothing(proxy: Running, upstream: Upstream) -> None:
    upstream.always = says(text("Fine."))
    sends(proxy, ANN, chat(log(600, 7)))
    ref = REF.search(upstream.requests[-1].texts)
    assert ref
    upstream.turns.append(says(call("expand_ref", {"ref_id": ref[0]}, "c1")))
    answered = sends(proxy, ANN, {"model": "gpt-4o", "messages": chat()["messages"]})
    [choice] = answered.json["choices"]
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "expand_ref"
    [complaint] = upstream.refused
    assert "tools that the request lacks" in complaint
    upstream.refused.clear()


def test_a_named_session_is_its_keys_own(proxy: Running, upstream: Upstream) -> None:
    upstream.turns.append(opens)
    upstream.always = says(text("All is well."))
    body = chat(log(600, 7))
    name = {"x-holdfast-session": "nightly"}
    sends(proxy, ANN, body, **name)
    sends(proxy, BEN, going_on(body, "All is well.", "And now?"), **name)
    assert SECRET not in upstream.requests[-1].texts
    assert [record.turns for record in records(proxy, ANN)] == [1]
    assert [record.turns for record in records(proxy, BEN)] == [1]


def test_a_response_of_another_key_is_not_gone_on_from(proxy: Running, upstream: Upstream) -> None:
    upstream.always = says(text("All is well."))
    first = sends(proxy, ANN, chat(log(600, 7)), "openai-responses")
    proxy.settled()
    chained = {"model": "gpt-4o", "input": "And?", "previous_response_id": first.json["id"]}
    second = ask(proxy.url + path_of("openai-responses"), chained, bearing(BEN))
    third = ask(proxy.url + path_of("openai-responses"), chained, bearing(ANN))
    names = [answered.headers["x-holdfast-session"] for answered in (first, second, third)]
    assert names[0] == names[2] != names[1]


def test_nobody_waits_behind_the_locks_of_another_key(proxy: Running, upstream: Upstream) -> None:
    """Every lock of Ann's session is held, and her upstream never answers: Ben is answered."""
    name = {"x-holdfast-session": "nightly"}
    upstream.always = says(text("Hello."))

    async def hold() -> list[asyncio.Lock]:
        session = (await proxy.service.tenants.engine((await scope_of(proxy, ANN)).workspace)
                   ).session("nightly")  # fmt: skip
        locks = [session._fitting, session._writing, session._loading]
        for lock in locks:
            await asyncio.wait_for(lock.acquire(), PATIENCE)
        return locks

    async def let_go(locks: list[asyncio.Lock]) -> None:
        for lock in locks:
            lock.release()

    with waiting_for_an_answer(proxy, upstream, ANN, **name) as waiting:
        locks = proxy.do(hold())
        assert sends(proxy, BEN, chat("short"), **name).status == 200
        assert select.select([waiting.sock], [], [], 0)[0] == [], "Ann still waits"
        proxy.do(let_go(locks))


def test_calibration_is_learnt_for_each_key(proxy: Running, upstream: Upstream) -> None:
    upstream.always = says(text("Hello."))
    sends(proxy, ANN, chat("short"))
    proxy.settled()

    async def learnt(key: str) -> bytes:
        engine = await proxy.service.tenants.engine((await scope_of(proxy, key)).workspace)
        return engine.calibration.dump()

    assert proxy.do(learnt(ANN)) != proxy.do(learnt(BEN))


def test_messages_that_were_read_are_not_shared_between_keys(
    proxy: Running, upstream: Upstream
) -> None:
    upstream.always = says(text("Hello."))
    body = json.dumps(chat("short")).encode()
    for key in (ANN, BEN):
        ask(proxy.url + path_of("openai-chat"), body, bearing(key))
    tenants = [proxy.do(scope_of(proxy, key)).workspace for key in (ANN, BEN)]
    reads = [proxy.service.read(body, "openai-chat", tenant) for tenant in tenants]
    first, second = map(proxy.do, reads)
    assert not {id(message) for message in first.messages} & {id(m) for m in second.messages}


# --- two conversations ---------------------------------------------------------------------------


def test_conversations_with_one_beginning_part_where_they_differ(
    proxy: Running, upstream: Upstream
) -> None:
    upstream.turns.extend([opens, says(text("All is well.")), says(text("It burns."))])
    upstream.always = says(text("Go on."))
    body = chat(log(600, 7))
    for _ in range(2):  # the second is the same request: they cannot be distinguished yet
        sends(proxy, ANN, body)
    first = sends(proxy, ANN, going_on(body, "All is well.", "And now?"))
    assert SECRET in upstream.requests[-1].texts
    second = sends(proxy, ANN, going_on(body, "It burns.", "Where?"))
    assert SECRET not in upstream.requests[-1].texts
    names = [answered.headers["x-holdfast-session"] for answered in (first, second)]
    assert names[0] != names[1]
    by_name = {record.session: record for record in records(proxy, ANN)}
    assert (by_name[names[0]].turns, by_name[names[1]].turns) == (3, 1)
    assert by_name[names[1]].forked_from == names[0]
    assert by_name[names[1]].shared == 3


def test_equal_answers_to_different_questions_keep_what_each_opened(
    proxy: Running, upstream: Upstream
) -> None:
    """Found by the text of the answer, Ben's conversation would get what Ann's has opened."""
    upstream.turns.extend([opens, says(text("All is well."))])
    upstream.always = says(text("All is well."))
    name = {"x-holdfast-session": "shared by a careless client"}
    one, other = chat(log(600, 7)), chat(log(600, 7), question="What else?")
    sends(proxy, ANN, one, **name)
    sends(proxy, ANN, other, **name)
    sends(proxy, ANN, going_on(other, "All is well.", "And now?"), **name)
    assert SECRET not in upstream.requests[-1].texts
    sends(proxy, ANN, going_on(one, "All is well.", "And now?"), **name)
    assert SECRET in upstream.requests[-1].texts


def test_who_goes_back_keeps_what_was_opened_before_that(
    proxy: Running, upstream: Upstream
) -> None:
    upstream.turns.extend([opens, says(text("All is well."))])
    upstream.always = says(text("Go on."))
    body = chat(log(600, 7))
    sends(proxy, ANN, body)
    names = set()
    for question in ("And now?", "No: what was it?"):
        answered = sends(proxy, ANN, going_on(body, "All is well.", question))
        assert SECRET in upstream.requests[-1].texts
        names.add(answered.headers["x-holdfast-session"])
    assert len(names) == 2
    forked = going_on(body, "All is well.", "No: what was it?")
    proxy.settled()
    proxy.service.engine.live.__init__()  # type: ignore[misc]  # as after a restart
    sends(proxy, ANN, going_on(forked, "Go on.", "Still?"))
    assert SECRET in upstream.requests[-1].texts


def test_thinking_that_a_client_drops_makes_no_new_session(
    proxy: Running, upstream: Upstream
) -> None:
    upstream.always = says(text("Well."))
    messages: list[Any] = [{"role": "user", "content": "Hello?"}]
    names = set()
    for n in range(3):
        answered = sends(proxy, ANN, {"model": "gpt-4o", "messages": messages})
        names.add(answered.headers["x-holdfast-session"])
        for message in messages:
            message.pop("reasoning_content", None)  # as DeepSeek's API demands of its clients
        said = {"role": "assistant", "content": "Well.", "reasoning_content": f"Thought {n}."}
        messages += [said, {"role": "user", "content": f"And {n}?"}]
    assert len(names) == 1


# --- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "path"),
    [
        ("anthropic", "/v1/messages/count_tokens"),
        ("gemini", "/v1beta/models/gemini-2.5-flash:countTokens"),
    ],
)
def test_counting_begins_no_sessions(
    proxy: Running, upstream: Upstream, dialect: str, path: str
) -> None:
    upstream.turns.append(opens)
    upstream.always = says(text("All is well."))
    body = chat(log(600, 7))
    sends(proxy, ANN, body, dialect)
    for n in range(30):
        counted = request_in(dialect, chat("short", question=f"Question {n}?"))
        assert ask(proxy.url + path, counted, bearing(BEN)).status == 200
    assert len(list(proxy.service.engine.live)) == 1
    assert len(records(proxy)) == 1
    sends(proxy, ANN, going_on(body, "All is well.", "And now?"), dialect)
    assert SECRET in upstream.requests[-1].texts


def test_a_session_that_was_let_go_brings_back_what_was_opened(
    proxy: Running, upstream: Upstream
) -> None:
    upstream.turns.append(opens)
    upstream.always = says(text("All is well."))
    body = chat(log(600, 7))
    name = sends(proxy, ANN, body).headers["x-holdfast-session"]
    live = proxy.service.engine.live
    live.most_bytes = 0
    proxy.settled()
    for n in range(3):
        sends(proxy, BEN, chat(log(600, n)))
    assert name not in {session.name for session in live}
    again = sends(proxy, ANN, going_on(body, "All is well.", "And now?"))
    assert again.headers["x-holdfast-session"] == name
    assert SECRET in upstream.requests[-1].texts


def test_a_session_that_is_being_answered_is_never_let_go(
    proxy: Running, upstream: Upstream
) -> None:
    name = {"x-holdfast-session": "nightly"}
    upstream.always = says(text("Hello."))
    with waiting_for_an_answer(proxy, upstream, ANN, **name):
        scope = proxy.do(scope_of(proxy, ANN)).of("nightly")
        live = proxy.service.engine.live
        before = live.get(scope)
        live.most_bytes = 0
        for n in range(3):
            sends(proxy, BEN, chat(log(600, n)))
        assert scope not in {session.scope for session in live}
        assert live.get(scope) is before is not None


def test_tenants_that_were_let_go_lose_nothing(
    proxy: Running, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.surfaces.proxy.tenants._MOST_ENGINES", 1)
    upstream.turns.append(opens)
    upstream.always = says(text("All is well."))
    body = chat(log(600, 7))
    sends(proxy, ANN, body)
    proxy.settled()
    sends(proxy, BEN, body)
    sends(proxy, ANN, going_on(body, "All is well.", "And now?"))
    assert SECRET in upstream.requests[-1].texts
    assert [record.turns for record in records(proxy, ANN)] == [2]


# --- who asks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "query", "keys"),
    [
        ([("authorization", "Bearer k1")], "", {"k1"}),
        ([("Authorization", "bearer  k1 ")], "", {"k1"}),
        ([("x-api-key", "k1")], "", {"k1"}),
        ([("x-goog-api-key", "k1"), ("authorization", "Bearer k1")], "", {"k1"}),
        ([("x-api-key", "dummy"), ("authorization", "Bearer k1")], "", {"dummy", "k1"}),
        ([("authorization", "Bearer k1"), ("authorization", "Bearer k2")], "", {"k1", "k2"}),
        ([], "alt=sse&key=k%201", {"k 1"}),
        ([("authorization", "Basic abc")], "", {"Basic abc"}),
        ([("authorization", "AWS4-HMAC-SHA256 Credential=AKID/1, Signature=0")], "", set()),
        ([("authorization", "Bearer ")], "key=", set()),
        ([("x-api-key", "")], "monkey=1", set()),
    ],
)
def test_a_request_is_known_by_all_keys_that_it_carries(
    headers: list[tuple[str, str]], query: str, keys: set[str]
) -> None:
    assert credentials(headers, query) == keys


TOKENS: dict[str, Any] = {
    "serve_token": "admin-token",
    "serve_tokens": {"ann": "t-a", "ben": "t-b"},
}


@pytest.mark.parametrize(
    ("settings", "headers", "tenant"),
    [
        ({}, {}, "anonymous"),
        ({"tenant_by": "none"}, {"authorization": "Bearer k"}, "default"),
        (TOKENS, {"authorization": "Bearer t-a"}, "team-ann"),
        (TOKENS, {"x-holdfast-token": "t-b", "authorization": "Bearer k"}, "team-ben"),
        (TOKENS, {"x-holdfast-token": "admin-token"}, "token"),
        (TOKENS | {"tenant_by": "header"}, {"x-holdfast-token": "admin-token",
                                            "x-holdfast-tenant": "acme"}, "named-acme"),
        (TOKENS | {"tenant_by": "header"}, {"x-holdfast-token": "admin-token"}, "anonymous"),
        (TOKENS | {"tenant_by": "header"}, {"x-holdfast-token": "t-a",
                                            "x-holdfast-tenant": "acme"}, "team-ann"),
        (TOKENS, {"x-holdfast-token": "t-a", "x-holdfast-tenant": "team-ben"}, "team-ann"),
    ],
)  # fmt: skip
def test_the_tenant_of_a_request(
    settings: dict[str, Any], headers: dict[str, str], tenant: str
) -> None:
    with running_proxy({"tenant_by": "key"} | settings) as running:
        incoming = request_with(*headers.items())
        engine = running.do(running.service.tenants.of(incoming))
        assert engine.scope == Scope("local", tenant)


def test_a_key_is_hashed_with_a_secret_that_is_not_in_the_store(proxy: Running) -> None:
    one, same, other = (proxy.do(scope_of(proxy, key)).workspace for key in (ANN, ANN, BEN))
    assert one == same != other
    assert one.startswith("key-")
    assert ANN not in one
    with running_proxy({"tenant_by": "key"}) as another:
        assert another.do(scope_of(another, ANN)).workspace != one
    # Known by one of its keys, it would be all who send the same placeholder, or the first of them.
    alone = {"a-dummy": "", "z-dummy": ""}
    for dummy in alone:
        alone[dummy] = proxy.do(scope_of(proxy, dummy)).workspace
    mixed = set()
    for dummy in alone:
        for names in (("x-api-key", "authorization"), ("authorization", "x-api-key")):
            beside = {names[0]: dummy, names[1]: ANN}
            engine = proxy.do(proxy.service.tenants.of(request_with(*beside.items())))
            mixed.add(engine.scope.workspace)
    assert len(mixed) == 2, "whatever header has which"
    assert not mixed & {one, other, *alone.values()}


def test_a_tenant_is_named_by_a_header_only_behind_a_token() -> None:
    with pytest.raises(SettingsError, match="any tenant"):
        listen(Settings(tenant_by="header", serve_port=0))
    with pytest.raises(SettingsError, match="two tokens are the same"):
        listen(Settings(serve_token="x", serve_tokens={"ann": "x"}, serve_port=0))


def test_a_token_in_the_place_of_a_key_goes_to_no_upstream(upstream: Upstream) -> None:
    upstream.always = says(text("Hello."))
    settings = TOKENS | {"tenant_by": "key", "upstreams": {"openai": UpstreamEntry(key=KEY)}}
    with running_proxy(settings, upstream.url) as running:
        answered = sends(running, "t-a", chat("short"))
        assert answered.status == 200
        assert sends(running, "t-x", chat("short")).status == 401
        listed = ask(f"{running.url}/v1/models", headers={"authorization": "Bearer t-b"})
        assert listed.status == 200
    sent = json.dumps([dict(got.headers) for got in upstream.requests])
    assert "t-a" not in sent
    assert "t-b" not in sent


def test_what_was_stored_before_there_were_tenants_is_still_there(upstream: Upstream) -> None:
    upstream.turns.append(opens)
    upstream.always = says(text("All is well."))
    body = chat(log(600, 7))
    with running_proxy({"tenant_by": "none"}, upstream.url) as running:
        sends(running, ANN, body)
        sends(running, BEN, going_on(body, "All is well.", "And now?"))
        assert SECRET in upstream.requests[-1].texts
        assert [record.turns for record in records(running)] == [2]
        assert running.do(running.service.tenants.all()) == ["default"]


def test_credentials_beside_our_token_give_no_share_of_their_own() -> None:
    """With seven made-up keys one tenant took every slot for large requests for a minute."""
    tokens = Settings(serve_tokens={"ann": "t-ann", "ben": "t-ben"})

    def key(token: str, other: str, settings: Settings) -> str:
        headers = [("x-holdfast-token", token), ("authorization", f"Bearer {other}")]
        return load_key(headers, "", settings)

    assert key("t-ann", "k1", tokens) == key("t-ann", "k2", tokens) != key("t-ben", "k1", tokens)
    assert key("wrong", "k1", tokens) != key("wrong", "k2", tokens)
    assert key("", "k1", Settings()) != key("", "k2", Settings())
