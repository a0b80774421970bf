"""Errors with a place, a reason and a next step."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp
import pytest

from holdfast.settings import UpstreamEntry
from holdfast.upstream.network import BrokenOffError, failure, place_of
from holdfast.wire.responses import overflow_message
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import (
    DIALECTS,
    FAMILIES,
    KEYS,
    PASSING,
    ask,
    ask_model,
    path_of,
    request_in,
    running_proxy,
)
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.talking import anthropic, genai, openai
from tests.surfaces.proxy.upstream import Upstream

EACH = pytest.mark.parametrize("dialect", DIALECTS)


def message_of(answered: Any) -> str:
    return str(answered.json["error"]["message"])


# --- upstreams that cannot be reached ------------------------------------------------------------


@contextmanager
def nothing_listens() -> Iterator[int]:
    """Yield a port that is bound and does not listen: connections are refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@EACH
def test_a_refused_connection_names_the_upstream_and_the_cause(dialect: str) -> None:
    with nothing_listens() as port, running_proxy({}, f"http://127.0.0.1:{port}/secret") as proxy:
        answered = ask_model(proxy, dialect, chat("short"))
    assert answered.status == 502
    assert f"127.0.0.1:{port}" in message_of(answered)
    assert "refused the connection" in message_of(answered)
    assert "holdfast config" in message_of(answered)
    assert "secret" not in message_of(answered)


@pytest.mark.parametrize("dialect", [*DIALECTS, *PASSING])
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_another_method_than_post_is_told_what_to_send(dialect: str, method: str) -> None:
    """The message was: there is no upstream for this path."""
    with running_proxy() as proxy:
        path = path_of(dialect)
        answered = ask(proxy.url + path, method=method)
        assert answered.status == 405
        assert answered.headers["allow"] == "POST"
        told = answered.body.decode().replace('\\"', '"')
        assert f"this path takes POST requests, and {method} was sent (at {path})" in told
        example = re.search(r"curl \S+ -H 'content-type: application/json' -d '(\{.*\})'", told)
        assert example
        proxy.settled()
        page = ask(f"{proxy.url}/").body.decode()
        assert "The client sent GET or another method" in page
        assert "could not be reached" not in page
        if dialect in DIALECTS:  # the offline model speaks no others
            assert ask(proxy.url + path, example[1].encode()).status == 200


def test_what_the_upstream_answers_to_a_get_passes_through() -> None:
    """OpenAI lists stored completions at GET /v1/chat/completions."""
    with Upstream() as upstream, running_proxy({}, upstream.url) as proxy:
        answered = ask(f"{proxy.url}/v1/chat/completions", headers=KEYS)
        assert "this path takes POST" not in answered.body.decode()


def test_a_path_of_nobody_is_not_called_unreachable() -> None:
    with running_proxy() as proxy:
        answered = ask(f"{proxy.url}/v1/nothing")
        assert answered.status == 404
        assert "no upstream is set for OpenAI's requests" in message_of(answered)
        proxy.settled()
        page = ask(f"{proxy.url}/").body.decode()
        assert "No upstream is set for this path." in page
        assert "could not be reached" not in page


def test_what_passes_through_is_told_the_same() -> None:
    with nothing_listens() as port, running_proxy({}, f"http://127.0.0.1:{port}") as proxy:
        answered = ask(f"{proxy.url}/v1/models?key=hidden", headers=KEYS)
    assert answered.status == 502
    assert f"127.0.0.1:{port}" in message_of(answered)
    assert "hidden" not in answered.body.decode()


def test_a_name_that_nobody_knows_is_told() -> None:
    with running_proxy({}, "http://nowhere.invalid") as proxy:
        answered = ask(
            proxy.url + path_of("anthropic"), request_in("anthropic", chat("short")), KEYS
        )
    assert answered.status == 502
    assert "nowhere.invalid:80" in message_of(answered)
    assert "DNS" in message_of(answered)


def test_tls_with_a_server_that_has_none_is_told() -> None:
    with Upstream() as upstream:
        secure = upstream.url.replace("http:", "https:")
        with running_proxy({}, secure) as proxy:
            answered = ask_model(proxy, "gemini", chat("short"))
    assert answered.status == 502
    assert "TLS" in message_of(answered)
    assert "https or http" in message_of(answered)


def _connector(kind: Any, error: Exception) -> Any:
    key: Any = type("Key", (), {"host": "a.example", "port": 443, "ssl": True, "is_ssl": True})()
    return kind(key, error)


