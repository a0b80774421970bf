"""When the proxy cites: by the policy, the settings, and a request's headers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.expand.tool import NAME
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    Running,
    ask_model,
    request_in,
    running_proxy,
    turns_of,
)
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.upstream import Upstream

MEDIUM = log(80)
LONG = log(200)
"""Longer than what providers cache: a pointer does not take a request below that."""
"""Longer than the seed's threshold, and by itself not worth a citation."""


@pytest.fixture(scope="module")
def proxy() -> Iterator[tuple[Running, Upstream]]:
    with Upstream() as upstream, running_proxy({"cite_policy": "auto"}, upstream.url) as running:
        upstream.always = says(text("Well."))
        yield running, upstream


@pytest.mark.parametrize(
    ("headers", "is_cited"),
    [
        ({}, False),
        ({"cite-policy": "always"}, True),
        ({"cite-tokens": "500"}, True),
        ({"cite-share": "0.001"}, True),
        ({"cite-share": "0.9"}, False),
        ({"cite-tools": "read_log=always"}, True),
        ({"cite-tools": "read_log=ALWAYS"}, True),
        ({"cite-tools": "other=always, read_*=500"}, True),
        ({"cite-policy": "always", "cite-tools": "read_log=never"}, False),
        ({"cite-policy": "never", "cite-tokens": "1"}, False),
        ({"budget": "9000"}, False),  # there is room for it
        ({"budget": "1500"}, True),
    ],
    ids=str,
)
def test_a_request_says_when_its_results_are_cited(
    proxy: tuple[Running, Upstream], headers: dict[str, str], *, is_cited: bool
) -> None:
    running, upstream = proxy
    switches = {f"x-holdfast-{name}": value for name, value in headers.items()}
    body = request_in("openai-chat", chat(MEDIUM, question=f"And with {headers}?"))
    answered = ask_model(running, "openai-chat", body, headers={**KEYS, **switches})
    assert answered.status == 200, answered.body
    assert (MEDIUM in upstream.requests[-1].texts) is not is_cited


@pytest.mark.parametrize(("switch", "times"), [("", 1), ("on", 1), ("off", 2)])
def test_a_request_says_whether_what_stands_above_is_sent_again(
    proxy: tuple[Running, Upstream], switch: str, times: int
) -> None:
    running, upstream = proxy
    headers = {**KEYS, "x-holdfast-cite-repeats": switch}
    body = request_in("openai-chat", chat(LONG, LONG, question=f"Again, {switch}?"))
    assert ask_model(running, "openai-chat", body, headers=headers).status == 200
    assert upstream.requests[-1].texts.count(LONG) == times


@pytest.mark.parametrize(
    ("when", "result", "is_offered"),
    [
        ("always", "short", True),
        ("when_cited", "short", False),
        ("when_cited", log(2_000), True),
        ("never", log(2_000), False),
    ],
    ids=lambda given: str(given)[:10],
)
def test_a_request_says_when_the_tool_that_opens_is_offered(
    proxy: tuple[Running, Upstream], when: str, result: str, *, is_offered: bool
) -> None:
    running, upstream = proxy
    headers = {**KEYS, "x-holdfast-cite-policy": "always", "x-holdfast-offer-expand": when}
    body = request_in("openai-chat", chat(result, question=f"Offered {when}, {len(result)}?"))
    assert ask_model(running, "openai-chat", body, headers=headers).status == 200
    assert (NAME in upstream.requests[-1].tools) is is_offered


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("offer-expand", "sometimes"),
        ("cite-policy", "sometimes"),
        ("cite-tokens", "-3"),
        ("cite-tokens", "many"),
        ("cite-share", "3"),
        ("cite-repeats", "sometimes"),
        ("cite-tools", "Read"),
        ("cite-tools", "Read=perhaps"),
        ("cite-tools", "=always"),
        ("cite-tools", "Read=never,"),
        ("cite-tools", "x" * 201 + "=never"),
    ],
)
def test_a_header_that_is_wrong_is_named(
    proxy: tuple[Running, Upstream], name: str, value: str
) -> None:
    running, _ = proxy
    body = request_in("openai-chat", chat("short"))
    headers = {**KEYS, f"x-holdfast-{name}": value}
    answered = ask_model(running, "openai-chat", body, headers=headers)
    assert answered.status == 400
    assert f"x-holdfast-{name}" in answered.body.decode()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_was_cited_and_what_stayed_is_rebuilt_to_the_byte(
    proxy: tuple[Running, Upstream], dialect: str
) -> None:
    running, _ = proxy
    body = request_in(dialect, chat(log(900), log(50), log(900), question=f"And in {dialect}?"))
    answered = ask_model(running, dialect, body)
    assert answered.status == 200, answered.body
    [turn] = turns_of(running, answered)
    cites = [edit for edit in turn.edits if edit.action == "cite"]
    assert len(cites) == 1, "the first is worth a citation; the third is asked for again"
    assert "seldom needed again" in cites[0].why or "of the window" in cites[0].why
    session = running.service.engine.session(answered.headers["x-holdfast-session"])
    assert running.do(session.rebuild(turn.number)) == body
