"""The bill of random sessions: dialects, usage shapes, failures, openings, folds and cache marks.

The formula is written here once more, in decimals and with the rates as numbers: see
docs/reference/bill.md.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.cite import CitingRules
from holdfast.engine import ExpansionUsage, Holdfast
from holdfast.fitting import FitOptions, Fitted
from holdfast.store.opening import open_memory
from holdfast.store.protocol import Store
from holdfast.store.records import TurnUsage, UsageTotal, summed
from tests.engine.test_accounting import anthropic, gemini, openai, responses
from tests.fitting.test_citing import chat, in_dialect, log

MARK = {"type": "ephemeral"}
MODELS = {
    "openai-chat": "gpt-5",
    "openai-responses": "gpt-5",
    "anthropic": "claude-opus-4-5",
    "gemini": "gemini-2.5-flash",
}
RATES = {  # input, cache read, cache write for five minutes, for an hour, output
    "gpt-5": ("1.25", "0.125", "1.25", "2.5", "10"),
    "claude-opus-4-5": ("5", "0.5", "6.25", "10", "25"),
    "gemini-2.5-flash": ("0.3", "0.03", "0.3", "0.6", "2.5"),
}
BILLIONTH = Decimal("1e-9")


def dollars(model: str, *tokens: int) -> Decimal:
    """Tokens by class (all input, read, written, of these for an hour, output) at list price."""
    total, read, written, hour, output = tokens
    counts = (total - read - written, read, written - hour, hour, output)
    rates = map(Decimal, RATES[model])
    return sum((n * rate for n, rate in zip(counts, rates, strict=True)), Decimal(0)) / 1_000_000


@dataclass(frozen=True)
class Step:
    """A request and how it is answered."""

    lines: int
    """Of the tool result that is new in it."""
    status: int
    reported: float
    """Tokens that the provider reports for each that we count; 0: it reports nothing."""
    cached: float
    written: float
    hour: float
    """Shares of the input, of the rest, and of the written tokens."""
    rounds: int
    """Upstream calls in which something was opened."""
    folds: bool
    seconds: float
    """Since the step before."""


shares = st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0])
steps = st.lists(
    st.builds(
        Step,
        lines=st.sampled_from([3, 60, 200]),
        status=st.sampled_from([200, 200, 200, 200, 429, 499, 502]),
        reported=st.sampled_from([0.0, 0.8, 1.0, 1.3]),
        cached=shares,
        written=shares,
        hour=shares,
        rounds=st.sampled_from([0, 0, 0, 1, 2]),
        folds=st.booleans(),
        seconds=st.sampled_from([2.0, 200.0, 400.0, 4_000.0]),
    ),
    min_size=1,
    max_size=5,
)


def body(dialect: str, results: list[str], *, marked: bool) -> bytes:
    request = json.loads(in_dialect(chat(*results) | {"model": MODELS[dialect]}, dialect))
    if dialect == "anthropic" and marked:
        content = request["messages"][-1]["content"]
        content = [{"type": "text", "text": content}] if isinstance(content, str) else content
        content[-1]["cache_control"] = MARK
        request["messages"][-1]["content"] = content
    return json.dumps(request).encode()


def report(dialect: str, step: Step, counted: int) -> dict[str, Any]:
    """The usage of one call, in the provider's words."""
    tokens = round(counted * step.reported)
    if not tokens:
        return {}
    read = round(tokens * step.cached)
    if dialect != "anthropic":
        words = {"openai-chat": openai, "openai-responses": responses, "gemini": gemini}[dialect]
        return words(tokens, cached=read, output=tokens % 50)
    written = round((tokens - read) * step.written)
    hour = round(written * step.hour)
    return anthropic(tokens - read - written, read, written, hour, output=tokens % 50)


