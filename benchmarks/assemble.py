"""Assembled turns: what one takes with a long session behind it, and where the time goes.

A session of many turns and facts in SQLite; each question is assembled within 3,000 tokens. Times
are of the processor and in one process, with the same questions at every size.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from holdfast.assemble.packs import PACKS
from holdfast.engine import Holdfast
from holdfast.settings import Settings

TARGET_MS = 15
SIZES = ((1_000, 1_000), (10_000, 10_000))
"""Turns and facts."""
QUESTIONS = 60
_TOPICS = "harbour tide anchor crate pilot cargo dock buoy rope crane ferry signal".split()
_PEOPLE = "Ann Ben Cleo Dov Eva Finn".split()
_BATCH = 500


def run(console: Console) -> None:
    """Print the table."""
    table = Table(title=f"A turn of 3,000 tokens, in milliseconds (p90 at most {TARGET_MS})")
    for column in ("turns", "facts", "p50", "p90", "recall p90", "facts p90", "tokens p50", "over"):
        table.add_column(column, justify="right")
    for turns, facts in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            table.add_row(*asyncio.run(_measured(turns, facts, Path(folder))))
    console.print(table)


class _Spent(NamedTuple):
    assemble: list[float]
    recall: list[float]
    facts: list[float]
    tokens: list[int]


async def _measured(turns: int, facts: int, folder: Path) -> list[str]:
    settings = Settings(store_url=f"sqlite:///{folder / 'bench.db'}", background_jobs=False)
    async with Holdfast.open(settings=settings) as engine:
        await _fill(engine, turns, facts)
        spent = _Spent([], [], [], [])
        for n in range(QUESTIONS):
            question = _question(n)
            pack = PACKS["context_lookup"]
            recalling = engine.recall(question, session="s", token_budget=1_500)
            spent.recall.append(await _timed(lambda work=recalling: work))
            finding = engine.facts.top(question, session="s", k=pack.most_facts)
            spent.facts.append(await _timed(lambda work=finding: work))
            before = time.process_time()
            context = await engine.assemble(session="s", user_turn=question)
            spent.assemble.append((time.process_time() - before) * 1_000)
            spent.tokens.append(context.budget.used)
    over = sum(used > 3_000 for used in spent.tokens)
    return [
        f"{turns:,}",
        f"{facts:,}",
        f"{statistics.median(spent.assemble):.1f}",
        *(f"{_p90(values):.1f}" for values in (spent.assemble, spent.recall, spent.facts)),
        f"{statistics.median(spent.tokens):,.0f}",
        str(over),
    ]


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    before = time.process_time()
    await work()
    return (time.process_time() - before) * 1_000


def _p90(values: list[float]) -> float:
    """Without the first tenth of the questions, in which what is kept in memory is read."""
    settled = values[len(values) // 10 :]
    return statistics.quantiles(settled, n=10)[-1]


async def _fill(engine: Holdfast, turns: int, facts: int) -> None:
    chance = random.Random(7)
    for start in range(0, turns, _BATCH):
        await engine.remember("s", [_turn(n, chance) for n in range(start, start + _BATCH)])
    for n in range(facts):
        person, topic = chance.choice(_PEOPLE), chance.choice(_TOPICS)
        await engine.facts.add(
            f"{person} moved {topic} {n} to place {chance.randrange(900)}.",
            source_ref=f"m{n}",
            session="s",
        )


def _turn(n: int, chance: random.Random) -> dict[str, object]:
    words = " ".join(chance.choice(_TOPICS) for _ in range(chance.randrange(8, 60)))
    role = ("user", "assistant")[n % 2]
    text = f"{chance.choice(_PEOPLE)} saw number {n}: {words}."
    return {"role": role, "content": text, "at": 1_700_000_000.0 + n * 600}


def _question(n: int) -> str:
    return f"What did {_PEOPLE[n % 6]} say about the {_TOPICS[n % 12]} and number {n * 37}?"
