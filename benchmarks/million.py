"""A million turns on PostgreSQL: in a thousand scopes beside a small store, and all in one scope.

A few thousand turns are remembered as users do it; their rows are then copied within the server
until there are a million, for remembering them one by one would take an hour. A scope of 1,000
turns is asked by turns with the same turns in a store that holds nothing else, so that a busy
machine slows both: times are of the clock, for the server's work counts too.

    python -m benchmarks million [TURNS]
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple
from unittest.mock import patch

import asyncpg  # type: ignore[import-untyped]
import numpy as np
from rich.console import Console
from rich.table import Table

from holdfast.cite import count as count_tokens
from holdfast.memory import ArrayCache
from holdfast.memory import memory as memory_module
from holdfast.memory.memory import Memory
from holdfast.models.embedding import open_embedder
from holdfast.models.protocol import Embedder
from holdfast.store import Scope, Store, open_store
from tests.store.postgres_server import Server, running_server

TURNS = 1_000_000
OF_SCOPE = 1_000
"""Turns of each of many scopes."""
COPIED = 5_000
"""Turns that are remembered, and of which the others are copies."""
ASKED = 60
_ASKED_OF_ALL = 12
_WORDS = 20_000
_BUDGET = 3_000

# A copy is a turn of its own: place, id and session are new, what was read in it is the same.
_COPY = """
INSERT INTO holdfast.remembered (
    workspace, username, id, session, number, role, name, at, tokens, print, maker, indexed,
    sha256, size, codec, data, words)
SELECT 'bench', 'user' || (n / $1), 'copy' || n, 'session ' || (n / 100), n, role, name,
    at + n, tokens, print, maker, indexed, sha256, size, codec, data, words
FROM generate_series($2::bigint, $3::bigint - 1) AS n
JOIN (SELECT row_number() OVER (ORDER BY place) - 1 AS copied, * FROM holdfast.remembered
      WHERE workspace = 'copied') AS turns ON copied = n % $4
