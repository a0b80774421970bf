"""Very many tools, with the vendors' own clients: the schemas are hidden, the calls arrive.

The clients are unmodified: they declare sixty tools and get calls of these. The upstream is
independent: it enforces the providers' rules and counts by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.provider.tokens import functions
from tests.surfaces.proxy.harness import DIALECTS, Running, ask, running_proxy
from tests.surfaces.proxy.many_tools import MANY
from tests.surfaces.proxy.spoken import call, says, text
from tests.surfaces.proxy.talking import CLIENTS, Talk, close_clients
from tests.surfaces.proxy.upstream import Upstream
from tests.wire.responses.streams import Part

LAZY = {"lazy_tool_tokens": 5_000}


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close_clients()


def calls(dialect: str, name: str, arguments: Any, call_id: str) -> Part:
    """A call of a tool that was set aside, as a model makes it."""
    given = json.dumps(arguments) if dialect == "gemini" else arguments
    return call("call_tool", {"name": name, "arguments": given}, call_id)


def finds(query: str, call_id: str) -> Part:
    return call("find_tools", {"query": query}, call_id)


def talk(proxy: Running, dialect: str, *, stream: bool, more: Any = MANY) -> Talk:
    client: Talk = CLIENTS[dialect](proxy.url, stream=stream, more=more)
    return client


STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
EACH = pytest.mark.parametrize("dialect", DIALECTS)


def messages(value: dict[str, Any]) -> list[Any]:
    listed: list[Any] = value.get("messages") or value.get("input") or value["contents"]
    return listed


def prefix_is_kept(upstream: Upstream) -> bool:
    """Whether every request begins with the one before, tools included."""
    listed = [messages(got.value) for got in upstream.requests]
    tools = {json.dumps(got.value["tools"]) for got in upstream.requests}
    same = all(now[: len(before)] == before for before, now in pairwise(listed))
    return same and len(tools) == 1


def counted(proxy: Running) -> tuple[int, ...]:
    """Requests, those with tools set aside, searches, calls of tools, calls of such tools."""
    proxy.settled()
    totals = ask(proxy.url + "/stats").json["totals"]
    names = ("turns", "lazy", "tool_searches", "tool_calls", "lazy_calls")
    return tuple(totals[name] for name in names)


def rebuilt(proxy: Running) -> None:
    """Every request of every session comes back byte for byte, from the store alone."""
    proxy.settled()
    engine = proxy.service.engine

    async def work() -> int:
        number = 0
        for record in await engine.store.sessions(engine.scope, limit=50):
            session = engine.session(record.session)
            for turn in range(1, record.turns + 1):
                await session.rebuild(turn)
                number += 1
        return number

    assert proxy.do(work()) > 0


@EACH
def test_a_short_name_that_two_servers_share_is_never_guessed(dialect: str) -> None:
    tools = [*MANY, *({**MANY[0], "name": f"{server}__delete"} for server in ("prod", "test"))]
    upstream = Upstream(
        says(calls(dialect, "delete", {"city": "Oslo"}, "c1")),
        says(calls(dialect, "lookup_7", {"city": "Oslo"}, "c2")),  # one server has it
    )
    with upstream, running_proxy(LAZY, upstream.url) as proxy:
        heard = talk(proxy, dialect, stream=False, more=tools).ask("Delete Oslo.")
        assert [(n, a) for _, n, a in heard.calls] == [(MANY[7]["name"], {"city": "Oslo"})]
        assert "There is no tool of this name" in upstream.requests[1].texts


@EACH
@STREAMS
def test_a_tool_is_found_and_called_and_the_client_sees_its_own(dialect: str, stream: bool) -> None:
    name = MANY[7]["name"]
    upstream = Upstream(
        says(text("Let me see. "), finds("office 7", "c1")),
        says(calls(dialect, name, {"city": "Oslo"}, "c2")),
        says(text("It rains.")),
        says(text("Bye.")),
    )
    with upstream, running_proxy(LAZY, upstream.url) as proxy:
        client = talk(proxy, dialect, stream=stream)
        heard = client.ask("What is the weather at office 7?")
        assert [(n, a) for _, n, a in heard.calls] == [(name, {"city": "Oslo"})]
        assert heard.text.strip() == "Let me see."
        assert client.give(heard.calls[0], "rain").text == "It rains."
        assert client.ask("Thanks.").text == "Bye."
        assert upstream.refused == []
        assert prefix_is_kept(upstream)
        assert name in upstream.requests[1].texts  # the schema is after the prefix
        assert '"city"' in upstream.requests[1].texts.replace("\\", "")
        assert len(list(functions(upstream.requests[0].value))) == 3  # with expand_ref
        rebuilt(proxy)
        assert counted(proxy) == (3, 3, 1, 1, 1)
        assert ask(proxy.url + "/stats").json["totals"]["lazy_saved"] > 3 * 9_000


@EACH
@STREAMS
def test_a_wrong_call_goes_back_to_the_model(dialect: str, stream: bool) -> None:
    name = MANY[3]["name"]
    upstream = Upstream(
        says(calls(dialect, name, {"town": "Oslo"}, "c1")),
        says(calls(dialect, "nobody", {}, "c2")),
        says(calls(dialect, name, {"city": "Oslo", "days": 2}, "c3")),
        says(text("Done.")),
    )
    with upstream, running_proxy(LAZY, upstream.url) as proxy:
        client = talk(proxy, dialect, stream=stream)
        heard = client.ask("Look it up.")
        assert [(n, a) for _, n, a in heard.calls] == [(name, {"city": "Oslo", "days": 2})]
        assert "do not fit the schema" in upstream.requests[1].texts
        assert "no tool of this name" in upstream.requests[2].texts
        assert client.give(heard.calls[0], "rain").text == "Done."
        assert upstream.refused == []
        assert prefix_is_kept(upstream)
        rebuilt(proxy)


@EACH
@STREAMS
def test_parallel_calls_of_all_kinds(dialect: str, stream: bool) -> None:
    one, two = MANY[1]["name"], MANY[2]["name"]
    upstream = Upstream(
        says(
            calls(dialect, one, {"city": "Oslo"}, "c1"),
            finds("office 9", "c2"),
            call("read_log", {"path": "a.log"}, "c3"),
            calls(dialect, two, {"city": "Rome"}, "c4"),
            calls(dialect, two, {"wrong": 1}, "c5"),
        ),
        says(text("All done.")),
    )
    pinned = LAZY | {"pinned_tools": ["read_*"]}
    with upstream, running_proxy(pinned, upstream.url) as proxy:
        client = talk(proxy, dialect, stream=stream)
        heard = client.ask("Do much at once.")
        names = [(n, a) for _, n, a in heard.calls]
        assert names == [
            ("read_log", {"path": "a.log"}),
            (one, {"city": "Oslo"}),
            (two, {"city": "Rome"}),
        ]
        give_all(client, dialect, heard.calls)
        assert upstream.refused == []
        assert prefix_is_kept(upstream)
        last = json.dumps(upstream.requests[-1].value)
        assert "do not fit the schema" in last
        assert "office_9" in last
        rebuilt(proxy)
        assert counted(proxy) == (2, 2, 1, 3, 2)


def give_all(client: Any, dialect: str, heard: Any) -> None:
    """Answer several calls in one turn, as each vendor's documentation shows."""
    results = [(each, f"result of {each[1]}") for each in heard]
    if dialect == "anthropic":
        client.give_parts([client.result(*each) for each in results])
    elif dialect == "gemini":
        client.give_parts(*[client.result(*each) for each in results])
    else:
        client.history += [client.result(*each) for each in results[:-1]]
        client.give(*results[-1])


