"""A model summarises folded messages in the background; the next fold quotes the summary."""

from __future__ import annotations

import json

import pytest

from holdfast.settings import UpstreamEntry
from holdfast.store import Scope
from tests.engine.summed_up import talk
from tests.surfaces.proxy.gatekeeper import KEY, Got
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    ask_model,
    request_in,
    running_proxy,
)
from tests.surfaces.proxy.spoken import says, text
from tests.wire.responses.streams import Script
from tests.wiring.proxy_summaries import Summing, worked_off

LISTS = {"openai-responses": "input", "gemini": "contents"}
SUMMED_UP = "Summed up by a model, each with its path in the ref: "
SETTINGS = {
    "background_jobs": False,  # the worker is the test's, so that it knows when it is done
    "request_limit": 1_300,
    "summarization_provider": "openai:small",
    "upstreams": {"openai": UpstreamEntry(key=KEY)},
}


def last_report(got: Got) -> Script:
    """Return a true sentence about the messages, after a false one."""
    report = got.texts.rpartition("Pump ")[2].partition(" by ")[0]
    return says(text(f"Pump 777 was lost at sea in 1777. Pump {report} by someone."))


def messages(got: Got) -> list[str]:
    key = LISTS.get(got.dialect, "messages")
    return [json.dumps(message) for message in got.value[key]]


def is_talk(got: Got) -> bool:
    return got.model != "small"


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_next_fold_quotes_what_the_model_said_of_the_last(dialect: str) -> None:
    with (
        Summing(last_report) as upstream,
        running_proxy(SETTINGS, upstream.url) as proxy,
    ):
        bodies = [request_in(dialect, json.loads(body)) for body in talk(11, 16)]
        headers = {**KEYS, "x-holdfast-session": "s"}
        for number, body in enumerate(bodies, 1):
            assert ask_model(proxy, dialect, body, headers=headers).status == 200
            proxy.settled()
            session = proxy.service.engine.session("s")
            assert proxy.do(session.rebuild(number)) == body
            worked_off(proxy)
        assert upstream.refused == []
        sent = [got for got in upstream.requests if is_talk(got)]
        turns = proxy.do(proxy.service.engine.store.turns(Scope().of("s")))
        assert len(sent) == len(turns) == len(bodies)
        for before, after, turn in zip(sent, sent[1:], turns[1:], strict=False):
            if not {edit.action for edit in turn.edits} & {"fold", "cite"}:
                assert messages(after)[: len(messages(before))] == messages(before)
        whats = {edit.what for turn in turns for edit in turn.edits}
        assert "folded into a digest, with a model's summary" in whats
        assert SUMMED_UP in sent[-1].texts
        assert "at sea" not in sent[-1].texts
        assert all("[Folded: " not in got.texts for got in upstream.requests if not is_talk(got))
