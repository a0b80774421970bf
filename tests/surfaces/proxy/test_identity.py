"""Sessions by the ids that clients send, through a running proxy."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from holdfast.store.records import SessionRecord
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import (
    DIALECTS,
    Answered,
    Running,
    ask,
    path_of,
    request_in,
    running_proxy,
)
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.upstream import PATIENCE, Fault, Upstream, UpstreamTurn

ONE, TWO = "23b515cb-1a31-4632-9680-6355f0122c92", "01a1ec0c-8fd9-71f2-9c41-8e225baf686f"
ANSWER = says(text("Done."))
TASK = {"role": "user", "content": "Mend the build."}
IDS: dict[str, list[dict[str, str]]] = {
    "anthropic": [{"x-claude-code-session-id": each} for each in (ONE, TWO)],
    "openai-responses": [{"session-id": each, "thread-id": each} for each in (ONE, TWO)],
    "openai-chat": [{"x-session-id": each} for each in ("ses_1", "ses_2")],
    "gemini": [{"x-session-id": each} for each in ("ses_1", "ses_2")],
}


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as provider:
        provider.always = ANSWER
        yield provider
        assert provider.refused == []


@pytest.fixture
def proxy(upstream: Upstream) -> Iterator[Running]:
    with running_proxy({}, upstream.url) as running:
        yield running


def talk(turns: int, last: str = "") -> dict[str, Any]:
    messages: list[dict[str, Any]] = [TASK]
    for n in range(1, turns):
        messages += [
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": f"And step {n}?"},
        ]
    if last:
        messages[-1] = {"role": "user", "content": last}
    return {"model": "gpt-4o", "messages": messages}


def send(
    proxy: Running,
    body: dict[str, Any] | bytes,
    headers: dict[str, str] | None = None,
    dialect: str = "openai-chat",
    key: str = KEY,
) -> Answered:
    keys = {"authorization": f"Bearer {key}", "x-goog-api-key": key}
    keys["anthropic-version"] = "2023-06-01"
    data = request_in(dialect, body) if isinstance(body, dict) else body
    answered = ask(proxy.url + path_of(dialect), data, keys | (headers or {}))
    assert answered.status == 200
    return answered


def name_of(answered: Answered) -> str:
    return answered.headers["x-holdfast-session"]


def records(proxy: Running) -> dict[str, SessionRecord]:
    proxy.settled()
    engine = proxy.service.engine
    return {r.session: r for r in proxy.do(engine.store.sessions(engine.scope))}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_identical_agents_with_their_own_ids_are_two_sessions(
    upstream: Upstream, dialect: str, tmp_path: Path
) -> None:
    settings = {"store_url": f"sqlite:///{tmp_path}/store.db"}
    names: list[list[str]] = []
    for turns in (range(1, 4), range(4, 6)):  # a restart between them
        with running_proxy(settings, upstream.url) as proxy:
            for n in turns:
                sent = [send(proxy, talk(n), ids, dialect) for ids in IDS[dialect]]
                names.append([name_of(each) for each in sent])
            kept = records(proxy)
    assert names[0][0] != names[0][1]
    assert all(pair == names[0] for pair in names)
    assert [kept[name].turns for name in names[0]] == [5, 5]
    assert {kept[name].client_session for name in names[0]} == {
        ids.get("session-id", next(iter(ids.values()))) for ids in IDS[dialect]
    }


def test_the_header_of_ours_wins_and_the_id_is_kept_beside_it(proxy: Running) -> None:
    mine = {"x-holdfast-session": "mine"}
    for ids in IDS["openai-chat"]:
        assert name_of(send(proxy, talk(1), mine | ids)) == "mine"
    assert records(proxy)["mine"].client_session == "ses_2"


def test_an_id_reaches_no_session_of_another_key(upstream: Upstream) -> None:
    ids = IDS["openai-chat"][0]
    with running_proxy({"tenant_by": "key"}, upstream.url) as proxy:
        names = [
            name_of(send(proxy, talk(n), ids, key=f"{KEY}-{who}"))
            for who in ("ann", "ben")
            for n in (1, 2)
        ]
    assert names[0] == names[1] != names[2] == names[3]


@pytest.mark.parametrize(
    "value", ["", "a b", "\xff\xfe", "x" * 5_000, "%00", "'; DROP TABLE sessions"]
)
def test_what_is_no_id_changes_nothing(proxy: Running, value: str) -> None:
    ids = dict.fromkeys(("x-session-id", "x-claude-code-session-id", "thread-id"), value)
    names = {name_of(send(proxy, talk(n), headers)) for n in (1, 2) for headers in (ids, {})}
    assert len(names) == 1
    assert [record.client_session for record in records(proxy).values()] == [""]


def test_ids_are_in_no_log(proxy: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    name = name_of(send(proxy, talk(1), {"x-session-id": "very-own-id"}))
    proxy.settled()
    assert name in caplog.text
    assert "very-own-id" not in caplog.text


def held_until(event: asyncio.Event) -> Fault:
    """An answer that comes when the event is set."""

    async def say(spoken: UpstreamTurn) -> web.StreamResponse:
        spoken.upstream.waiting.release()
        await event.wait()
        return await spoken.say(spoken.truthful(ANSWER))

    return Fault(say)


def test_identical_requests_at_once_without_ids_are_two_sessions(
    proxy: Running, upstream: Upstream
) -> None:
    event = asyncio.Event()
    upstream.turns.append(held_until(event))
    with ThreadPoolExecutor() as pool:
        first = pool.submit(send, proxy, talk(1))
        assert upstream.waiting.acquire(timeout=PATIENCE)
        second = name_of(send(proxy, talk(1)))
        # A client with an answer continues the session that has it.
        assert name_of(send(proxy, talk(2, "The second agent asks."))) == second
        upstream._loop.call_soon_threadsafe(event.set)
        assert name_of(first.result()) != second
    assert name_of(send(proxy, talk(2, "The first agent asks."))) == name_of(first.result())
    assert {record.turns for record in records(proxy).values()} == {2}


def test_a_request_that_is_sent_again_after_its_answer_is_the_same_session(
    proxy: Running,
) -> None:
    assert len({name_of(send(proxy, talk(1))) for _ in range(3)}) == 1


def claude(*texts: str, system: str = "You are Claude Code.", **more: Any) -> bytes:
    content = [{"type": "text", "text": each} for each in texts]
    value = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 1_000,
        "system": [{"type": "text", "text": system}],
        "messages": [{"role": "user", "content": content}],
        **more,
    }
    return json.dumps(value).encode()


def test_side_requests_are_kept_apart_from_the_conversation(proxy: Running) -> None:
    ids = {"x-claude-code-session-id": ONE, "user-agent": "claude-cli/2.1.197 (external, cli)"}
    title = claude(
        "<session>\nMend it.\n</session>", system="Generate a concise, sentence-case title"
    )
    quota = claude("quota", max_tokens=1)
    main = claude("<system-reminder>\nx\n</system-reminder>", "Mend it.")
    asked = {name: name_of(send(proxy, body, ids, "anthropic"))
             for name, body in (("quota", quota), ("title", title), ("", main))}  # fmt: skip
    kept = records(proxy)
    assert len(set(asked.values())) == 3
    assert {kept[name].purpose: name for name in asked.values()} == asked
    assert {record.client_session for record in kept.values()} == {ONE}
    assert {record.client for record in kept.values()} == {"claude-code"}
    assert kept[asked[""]].title == "Mend it."


def test_a_side_request_in_the_middle_does_not_split_the_conversation(proxy: Running) -> None:
    ids = {"x-claude-code-session-id": ONE, "user-agent": "claude-cli/2.1.197 (external, cli)"}
    names, sides = [], []
    for n in range(1, 4):
        names.append(name_of(send(proxy, talk(n), ids, "anthropic")))
        aside = talk(n + 1, "[SUGGESTION MODE: Suggest what the user might type next.]")
        sides.append(name_of(send(proxy, aside, ids, "anthropic")))
    assert len(set(names)) == 1
    assert not set(sides) & set(names)
    kept = records(proxy)
    assert kept[names[0]].turns == 3
    assert {kept[name].purpose for name in sides} == {"suggestion"}


def test_counting_with_an_id_begins_no_session(proxy: Running) -> None:
    ids = IDS["anthropic"][0]
    body = request_in("anthropic", talk(1))
    keys = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    assert ask(f"{proxy.url}/v1/messages/count_tokens", body, keys | ids).status == 200
    assert records(proxy) == {}
