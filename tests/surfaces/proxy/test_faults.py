"""Failures of the upstream: the client gets an error in its dialect, never an empty answer.

If the upstream disconnects, so does the proxy: test_cuts.py has the clients' view of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from http.client import IncompleteRead, RemoteDisconnected
from typing import Any

import pytest

from holdfast.store.refs import REF
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy import faults
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
)
from tests.surfaces.proxy.spoken import opens, says, text
from tests.surfaces.proxy.upstream import Fault, Turn, Upstream
from tests.wire.responses.streams import understand

BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def _name(fault: Fault) -> str:
    return fault.spoil.__name__


EACH = pytest.mark.parametrize("dialect", DIALECTS)


@pytest.fixture(scope="module")
def impatient(upstream: Upstream) -> Iterator[Running]:
    with running_proxy({"upstream_idle_seconds": 0.2}, upstream.url) as running:
        yield running


@pytest.fixture(autouse=True)
def _nothing_left_of_the_last(upstream: Upstream) -> None:
    upstream.turns.clear()
    upstream.requests.clear()
    upstream.refused.clear()


def told(proxy: Running, upstream: Upstream, dialect: str, turn: Turn, *, stream: bool) -> Answered:
    """Return the response for a request during a failure; the upstream got it once."""
    upstream.turns.append(turn)
    body = request_in(dialect, chat("short", question="What now?"), stream=stream)
    answered = ask_model(proxy, dialect, body, stream=stream)
    assert len(upstream.requests) == 1, "nothing is sent twice"
    assert b"Traceback" not in answered.body
    assert answered.body
    return answered


def error_in(dialect: str, value: dict[str, Any]) -> str:
    """The message of an error, which must have the dialect's form."""
    if dialect == "anthropic":
        assert value["type"] == "error"
    if dialect == "gemini":
        assert isinstance(value["error"]["code"], int)
        assert isinstance(value["error"]["status"], str)
    else:
        assert isinstance(value["error"]["type"], str)
    return str(value["error"]["message"])


def last_event(answered: Answered) -> dict[str, Any]:
    assert answered.headers["content-type"].startswith("text/event-stream")
    value: dict[str, Any] = answered.events[-1]
    return value


@EACH
@BOTH
@pytest.mark.parametrize("code", [429, 500, 503, 529])
def test_errors_of_the_provider_pass_through_as_they_are(
    proxy: Running, upstream: Upstream, dialect: str, stream: bool, code: int
) -> None:
    fault = faults.status(code, **{"retry-after": "7", "x-request-id": "r1"})
    answered = told(proxy, upstream, dialect, fault, stream=stream)
    assert answered.status == code
    assert answered.headers["retry-after"] == "7"
    assert answered.headers["x-request-id"] == "r1"
    assert error_in(dialect, answered.json) == "a bad day"


@EACH
@BOTH
def test_a_connection_that_breaks_at_once_breaks_here_too(
    proxy: Running, upstream: Upstream, dialect: str, stream: bool
) -> None:
    with pytest.raises(RemoteDisconnected):
        told(proxy, upstream, dialect, faults.reset, stream=stream)
    assert len(upstream.requests) == 1


@EACH
@BOTH
def test_an_upstream_that_says_nothing_is_a_504(
    impatient: Running, upstream: Upstream, dialect: str, stream: bool
) -> None:
    answered = told(impatient, upstream, dialect, faults.stall, stream=stream)
    assert answered.status == 504
    assert "in time" in error_in(dialect, answered.json)


@EACH
@pytest.mark.parametrize("fault", [faults.reset_midway, faults.stall_midway], ids=_name)
def test_a_stream_whose_transfer_breaks_breaks_here_too(
    impatient: Running, upstream: Upstream, dialect: str, fault: Fault
) -> None:
    with pytest.raises(IncompleteRead) as broken:
        told(impatient, upstream, dialect, fault, stream=True)
    assert b"Before " in broken.value.partial, "what came before the trouble is kept"


@EACH
@pytest.mark.parametrize("fault", [faults.truncated, faults.cut_between_events], ids=_name)
def test_a_stream_that_ends_too_early_ends_here_too_and_is_told_as_a_failure(
    proxy: Running, upstream: Upstream, dialect: str, fault: Fault
) -> None:
    answered = told(proxy, upstream, dialect, fault, stream=True)
    assert b"Before " in answered.body, "what came before the trouble is kept"
    assert b"event: error" not in answered.body
    proxy.settled()
    scope = proxy.service.engine.scope.of(answered.headers["x-holdfast-session"])
    turns = proxy.do(proxy.service.engine.store.turns(scope))
    assert turns[-1].status == 502


