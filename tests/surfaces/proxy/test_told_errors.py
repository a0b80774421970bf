"""Our own errors as answers: the status, the client's dialect, and the headers with them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from holdfast.surfaces.proxy.encodings import ACCEPTED
from tests.fitting.test_citing import chat
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    ask,
    ask_model,
    path_of,
    request_in,
    running_proxy,
)
from tests.surfaces.proxy.test_errors import with_rules

SHAPES: dict[str, set[str]] = {
    "openai-chat": {"message", "type", "param", "code"},
    "openai-responses": {"message", "type", "param", "code"},
    "anthropic": {"message", "type"},
    "gemini": {"message", "status", "code"},
}


def header(answered: Any, name: str) -> str | None:
    return dict(answered.headers).get(name)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_only_an_unknown_encoding_is_answered_with_those_that_are_known(dialect: str) -> None:
    with running_proxy() as proxy:
        unknown = ask(proxy.url + path_of(dialect), b"{}", {**KEYS, "content-encoding": "br"})
        body = request_in(dialect, with_rules(chat("ok")))
        long = ask_model(proxy, dialect, body, headers={**KEYS, "x-holdfast-budget": "900"})
    assert (unknown.status, long.status) == (415, 400)
    assert header(unknown, "accept-encoding") == ACCEPTED
    assert header(long, "accept-encoding") is None
    for answered in (unknown, long):
        assert header(answered, "content-type") == "application/json"
        assert set(answered.json["error"]) == SHAPES[dialect]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_body_without_messages_is_answered_with_one_that_the_path_takes(dialect: str) -> None:
    """The advice was to check the dialect, which an HTTP client cannot choose."""
    with running_proxy() as proxy:
        refused = ask(proxy.url + path_of(dialect), b"{}", KEYS)
        advice = refused.json["error"]["message"]
        example = re.search(r"Send a body such as (\{.*\})", advice)
        assert refused.status == 400
        assert example is not None, advice
        assert ask(proxy.url + path_of(dialect), example[1].encode(), KEYS).status == 200
