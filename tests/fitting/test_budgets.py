"""Budgets: the user's last question is always sent, and a larger budget never keeps less.

Kept messages are read from the sent JSON, without the package; tokens are tiktoken's.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Holdfast, count, read
from holdfast.cite import CitingRules
from holdfast.engine import fit_options
from holdfast.errors import BudgetExceededError, ContextOptimizationError, HoldfastError
from holdfast.fitting import FitOptions, Fitted, fit_request
from holdfast.settings import ModelLimits, Settings
from holdfast.tokens import Calibration, ModelContextRegistry
from tests.provider.tokens import text_tokens
from tests.surfaces.proxy.harness import KEYS, Running, ask_model, running_proxy
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.upstream import Upstream
from tests.trim.test_fit import DIALECTS, MODELS, long_scripts
from tests.wire.bodies import WRITERS

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "request.json"
README = EXAMPLE.read_bytes()
LISTS = {"openai-responses": "input", "gemini": "contents"}
BUDGETS = range(900, 1501, 10)


def last_question(body: dict[str, Any]) -> str:
    """The last words of the user's own in a request of Anthropic's."""
    for message in reversed(body["messages"]):
        content = message["content"]
        if message["role"] == "user" and isinstance(content, str):
            return content
        texts = [part["text"] for part in content if isinstance(part, dict) and "text" in part]
        if message["role"] == "user" and texts:
            return str(texts[-1])
    raise AssertionError("the example asks nothing")


QUESTION = last_question(json.loads(README))


@contextmanager
def proxied() -> Iterator[tuple[Running, Upstream]]:
    with Upstream() as upstream:
        upstream.always = says(text("Well."))
        with running_proxy({"cite_policy": "auto"}, upstream.url) as proxy:
            yield proxy, upstream


def in_proxy(proxy: Running, upstream: Upstream, budget: int, session: str) -> bytes | None:
    """Return the provider's request within a budget; None if it does not fit."""
    budgeted = {
        **KEYS,
        "x-holdfast-budget": str(budget),
        "x-holdfast-session": session,
    }
    before = len(upstream.requests)
    answered = ask_model(proxy, "anthropic", README, headers=budgeted)
    if answered.status == 400:
        assert b"prompt is too long" in answered.body
        assert len(upstream.requests) == before
        return None
    assert answered.status == 200, answered.body
    return upstream.requests[-1].body


def words_of_the_user(body: bytes) -> list[str]:
    contents = [m["content"] for m in json.loads(body)["messages"] if m["role"] == "user"]
    return [
        part.get("text", "")
        for content in contents
        for part in ([{"text": content}] if isinstance(content, str) else content)
    ]


def test_the_users_last_question_goes_out_whatever_the_budget() -> None:
    with proxied() as (proxy, upstream):
        sent_bodies = [in_proxy(proxy, upstream, budget, f"s{budget}") for budget in BUDGETS]
        assert upstream.refused == []
    fitting = [body for body in sent_bodies if body is not None]
    assert len(fitting) > 5
    for body in fitting:
        assert words_of_the_user(body).count(QUESTION) == 1


def test_the_proxy_and_the_library_send_the_same_bytes() -> None:
    settings = fit_options(Settings(store_url="memory:"))

    async def in_library(budget: int, learnt: bytes) -> list[bytes | None]:
        options = msgspec.structs.replace(settings, limit=budget, reports_usage=True)
        sent_bodies: list[bytes | None] = []
        async with Holdfast.open("memory:") as opened:
            calibration = Calibration.load(learnt)
            engine = Holdfast(opened.store, calibration=calibration)
            ways: list[Callable[[], Awaitable[Fitted]]] = [
                lambda: engine.fit(README, options),
                lambda: engine.fit(README, options, session="s"),
                lambda: asyncio.to_thread(fit_request, README, options, calibration=calibration),
            ]
            for fitted_by in ways:
                try:
                    sent_bodies.append((await fitted_by()).body)
                except (BudgetExceededError, ContextOptimizationError):
                    sent_bodies.append(None)
        return sent_bodies

    with proxied() as (proxy, upstream):
        for budget in BUDGETS:
            learnt = proxy.service.engine.calibration.dump()
            sent_body = in_proxy(proxy, upstream, budget, f"s{budget}")
            assert asyncio.run(in_library(budget, learnt)) == [sent_body] * 3, budget
            proxy.settled()


def test_an_error_tells_the_clients_tools_from_ours() -> None:
    own = count(read(README)).parts.tools
    with pytest.raises(BudgetExceededError) as failure:
        fit_request(README, FitOptions(limit=1_080, cites=True, opens=True))
    assert f"its 4 tools have {own:,}" in str(failure.value)


SYSTEM = "Be brief. " * 300
OUTSIDE: dict[str, dict[str, Any]] = {
    "openai-responses": {"instructions": SYSTEM, "input": "Why?"},
    "anthropic": {"system": SYSTEM, "messages": [{"role": "user", "content": "Why?"}]},
    "gemini": {
        "systemInstruction": {"parts": [{"text": SYSTEM}]},
        "contents": [{"role": "user", "parts": [{"text": "Why?"}]}],
    },
}


