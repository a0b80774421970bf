"""The upstream of a model: names, patterns, and the next one if the first fails."""

from __future__ import annotations

import socket
from typing import Any

import anthropic
import openai
import pytest

from holdfast.errors import SettingsError
from holdfast.settings import Settings, UpstreamEntry
from holdfast.upstream.upstreams import Upstreams
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    Answered,
    Running,
    ask,
    ask_model,
    path_of,
    request_in,
    running_proxy,
    text_of,
    turns_of,
)
from tests.surfaces.proxy.spoken import opens, says, text
from tests.surfaces.proxy.upstream import Fault, Upstream

SAID = says(text("Hello."))
OTHER = says(text("From the other."))
SPEAKS = {"openai-chat": "openai", "openai-responses": "openai"}


def named(upstream: Upstream, dialect: str, *models: str, **more: Any) -> UpstreamEntry:
    """An entry of the settings for a provider of the tests."""
    patterns = list(models) or ["*"]
    speaks = SPEAKS.get(dialect, dialect)
    return UpstreamEntry(upstream.url, speaks, patterns, **({"key": KEY} | more))  # type: ignore[arg-type]


def asked(proxy: Running, dialect: str, *, stream: bool = False, model: str = "") -> Answered:
    body = chat("short") | ({"model": model} if model else {})
    path = path_of(dialect, stream=stream, **({"model": model} if model else {}))
    return ask(proxy.url + path, request_in(dialect, body, stream=stream), KEYS)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_next_answers_where_the_first_is_busy(dialect: str, stream: bool) -> None:
    busy, other = Upstream(faults.status(429)), Upstream(OTHER)
    with busy, other:
        settings = {"upstreams": {"first": named(busy, dialect), "second": named(other, dialect)}}
        with running_proxy(settings) as proxy:
            answered = asked(proxy, dialect, stream=stream)
            assert answered.status == 200, answered.body
            assert text_of(dialect, answered, stream=stream) == "From the other."
            assert answered.headers["x-holdfast-upstream"] == "second"
            assert answered.headers["x-holdfast-fell-back"] == "first 429"
            [turn] = turns_of(proxy, answered)
            [edit] = [edit for edit in turn.edits if edit.action == "route"]
            assert "second" in edit.what
            assert "first 429 in vain" in edit.why


@pytest.mark.parametrize(
    ("fault", "told"),
    [(faults.status(503), "503"), (faults.status(529), "529"), (faults.reset, "502")],
)
def test_it_does_so_for_every_trouble_before_the_first_byte(fault: Fault, told: str) -> None:
    with Upstream(fault) as broken, Upstream(OTHER) as other:
        settings = {"upstreams": {"first": named(broken, "openai-chat")}}
        with running_proxy(settings, upstream=other.url) as proxy:
            answered = asked(proxy, "openai-chat")
            assert text_of("openai-chat", answered) == "From the other."
            assert answered.headers["x-holdfast-fell-back"] == f"first {told}"


def test_an_upstream_that_nobody_started_is_passed_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with Upstream(OTHER) as other:
        settings = {"upstreams": {"gone": UpstreamEntry(url)}}
        with running_proxy(settings, upstream=other.url) as proxy:
            answered = asked(proxy, "openai-chat")
            assert answered.headers["x-holdfast-fell-back"] == "gone 502"
            assert answered.headers["x-holdfast-upstream"] == "openai"


@pytest.mark.parametrize("code", [400, 401, 404])
def test_what_the_next_would_refuse_as_well_is_told_at_once(code: int) -> None:
    with Upstream(faults.status(code)) as first, Upstream(OTHER) as other:
        settings = {"upstreams": {"first": named(first, "openai-chat")}}
        with running_proxy(settings, upstream=other.url) as proxy:
            assert asked(proxy, "openai-chat").status == code
            assert not other.requests


def test_the_last_ones_error_is_the_clients() -> None:
    with Upstream(faults.status(429)) as first, Upstream(faults.status(503)) as last:
        settings = {"upstreams": {"first": named(first, "openai-chat")}}
        with running_proxy(settings, upstream=last.url) as proxy:
            assert asked(proxy, "openai-chat").status == 503


