"""Facts: the twelve best of 100,000 in one scope, beside a plain full-text query in the same run.

The questions are made of words of the facts, rare and common ones mixed as in chats, and of words
that no fact has. What is timed is the call as an application makes it: the search in memory and the
store's word that nothing has changed since. Beside it stand FTS5 and `tsvector`, each asked for the
twelve best by its own rank in the same scope, on the same facts.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple

import apsw
import asyncpg  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from holdfast.facts import FactIndexCache, Ledger
from holdfast.models.embedding import open_embedder
from holdfast.models.protocol import Embedder
from holdfast.search.words import fact_terms
from holdfast.store import Scope, open_store
from holdfast.store.fact_store import key_of
from tests.store.postgres_server import running_server

FACTS = 100_000
ASKED = 200
GOALS = {"sqlite": 3.0, "postgresql": 5.0}
_SCOPE = Scope("bench", "facts")
_WORDS = 8_000
_SPEAKERS = ("Ann", "Bob", "Cem", "Dora")


class Timing(NamedTuple):
    """Milliseconds."""

    median: float
    p90: float

    @classmethod
    def of(cls, seconds: list[float]) -> Timing:
        return cls(statistics.median(seconds) * 1e3, statistics.quantiles(seconds, n=10)[-1] * 1e3)


def run(console: Console, count: int = FACTS) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder, running_server() as server:
        url = asyncio.run(server.create_database())
        urls = {"sqlite": f"sqlite:///{folder}/facts.db", "postgresql": url}
        table = Table(title=f"The 12 best of {count:,} facts in one scope, ms")
        for column in ("", "median", "p90", "goal p90", "first call", "full text: median", "p90"):
            table.add_column(column, justify="left" if not column else "right")
        for kind, store_url in urls.items():
            for embedder in dict.fromkeys((None, open_embedder())):
                asyncio.run(_measure(table, kind, store_url, embedder, count))
    console.print(table)


async def _measure(
    table: Table, kind: str, url: str, embedder: Embedder | None, count: int
) -> None:
    store = await open_store(url)
    if not (await store.facts.changes(_SCOPE)).counter:
        await _fill(kind, url, count)
    ledger = Ledger(store, _SCOPE, FactIndexCache(store, embedder))
    began = time.perf_counter()
    await ledger.top("begin")
    first = time.perf_counter() - began
    questions = _questions(random.Random(2), ASKED)
    ours = await _timed(ledger.top, questions)
    plain = _fts(url, questions) if kind == "sqlite" else await _tsvector(url, questions)
    ratios.note(f"facts: top 12 of {count:,}, {kind}, times the plain query", plain.p90, ours.p90)
    table.add_row(
        f"{kind}, {'words' if embedder is None else 'words and vectors'}",
        *(f"{ours.median:.2f}", f"{ours.p90:.2f}", f"{GOALS[kind]:.0f}", f"{first * 1e3:,.0f}"),
        *(f"{plain.median:.2f}", f"{plain.p90:.2f}"),
    )
    await store.close()


async def _timed(ask: Callable[[str], Awaitable[object]], questions: list[str]) -> Timing:
    seconds = []
    for question in questions:
        began = time.perf_counter()
        await ask(question)
        seconds.append(time.perf_counter() - began)
    return Timing.of(seconds)


def _word(chance: random.Random) -> str:
    """A word as often as words are: the tenth commonest a tenth as often as the commonest."""
    return f"word{int(_WORDS ** chance.random()):x}"


def _text(chance: random.Random) -> str:
    words = " ".join(_word(chance) for _ in range(chance.randrange(6, 18)))
    return f"{chance.choice(_SPEAKERS)}: {words} {chance.randrange(10_000)}"


def _questions(chance: random.Random, count: int) -> list[str]:
    return [
        " ".join([chance.choice(_SPEAKERS), *(_word(chance) for _ in range(5)), "elsewhere"])
        for _ in range(count)
    ]


def _rows(count: int) -> Iterator[tuple[object, ...]]:
    """Facts as the rows of both stores."""
    chance, now = random.Random(1), time.time()
    for n in range(count):
        text = f"{_text(chance)} ({n})"
        yield (
            *(_SCOPE.workspace, _SCOPE.user, f"{n:032x}", "fact", text, key_of(text), "", "", "[]"),
            *(n % 500 == 0, now - chance.random() * 3e7, 1.0, "", 1, "", b""),
        )


_COLUMNS = (
    "id, kind, text, key, subject, said_by, tags, standing, created_at, decay_weight,"
    " superseded_by, version, embedder, vector"
)


async def _fill(kind: str, url: str, count: int) -> None:
    """Bare statements: one by one through the store would take minutes."""
    rows = list(_rows(count))
    if kind == "sqlite":
        db = apsw.Connection(url.removeprefix("sqlite:///"))
        with db:
            db.executemany(
                f"INSERT INTO facts (workspace, owner, {_COLUMNS})"  # noqa: S608 - constants
                f" VALUES ({', '.join('?' * 16)})",
                rows,
            )
            db.execute(
                "INSERT INTO fact_sources (workspace, owner, fact, session, ref, place)"
                " SELECT workspace, owner, number, 's' || number % 50, 'm' || number, '' FROM facts"
            )
            db.execute("INSERT INTO fact_counters VALUES (?, ?, 1, 0)", rows[0][:2])
        db.close()
        return
    server = await asyncpg.connect(url)
    columns = ["workspace", "username", *_COLUMNS.split(", ")]
    await server.copy_records_to_table(
        "facts", schema_name="holdfast", records=rows, columns=columns
    )
    await server.execute(
        "INSERT INTO holdfast.fact_sources (workspace, username, fact, session, ref, place)"
        " SELECT workspace, username, number, 's' || number % 50, 'm' || number, ''"
        " FROM holdfast.facts; ANALYZE holdfast.facts; ANALYZE holdfast.fact_sources"
    )
    await server.execute("INSERT INTO holdfast.fact_counters VALUES ($1, $2, 1, 0)", *rows[0][:2])
    await server.close()


def _fts(url: str, questions: list[str]) -> Timing:
    """FTS5 over the same texts, asked for any of the words."""
    db = apsw.Connection(url.removeprefix("sqlite:///"))
    db.execute("CREATE VIRTUAL TABLE temp.plain USING fts5(text, tokenize = 'porter')")
    db.execute("INSERT INTO temp.plain (rowid, text) SELECT number, text FROM facts")
    seconds = []
    for question in questions:
        began = time.perf_counter()
        db.execute(
            "SELECT f.id, f.text FROM (SELECT rowid AS number FROM temp.plain WHERE plain MATCH ?"
            " ORDER BY rank LIMIT 12) AS best JOIN facts AS f USING (number)"
            " WHERE f.workspace = ? AND f.owner = ?",
            (" OR ".join(fact_terms(question)), _SCOPE.workspace, _SCOPE.user),
        ).fetchall()
        seconds.append(time.perf_counter() - began)
    db.close()
    return Timing.of(seconds)


async def _tsvector(url: str, questions: list[str]) -> Timing:
    """A `tsvector` with an index over the same texts, asked for any of the words."""
    db = await asyncpg.connect(url)
    await db.execute(
        "CREATE TABLE IF NOT EXISTS plain AS SELECT id, workspace, username, text,"
        " to_tsvector('english', text) AS words FROM holdfast.facts;"
        " CREATE INDEX IF NOT EXISTS plain_words ON plain USING gin (words); ANALYZE plain"
    )

    async def ask(question: str) -> object:
        return await db.fetch(
            "SELECT id, text FROM plain, to_tsquery('english', $1) AS asked"
            " WHERE words @@ asked AND workspace = $2 AND username = $3"
            " ORDER BY ts_rank(words, asked) DESC LIMIT 12",
            " | ".join(fact_terms(question)),
            *(_SCOPE.workspace, _SCOPE.user),
        )

    timing = await _timed(ask, questions)
    await db.close()
    return timing
