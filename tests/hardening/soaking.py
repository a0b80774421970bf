"""One of the processes of a soak: `python -m tests.hardening.soaking URL NUMBER SEED SECONDS`.

It remembers, assembles, supersedes and forgets in its own sessions, in the shared scope. It tracks
its acknowledged operations, and checks every result against them. The last line of its output has
the results, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import OrderedDict

import psutil  # type: ignore[import-untyped]

from holdfast import Holdfast
from holdfast.store import Scope

SCOPE = Scope("ann", "soak")
MOST_TURNS = 150
"""Turns that a process keeps in its session; older ones are forgotten, so that memory can be flat.
"""
BUDGET = 1_000
WORDS = "harbour crate anchor pilot ledger signal timber lantern compass rigging".split()


class Soak:
    """The state that one process expects."""

    def __init__(self, engine: Holdfast, number: int, chance: random.Random) -> None:
        self.engine = engine
        self.session = f"s{number}"
        self.chance = chance
        self.turns: OrderedDict[str, str] = OrderedDict()
        """Marks of turns that are remembered, by their ids."""
        self.forgotten: list[str] = []
        self.berth = ""
        """The text of the current fact."""
        self.wrong: list[str] = []
        self.steps = 0

    def mark(self) -> str:
        return f"mark{self.chance.getrandbits(60):x}"

    async def step(self) -> None:
        """One turn, and now and then the rest."""
        mark = self.mark()
        words = " ".join(self.chance.choices(WORDS, k=12))
        [id_] = await self.engine.remember(
            self.session, [{"role": "user", "content": f"The cargo {mark} came with {words}."}]
        )
        self.turns[id_] = mark
        asked = self.chance.choice(list(self.turns.values()))
        turn = await self.engine.assemble(
            session=self.session,
            user_turn=f"What came with the cargo {asked}?",
            token_budget=BUDGET,
        )
        shown = json.dumps(turn.working_set)
        if turn.budget.used > BUDGET:
            self.wrong.append(f"{turn.budget.used} tokens of {BUDGET}")
        if shown.count(asked) < 2:
            self.wrong.append(f"{asked} was remembered and is not shown")
        self.wrong += [f"{gone} is shown" for gone in self.forgotten[-20:] if gone in shown]
        if self.steps % 5 == 0:
            await self.restate()
        if len(self.turns) > MOST_TURNS:
            await self.forget()
        self.steps += 1

    async def restate(self) -> None:
        """A newer statement: the older one is never current again."""
        before, self.berth = self.berth, self.mark()
        await self.engine.facts.add(
            f"The berth of {self.session} is {self.berth}.",
            source_ref="soak",
            subject=f"berth of {self.session}",
            said_by="ann",
            session=self.session,
        )
        best = await self.engine.facts.top(f"berth of {self.session}", session=self.session)
        texts = " ".join(ranked.fact.text for ranked in best)
        if self.berth not in texts or (before and before in texts):
            self.wrong.append("a superseded fact is current, or the current one is not there")

    async def forget(self) -> None:
        """The older half."""
        ids = list(self.turns)[: MOST_TURNS // 2]
        await self.engine.forget_turns(ids=ids)
        self.forgotten += [self.turns.pop(id_) for id_ in ids]

    async def judge(self) -> None:
        """Whether all is there that should be, and nothing else."""
        there = await self.engine.forget_turns(session=self.session, preview=True)
        if {turn.id for turn in there} != set(self.turns):
            self.wrong.append(f"{len(there)} turns are there of {len(self.turns)}")


async def soak(url: str, number: int, seed: int, seconds: float) -> dict[str, object]:
    """Go on until the time is up; at least some steps."""
    process = psutil.Process()
    begun = time.monotonic()
    early = 0.0
    async with Holdfast.open(url, scope=SCOPE) as engine:
        run = Soak(engine, number, random.Random(f"{seed}:{number}"))
        while run.steps < 20 or time.monotonic() - begun < seconds:
            await run.step()
            if not early and time.monotonic() - begun >= seconds / 3:
                early = process.memory_info().rss / 1e6
        await run.judge()
        late = process.memory_info().rss / 1e6
        gone = run.forgotten[-500:]
        return {"steps": run.steps, "wrong": run.wrong, "early": early, "late": late, "gone": gone}


if __name__ == "__main__":
    url, number, seed, seconds = sys.argv[1:]
    sys.stdout.write(
        json.dumps(asyncio.run(soak(url, int(number), int(seed), float(seconds)))) + "\n"
    )
