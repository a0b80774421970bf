"""The same history in another shape is the same history, on the bytes that reach the provider."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.proxy.harness import Running, ask, path_of, running_proxy, turns_of
from tests.proxy.replaying import FOLDING
from tests.proxy.shifting import (
    DIALECTS,
    HEADERS,
    MODELS,
    MixingModel,
    ShiftingClient,
    bare,
    marks_in,
    messages_of,
)
from tests.proxy.upstream import Upstream

_NAMES = itertools.count()
_FOLDED = re.compile(r"Folded: messages (\d+) to (\d+) of")


class Network(NamedTuple):
    """Two proxies over one store, before one provider."""

    upstream: Upstream
    proxies: tuple[Running, ...]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    folder: Path = tmp_path_factory.mktemp("shapes")
    store = {"store_url": f"sqlite:///{folder}/store.db", "cite_tokens": 300}
    with (
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
    """Hold one conversation, and check every request that goes out against the one before."""
    chance = random.Random(seed)
    client = ShiftingClient(dialect, chance, f"number {next(_NAMES):06}")
    model = MixingModel(chance)
    upstream = network.upstream
    upstream.always = model
    upstream.names_calls = chance.random() < 0.5
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
