"""Consistency: read-only predicts the real run, and all reports about a session agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fitting.test_citing import chat, log
from tests.surfaces.conftest import cli
from tests.surfaces.harness import Cli
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    Answered,
    ask,
    ask_model,
    path_of,
    request_in,
    running_proxy,
    text_of,
    turns_of,
)
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.test_opening import opening
from tests.surfaces.proxy.test_repairs import LISTS, ORPHANS
from tests.surfaces.proxy.upstream import Upstream

__all__ = ["cli"]

TOLD = ("tokens", "saved", "edits", "final", "warning")


def told_of(answered: Answered) -> dict[str, str]:
    return {name: answered.headers.get(f"x-holdfast-{name}", "") for name in TOLD}


def requests_of(kind: str, dialect: str) -> tuple[list[bytes], str]:
    """Requests of one conversation, and their budget."""
    if kind == "citations":
        return [request_in(dialect, chat(log(300), *["fine"] * n)) for n in (1, 2)], "60000"
    if kind == "folds":
        sizes = (9, 10, 14)
        return [request_in(dialect, chat(*(log(40, n) for n in range(s)))) for s in sizes], "3000"
    value: dict[str, Any] = json.loads(request_in(dialect, chat("fine", question="Hello?")))
    value[LISTS.get(dialect, "messages")].insert(1, ORPHANS[dialect])
    return [json.dumps(value).encode()], "60000"


@pytest.mark.parametrize("kind", ["citations", "folds", "repairs"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_read_only_predicts_what_the_real_run_does(dialect: str, kind: str) -> None:
    bodies, budget = requests_of(kind, dialect)
    headers = {**KEYS, "x-holdfast-budget": budget, "x-holdfast-session": "s"}
    read_only = {**headers, "x-holdfast-read-only": "on"}
    for last in range(len(bodies)):
        both: list[dict[str, str]] = []
        # two proxies, because reported usage calibrates the counter
        for how in (read_only, headers):
            with Upstream() as upstream, running_proxy({}, upstream.url) as proxy:
                upstream.always = says(text("Well."))
                for body in bodies[:last]:
                    ask_model(proxy, dialect, body, headers=headers)
                    proxy.settled()
                answered = ask_model(proxy, dialect, bodies[last], headers=how)
                broken = kind == "repairs" and how is read_only
                assert answered.status == (400 if broken else 200), answered.body
                assert (upstream.requests[-1].body == bodies[last]) == (how is read_only)
                both.append(told_of(answered))
        assert both[0] == both[1]
        assert last or int(both[0]["edits"]) > 0


def test_read_only_leaves_no_trace_in_what_is_sent_later(tmp_path: Path) -> None:
    """Neither in the proxy that ran it, nor in the next one over the same store."""
    settings = {"store_url": f"sqlite:///{tmp_path}/store.db"}
    bodies = [request_in("openai-chat", chat(log(300), *["fine"] * n)) for n in (1, 2)]
    headers = {**KEYS, "x-holdfast-session": "s"}
    sent_bodies = []
    with Upstream() as upstream:
        upstream.always = says(text("Well."))
        with running_proxy(settings, upstream.url) as proxy:
            ask(
                proxy.url + path_of("openai-chat"),
                bodies[0],
                {**headers, "x-holdfast-read-only": "on"},
            )
            proxy.settled()
        for fresh in (settings, {}):
            with running_proxy(fresh, upstream.url) as proxy:
                ask_model(proxy, "openai-chat", bodies[1], headers=headers)
                sent_bodies.append(upstream.requests[-1].body)
    assert b"ref:log:" in sent_bodies[0]
    assert sent_bodies[0] == sent_bodies[1]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_all_that_is_told_of_a_session_agrees(dialect: str, tmp_path: Path, cli: Cli) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    conversation: Any = chat(*(log(60, n) for n in range(4)))
    script = (opening(1, lines="1-9"), says(text("One.")), faults.status(503), says(text("Two.")),
              says(text("Three.")))  # fmt: skip
    headers = {**KEYS, "x-holdfast-session": "s", "x-holdfast-budget": "4000"}
    answers: list[Answered] = []
    with Upstream(*script) as upstream, running_proxy({"store_url": url}, upstream.url) as proxy:
        for n in range(4):
            answered = ask_model(proxy, dialect, conversation, headers=headers)
            answers.append(answered)
            proxy.settled()
            if answered.status != 200:
                continue
            conversation["messages"] += [
                {"role": "assistant", "content": text_of(dialect, answered)},
                {"role": "user", "content": f"And {n}? " + log(30, n)},
            ]
        assert [answered.status for answered in answers] == [200, 503, 200, 200]
        turns = turns_of(proxy, answers[-1])
        stats = ask(proxy.url + "/stats").json
    for answered, turn in zip(answers, turns, strict=True):
        if answered.status != 200:
            assert turn.usage.failed
            continue
        assert int(answered.headers["x-holdfast-edits"]) == len(turn.edits)
        assert int(answered.headers["x-holdfast-tokens"]) == turn.usage.predicted
        if not turn.usage.expansions:
            assert int(answered.headers["x-holdfast-saved"]) == turn.usage.saved
        assert answered.headers.get("x-holdfast-warning", "") == "; ".join(turn.warnings)
    for name in ("input", "untouched", "saved", "predicted"):
        summed = sum(getattr(turn.usage, name) for turn in turns if not turn.usage.failed)
        assert stats["totals"][name] == summed, name
    assert (stats["totals"]["turns"], stats["totals"]["failed"]) == (4, 1)
    shown = cli("stats", "--store", url, "--output", "json", "--by", "session").json
    assert shown["totals"] == stats["totals"]
    [row] = shown["by_session"]
    assert {**row, "name": "total"} == stats["totals"]