def test_a_pattern_chooses_and_the_family_has_the_rest() -> None:
    with Upstream(OTHER) as local, Upstream(SAID) as vendor:
        settings = {"upstreams": {"local": named(local, "openai-chat", "llama*", "qwen3")}}
        with running_proxy(settings, upstream=vendor.url) as proxy:
            assert text_of("openai-chat", asked(proxy, "openai-chat", model="qwen3")) == (
                "From the other."
            )
            answered = asked(proxy, "openai-chat", model="gpt-4o")
            assert text_of("openai-chat", answered) == "Hello."
            assert [edit.action for edit in turns_of(proxy, answered)[-1].edits] == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_another_name_is_an_edit_and_the_request_can_be_rebuilt(dialect: str) -> None:
    with Upstream(SAID) as vendor:
        settings = {"model_aliases": {"fast": "gpt-4o-mini"}}
        with running_proxy(settings, upstream=vendor.url) as proxy:
            body = request_in(dialect, chat("short") | {"model": "fast"})
            answered = ask(proxy.url + path_of(dialect, model="fast"), body, KEYS)
            assert answered.status == 200, answered.body
            assert vendor.requests[0].model == "gpt-4o-mini"
            [turn] = turns_of(proxy, answered)
            assert "model gpt-4o-mini" in turn.edits[-1].what
            session = proxy.service.engine.session(answered.headers["x-holdfast-session"])
            assert proxy.do(session.rebuild(turn.number)) == body


@pytest.mark.parametrize("stream", [False, True])
def test_what_goes_on_does_not_fall_back(stream: bool) -> None:
    """If the second call of an answer fails, no other upstream can continue the first."""
    first, other = Upstream(opens("lines 1-5"), faults.status(503)), Upstream(OTHER)
    with first, other:
        settings = {"upstreams": {"first": named(first, "openai-chat")}}
        with running_proxy(settings, upstream=other.url) as proxy:
            body = request_in("openai-chat", chat(log(400)), stream=stream)
            answered = ask_model(proxy, "openai-chat", body, stream=stream)
            assert len(first.requests) == 2
            assert not other.requests, "it has not seen what was opened"
            assert b"From the other." not in answered.body


def test_what_goes_on_goes_where_it_began() -> None:
    busy, other = Upstream(faults.status(503)), Upstream(opens("lines 1-5"), OTHER)
    with busy, other:
        settings = {"upstreams": {"first": named(busy, "openai-chat")}}
        with running_proxy(settings, upstream=other.url) as proxy:
            body = request_in("openai-chat", chat(log(400)))
            answered = ask_model(proxy, "openai-chat", body)
            assert text_of("openai-chat", answered).endswith("From the other.")
            assert answered.headers["x-holdfast-calls"] == "2"
            assert len(busy.requests) == 1


def test_a_fallback_that_is_too_small_is_left_out() -> None:
    with Upstream(faults.status(429)) as first, Upstream(OTHER) as small:
        settings = {
            "upstreams": {
                "first": named(first, "openai-chat"),
                "small": named(small, "openai-chat", model="tiny"),
            },
            "model_context_overrides": {"unknown:tiny": {"context_window": 300}},
        }
        with running_proxy(settings) as proxy:
            body = request_in("openai-chat", chat("long " * 600))
            answered = ask_model(proxy, "openai-chat", body)
            assert answered.status == 429
            assert not small.requests


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_clients_key_is_for_its_vendor_alone(dialect: str) -> None:
    with Upstream(SAID) as provider:
        settings = {"upstreams": {"local": named(provider, dialect, key="theirs")}}
        with running_proxy(settings) as proxy:
            asked(proxy, dialect)
        [got] = provider.requests
        assert KEY not in str(got.headers)
        assert "theirs" in str(got.headers)


def test_a_model_that_nobody_answers_for_is_refused_or_answered_offline() -> None:
    with Upstream(SAID) as provider:
        entry = {"local": named(provider, "openai-chat", "qwen3")}
        with running_proxy({"upstreams": entry}) as proxy:
            answered = asked(proxy, "openai-chat", model="gpt-4o")
            assert answered.status == 404
            assert "no upstream is set" in answered.body.decode()
        with running_proxy({"upstreams": entry, "serve_offline": True}) as proxy:
            assert asked(proxy, "openai-chat", model="gpt-4o").status == 200
        assert not provider.requests