@EACH
@pytest.mark.parametrize(
    "fault", [faults.truncated, faults.empty, faults.web_page, faults.no_utf8], ids=_name
)
def test_an_answer_that_cannot_be_read_is_a_502(
    proxy: Running, upstream: Upstream, dialect: str, fault: Fault
) -> None:
    answered = told(proxy, upstream, dialect, fault, stream=False)
    assert answered.status == 502
    assert error_in(dialect, answered.json)


@EACH
def test_a_page_in_the_place_of_a_stream_is_an_error(
    proxy: Running, upstream: Upstream, dialect: str
) -> None:
    answered = told(proxy, upstream, dialect, faults.web_page, stream=True)
    assert answered.status == 502
    assert error_in(dialect, answered.json)


@EACH
@BOTH
def test_an_error_inside_an_answer_arrives_as_an_error(
    proxy: Running, upstream: Upstream, dialect: str, stream: bool
) -> None:
    answered = told(proxy, upstream, dialect, faults.error_inside, stream=stream)
    assert "a bad day" in error_in(dialect, last_event(answered) if stream else answered.json)
    assert stream or answered.status >= 500, "a client must not take it for an answer"


@EACH
def test_bytes_that_are_no_utf8_do_not_end_a_stream(
    proxy: Running, upstream: Upstream, dialect: str
) -> None:
    answered = told(proxy, upstream, dialect, faults.no_utf8, stream=True)
    assert answered.status == 200
    assert b"tr\xff\xfeble" in answered.body


@EACH
def test_a_stream_in_single_bytes_is_the_same_stream(
    proxy: Running, upstream: Upstream, dialect: str
) -> None:
    fault = faults.byte_by_byte(says(text("Grüße, ", "日本", " 🙂")))
    answered = told(proxy, upstream, dialect, fault, stream=True)
    assert understand(answered.body, dialect).text == "Grüße, 日本 🙂"


@EACH
@BOTH
@pytest.mark.parametrize("tokens", [0, 10**12])
def test_wrong_usage_is_passed_on_and_spoils_nothing(
    proxy: Running, upstream: Upstream, dialect: str, stream: bool, tokens: int
) -> None:
    answered = told(proxy, upstream, dialect, faults.usage_of(tokens), stream=stream)
    assert text_of(dialect, answered, stream=stream) == "Before the trouble."
    assert str(tokens).encode() in answered.body
    proxy.settled()
    upstream.requests.clear()
    again = told(proxy, upstream, dialect, faults.SAID, stream=stream)
    asked = int(again.headers["x-holdfast-tokens"])
    counted = upstream.requests[-1].tokens
    assert counted / 3 <= asked <= 3 * counted, "no lie is learnt"


@EACH
@BOTH
def test_no_redirect_is_followed(
    proxy: Running, upstream: Upstream, dialect: str, stream: bool
) -> None:
    answered = told(proxy, upstream, dialect, faults.redirected, stream=stream)
    assert answered.status == 502
    assert "location" not in answered.headers
    assert error_in(dialect, answered.json)


@EACH
@BOTH
def test_an_answer_compressed_against_our_wish_is_read(
    proxy: Running, upstream: Upstream, dialect: str, stream: bool
) -> None:
    answered = told(proxy, upstream, dialect, faults.zipped, stream=stream)
    assert answered.status == 200
    assert text_of(dialect, answered, stream=stream) == "Before the trouble."


@EACH
@BOTH
def test_a_huge_answer_arrives_whole(
    proxy: Running, upstream: Upstream, dialect: str, stream: bool
) -> None:
    words = "many words " * 100_000
    answered = told(proxy, upstream, dialect, says(text(words[:7], words[7:])), stream=stream)
    assert text_of(dialect, answered, stream=stream) == words


@EACH
@BOTH
def test_an_answer_larger_than_allowed_is_an_error(dialect: str, stream: bool) -> None:
    many = tuple(f"{n:0>1000}" for n in range(80))
    with (
        Upstream(says(text(*many))) as upstream,
        running_proxy({"max_body_bytes": 50_000}, upstream.url) as proxy,
    ):
        body = request_in(dialect, chat("short"), stream=stream)
        answered = ask_model(proxy, dialect, body, stream=stream)
    if stream:  # a stream is not held in memory, so it may be long
        assert text_of(dialect, answered, stream=True) == "".join(many)
    else:
        assert answered.status == 502
        assert error_in(dialect, answered.json)


