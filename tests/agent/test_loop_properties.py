"""Whatever tools, models, targets and cancels do: inside each window, and an answer or an error."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.agent import Agent, Outcome
from holdfast.errors import HoldfastError
from holdfast.guard import GuardMessage, RequestMetrics
from tests.agent.scripted import agent_of, call, calls, is_valid, limit_of, reports, says
from tests.provider import chat_rules
from tests.provider.tokens import least_tokens, text_tokens
from tests.surfaces.proxy.faults import status
from tests.surfaces.proxy.gatekeeper import Got
from tests.surfaces.proxy.upstream import Fault, Upstream
from tests.wire.responses.streams import Script

MOST_TURNS = 12
DEARER = 1.7
"""Most tokens that a target counts for one of OpenAI's; a second count would be beyond it."""


@dataclass(frozen=True)
class Play:
    """What happens in one run."""

    window: int
    turns: tuple[tuple[int, ...], ...]
    """Lines that the tools of each turn bring; a tool that shall bring less than none fails."""
    failing: frozenset[int]
    """Requests that the first target fails on, by their number."""
    failing_second: frozenset[int]
    cancelled_at: int | None
    """The tool that the run is cancelled in."""
    budget: int | None
    ends_by_report: bool


LINES = st.one_of(st.integers(-1, 60), st.integers(60, 1_500))
PLAYS = st.builds(
    Play,
    window=st.sampled_from([4_000, 6_000, 12_000]),
    turns=st.lists(st.lists(LINES, min_size=1, max_size=6).map(tuple), max_size=MOST_TURNS - 2).map(
        tuple
    ),
    failing=st.frozensets(st.integers(0, MOST_TURNS), max_size=4),
    failing_second=st.frozensets(st.integers(0, MOST_TURNS), max_size=2),
    cancelled_at=st.none() | st.integers(0, 10),
    budget=st.none() | st.integers(5_000, 60_000),
    ends_by_report=st.booleans(),
)


class Stage:
    """Tools and models of a play, and what happened."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.counts: list[tuple[int, list[str]]] = []
        self.rebased_at = 0
        """Messages that are counted as old."""
        self.started = asyncio.Event()
        self._turns = iter(play.turns)
        self._tools = 0
        self._seeds = iter(range(10**6))

    async def fetch(self, lines: int, seed: int) -> str:
        """Fetches lines."""
        number, self._tools = self._tools, self._tools + 1
        if number == self.play.cancelled_at:
            self.started.set()
            await asyncio.Event().wait()
        if lines < 0:
            raise RuntimeError(f"no disk {seed}")
        chance = random.Random(seed)
        values = (f"line {n}: value {chance.randrange(10**6)}" for n in range(lines))
        return "\n".join([f"result {seed}:", *values])

    def speak(self, got: Got) -> Script:
        """Return the script's next turn; a model can only call tools that it is offered."""
        sizes = next(self._turns, None) if "fetch" in got.tools else None
        if sizes is None:
            return reports("The end.") if self.play.ends_by_report else says("The end.")
        return calls(*(call("fetch", lines=size, seed=next(self._seeds)) for size in sizes))

    def hear(self, message: GuardMessage, agent: Agent) -> None:
        """Record the tokens counted as new when a request is sent, and their texts."""
        if isinstance(message, RequestMetrics) and message.new_tokens:
            later = agent.messages[self.rebased_at :]
            since = list(takewhile(lambda m: m["role"] != "assistant", reversed(later)))
            self.counts.append((message.new_tokens, [m["content"] for m in since]))

    def watch(self, agent: Agent) -> None:
        """Note where a conversation was counted anew, by a fold or after a cancel."""
        rebase = agent.guard.rebase

        def watched(tokens: int) -> None:
            self.rebased_at = len(agent.messages)
            rebase(tokens)

        agent.guard.rebase = watched  # type: ignore[method-assign]

    def model(self, failing: frozenset[int]) -> Callable[[Got], Script | Fault]:
        numbers: Iterator[int] = iter(range(10**6))
        return lambda got: status(500) if next(numbers) in failing else self.speak(got)


async def played(stage: Stage, agent: Agent) -> Outcome | None:
    """Return the outcome of a run that the script cancels and resumes; None for an error."""
    async with agent:
        stage.watch(agent)
        running = asyncio.create_task(agent.run("Fetch all there is."))
        waiting = asyncio.create_task(stage.started.wait())
        await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
        try:
            if waiting.done() and not running.done():
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
                assert is_valid(agent.messages)
                return await agent.resume()
            return await running
        except HoldfastError:
            return None
        finally:
            waiting.cancel()


def check(play: Play) -> None:
    with Upstream() as first, Upstream() as second:

        async def work() -> tuple[Outcome | None, Agent, Stage]:
            stage = Stage(play)
            first.always = stage.model(play.failing)
            second.always = stage.model(play.failing_second)
            agent: Agent = agent_of(
                first,
                second,
                window=play.window,
                tools=[stage.fetch],
                budget=play.budget,
                max_turns=MOST_TURNS,
                listener=lambda message: stage.hear(message, agent),
            )
            return await played(stage, agent), agent, stage

        outcome, agent, stage = asyncio.run(work())
        for upstream in (first, second):
            assert upstream.refused == []
            for got in upstream.requests:
                assert least_tokens(got.value, got.dialect, got.model) <= limit_of(play.window)
    assert outcome is None or outcome.text
    assert is_valid(agent.messages)
    bare = [{k: v for k, v in m.items() if k != "holdfast"} for m in agent.messages]
    assert list(chat_rules.violations({"messages": bare}, "gpt-5")) == []
    _assert_counted_once(agent, stage)
    used = agent.budget.budget
    if play.budget is not None:
        assert used.input.used + used.output.used <= play.budget


def _assert_counted_once(agent: Agent, stage: Stage) -> None:
    """Check that the guard counts exactly the messages since the last turn as new.

    The guard counts for the more expensive of two targets, and a few tokens per message.
    """
    results = [m for m in agent.messages if m["role"] == "tool"]
    assert len({m["tool_call_id"] for m in results}) == len(results)
    for counted, texts in stage.counts:
        least = sum(map(text_tokens, texts))
        assert least <= counted <= DEARER * least + 10 * len(texts)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PLAYS)
def test_every_run_fits_and_ends(play: Play) -> None:
    check(play)


@pytest.mark.campaign
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PLAYS)
def test_very_many_runs_fit_and_end(play: Play) -> None:
    check(play)
