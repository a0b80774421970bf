"""The store on SQLite: what it takes in beside what the disk allows, and look-ups as it grows."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import apsw
from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from holdfast.store import Content, Scope, Store, open_store
from holdfast.store.operations.ref_rows import Detail
from holdfast.store.pack import pack
from holdfast.store.refs import digest, ref_id
from holdfast.store.rules import to_json
from holdfast.store.sqlite import SqliteStore

RESULTS = 600
RESULT_BYTES = 50_000
GOAL_PER_SECOND = 500
TASKS = 8
BATCH = 20
SIZES = (1_000, 100_000, 1_000_000)
GOAL_MS = 2.0
LOOK_UPS = 300
SCOPE = Scope(session="bench")
_DETAIL = to_json(Detail(summary="", compressed="", meta={}, flags=()))


def run(console: Console) -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        _ingest(console, Path(folder))
        asyncio.run(_look_ups(console, Path(folder)))


def _content(data: bytes) -> Content:
    sha256 = digest(data)
    return Content(ref_id=ref_id("log", sha256), kind="log", sha256=sha256, data=data)


def _results() -> list[bytes]:
    """Log lines with ids, numbers and times: they compress about as tool results do."""
    chance = random.Random(5)
    words = [f"{chance.choice('abcdefgh')}{chance.randrange(10**5)}" for _ in range(3000)]

    def line() -> str:
        rest = " ".join(chance.choices(words, k=9))
        return f"2026-01-{chance.randrange(1, 29):02} INFO {chance.getrandbits(48):012x} {rest}\n"

    lines = [line() for _ in range(20_000)]
    return ["".join(chance.choices(lines, k=650)).encode()[:RESULT_BYTES] for _ in range(RESULTS)]


# Ingest.


def _ingest(console: Console, folder: Path) -> None:
    results = _results()
    stored = sum(len(pack(data).data) for data in results)
    rates = {
        "limit: compress, write, one fsync": _rate(
            lambda: _plain_file(folder / "a", results, RESULTS)
        ),
        f"limit: the same, fsync every {BATCH}": _rate(
            lambda: _plain_file(folder / "b", results, BATCH)
        ),
        "peer: sqlite3, as they are, one by one": _rate(lambda: _peer(folder / "c", results)),
        f"holdfast, {TASKS} tasks, one by one": _store_rate(folder / "d.db", results, _by_tasks),
        f"holdfast, batches of {BATCH}": _store_rate(folder / "e.db", results, _by_batches),
        "holdfast, one task, one by one": _store_rate(folder / "f.db", results, _one_by_one),
    }
    limit = rates[f"limit: the same, fsync every {BATCH}"]
    table = Table(
        title=f"{RESULTS} results of {RESULT_BYTES // 1000} KB, {stored / RESULTS / 1000:.1f} KB"
        f" compressed, into the store and durable (goal: {GOAL_PER_SECOND} per second)"
    )
    for column in ("", "per second", "of the limit", "of the goal"):
        table.add_column(column, justify="left" if not column else "right")
    for name, rate in rates.items():
        if name.startswith("holdfast"):
            ratios.note(f"store: {name}, the limit", rate, limit)
        of_goal = f"{rate / GOAL_PER_SECOND:.0%}" if name.startswith("holdfast") else ""
        table.add_row(name, f"{rate:,.0f}", f"{rate / limit:.0%}", of_goal)
    console.print(table)


def _rate(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return RESULTS / (time.perf_counter() - began)


def _plain_file(path: Path, results: list[bytes], every: int) -> None:
    """What any store must do: hash, compress, write, make sure."""
    with path.open("wb", buffering=0) as file:
        for number, data in enumerate(results, 1):
            digest(data)
            file.write(pack(data).data)
            if number % every == 0:
                os.fsync(file.fileno())


def _peer(path: Path, results: list[bytes]) -> None:
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE contents (sha256 TEXT PRIMARY KEY, data BLOB)")
    for data in results:
        with db:
            db.execute("INSERT OR IGNORE INTO contents VALUES (?, ?)", (digest(data), data))
    db.close()


Write = Callable[[Store, list[Content]], Awaitable[object]]


def _store_rate(path: Path, results: list[bytes], write: Write) -> float:
    async def main() -> float:
        store = await open_store(f"sqlite:///{path}")
        contents = [_content(data) for data in results]
        began = time.perf_counter()
        await write(store, contents)
        took = time.perf_counter() - began
        await store.close()
        return RESULTS / took

    return asyncio.run(main())


async def _one_by_one(store: Store, contents: list[Content]) -> None:
    for content in contents:
        await store.put(SCOPE, [content])


async def _by_tasks(store: Store, contents: list[Content]) -> None:
    await asyncio.gather(*(_one_by_one(store, contents[n::TASKS]) for n in range(TASKS)))


async def _by_batches(store: Store, contents: list[Content]) -> None:
    for start in range(0, len(contents), BATCH):
        await store.put(SCOPE, contents[start : start + BATCH])


# Look-ups.


async def _look_ups(console: Console, folder: Path) -> None:
    table = Table(title=f"Open a small content by its ref, ms (goal: {GOAL_MS:.0f}, and flat)")
    for column in ("refs", "median", "p99", "median, without the kind", "100 refs behind one"):
        table.add_column(column, justify="right")
    store = await SqliteStore.open(folder / "many.db")
    medians = []
    filled = 0
    for size in SIZES:
        await asyncio.to_thread(_fill, folder / "many.db", filled, size)
        filled = size
        chance = random.Random(size)
        chosen = [_content(_small(chance.randrange(size))) for _ in range(LOOK_UPS)]
        by_ref = await _times(store, [content.ref_id for content in chosen])
        by_hash = await _times(store, [f"content_{content.sha256[:16]}" for content in chosen])
        pages = await _page_times(store, [content.ref_id for content in chosen[:30]])
        medians.append(statistics.median(by_ref))
        table.add_row(
            f"{size:,}",
            f"{medians[-1]:.3f}",
            f"{sorted(by_ref)[int(LOOK_UPS * 0.99)]:.3f}",
            f"{statistics.median(by_hash):.3f}",
            f"{statistics.median(pages):.2f}",
        )
    await store.close()
    console.print(table)
    console.print(
        f"From {SIZES[0]:,} to {SIZES[-1]:,} refs a look-up takes"
        f" {medians[-1] / medians[0]:.2f} times as long.\n"
    )


async def _times(store: Store, names: list[str]) -> list[float]:
    took = []
    for name in names:
        began = time.perf_counter()
        assert await store.get(SCOPE, name)
        took.append((time.perf_counter() - began) * 1000)
    return took


async def _page_times(store: Store, names: list[str]) -> list[float]:
    took = []
    for name in names:
        began = time.perf_counter()
        await store.refs(SCOPE, before=name)
        took.append((time.perf_counter() - began) * 1000)
    return took


def _small(number: int) -> bytes:
    return f"content number {number}".encode()


def _fill(path: Path, start: int, stop: int) -> None:
    """Write rows as `put` would, in the order of their hashes: many times as fast."""
    made = sorted((digest(_small(number)), number) for number in range(start, stop))
    db = apsw.Connection(str(path))
    db.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; BEGIN")
    db.executemany(
        "INSERT INTO contents (id, workspace, sha256, size, codec, data) VALUES (?, ?, ?, ?, 0, ?)",
        (
            (id_, SCOPE.workspace, sha256, len(_small(number)), _small(number))
            for id_, (sha256, number) in enumerate(made, start + 1)
        ),
    )
    db.executemany(
        "INSERT INTO refs (id, workspace, owner, kind, sha256, ref_id, content, size, tokens,"
        " created_at, written_at, flagged, detail) VALUES (?1, ?2, ?3, 'log', ?4, ?5, ?1, 0, 0,"
        " 0, 0, 0, ?6)",
        (
            (id_, SCOPE.workspace, SCOPE.user, sha256, ref_id("log", sha256), _DETAIL)
            for id_, (sha256, _) in enumerate(made, start + 1)
        ),
    )
    db.execute(
        "INSERT INTO uses SELECT workspace, owner, ?, id FROM refs WHERE id > ?",
        (SCOPE.session, start),
    )
    db.execute("COMMIT")
    db.close()