@EACH
@BOTH
def test_nothing_half_written_is_left_in_the_store(
    proxy: Running, upstream: Upstream, dialect: str, stream: bool
) -> None:
    """After a failure the session continues, and citations open exactly."""
    name = {"x-holdfast-session": f"{dialect}-{stream}"}
    body = request_in(dialect, chat(log(300)), stream=stream)
    where = proxy.url + path_of(dialect, stream=stream)
    upstream.turns.append(faults.reset)
    with pytest.raises(RemoteDisconnected):
        ask(where, body, {**KEYS, **name})
    upstream.turns.append(says(text("It went well.")))
    answered = ask(where, body, {**KEYS, **name})
    assert text_of(dialect, answered, stream=stream) == "It went well."
    proxy.settled()
    engine = proxy.service.engine
    scope = engine.scope.of(name["x-holdfast-session"])
    turns = proxy.do(engine.store.turns(scope))
    assert [turn.status for turn in turns][-1] == 200
    found = REF.search(upstream.requests[1].texts)
    assert found
    stored = proxy.do(engine.store.get(scope, found[0]))
    assert stored is not None
    assert stored.data.decode() == log(300)
    assert upstream.requests[0].body == upstream.requests[1].body


# --- while the model opens a ref -----------------------------------------------------------------


def opened(
    proxy: Running, upstream: Upstream, dialect: str, fault: Fault, *, stream: bool
) -> Answered:
    """Return the response if the upstream fails after the model's opening."""
    upstream.turns.extend([opens("1-3"), fault])
    body = request_in(dialect, chat(log(300)), stream=stream)
    answered = ask_model(proxy, dialect, body, stream=stream)
    assert len(upstream.requests) == 2
    assert upstream.refused == []
    assert b"expand_ref" not in answered.body
    return answered


@EACH
@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (faults.status(429, **{"retry-after": "7"}), 429),
        (faults.status(500), 500),
        (faults.truncated, 502),
    ],
)
def test_a_failure_after_an_opening_is_the_answers_failure(
    proxy: Running, upstream: Upstream, dialect: str, fault: Fault, status: int
) -> None:
    answered = opened(proxy, upstream, dialect, fault, stream=False)
    assert answered.status == status
    assert error_in(dialect, answered.json)
    assert answered.headers.get("retry-after") == ("7" if status == 429 else None)


@EACH
@pytest.mark.parametrize(
    "fault", [faults.reset, faults.reset_midway, faults.truncated, faults.empty], ids=_name
)
def test_a_cut_after_an_opening_breaks_the_stream(
    proxy: Running, upstream: Upstream, dialect: str, fault: Fault
) -> None:
    """An end in order would pass for the end of the answer: without us there was no such call."""
    with pytest.raises(IncompleteRead) as broken:
        opened(proxy, upstream, dialect, fault, stream=True)
    assert b"Let me " in broken.value.partial, "what was said before is kept"
    assert b"expand_ref" not in broken.value.partial


@EACH
@pytest.mark.parametrize("fault", [faults.reset, faults.reset_midway], ids=_name)
def test_a_cut_after_an_opening_is_the_answers_cut(
    proxy: Running, upstream: Upstream, dialect: str, fault: Fault
) -> None:
    with pytest.raises(RemoteDisconnected):
        opened(proxy, upstream, dialect, fault, stream=False)


@EACH
def test_a_refusal_after_an_opening_ends_the_stream_with_an_error(
    proxy: Running, upstream: Upstream, dialect: str
) -> None:
    answered = opened(proxy, upstream, dialect, faults.status(429), stream=True)
    assert b"Let me " in answered.body, "what was said before is kept"
    assert error_in(dialect, last_event(answered))


@EACH
@BOTH
def test_a_client_may_ask_again_after_a_failed_opening(
    proxy: Running, upstream: Upstream, dialect: str, stream: bool
) -> None:
    with pytest.raises((RemoteDisconnected, IncompleteRead)):
        opened(proxy, upstream, dialect, faults.reset, stream=stream)
    upstream.turns.extend([opens("1-3"), says(text("Now it works."))])
    body = request_in(dialect, chat(log(300)), stream=stream)
    answered = ask_model(proxy, dialect, body, stream=stream)
    assert text_of(dialect, answered, stream=stream).endswith("Now it works.")
    assert upstream.requests[0].body == upstream.requests[2].body
    assert upstream.refused == []