@pytest.mark.parametrize(
    ("error", "status", "cause"),
    [
        (
            _connector(
                aiohttp.ClientConnectorCertificateError,
                ssl.SSLCertVerificationError("content"),
            ),
            502,
            "not trusted",
        ),
        (_connector(aiohttp.ClientConnectorError, ConnectionResetError()), 502, "reset"),
        (
            _connector(aiohttp.ClientConnectorError, OSError(113, "content")),
            502,
            "EHOSTUNREACH",
        ),
        (aiohttp.ConnectionTimeoutError("content"), 504, "within 15 seconds"),
        (aiohttp.SocketTimeoutError("content"), 504, "in time"),
        (TimeoutError("content"), 504, "in time"),
        (ValueError("content"), 502, "no HTTP"),
    ],
)
def test_every_cause_has_its_words_and_none_of_the_librarys(
    error: Exception, status: int, cause: str
) -> None:
    told = failure(error, "https://a.example/v1/messages")
    assert (told.status, isinstance(told, BrokenOffError)) == (status, False)
    assert cause in told.what
    assert told.where == "a.example:443"
    assert told.fix
    assert "content" not in str(told)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://api.openai.com/v1/x?key=secret", "api.openai.com:443"),
        ("http://localhost:11434", "localhost:11434"),
        ("http://[::1]:80/a", "[::1]:80"),
    ],
)
def test_of_an_address_host_and_port_are_shown(url: str, place: str) -> None:
    assert place_of(url) == place


# --- families without an upstream ----------------------------------------------------------------

NOBODY = {"openai": UpstreamEntry("http://127.0.0.1:9")}


@pytest.mark.parametrize("given", FAMILIES)
@pytest.mark.parametrize("bypass", [False, True])
def test_a_family_without_an_upstream_is_refused_where_another_has_one(
    given: str, bypass: bool
) -> None:
    families = dict(zip(DIALECTS, ("openai", "openai", "anthropic", "gemini"), strict=True))
    switch = {"x-holdfast-bypass": "on"} if bypass else {}
    with Upstream() as upstream:
        upstream.always = says(text("Hello."))
        with running_proxy({"upstreams": {given: UpstreamEntry(upstream.url)}}) as proxy:
            for dialect, family in families.items():
                body = request_in(dialect, chat("short"))
                answered = ask_model(proxy, dialect, body, headers={**KEYS, **switch})
                assert answered.status == (200 if family == given else 404), answered.body
                if family != given:
                    assert f"--{family} https://" in message_of(answered)
                    assert f"[upstreams.{family}]" in message_of(answered)
                    assert "--offline" in message_of(answered)


def test_the_official_clients_raise_what_they_do_not_try_again() -> None:
    with running_proxy({"upstreams": NOBODY}) as proxy:
        with (
            anthropic.Anthropic(base_url=proxy.url, api_key=KEY) as client,
            pytest.raises(anthropic.NotFoundError, match="no upstream is set for Anthropic's"),
        ):
            client.messages.create(
                model="claude-sonnet-4-5",
                max_tokens=10,
                messages=[{"role": "user", "content": "Hi"}],
            )
        options: Any = {"base_url": proxy.url}
        with (
            genai.Client(api_key=KEY, http_options=options) as gemini,
            pytest.raises(genai.errors.ClientError, match="no upstream is set for Gemini's"),
        ):
            gemini.models.generate_content(model="gemini-2.5-flash", contents="Hi")


@EACH
def test_the_offline_model_answers_if_it_is_asked_for(dialect: str) -> None:
    settings = {"upstreams": NOBODY, "serve_offline": True}
    with running_proxy(settings) as proxy:
        answered = ask_model(proxy, dialect, chat("short"))
        assert answered.status == (502 if dialect.startswith("openai") else 200)


# --- requests that do not fit --------------------------------------------------------------------


def test_the_words_are_the_providers_and_the_first_number_is_the_larger() -> None:
    assert overflow_message("anthropic", 2000, 900) == (
        "prompt is too long: 2000 tokens > 900 maximum."
    )
    assert "901 tokens > 900" in overflow_message("anthropic", 850, 900)
    assert overflow_message("gemini", 2000, 900) == (
        "The input token count (2000) exceeds the maximum number of tokens allowed (900)."
    )
    for dialect in DIALECTS:
        assert "None" not in overflow_message(dialect, None, None)


NUMBERED = {
    "openai-chat": r"This model's maximum context length is 900 tokens\. However, your messages "
    r"resulted in \d{4} tokens\.",
    "anthropic": r"prompt is too long: \d{4} tokens > 900 maximum\.",
    "gemini": r"The input token count \(\d{4}\) exceeds the maximum number of tokens allowed "
    r"\(900\)\.",
}


