"""An agent killed with SIGKILL at any moment resumes in another process."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.tool_calls import INTERRUPTED
from tests.agent.mortal import ANSWER, TURNS, WINDOW
from tests.agent.scripted import call, calls, is_valid, limit_of, says
from tests.provider import chat_rules
from tests.surfaces.proxy.upstream import PATIENCE, Upstream
from tests.wire.responses.streams import Script

ROOT = Path(__file__).parents[2]
MOMENT_SECONDS = 0.05
"""Maximum delay of the kill after the awaited request, so that it can hit any part of a step."""


def turns_of(got: Any) -> int:
    """Turns that a request shows the model."""
    return sum(message["role"] == "assistant" for message in got.value["messages"])


def model(got: Any) -> Script:
    """Read two parts in each turn, then answer. It decides by its messages only."""
    number = turns_of(got)
    if number >= TURNS:
        return says(ANSWER)
    return calls(*(call("read_part", number=n) for n in (2 * number, 2 * number + 1)))


class Life:
    """One process of the agent."""

    def __init__(self, upstream: Upstream, folder: Path) -> None:
        self.upstream = upstream
        self._before = len(upstream.requests)
        store, log = f"sqlite:///{folder}/store.db", f"{folder}/ran.log"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.agent.mortal", upstream.url, store, log],
            cwd=ROOT,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
            stdout=subprocess.PIPE,
            text=True,
        )

    def die(self, requests: int, seconds: float) -> None:
        """Kill it shortly after a number of its requests, unless it has ended by then."""
        deadline = time.monotonic() + 3 * PATIENCE
        while len(self.upstream.requests) < self._before + requests:
            if self._process.poll() is not None:
                break
            assert time.monotonic() < deadline, "the agent asks nothing"
            time.sleep(0.001)
        time.sleep(seconds)  # the moment of death, not a wait for work
        self._process.kill()
        self._process.communicate()

    def outcome(self) -> dict[str, Any]:
        """Return its outcome, if it has ended by itself."""
        said, _ = self._process.communicate(timeout=3 * PATIENCE)
        assert self._process.returncode == 0
        value: dict[str, Any] = json.loads(said.splitlines()[-1])
        return value


def besieged(folder: Path, chance: random.Random, kills: int) -> None:
    """Kill an agent again and again, let the last one end, and look at all that is left."""
    with Upstream() as upstream:
        upstream.always = model
        for _ in range(kills):
            life = Life(upstream, folder)
            life.die(chance.randint(1, 3), chance.random() * MOMENT_SECONDS)
        outcome = Life(upstream, folder).outcome()
        again = Life(upstream, folder).outcome()
        assert upstream.refused == []
        assert all(got.tokens <= limit_of(WINDOW) for got in upstream.requests)
    assert again == outcome  # a finished run repeats its outcome without a request
    messages = outcome["messages"]
    assert (outcome["text"], outcome["ending"]) == (ANSWER, "answered")
    assert is_valid(messages)
    bare = [{k: v for k, v in m.items() if k != "holdfast"} for m in messages]
    assert list(chat_rules.violations({"messages": bare}, "gpt-5")) == []
    _assert_each_output_once(messages, (folder / "ran.log").read_text().splitlines())
    # Each turn of the journal was paid for once, however often it was asked for before it came.
    bills = {turns_of(got): upstream.ledger.bill(got) for got in upstream.requests}
    assert outcome["turns"] == TURNS + 1 == len(bills)
    assert outcome["input"] == sum(bills.values())


def _assert_each_output_once(messages: list[dict[str, Any]], ran: list[str]) -> None:
    results = [message["content"] for message in messages if message["role"] == "tool"]
    outputs = [text.split(" line ")[0] for text in results if text != INTERRUPTED]
    assert len(results) == 2 * TURNS
    assert len(set(outputs)) == len(outputs)
    assert len(set(ran)) == len(ran)  # calls that may have had an effect are not repeated
    assert set(outputs) <= set(ran)


@pytest.mark.slow
def test_killed_and_resumed_it_ends_in_the_same_answer(tmp_path: Path) -> None:
    besieged(tmp_path, random.Random(16), kills=3)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
def test_killed_at_any_moment_it_ends_in_the_same_answer(tmp_path: Path, seed: int) -> None:
    besieged(tmp_path, random.Random(seed), kills=5)