def test_what_passes_by_goes_by_its_model_too() -> None:
    with Upstream(OTHER) as local, Upstream(SAID) as vendor:
        settings = {"upstreams": {"local": named(local, "openai-chat", "qwen3")}}
        with running_proxy(settings, upstream=vendor.url) as proxy:
            body = request_in("openai-chat", chat("short") | {"model": "qwen3"})
            headers = {**KEYS, "x-holdfast-bypass": "true"}
            answered = ask_model(proxy, "openai-chat", body, headers=headers)
            assert text_of("openai-chat", answered) == "From the other."
            assert answered.headers["x-holdfast-upstream"] == "local"
            assert local.requests[0].body == body


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("a b", UpstreamEntry("http://a")),
        ("nameless", UpstreamEntry(key="k")),
        ("openai", UpstreamEntry("http://a", models=["gpt-*"])),
        ("anthropic", UpstreamEntry("http://a", "openai-chat")),
        ("gemini", UpstreamEntry("http://a", model="flash")),
    ],
)
def test_an_entry_that_means_nothing_is_refused_by_its_place(
    name: str, entry: UpstreamEntry
) -> None:
    with pytest.raises(SettingsError, match=f"upstreams.{name}"):
        Upstreams(Settings(upstreams={name: entry}))


def test_an_address_that_is_none_is_refused_by_its_place() -> None:
    with pytest.raises(SettingsError, match=r"upstreams\.local"):
        Upstreams(Settings(upstreams={"local": UpstreamEntry("localhost:11434")}))


VERSION = {"anthropic-version": "2023-06-01"}


@pytest.mark.parametrize(
    ("path", "headers", "names"),
    [
        ("/v1/models", {}, lambda body: [entry["id"] for entry in body["data"]]),
        ("/v1/models", VERSION, lambda body: [entry["id"] for entry in body["data"]]),
        ("/v1beta/models", {}, lambda body: [e["name"][len("models/") :] for e in body["models"]]),
    ],
)
def test_models_are_listed_that_the_settings_name(path: str, headers: Any, names: Any) -> None:
    with Upstream() as vendor:
        entry = {"local": named(vendor, "openai-chat", "qwen3", "llama*")}
        settings = {"upstreams": entry, "model_aliases": {"fast": "qwen3"}, "serve_offline": True}
        with running_proxy(settings) as proxy:
            answered = ask(proxy.url + path, None, headers)
            assert names(answered.json) == ["fast", "qwen3", "offline"]
        with running_proxy(settings, upstream=vendor.url) as proxy:
            whole = ask(proxy.url + "/v1/models", None, KEYS | headers)
            assert [entry["id"] for entry in whole.json["data"]] == ["fast", "qwen3"]
            assert vendor.requests[-1].path == "/v1/models"


def test_the_sdks_can_list_models_of_the_offline_model() -> None:
    with running_proxy() as proxy:
        with openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="none") as client:
            assert [model.id for model in client.models.list()] == ["offline"]
        with anthropic.Anthropic(base_url=proxy.url, api_key="none") as claude:
            assert [model.id for model in claude.models.list()] == ["offline"]


@pytest.mark.parametrize(
    "path",
    [
        "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
        "/openai/v1/chat/completions",
        "/api/v1/chat/completions",
    ],
)
def test_azures_and_openrouters_paths_are_fitted_and_kept(path: str) -> None:
    with Upstream(SAID) as vendor, running_proxy(upstream=vendor.url) as proxy:
        answered = ask(proxy.url + path, request_in("openai-chat", chat(log(400))), KEYS)
        assert int(answered.headers["x-holdfast-saved"]) > 1_000
        assert vendor.requests[0].path == path.partition("?")[0]


def test_azures_own_client_is_answered() -> None:
    with Upstream(SAID) as vendor, running_proxy(upstream=vendor.url) as proxy:
        with openai.AzureOpenAI(
            azure_endpoint=proxy.url, api_key=KEY, api_version="2024-10-21"
        ) as client:
            answer = client.chat.completions.create(
                model="gpt-4o", messages=chat("short")["messages"]
            )
        assert answer.choices[0].message.content == "Hello."
        assert vendor.requests[0].headers["api-key"] == KEY


def test_azure_gets_the_key_of_the_settings_in_its_own_header() -> None:
    upstream = Upstreams(
        Settings(upstreams={"openai": UpstreamEntry("https://x.openai.azure.com", key="k")})
    )
    assert upstream.by_family["openai"].key_header == {"api-key": "k"}
