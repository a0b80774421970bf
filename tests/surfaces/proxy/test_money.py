"""Money and tokens of whole requests: the proxy's bill matches the sent requests."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.engine import Holdfast
from holdfast.store.opening import open_memory
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    ask,
    ask_model,
    path_of,
    request_in,
    running_proxy,
    turns_of,
)
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.test_opening import opening
from tests.surfaces.proxy.upstream import Upstream

GPT_5 = 1.25e-6, 0.125e-6
"""Dollars a token: new, cached."""
SAID = says(text("Hello."))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("status", [401, 404, 429, 503])
def test_a_call_that_failed_is_counted_as_one_and_nothing_else(status: int, stream: bool) -> None:
    body = request_in("openai-chat", chat(log(300)), stream=stream)
    path = path_of("openai-chat", stream=stream)
    script = (faults.status(status), SAID)
    with Upstream(*script) as upstream, running_proxy({}, upstream.url) as proxy:
        answered = ask(proxy.url + path, body, KEYS)
        assert answered.status == status
        [turn] = turns_of(proxy, answered)
        assert turn.usage.failed
        failed = ask(proxy.url + "/stats").json["totals"]
        for name in ("untouched", "predicted", "input", "saved", "cost", "saved_cost"):
            assert failed[name] == 0, name
        assert (failed["turns"], failed["failed"]) == (1, 1)
        again = ask(proxy.url + path, body, KEYS)
        assert again.status == 200
        _, second = turns_of(proxy, again)
        totals = ask(proxy.url + "/stats").json["totals"]
        assert (totals["turns"], totals["failed"]) == (2, 1)
        assert (
            totals["saved"]
            == second.usage.saved
            == second.usage.untouched - (upstream.requests[-1].tokens)
        )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_was_opened_is_paid_with_the_prompt_it_was_read_with(dialect: str) -> None:
    script = (opening(1, lines="1-9"), opening(1, lines="10-19"), says(text("It went well.")))
    with Upstream(*script) as upstream, running_proxy({}, upstream.url) as proxy:
        answered = ask_model(proxy, dialect, chat(log(300)))
        [turn] = turns_of(proxy, answered)
        calls = [got.tokens for got in upstream.requests]
        assert len(calls) == 3
        assert turn.usage.input == sum(calls)
        assert turn.usage.saved == turn.usage.untouched - sum(calls)


def test_the_offline_model_costs_nothing_in_the_name_of_another() -> None:
    with running_proxy() as proxy:
        answered = ask(proxy.url + path_of("openai-chat"), chat("short", *(log(60),) * 3))
        [turn] = turns_of(proxy, answered)
        assert turn.usage.untouched > turn.usage.predicted
        assert turn.usage.cost == 0.0
        assert turn.usage.saved_cost is None
        totals = ask(proxy.url + "/stats").json["totals"]
        assert (totals["cost"], totals["saved_cost"]) == (0.0, 0.0)
        assert totals["saved"] == turn.usage.saved


def test_a_fold_that_breaks_the_cache_is_told_as_what_it_cost() -> None:
    """The second request folds cached messages: fewer tokens, and more money."""
    history = [message for n in range(60) for message in (
        {"role": "user", "content": f"Question {n}: " + "why and how, in detail? " * 40},
        {"role": "assistant", "content": f"Answer {n}: " + "so and so it came about. " * 40},
    )]  # fmt: skip
    question = {"role": "user", "content": "And in the end?"}
    first = {"model": "gpt-5", "messages": [*history, question]}
    answer = {"role": "assistant", "content": "All was well."}
    second = {"model": "gpt-5", "messages": [*first["messages"], answer, question]}

    async def work() -> None:
        engine = Holdfast(open_memory())
        session = engine.session("s")
        untouched = await engine.observe(
            session, await session.fit(first), {"prompt_tokens": 26_000}
        )
        assert (untouched.usage.saved, untouched.usage.saved_cost) == (0, 0.0)
        fitted = await session.fit(second, limit=untouched.usage.predicted // 2)
        report = {
            "prompt_tokens": fitted.tokens,
            "prompt_tokens_details": {"cached_tokens": 0},
        }
        turn = await engine.observe(session, fitted, report)
        new, cached = GPT_5
        assert turn.usage.saved > 10_000
        assert turn.usage.cost == pytest.approx(fitted.tokens * new)
        assert turn.usage.saved_cost is not None
        assert turn.usage.saved_cost < 0
        # Untouched, the vendor would have read the first request from its cache.
        before = untouched.usage.predicted
        instead = before * cached + (turn.usage.untouched - before) * new
        assert turn.usage.saved_cost == pytest.approx(instead - fitted.tokens * new)

    asyncio.run(work())