class Run:
    """One session with an engine; the clock is the steps' own."""

    def __init__(self, dialect: str, engine: Holdfast | None = None) -> None:
        self.now = 1_800_000_000.0
        self.dialect = dialect
        self.store = open_memory()
        calibration = engine.calibration if engine is not None else None
        rules = CitingRules(policy="always")
        self.engine = Holdfast(
            self.store,
            options=FitOptions(
                dialect=dialect, model=MODELS[dialect], rules=rules, cites=True, opens=True
            ),
            calibration=calibration,
            clock=lambda: self.now,
        )
        self.session = self.engine.session("s")

    async def fit(self, results: list[str], step: Step, *, marked: bool) -> Fitted:
        self.now += step.seconds
        limit = 2_500 if step.folds else None
        return await self.session.fit(body(self.dialect, results, marked=marked), limit=limit)

    async def observe(self, fitted: Fitted, step: Step) -> TurnUsage:
        calls = step.rounds + (step.status == 200)
        reports = [report(self.dialect, step, fitted.count.plain + 40 * n) for n in range(calls)]
        opened = ExpansionUsage(step.rounds, 40 * step.rounds, step.rounds)
        turn = await self.engine.observe(
            self.session, fitted, reports, status=step.status, expanded=opened
        )
        return turn.usage

    async def whole(self, story: list[Step], *, marked: bool) -> list[TurnUsage]:
        results: list[str] = []
        turns = []
        for n, step in enumerate(story):
            results.append(log(step.lines, seed=n))
            fitted = await self.fit(results, step, marked=marked)
            turns.append(await self.observe(fitted, step))
        return turns


async def teach(run: Run) -> None:
    """Let counts of this model be corrected by half, with tools and without."""
    for results in ([], [log(60)]):
        counted = holdfast.count(
            body(run.dialect, results, marked=False), dialect=run.dialect, model=MODELS[run.dialect]
        )
        tools = msgspec.structs.replace(counted.parts, tools=1)
        without = msgspec.structs.replace(counted.parts, tools=0)
        for parts in (tools, without) * 8:
            seen = msgspec.structs.replace(counted, parts=parts)
            run.engine.calibration.observe(seen, counted.plain * 3 // 2)


def billed(usage: TurnUsage) -> TurnUsage:
    """Return all figures of a turn except the prediction, which depends on calibration."""
    return msgspec.structs.replace(usage, predicted=0)


async def total_of(store: Store, engine: Holdfast) -> UsageTotal:
    return summed("total", await store.usage(engine.scope))


def check(model: str, usage: TurnUsage) -> None:
    """Every figure of a turn follows from its tokens by class and the rates above."""
    written = usage.cache_written, usage.cache_written_hour
    cost = dollars(model, usage.input, usage.cached, *written, usage.output)
    classes = usage.untouched_cached, usage.untouched_written, usage.untouched_written_hour
    untouched = dollars(model, usage.untouched, *classes, usage.untouched_output)
    assert usage.cost == float(cost.quantize(BILLIONTH))
    assert usage.saved_cost == float((untouched - cost).quantize(BILLIONTH))
    assert usage.saved == usage.untouched - usage.input
    assert usage.failed == (usage.untouched == 0)
    if usage.saved and not usage.failed:
        assert usage.assumed


@pytest.mark.parametrize("dialect", sorted(MODELS))
@settings(max_examples=25, deadline=None)
@given(story=steps, marked=st.booleans())
def test_every_figure_follows_from_the_formula_and_a_second_run_has_the_same(
    dialect: str, story: list[Step], marked: bool
) -> None:
    async def work() -> None:
        first = Run(dialect)
        turns = await first.whole(story, marked=marked)
        for usage in turns:
            check(MODELS[dialect], usage)
        total = await total_of(first.store, first.engine)
        assert total.saved == sum(usage.saved for usage in turns)
        for name in ("cost", "saved_cost"):
            amounts = [Decimal(str(getattr(usage, name))) for usage in turns]
            assert getattr(total, name) == float(sum(amounts, Decimal(0)))
        if not any(step.folds for step in story):  # when to fold follows from calibrated counts
            again = Run(dialect, first.engine)  # with the calibration of the first
            await teach(again)
            repeated = await again.whole(story, marked=marked)
            assert list(map(billed, repeated)) == list(map(billed, turns))

    asyncio.run(work())


@pytest.mark.parametrize("dialect", sorted(MODELS))
@settings(max_examples=15, deadline=None)
@given(story=steps, marked=st.booleans(), order=st.randoms(use_true_random=False))
def test_answers_that_come_at_the_same_time_may_be_recorded_in_any_order(
    dialect: str, story: list[Step], marked: bool, order: Any
) -> None:
    async def total(shuffled: bool) -> UsageTotal:
        run = Run(dialect)
        await run.whole(story[:1], marked=marked)
        results = [log(story[0].lines)]
        fitted = []
        for n, step in enumerate(story[1:]):  # all are sent before one is answered
            request = await run.fit([*results, log(step.lines, seed=n + 1)], step, marked=marked)
            fitted.append((request, step))
        if shuffled:
            order.shuffle(fitted)
        for request, step in fitted:
            await run.observe(request, step)
        return await total_of(run.store, run.engine)

    assert asyncio.run(total(shuffled=False)) == asyncio.run(total(shuffled=True))
