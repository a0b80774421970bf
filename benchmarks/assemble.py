"""Assembled turns: what one takes with a long session behind it, and what it holds.

A session of many turns and facts in SQLite; each question is assembled within 3,000 tokens. Times
are of the processor and in one process, with the same questions at every size. Then the questions
of LoCoMo: the share of the evidence in the turn, and of the facts that are about the speaker whom
the question names. The rules for names were chosen by the first two conversations.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.recall import stands_in
from benchmarks.recall_data import DATA, Asked, Talk, locomo
from holdfast.assemble import AssembledContext
from holdfast.assemble.intents import SECTION_BUDGETS
from holdfast.engine import Holdfast
from holdfast.facts import Fact
from holdfast.facts.dates import insert_dates
from holdfast.search.words import words_of
from holdfast.settings import Settings

TARGET_MS = 15
SIZES = ((1_000, 1_000), (10_000, 10_000))
"""Turns and facts."""
QUESTIONS = 60
_TOPICS = "harbour tide anchor crate pilot cargo dock buoy rope crane ferry signal".split()
_PEOPLE = "Ann Ben Cleo Dov Eva Finn".split()
_BATCH = 500
BUDGETS = (3_000, 1_500)
HALVES = {
    "chosen by": ("conv-26", "conv-30"),
    "others": ("conv-41", "conv-42", "conv-43"),
}
"""Conversations of LoCoMo."""


def run(console: Console) -> None:
    """Print the table."""
    table = Table(title=f"A turn of 3,000 tokens, in milliseconds (p90 at most {TARGET_MS})")
    for column in ("turns", "facts", "p50", "p90", "recall p90", "facts p90", "tokens p50", "over"):
        table.add_column(column, justify="right")
    for turns, facts in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            table.add_row(*asyncio.run(_measured(turns, facts, Path(folder))))
    console.print(table)
    if (DATA / "locomo" / "conversations.jsonl").exists():
        console.print(_locomo_table())
    else:
        console.print("assemble: LoCoMo is not on this machine; set HOLDFAST_DATA")


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
            pack = SECTION_BUDGETS["context_lookup"]
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


# --- LoCoMo --------------------------------------------------------------------------------------


class _Held(NamedTuple):
    """What the turn for one question holds."""

    evidence: list[bool]
    """Of each turn that answers the question, whether it stands there."""
    about: list[bool]
    """Of each fact, whether it is about the speaker named; empty unless exactly one is named."""
    tokens: int


def _locomo_table() -> Table:
    table = Table(title="LoCoMo: what assembled turns hold")
    for column in ("conversations", "budget", "questions", "evidence, mean / all", "tokens"):
        table.add_column(column, justify="right")
    for column in ("name one speaker", "facts a turn", "about the speaker", "of the first 3"):
        table.add_column(column, justify="right")
    talks = {talk.name: talk for talk in locomo()}
    for half, names in HALVES.items():
        for budget in BUDGETS:
            held = [
                each for name in names for each in asyncio.run(_held_by_turns(talks[name], budget))
            ]
            table.add_row(half, f"{budget:,}", *_cells(held))
    return table


def _cells(held: list[_Held]) -> list[str]:
    mean = statistics.mean(sum(each.evidence) / len(each.evidence) for each in held)
    whole = statistics.mean(all(each.evidence) for each in held)
    named = [each.about for each in held if each.about]
    return [
        str(len(held)),
        f"{mean:.3f} / {whole:.3f}",
        f"{statistics.mean(each.tokens for each in held):,.0f}",
        str(len(named)),
        f"{statistics.mean(map(len, named)):.1f}",
        f"{statistics.mean(flag for about in named for flag in about):.3f}",
        f"{statistics.mean(flag for about in named for flag in about[:3]):.3f}",
    ]


async def _held_by_turns(talk: Talk, budget: int) -> list[_Held]:
    settings = Settings(store_url="memory:", background_jobs=False)
    async with Holdfast.open(settings=settings) as engine:
        await engine.remember("s", talk.turns)
        facts = {fact.id: fact for fact in await engine.facts.latest("s", limit=1_000)}
        turns = {turn["id"]: turn for turn in talk.turns}
        held = []
        for asked in talk.asked:
            if any(id_ in turns for id_ in asked.evidence):
                context = await engine.assemble(
                    session="s", user_turn=asked.text, token_budget=budget
                )
                held.append(_held(asked, context, turns, facts))
        return held


def _held(
    asked: Asked,
    context: AssembledContext,
    turns: dict[str, dict[str, object]],
    facts: dict[str, Fact],
) -> _Held:
    text = "\n".join(message["content"] for message in context.messages[:-1])
    speakers = {str(turn["name"]) for turn in turns.values()}
    named = [name for name in speakers if name in _names(asked.text)]
    shown = [facts[source.id] for source in context.sources if source.part == "fact"]
    return _Held(
        [_stands(turns[id_], text) for id_ in asked.evidence if id_ in turns],
        [named[0] in {fact.said_by, *_names(fact.text)} for fact in shown if len(named) == 1],
        context.budget.used,
    )


def _names(text: str) -> set[str]:
    return {word.removesuffix("'s") for word in words_of(text)}


def _stands(turn: dict[str, object], text: str) -> bool:
    """Return whether a turn stands in a text as it was said, or with its dates."""
    content, at = str(turn["content"]), turn["at"]
    assert isinstance(at, float)
    year = datetime.now(UTC).year
    return stands_in(content, text) or stands_in(insert_dates(content, at, year), text)