ORDER BY n
"""
_NOTE = """
INSERT INTO holdfast.remembered_changes (workspace, username, added, removed)
SELECT workspace, username, count(*), 0 FROM holdfast.remembered WHERE workspace = 'bench'
GROUP BY workspace, username
"""
_INDEXES = """
SELECT indexname, indexdef FROM pg_indexes
WHERE schemaname = 'holdfast' AND tablename = 'remembered' AND indexname LIKE 'remembered\\_%'
AND indexname <> 'remembered_pkey'
"""


class Texts:
    """Made-up turns and questions: words as often as words are."""

    def __init__(self) -> None:
        chance = np.random.default_rng(14)
        ranks = np.minimum(chance.zipf(1.3, (COPIED, 25)), _WORDS) - 1
        self.turns = [" ".join(f"w{rank}" for rank in row) for row in ranks]
        self.questions = [
            " ".join(f"w{rank}" for rank in row[:8]) for row in ranks[:: COPIED // ASKED]
        ]


async def filled(
    url: str, texts: Texts, turns: int, of_scope: int, embedder: Embedder | None
) -> Store:
    """A store with so many turns, so many of them in each scope."""
    store = await open_store(url)
    memory = Memory(
        store, Scope(user="nobody", workspace="copied"), count=count_tokens, embedder=embedder
    )
    messages = [
        {"role": ("user", "assistant")[n % 2], "content": text, "at": 60.0 * n, "id": str(n)}
        for n, text in enumerate(texts.turns)
    ]
    for start in range(0, COPIED, 500):
        await memory.remember("copied", messages[start : start + 500])
    connection = await asyncpg.connect(url)
    try:
        indexes = await connection.fetch(_INDEXES)
        for name, _ in indexes:
            await connection.execute(f"DROP INDEX holdfast.{name}")
        await connection.execute("SET maintenance_work_mem = '256MB'")
        for start in range(0, turns, 50_000):
            stop = min(turns, start + 50_000)
            await connection.execute(_COPY, of_scope, start, stop, COPIED, timeout=3_600)
        await connection.execute(_NOTE)
        for _, definition in indexes:
            await connection.execute(definition, timeout=3_600)
        await connection.execute("VACUUM ANALYZE holdfast.remembered", timeout=3_600)
    finally:
        await connection.close()
    return store


class Timing(NamedTuple):
    """Milliseconds of the clock."""

    p50: float
    p90: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Timing:
        """Of at least ten."""
        return cls(1e3 * statistics.median(seconds), 1e3 * statistics.quantiles(seconds, n=10)[-1])

    def __str__(self) -> str:
        return f"{self.p50:.1f} / {self.p90:.1f}"


Work = Callable[[Memory, int], Awaitable[object]]


async def alternately(
    work: Work, memories: Sequence[Callable[[int], Memory]], times: int
) -> list[Timing]:
    """The same work on each memory, one after the other, so many times."""
    seconds: list[list[float]] = [[] for _ in memories]
    for number in range(times):
        for place, memory_of in enumerate(memories):
            memory = memory_of(number)
            began = time.perf_counter()
            await work(memory, number)
            seconds[place].append(time.perf_counter() - began)
    return [Timing.of(each) for each in seconds]


def asking(texts: Texts) -> Work:
    """The work of answering a question."""

    async def ask(memory: Memory, number: int) -> None:
        recalled = await memory.recall(texts.questions[number % ASKED], token_budget=_BUDGET)
        assert recalled.turns >= OF_SCOPE, "an empty scope is quick"

    return ask


async def scopes(console: Console, server: Server, turns: int, embedder: Embedder | None) -> None:
    """One of many scopes, beside the same turns alone."""
    texts = Texts()
    urls = [await server.create_database() for _ in range(2)]
    stores = [
        await filled(url, texts, size, OF_SCOPE, embedder)
        for url, size in zip(urls, (OF_SCOPE, turns), strict=True)
    ]

    def memory(store: Store, user: int, arrays: ArrayCache | None = None) -> Memory:
        scope = Scope(user=f"user{user}", workspace="bench")
        return Memory(store, scope, count=count_tokens, embedder=embedder, arrays=arrays)

    users = turns // OF_SCOPE
    # The first question of a process to a scope reads its turns; there, another scope each time.
    fresh = [lambda _: memory(stores[0], 0), lambda n: memory(stores[1], 7 * n % users)]
    warm = [memory(stores[0], 0), memory(stores[1], users // 2)]
    for each in warm:
        await each.recall(texts.questions[0], token_budget=_BUDGET)
    kept = [lambda _: warm[0], lambda _: warm[1]]

    ask = asking(texts)

    def remember(each: Memory, number: int) -> Awaitable[object]:
        text = texts.turns[number]
        return each.remember("new", [{"role": "user", "content": text, "id": f"new {number}"}])

    table = Table(
        *("p50 / p90 ms", f"{OF_SCOPE:,} turns alone", f"among {turns:,}", "p50 times"),
        title=f"One of {users:,} scopes on PostgreSQL",
    )
    rows: Iterable[tuple[str, Work, list[Callable[[int], Memory]]]] = (
        ("recall", ask, kept),
        ("recall, first of a process", ask, fresh),
        ("remember a turn", remember, kept),
        ("the last pairs", lambda each, _: each.recent("new", 4), kept),
    )
    for name, work, memories in rows:
        alone, among = await alternately(work, memories, ASKED)
        table.add_row(name, str(alone), str(among), f"{among.p50 / alone.p50:.2f}")
    console.print(table)
    for store in stores:
        await store.close()
    for url in urls:
        await server.drop_database(url)


async def one_scope(
    console: Console, server: Server, turns: int, embedder: Embedder | None
) -> None:
    """All turns in one scope: by words first as it is, and held in memory if that were allowed."""
    texts = Texts()
    url = await server.create_database()
    store = await filled(url, texts, turns, turns, embedder)
    arrays = ArrayCache(most_bytes=8_000_000_000)
    scope = Scope(user="user0", workspace="bench")
    memory = Memory(store, scope, count=count_tokens, embedder=embedder, arrays=arrays)
    ask = asking(texts)

    table = Table(
        *("", "recall p50 / p90 ms", "CPU of this process", "MB held", "first question, s"),
        title=f"{turns:,} turns in one scope on PostgreSQL",
    )
    # As it is, and as it would be if a scope of any size were held.
    for name, most in (("words first, 2,000 ranked", 0), ("all held and ranked", 10**9)):
        with patch.object(memory_module, "MOST_TURNS", most):
            began = time.perf_counter()
            await ask(memory, 0)
            first = time.perf_counter() - began
            cpu = time.process_time()
            [timing] = await alternately(ask, [lambda _: memory], _ASKED_OF_ALL)
            cpu = 1e3 * (time.process_time() - cpu) / _ASKED_OF_ALL
        cells = (str(timing), f"{cpu:.1f}", f"{arrays.nbytes / 1e6:,.0f}", f"{first:.1f}")
        table.add_row(name, *cells)
    console.print(table)
    if embedder is not None:
        async with arrays.of(store.remembered, scope, embedder) as whole:
            assert whole.vectors is not None
            vector = np.asarray(embedder.embed([texts.questions[1]])[0], np.float32)
            cpu = time.process_time()
            for _ in range(5):
                whole.vectors.cosines(vector)
            scan = 200 * (time.process_time() - cpu)
        console.print(f"Of that, {scan:.0f} ms of CPU are the exact scan of all vectors.")
    await store.close()
    await server.drop_database(url)


def run(console: Console, turns: int = TURNS) -> None:
    """Both tables."""
    embedder = open_embedder()
    with running_server() as server:
        asyncio.run(scopes(console, server, turns, embedder))
        asyncio.run(one_scope(console, server, turns, embedder))
