"""Very many tools where Anthropic holds the schemas back itself, with its own client.

The client knows nothing of it: it declares sixty tools and sees calls of these. The upstream is the
independent one, which refuses what Anthropic refuses of tools that are held back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from holdfast.settings import Settings, UpstreamEntry
from holdfast.upstream.tool_finder import lazy_rules
from holdfast.upstream.upstreams import Upstreams
from tests.provider.held_tools import referred, shown
from tests.surfaces.proxy.harness import Running, running_proxy
from tests.surfaces.proxy.many_tools import MANY
from tests.surfaces.proxy.spoken import call, says, text
from tests.surfaces.proxy.talking import Messages, close_clients
from tests.surfaces.proxy.test_lazy_tools import counted, finds, prefix_is_kept, rebuilt
from tests.surfaces.proxy.upstream import Upstream

LAZY = {"lazy_tool_tokens": 5_000, "lazy_tools": "provider"}
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
NAMES = [tool["name"] for tool in MANY]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close_clients()


def talk(proxy: Running, *, stream: bool, history: list[Any] | None = None) -> Messages:
    client = Messages(proxy.url, stream=stream, more=MANY)
    client.history = history or []
    return client


def names_shown(value: dict[str, Any]) -> set[str]:
    return {tool["name"] for tool in shown(value)}


@STREAMS
def test_a_tool_is_found_and_called_by_its_own_name(stream: bool) -> None:
    name = NAMES[7]
    upstream = Upstream(
        says(text("Let me see. "), finds("office 7", "c1")),
        says(call(name, {"city": "Oslo"}, "c2")),
        says(text("It rains.")),
        says(call(name, {"city": "Rome"}, "c3")),
        says(text("It shines.")),
    )
    with upstream, running_proxy(LAZY, upstream.url) as proxy:
        client = talk(proxy, stream=stream)
        heard = client.ask("What is the weather at office 7?")
        assert [(n, a) for _, n, a in heard.calls] == [(name, {"city": "Oslo"})]
        assert heard.text.strip() == "Let me see."
        assert client.give(heard.calls[0], "rain").text == "It rains."
        again = client.ask("And in Rome?")  # it is loaded already: nobody looks for it again
        assert client.give(again.calls[0], "sun").text == "It shines."
        assert upstream.refused == []
        assert prefix_is_kept(upstream)
        first, second = upstream.requests[0].value, upstream.requests[1].value
        assert names_shown(first) == {"find_tools", "expand_ref"}
        assert name in set(referred(second))
        assert upstream.requests[0].tokens < 2_500
        rebuilt(proxy)
        assert counted(proxy) == (4, 4, 1, 2, 2)


@STREAMS
def test_calls_of_all_kinds_at_once(stream: bool) -> None:
    upstream = Upstream(
        says(finds("office 9", "c1"), call("read_log", {"path": "a.log"}, "c2")),
        says(call(NAMES[9], {"city": "Oslo"}, "c3")),
        says(text("All done.")),
    )
    settings = LAZY | {"pinned_tools": ["read_*"]}
    with upstream, running_proxy(settings, upstream.url) as proxy:
        client = talk(proxy, stream=stream)
        heard = client.ask("Do much at once.")
        assert [n for _, n, _ in heard.calls] == ["read_log"]
        heard = client.give(heard.calls[0], "a line")
        assert NAMES[9] in set(referred(upstream.requests[1].value))
        assert [n for _, n, _ in heard.calls] == [NAMES[9]]
        assert client.give(heard.calls[0], "rain").text == "All done."
        assert upstream.refused == []
        assert prefix_is_kept(upstream)
        rebuilt(proxy)


def test_what_is_not_found_is_said_in_words() -> None:
    upstream = Upstream(says(finds("qqqq", "c1")), says(text("There is none.")))
    with upstream, running_proxy(LAZY, upstream.url) as proxy:
        assert talk(proxy, stream=False).ask("Go.").text == "There is none."
        assert upstream.refused == []
        assert not set(referred(upstream.requests[1].value))
        assert "No tool fits that" in upstream.requests[1].texts


def test_a_session_goes_on_after_a_restart_and_with_a_model_that_knows_none_of_it(
    tmp_path: Path,
) -> None:
    settings = LAZY | {"store_url": f"sqlite:///{tmp_path / 'h.db'}"}
    upstream = Upstream(
        says(finds("office 5", "c1")),
        says(call(NAMES[5], {"city": "Oslo"}, "c2")),
        says(text("It rains.")),
        says(text("Bye.")),
        says(text("Hello again.")),
    )
    with upstream:
        with running_proxy(settings, upstream.url) as proxy:
            client = talk(proxy, stream=False)
            heard = client.ask("The weather at office 5?")
            proxy.settled()
        with running_proxy(settings, upstream.url) as proxy:
            moved = talk(proxy, stream=True, history=client.history)
            assert moved.give(heard.calls[0], "rain").text == "It rains."
            assert prefix_is_kept(upstream)
            moved.model = "claude-haiku-4"
            assert moved.ask("Bye.").text == "Bye."
            last = upstream.requests[-1].value
            assert not set(referred(last))
            assert not any(tool.get("defer_loading") for tool in last["tools"])
            assert NAMES[5] in upstream.requests[-1].texts  # its schema is included as text
            moved.model = "claude-opus-5"
            assert moved.ask("Hello.").text == "Hello again."
            assert upstream.refused == []
            rebuilt(proxy)


def test_a_tool_that_the_client_takes_away_is_referred_to_no_more() -> None:
    upstream = Upstream(
        says(finds("office 5", "c1")),
        says(call(NAMES[5], {"city": "Oslo"}, "c2")),
        says(text("It rains.")),
        says(text("Bye.")),
    )
    with upstream, running_proxy(LAZY, upstream.url) as proxy:
        client = talk(proxy, stream=False)
        heard = client.ask("The weather at office 5?")
        assert client.give(heard.calls[0], "rain").text == "It rains."
        client.tools = tuple(tool for tool in client.tools if tool["name"] != NAMES[5])
        assert client.ask("Thanks.").text == "Bye."
        assert upstream.refused == []
        assert NAMES[5] not in set(referred(upstream.requests[-1].value))
        assert "find_tools" in names_shown(upstream.requests[-1].value)
        rebuilt(proxy)


@pytest.mark.parametrize(
    ("way", "url", "native"),
    [
        ("auto", "https://api.anthropic.com", True),
        ("auto", "https://gateway.example", False),
        ("provider", "https://gateway.example", True),
        ("own", "https://api.anthropic.com", False),
    ],
)
def test_who_is_asked_decides_who_holds_back(
    way: Literal["auto", "own", "provider"], url: str, native: bool
) -> None:
    settings = Settings(lazy_tools=way, upstreams={"anthropic": UpstreamEntry(url)})
    targets = Upstreams(settings).targets("anthropic", "claude-sonnet-4-5")
    assert lazy_rules(settings, targets, "anthropic").native is native
    assert not lazy_rules(settings, targets, "openai-chat").native  # asked in another dialect