@pytest.mark.parametrize("opens", [False, True])
@pytest.mark.parametrize("dialect", OUTSIDE)
def test_an_error_names_the_system_text_and_no_tools_where_there_are_none(
    dialect: str, opens: bool
) -> None:
    """Regression: it reported `its 0 tools have 0`, although ours was most of the limit, and named
    one short message.
    """
    body = {"model": MODELS[dialect], **OUTSIDE[dialect]}
    options = FitOptions(dialect=dialect, model=MODELS[dialect], limit=300, opens=opens)
    with pytest.raises(BudgetExceededError) as failure:
        fit_request(body, options)
    least = failure.value.planned
    assert least is not None
    named = re.search(r"system \(([\d,]+) tokens\), message 0", failure.value.what)
    assert named
    assert 400 < int(named[1].replace(",", "")) < least
    assert "tools" not in str(failure.value)
    assert "shorten the system text" in failure.value.fix
    assert "give up anchors" not in failure.value.fix, "that would not be enough"
    assert f"Raise the limit to {least:,} or more" in failure.value.fix
    assert fit_request(body, msgspec.structs.replace(options, limit=least)).tokens <= least
    with pytest.raises(BudgetExceededError):
        fit_request(body, msgspec.structs.replace(options, limit=least - 1))


def test_history_is_folded_early_only_where_a_limit_was_given() -> None:
    """An agent may shorten its history itself; a fold before that writes the cache anew."""
    talk = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "so it was " * 60}
            for n in range(61)]  # fmt: skip
    first, second = ({"model": "gpt-4o", "messages": talk[:n]} for n in (59, 61))
    most = round(count(second).tokens / 0.95)
    options = FitOptions(dialect="openai-chat", model="gpt-4o", limit=most)
    state = fit_request(json.dumps(first).encode(), options).state
    given = fit_request(json.dumps(second).encode(), options, state=state)
    assert [edit.action for edit in given.edits] == ["fold"]
    overrides = {"openai:gpt-4o": ModelLimits(context_window=most + 256)}  # with the reserve
    own = ModelContextRegistry(Settings(model_context_overrides=overrides))
    unlimited = msgspec.structs.replace(options, limit=None, output=0, registry=own)
    left = fit_request(json.dumps(second).encode(), unlimited, state=state)
    assert left.limit == most
    assert left.edits == ()


# --- monotonic -----------------------------------------------------------------------------------


def members(body: bytes, dialect: str) -> list[Any]:
    value = json.loads(body)[LISTS.get(dialect, "messages")]
    return value if isinstance(value, list) else [value]


def kept_verbatim(asked: list[Any], sent: list[Any]) -> Counter[str]:
    """Return the client's own messages in the sent request, with their number."""
    own = Counter(json.dumps(message, sort_keys=True) for message in asked)
    return own & Counter(json.dumps(message, sort_keys=True) for message in sent)


def tokens_kept(messages: Counter[str]) -> int:
    return sum(text_tokens(message) * times for message, times in messages.items())


Case = tuple[str, bytes, FitOptions, list[int]]


@st.composite
def budgeted(draw: st.DrawFn) -> Case:
    dialect = draw(st.sampled_from(DIALECTS))
    body = json.dumps(WRITERS[dialect](draw(long_scripts()))).encode()
    total = count(read(body, dialect), model=MODELS[dialect]).tokens
    options = FitOptions(
        dialect=dialect,
        model=MODELS[dialect],
        rules=CitingRules(
            threshold=draw(st.sampled_from([50, 1_000])),
            # With `auto` more room may keep a fresh result whole, and fold old messages for it.
            policy=draw(st.sampled_from(["never", "always"])),
        ),
        cites=draw(st.booleans()),
        opens=draw(st.booleans()),
        reports_usage=True,
    )
    budgets = st.integers(max(1, total // 6), total + 500)
    return dialect, body, options, sorted(draw(st.lists(budgets, min_size=2, max_size=5)))


def check_monotonic(case: Case) -> None:
    dialect, body, options, budgets = case
    asked = members(body, dialect)
    smaller: Counter[str] | None = None
    for budget in budgets:
        try:
            fitted = fit_request(body, msgspec.structs.replace(options, limit=budget))
        except HoldfastError:
            assert smaller is None, "a smaller budget was enough"
            continue
        assert fitted.tokens <= budget
        kept = kept_verbatim(asked, members(fitted.body, dialect))
        if smaller is not None:
            assert kept >= smaller
            assert tokens_kept(kept) >= tokens_kept(smaller)
        smaller = kept


@settings(max_examples=60)
@given(budgeted())
def test_a_larger_budget_keeps_all_that_a_smaller_one_kept(case: Case) -> None:
    check_monotonic(case)


@pytest.mark.campaign
@settings(max_examples=10_000)
@given(budgeted())
def test_so_do_ten_thousand(case: Case) -> None:
    check_monotonic(case)
