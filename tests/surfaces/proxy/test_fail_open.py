"""An internal error of Holdfast: the request is sent all the same, and the error is reported.

tests/hardening/test_fail_open.py injects errors into every function; this file tests the effects of
one.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast.errors import EditError
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy.harness import (
    DIALECTS,
    Answered,
    Running,
    ask,
    ask_model,
    request_in,
    running_proxy,
    text_of,
    turns_of,
)
from tests.surfaces.proxy.spoken import opens, says, text
from tests.surfaces.proxy.upstream import Upstream

CONTENT = "the words of the conversation"
CITE = "holdfast.workers.pool.Citer.__call__"
DONE = says(text("Done."))


def raising(*_: Any, **__: Any) -> Any:
    raise KeyError(CONTENT)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as made:
        made.always = DONE
        yield made


def asked(proxy: Running, dialect: str, *results: str, stream: bool = False) -> Answered:
    body = request_in(dialect, chat(*results), stream=stream)
    return ask_model(proxy, dialect, body, stream=stream)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_clients_own_bytes_go_out_with_a_warning_a_metric_and_a_log_line(
    upstream: Upstream,
    dialect: str,
    stream: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with running_proxy({}, upstream.url) as proxy:
        monkeypatch.setattr(CITE, raising)
        answered = asked(proxy, dialect, log(200), stream=stream)
        proxy.settled()
        metrics = ask(f"{proxy.url}/metrics").body.decode()
    assert answered.status == 200
    assert text_of(dialect, answered, stream=stream) == "Done."
    assert upstream.requests[0].body == request_in(dialect, chat(log(200)), stream=stream)
    warning = answered.headers["x-holdfast-warning"]
    assert warning.startswith("internal error in prepare (KeyError at ")
    assert warning.endswith("the request went out unedited")
    assert 'holdfast_internal_errors_total{step="prepare"} 1.0' in metrics
    [line] = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert "event=bug" in line
    assert "kind=KeyError" in line
    assert CONTENT not in caplog.text + str(answered)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_edits_made_before_are_replayed_and_nothing_new_is_edited(
    upstream: Upstream, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_proxy({}, upstream.url) as proxy:
        asked(proxy, dialect, log(200))
        with monkeypatch.context() as patch:
            patch.setattr(CITE, raising)
            answered = asked(proxy, dialect, log(200), log(200, seed=1))
        turns = turns_of(proxy, answered)
    first, second = upstream.requests
    assert answered.status == 200
    assert upstream.refused == []
    assert "with the edits of the one before" in answered.headers["x-holdfast-warning"]
    assert log(200).splitlines()[100] not in second.texts  # cited before, and cited again
    assert log(200, seed=1).splitlines()[100] in second.texts
    assert "expand_ref" in second.tools
    assert len(first.body) < len(second.body) < len(request_in(dialect, chat(log(200), log(200))))
    assert any("internal error" in warning for warning in turns[-1].warnings)


def test_an_edit_that_we_could_not_make_is_no_error_of_the_client(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise EditError("the edit would leave the conversation invalid")

    with running_proxy({}, upstream.url) as proxy:
        monkeypatch.setattr(CITE, fails)
        answered = asked(proxy, "openai-chat", log(200))
    assert answered.status == 200
    assert "EditError" in answered.headers["x-holdfast-warning"]


@pytest.mark.parametrize(
    ("fails", "tells"),
    [("engine.Holdfast.expand_ref", True), ("upstream.expansions.continuation", False)],
    ids=["the ref cannot be opened", "hidden calls cannot be answered"],
)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_whose_call_fails_reads_an_error_or_is_asked_without_our_tool(
    upstream: Upstream,
    dialect: str,
    stream: bool,
    fails: str,
    tells: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    upstream.turns.append(opens("1-5"))
    with running_proxy({}, upstream.url) as proxy:
        monkeypatch.setattr(f"holdfast.{fails}", raising)
        answered = asked(proxy, dialect, log(200), stream=stream)
    assert upstream.refused == []
    assert text_of(dialect, answered, stream=stream).endswith("Done.")
    assert b"expand_ref" not in answered.body
    assert ("Opening failed" in upstream.requests[1].texts) == tells
    assert ("expand_ref" in upstream.requests[1].tools) == tells


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_whose_handling_breaks_down_goes_out_unedited_with_a_warning(
    upstream: Upstream, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_proxy({}, upstream.url) as proxy:
        monkeypatch.setattr("holdfast.surfaces.proxy.app.RequestHandler.run", raising)
        answered = asked(proxy, dialect, log(200))
    assert text_of(dialect, answered) == "Done."
    assert upstream.requests[0].body == request_in(dialect, chat(log(200)))
    warning = answered.headers["x-holdfast-warning"]
    assert warning.startswith("internal error in request (KeyError at ")
    assert warning.endswith("the request went out unedited")


def test_a_record_that_fails_costs_no_answer(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_proxy({}, upstream.url) as proxy:
        with monkeypatch.context() as patch:
            patch.setattr("holdfast.engine.session.parts_of", raising)
            answered = asked(proxy, "openai-chat", "short")
        again = asked(proxy, "openai-chat", "short", "more")
        turns = turns_of(proxy, again)
    assert text_of("openai-chat", answered) == "Done."
    assert "internal error in record" in answered.headers["x-holdfast-warning"]
    assert "x-holdfast-warning" not in again.headers
    assert len(turns) == 1


def test_a_store_that_hangs_holds_no_request_back_for_good(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hangs(*_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr("holdfast.surfaces.proxy.exchange.PREPARE_SECONDS", 0.2)
    with running_proxy({}, upstream.url) as proxy:
        monkeypatch.setattr("holdfast.engine.sessions.Sessions.find", hangs)
        answered = asked(proxy, "openai-chat", "short")
    assert answered.status == 200
    assert "TimeoutError" in answered.headers["x-holdfast-warning"]


# --- what does not fail open ---------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_was_to_be_masked_is_not_sent_unmasked(
    upstream: Upstream, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_proxy({"privacy_policy": "mask"}, upstream.url) as proxy:
        monkeypatch.setattr(CITE, raising)
        answered = asked(proxy, dialect, log(200))
    assert answered.status == 500
    assert "privacy_policy mask" in json.dumps(answered.json)
    assert CONTENT not in str(answered)
    assert upstream.requests == []


def test_what_may_not_be_stored_goes_out_and_is_not_recorded(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "password: hunter2hunter2"
    with running_proxy({"privacy_policy": "refuse"}, upstream.url) as proxy:
        monkeypatch.setattr("holdfast.engine.session.Session._fitted", raising)
        answered = asked(proxy, "openai-chat", f"{secret}\n{log(200)}")
        turns = turns_of(proxy, answered)
        refs = proxy.do(proxy.service.engine.store.refs(proxy.service.engine.scope))
    assert answered.status == 200
    assert secret in upstream.requests[0].texts
    assert turns == []
    assert refs == []


def test_who_may_ask_is_never_guessed(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_proxy({"serve_token": "ours"}, upstream.url) as proxy:
        monkeypatch.setattr("holdfast.surfaces.proxy.gate.refusal", raising)
        answered = asked(proxy, "openai-chat", "short")
    assert answered.status == 500
    assert answered.json["error"]["message"].startswith("Holdfast has a bug")
    assert CONTENT not in str(answered)
    assert upstream.requests == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_session_record_that_cannot_be_read_costs_no_answer(
    upstream: Upstream, dialect: str, stream: bool, tmp_path: Path
) -> None:
    store = {"store_url": f"sqlite:///{tmp_path}/store.db"}
    with running_proxy(store, upstream.url) as proxy:
        assert asked(proxy, dialect, log(200, 1), stream=stream).status == 200
        proxy.settled()
    with apsw.Connection(f"{tmp_path}/store.db") as db:
        db.execute("UPDATE sessions SET record = '{broken'")
        assert db.changes() == 1
    with running_proxy(store, upstream.url) as proxy:
        answered = asked(proxy, dialect, log(200, 1), log(300, 2), stream=stream)
    assert (answered.status, upstream.refused) == (200, [])
    body = request_in(dialect, chat(log(200, 1), log(300, 2)), stream=stream)
    assert upstream.requests[-1].body == body
    assert "internal error in prepare" in answered.headers["x-holdfast-warning"]
