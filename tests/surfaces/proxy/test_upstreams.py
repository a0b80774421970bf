"""The upstream of requests and their headers: chosen before any secret is attached."""

from __future__ import annotations

import pytest

from holdfast.errors import SettingsError
from holdfast.settings import Settings, UpstreamEntry
from holdfast.surfaces.proxy.upstreams import address, outgoing_headers
from holdfast.upstream.upstreams import Upstream, configured
from tests.fitting.test_citing import chat
from tests.surfaces.proxy.harness import KEYS, ask, request_in, running_proxy
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.upstream import Upstream as Provider
from tests.wire.responses.streams import Script

SAID: Script = says(text("Hello."))


@pytest.mark.parametrize(
    ("url", "path", "query", "wanted"),
    [
        ("https://a.example", "/v1/messages", "", "https://a.example/v1/messages"),
        ("https://a.example/v1", "/v1/messages", "", "https://a.example/v1/messages"),
        ("https://a.example/api/v1", "/v1/x", "b=1", "https://a.example/api/v1/x?b=1"),
        ("https://a.example/api", "/v1/x", "", "https://a.example/api/v1/x"),
        ("https://a.example/v1beta", "/v1beta/m:x", "", "https://a.example/v1beta/m:x"),
        ("https://v1", "/v1/x", "", "https://v1/v1/x"),
    ],
)
def test_a_version_that_both_have_is_written_once(
    url: str, path: str, query: str, wanted: str
) -> None:
    assert address(Upstream("openai", url), path, query) == wanted


def test_the_settings_key_takes_the_place_of_every_other() -> None:
    given = [
        ("Authorization", "Bearer theirs"),
        ("x-api-key", "theirs"),
        ("x-goog-api-key", "theirs"),
        ("Cookie", "theirs"),
        ("x-holdfast-session", "mine"),
        ("anthropic-beta", "one"),
        ("anthropic-beta", "two"),
    ]
    made = outgoing_headers(Upstream("anthropic", "https://a.example", "ours"), given)
    assert made == {"x-api-key": "ours", "anthropic-beta": "one, two"}
    kept = address(Upstream("gemini", "https://a.example", "ours"), "/v1beta/x", "key=theirs&a=1")
    assert kept == "https://a.example/v1beta/x?a=1"


def test_the_proxys_token_goes_nowhere() -> None:
    upstream = Upstream("openai", "https://a.example")
    assert outgoing_headers(upstream, [("authorization", "Bearer tok")], "tok") == {}
    kept = outgoing_headers(upstream, [("authorization", "Bearer theirs")], "tok")
    assert kept == {"authorization": "Bearer theirs"}


@pytest.mark.parametrize("url", ["ftp://a", "a.example", "https://u:p@a.example", "http://", "//a"])
def test_what_is_no_address_is_refused_at_the_start(url: str) -> None:
    with pytest.raises(SettingsError, match=r"upstreams\.openai"):
        configured(Settings(upstreams={"openai": UpstreamEntry(url)}))


def test_a_key_alone_means_the_vendor() -> None:
    [upstream] = configured(Settings(upstreams={"gemini": UpstreamEntry(key="ours")})).values()
    assert upstream.url == "https://generativelanguage.googleapis.com"
    assert "ours" not in repr(upstream)


@pytest.mark.parametrize("query", ["", "?alt=sse", "?alt=json", "?key=k&alt=media"])
def test_gemini_is_always_asked_for_events(query: str) -> None:
    with Provider(SAID) as provider, running_proxy(upstream=provider.url) as proxy:
        url = f"{proxy.url}/v1beta/models/gemini-2.5-flash:streamGenerateContent{query}"
        answered = ask(url, request_in("gemini", chat("short")), KEYS)
        assert answered.status == 200, answered.body
        values = answered.events if "alt=sse" in query else answered.json
        assert "Hello." in str(values)
        [got] = provider.requests
        assert got.query.getall("alt") == ["sse"]  # type: ignore[attr-defined]  # a MultiDict
        assert got.query.get("key") == ("k" if "key" in query else None)


def test_a_model_with_odd_letters_reaches_its_path() -> None:
    with Provider() as provider, running_proxy(upstream=provider.url) as proxy:
        path = "/v1beta/models/a%20b%3Fc%23d:generateContent"
        ask(proxy.url + path, request_in("gemini", chat("short")), KEYS)
        [got] = provider.requests
        assert got.path == "/v1beta/models/a b?c#d:generateContent"