def with_rules(body: dict[str, Any]) -> dict[str, Any]:
    """A request whose system text is too long: it is never cut."""
    system = {"role": "system", "content": "Be brief. " * 1500}
    return {**body, "messages": [system, *body["messages"]]}


@EACH
def test_a_request_that_does_not_fit_is_refused_in_the_providers_words(dialect: str) -> None:
    with running_proxy() as proxy:
        body = request_in(dialect, with_rules(chat("ok")))
        answered = ask_model(proxy, dialect, body, headers={"x-holdfast-budget": "900"})
    assert answered.status == 400
    pattern = NUMBERED.get(dialect, NUMBERED["openai-chat"])
    assert re.match(pattern, message_of(answered)), message_of(answered)
    assert re.search("Raise the limit|Offer fewer", message_of(answered)), "what to do follows"
    error = answered.json["error"]
    assert error.get("type") in (None, "invalid_request_error")
    assert error.get("status") in (None, "INVALID_ARGUMENT")
    if dialect.startswith("openai"):
        assert error["code"] == "context_length_exceeded"


def test_langchain_knows_an_overflow_when_it_sees_one() -> None:
    from langchain_anthropic import ChatAnthropic  # noqa: PLC0415 - slow to import
    from langchain_core.exceptions import ContextOverflowError  # noqa: PLC0415
    from langchain_openai import ChatOpenAI  # noqa: PLC0415

    long: Any = [("system", "Be brief. " * 1500), ("human", "Why?")]
    with running_proxy({"request_limit": 900}) as proxy:
        chat_api: Any = {"model": "gpt-5", "base_url": f"{proxy.url}/v1", "api_key": KEY}
        messages: Any = {"model": "claude-sonnet-4-5", "base_url": proxy.url, "api_key": KEY}
        models: list[Any] = [
            ChatOpenAI(**chat_api, use_responses_api=False),
            ChatOpenAI(**chat_api, use_responses_api=True),
            ChatAnthropic(**messages),
        ]
        for model in models:
            with pytest.raises(ContextOverflowError):
                model.invoke(long)
            with pytest.raises(ContextOverflowError):
                list(model.stream(long))


def test_the_official_clients_raise_a_bad_request() -> None:
    long = "Be brief. " * 1500
    with running_proxy({"request_limit": 900}) as proxy:
        with (
            openai.OpenAI(base_url=f"{proxy.url}/v1", api_key=KEY) as client,
            pytest.raises(openai.BadRequestError) as raised,
        ):
            client.responses.create(model="gpt-5", instructions=long, input="Why?")
        assert raised.value.code == "context_length_exceeded"
        options: Any = {"base_url": proxy.url}
        how: Any = {"system_instruction": long}
        with (
            genai.Client(api_key=KEY, http_options=options) as gemini,
            pytest.raises(genai.errors.ClientError, match="maximum number of tokens allowed"),
        ):
            gemini.models.generate_content(model="gemini-2.5-flash", contents="Why?", config=how)


# --- what the log tells --------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "json"])
def test_context_debug_prints_a_line_per_request_in_serve(form: str) -> None:
    """As a user runs it: the variable is set, and the lines are on standard error."""
    environment = {
        **os.environ,
        "HOLDFAST_CONTEXT_DEBUG": "true",
        "HOLDFAST_LOG_FORMAT": form,
        "HOLDFAST_STORE_URL": "memory:",
    }
    command = [sys.executable, "-m", "holdfast", "serve", "--port", "0"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as serving:
        assert serving.stderr is not None
        url = serving.stderr.readline().partition("listens on ")[2].split()[0]
        body = request_in("openai-chat", chat(log(300)))
        answered = ask(url + path_of("openai-chat"), body)
        assert answered.status == 200
        serving.terminate()
        printed = serving.stderr.read()
    [line] = [
        line for line in printed.splitlines() if "event=context" in line or '"context"' in line
    ]
    if form == "json":
        fields = json.loads(line)
        assert fields["edits"] == "cite:1,offer:1"
        assert fields["counted"] == int(answered.headers["x-holdfast-tokens"])
        assert fields["session"] == answered.headers["x-holdfast-session"]
        assert fields["limit"] > fields["counted"]
    else:
        assert f"counted={answered.headers['x-holdfast-tokens']}" in line
        assert "edits=cite:1,offer:1" in line
    assert log(300)[:20] not in printed


def test_without_it_nothing_is_told_of_contexts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "holdfast")
    for debug in (False, True):
        caplog.clear()
        with running_proxy({"context_debug": debug}) as proxy:
            ask(proxy.url + path_of("anthropic"), request_in("anthropic", chat("short")))
        told = [r for r in caplog.records if r.getMessage().startswith("event=context ")]
        assert len(told) == debug