@EACH
def test_a_restart_in_the_middle_changes_nothing(dialect: str, tmp_path: Path) -> None:
    name = MANY[5]["name"]
    settings = LAZY | {"store_url": f"sqlite:///{tmp_path / 'h.db'}"}
    upstream = Upstream(
        says(finds("office 5", "c1")),
        says(calls(dialect, name, {"city": "Oslo"}, "c2")),
        says(text("It rains.")),
        says(calls(dialect, name, {"city": "Rome"}, "c3")),
        says(text("It shines.")),
    )
    with upstream:
        with running_proxy(settings, upstream.url) as proxy:
            client: Any = talk(proxy, dialect, stream=False)
            first = client.ask("The weather at office 5?")
            proxy.settled()
        with running_proxy(settings, upstream.url) as proxy:
            moved: Any = talk(proxy, dialect, stream=True)
            moved.history = client.history
            assert moved.give(first.calls[0], "rain").text == "It rains."
            second = moved.ask("And in Rome?")
            proxy.settled()
        with running_proxy(settings, upstream.url) as proxy:
            again: Any = talk(proxy, dialect, stream=False)
            again.history = moved.history
            assert again.give(second.calls[0], "sun").text == "It shines."
            assert upstream.refused == []
            assert prefix_is_kept(upstream)
            rebuilt(proxy)
