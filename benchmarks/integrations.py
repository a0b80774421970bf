"""Adapters: what each adds to a call at 1,000 messages, beside what the framework has for the same.

Each hook is called as its framework calls it, with the framework's own messages; one exchange is
added before every call, as in an agent's loop. It is CPU time of the process: the threads that
write turns down count too, other programs of the machine do not. Nothing has to be shortened, here
or there: it is what keeping watch costs. The second table is about the other case, in tokens.
"""

from __future__ import annotations

import asyncio
import os
import time
import warnings
from importlib import import_module

from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from benchmarks.frameworks import Framework, Step
from holdfast import Holdfast
from holdfast.tokens import count

MESSAGES = 1_000
CALLS = 40
ROUNDS = 3
GOAL_MS = 3.0
LONG_ROUNDS = 24
LIMIT = 16_000
FRAMEWORKS = ("langchain", "pydantic_ai", "openai_agents", "google_adk", "llama_index", "litellm")


def result(number: int, lines: int) -> str:
    """What a tool gives."""
    return "\n".join(
        f"{n:05} INFO job {number} worker {n % 13} took {n * 31}" for n in range(lines)
    )


def run(console: Console) -> None:
    """Print the tables."""
    warnings.simplefilter("ignore")  # frameworks warn of their own parts
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network when imported
    times = Table(title=f"CPU time added to a call at {MESSAGES:,} messages, in milliseconds")
    for column in ("framework", "its own", "own adds", "ours adds", "beyond", f"≤ {GOAL_MS:.0f}"):
        times.add_column(column, justify="right" if "adds" in column else "left")
    sizes = Table(title=f"Tokens of a request with {LONG_ROUNDS} long results, limit {LIMIT:,}")
    for column in ("framework", "before", "after"):
        sizes.add_column(column, justify="left" if column == "framework" else "right")
    for name in FRAMEWORKS:
        framework: Framework = import_module(f"benchmarks.frameworks.{name}").framework()
        own = min(asyncio.run(_own(framework)) for _ in range(ROUNDS))
        ours = min(asyncio.run(_ours(framework)) for _ in range(ROUNDS))
        ratios.note(f"integrations: {framework.name}, {framework.own_name}", own, ours)
        beyond = ours - own
        held = "yes" if beyond <= GOAL_MS else "no"
        figures = (f"{own:.2f}", f"{ours:.2f}", f"{beyond:.2f}")
        times.add_row(framework.name, framework.own_name, *figures, held)
        before, after = asyncio.run(_tokens(framework))
        sizes.add_row(framework.name, f"{before:,}", f"{after:,}")
    console.print(times)
    console.print(sizes)


async def _own(framework: Framework) -> float:
    return await _added(framework, framework.own)


async def _ours(framework: Framework) -> float:
    async with Holdfast.open("memory:") as engine:
        return await _added(framework, framework.ours(engine, None))


async def _added(framework: Framework, step: Step) -> float:
    """Milliseconds of a call, one exchange after the other."""
    short = result(0, 3)
    history = [m for n in range(MESSAGES // 4) for m in framework.turn(n, short)]
    took = 0.0
    for n in range(CALLS + 1):
        question, *rest = framework.turn(MESSAGES + n, short)
        history.append(question)
        messages = framework.copied(history)
        started = time.process_time()
        sent = await step(messages)
        if n:  # the first call reads all of it
            took += time.process_time() - started
        if len(sent) != len(history):
            raise RuntimeError("nothing had to be shortened")
        history += rest
    return took * 1000 / CALLS


async def _tokens(framework: Framework) -> tuple[int, int]:
    history = [m for n in range(LONG_ROUNDS) for m in framework.turn(n, result(n, 300))]
    history += framework.turn(LONG_ROUNDS, "")[:1]  # the question that is asked now
    async with Holdfast.open("memory:") as engine:
        sent = await framework.ours(engine, LIMIT)(framework.copied(history))
    before, after = (count(framework.written(side)).tokens for side in (history, sent))
    return before, after
