"""The same history in another shape is the same history, on the bytes that reach the provider."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cite import CitingRules
from tests.fitting.test_citing import log
from tests.surfaces.proxy.harness import (
    Answered,
    Running,
    ask,
    ask_model,
    path_of,
    running_proxy,
    turns_of,
)
from tests.surfaces.proxy.replaying import FOLDING
from tests.surfaces.proxy.shifting import (
    DIALECTS,
    HEADERS,
    MODELS,
    TOOL,
    MixingModel,
    ShiftingClient,
    answer_messages,
    bare,
    calls_in,
    frame_in,
    marks_in,
    messages_of,
    result_messages,
)
from tests.surfaces.proxy.spoken import call, opens, says, text
from tests.surfaces.proxy.upstream import Turn, Upstream

_NAMES = itertools.count()
_FOLDED = re.compile(r"Folded: messages (\d+) to (\d+) of")


class Network(NamedTuple):
    """Two proxies over one store, before one provider."""

    upstream: Upstream
    proxies: tuple[Running, ...]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    folder: Path = tmp_path_factory.mktemp("shapes")
    store = {"store_url": f"sqlite:///{folder}/store.db"}
    with (
        patch("holdfast.engine.options.CitingRules", partial(CitingRules, tokens=300)),
        Upstream() as upstream,
        running_proxy(store, upstream.url) as one,
        running_proxy(store, upstream.url) as other,
    ):
        yield Network(upstream, (one, other))


class Outcome(NamedTuple):
    answered: int
    folds: int
    rejoined: int


def converse_in_shapes(dialect: str, seed: int, network: Network, turns: int = 14) -> Outcome:
    """Run one conversation, and compare every sent request with the previous one."""
    chance = random.Random(seed)
    model = MixingModel(chance)
    upstream = network.upstream
    upstream.always = model
    # Gemini up to 2.5 sends calls without ids. Their results are paired by order, so a client
    # reorders results only under ids that it made up itself.
    upstream.names_calls = chance.random() < 0.5
    name = f"number {next(_NAMES):06}"  # no two begin alike
    client = ShiftingClient(dialect, chance, name, chance.random() < 0.5)
    upstream.refused.clear()
    limit = chance.choice([2_000, 3_000, 5_000, 100_000])
    headers = HEADERS | {"x-holdfast-budget": str(limit)}
    sessions: set[str] = set()
    before: list[object] = []
    answered = folds = rejoined = 0
    client.ask()
    for _ in range(turns):
        proxy = chance.choice(network.proxies)
        model.begin_turn()
        body = client.body()
        seen = len(upstream.requests)
        answer = ask(proxy.url + path_of(dialect, model=MODELS[dialect]), body, headers)
        assert upstream.refused == []
        assert answer.status in (200, 400), answer.body
        if answer.status == 400:
            assert b"tokens" in answer.body, answer.body
            break
        answered += 1
        sessions.add(answer.headers["x-holdfast-session"])
        assert len(sessions) == 1, "the history was taken for another one"
        turn = turns_of(proxy, answer)[-1]
        session = proxy.service.engine.session(answer.headers["x-holdfast-session"])
        assert proxy.do(session.rebuild(turn.number)) == body
        actions = {edit.action for edit in turn.edits}
        first, *_, last = [*upstream.requests[seen:], upstream.requests[-1]]
        sent = [bare(message) for message in messages_of(first.body, dialect)]
        if not actions & FOLDING:
            assert sent[: len(before)] == before, "what went out before has changed"
        assert not [said for said in _FOLDED.findall(first.texts) if int(said[1]) < int(said[0])]
        folds += bool(actions & FOLDING)
        rejoined += "rejoin" in actions
        assert marks_in(first.value) <= marks_in(messages_of(body, dialect))
        before = [bare(message) for message in messages_of(last.body, dialect)]
        client.add_answer(answer.json)
    return Outcome(answered, folds, rejoined)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_went_out_stays_whatever_shape_it_comes_back_in(
    dialect: str, network: Network
) -> None:
    outcomes: list[Outcome] = []

    @settings(max_examples=15, database=None)
    @given(st.integers(0, 2**32))
    def stays(seed: int) -> None:
        outcomes.append(converse_in_shapes(dialect, seed, network))

    stays()
    assert sum(outcome.answered for outcome in outcomes) > 60
    assert any(outcome.folds for outcome in outcomes)
    assert any(outcome.rejoined for outcome in outcomes) or dialect in ("converse", "cohere")


# --- what real clients do ------------------------------------------------------------------------

MARK = {"cache_control": {"type": "ephemeral"}}


def marked(messages: list[Any]) -> list[Any]:
    """Messages as Claude Code marks them: on the last part of the last two of the user."""
    messages = deepcopy(messages)
    for message in [m for m in messages if m["role"] == "user"][-2:]:
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        message["content"][-1] |= MARK
    return messages


def claude_code_requests() -> Iterator[list[Any]]:
    """Two prompts of one process: the second comes as a marked list, and then as a string."""
    messages: list[Any] = [{"role": "user", "content": "Read all logs, one by one."}]
    for number in range(12):
        messages += claude_step(number)
        yield marked(messages)
    messages.append({"role": "assistant", "content": [{"type": "text", "text": "All is well."}]})
    messages.append({"role": "user", "content": "And what else?"})
    yield marked(messages)
    messages += claude_step(12, lines=1)
    messages += claude_step(13, lines=1)
    yield marked(messages)


def claude_step(number: int, lines: int = 12) -> list[Any]:
    use = {"type": "tool_use", "id": f"t{number}", "name": TOOL, "input": {"path": f"{number}"}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": log(lines, number)}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


@pytest.mark.parametrize("restarts", [False, True])
def test_claude_codes_second_prompt_splits_no_session_and_undoes_no_fold(
    restarts: bool, tmp_path: Path
) -> None:
    options = {"store_url": f"sqlite:///{tmp_path}/store.db", "request_limit": 2_500}
    *earlier, prompt, following = [
        json.dumps({**frame_in("anthropic"), "messages": messages}).encode()
        for messages in claude_code_requests()
    ]
    assert isinstance(messages_of(prompt, "anthropic")[-1]["content"], list)
    assert messages_of(following, "anthropic")[-5]["content"] == "And what else?"
    answers: list[Answered] = []
    with Upstream() as upstream:
        upstream.always = says(text("Well."))
        processes = (
            [[*earlier, prompt], [following]] if restarts else [[*earlier, prompt, following]]
        )
        for bodies in processes:
            with running_proxy(options, upstream.url) as proxy:
                url = proxy.url + path_of("anthropic")
                answers += [ask(url, body, HEADERS) for body in bodies]
                turns = turns_of(proxy, answers[-1])
                assert rebuilt(proxy, answers[-1], len(turns)) == bodies[-1]
        assert upstream.refused == []
        assert {answer.status for answer in answers} == {200}
        assert len({answer.headers["x-holdfast-session"] for answer in answers}) == 1
        assert any(edit.action == "fold" for turn in turns[:-1] for edit in turn.edits)
        assert not any(edit.action in FOLDING for edit in turns[-1].edits)
        before, now = ([bare(m) for m in got.value["messages"]] for got in upstream.requests[-2:])
        assert now[: len(before)] == before
        assert len(now) == len(before) + 4


def rebuilt(proxy: Running, answer: Answered, number: int) -> bytes:
    session = proxy.service.engine.session(answer.headers["x-holdfast-session"])
    return proxy.do(session.rebuild(number))


@pytest.mark.parametrize("hops", [1, 2])
def test_a_mark_that_leaves_an_answer_takes_no_hidden_call_with_it(hops: int) -> None:
    """As opencode marks: the last messages, of any role."""
    model: list[Turn] = [
        says(text("I read it. "), call(TOOL, {"path": "a.log"}, "call_0")),
        *[opens("5-7")] * (hops - 1),
        says(text("Done.")),
    ]
    model.insert(-1, opens("1-3", "b.log"))
    with Upstream(*model) as upstream, running_proxy({}, upstream.url) as proxy:
        upstream.always = says(text("Well."))
        messages: list[Any] = [{"role": "user", "content": "Read the logs."}]
        sent: list[Any] = []
        for number in range(6):
            shown = deepcopy(messages)
            for message in shown[-2:] if number != 3 else ():
                if isinstance(message["content"], list):
                    message["content"][-1] |= MARK
            body = json.dumps({**frame_in("anthropic"), "messages": shown}).encode()
            answer = ask_model(proxy, "anthropic", body)
            assert (answer.status, upstream.refused) == (200, [])
            before, sent = sent, [bare(m) for m in upstream.requests[-1].value["messages"]]
            assert sent[: len(before)] == before
            assert marks_in(upstream.requests[-1].value) <= marks_in(json.loads(body))
            messages += answer_messages(answer.json, "anthropic")
            calls = calls_in(messages[-1:], "anthropic")
            results = [(name, log(200, number)) for name in calls]
            question = {"role": "user", "content": [{"type": "text", "text": f"And {number}?"}]}
            messages += result_messages(results, "anthropic") or [question]
        assert upstream.requests[-1].body.count(b'"expand_ref"') > hops
