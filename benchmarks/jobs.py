"""The queue: jobs claimed and finished by four processes, beside bare transactions of the store.

A job that does nothing is one claim and one end, each durable. What a store can do at all is told
by as many processes that change one row after the other, each change a transaction of its own.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

import apsw
import asyncpg  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from holdfast.jobs import Outcome, Worker, WorkerRules
from holdfast.store import Scope, Store, open_store
from holdfast.store.queue import Claim, Job, NewJob
from tests.store.postgres_server import running_server

WORKERS = 4
JOBS = 4_000
SLOTS = 8
GOALS = {"sqlite": 300, "postgresql": 500}
BARE_SECONDS = 2.0
OVER = 1_000_000
"""Jobs that are over, beside which a claim must not be slower."""
ROUNDS = 300
_SCOPE = Scope("bench", "jobs")
_SPAWN = multiprocessing.get_context("spawn")


def run(console: Console) -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as folder, running_server(fsync="on") as server:
        url = asyncio.run(server.create_database())
        urls = {"sqlite": f"sqlite:///{folder}/jobs.db", "postgresql": url}
        _throughput(console, urls)
        _beside_old_rows(console, urls)


# Throughput.


def _throughput(console: Console, urls: dict[str, str]) -> None:
    table = Table(title=f"{JOBS:,} jobs that do nothing, {WORKERS} workers with {SLOTS} slots each")
    for column in ("", "jobs per second", "goal", "bare transactions per second", "jobs of these"):
        table.add_column(column, justify="left" if not column else "right")
    for kind, url in urls.items():
        asyncio.run(_fill(url, JOBS))
        rate = JOBS / _together(_work, url)
        bare = _bare_rate(kind, url)
        ratios.note(f"jobs: {kind}, {WORKERS} workers, half the bare transactions", rate, bare / 2)
        table.add_row(
            kind, f"{rate:,.0f}", f"{GOALS[kind]:,}", f"{bare:,.0f}", f"{rate / bare:.0%}"
        )
    console.print(table)


async def _fill(url: str, jobs: int) -> None:
    store = await open_store(url)
    for start in range(0, jobs, 1_000):
        await store.jobs.enqueue(
            _SCOPE, [NewJob(kind="none", key=f"{url} {start + n}"[-400:]) for n in range(1_000)]
        )
    await store.close()


def _together(work: Callable[[str, Barrier], None], url: str) -> float:
    """Seconds from the moment that all processes are ready until the last has ended."""
    ready = _SPAWN.Barrier(WORKERS + 1)
    processes = [_SPAWN.Process(target=work, args=(url, ready)) for _ in range(WORKERS)]
    for process in processes:
        process.start()
    ready.wait()
    began = time.perf_counter()
    for process in processes:
        process.join()
    assert all(process.exitcode == 0 for process in processes)
    return time.perf_counter() - began


def _work(url: str, ready: Barrier) -> None:
    """Be a worker until nothing is left."""

    async def nothing(_: Job) -> Outcome:
        return Outcome()

    async def main() -> None:
        store = await open_store(url)
        worker = Worker(store.jobs, {"none": nothing}, WorkerRules(slots=SLOTS, idle_seconds=0.05))
        claim = store.jobs.claim

        async def last(asked: Claim) -> list[Job]:
            claimed = await claim(asked)
            if not claimed:
                worker.stop()
            return claimed

        store.jobs.claim = last  # type: ignore[method-assign]
        ready.wait()
        await worker.run()
        await store.close()

    asyncio.run(main())


def _bare_rate(kind: str, url: str) -> float:
    """Transactions per second of as many processes, each of one change to one row."""
    ready, counts = _SPAWN.Barrier(WORKERS), _SPAWN.Queue()
    target = _bare_sqlite if kind == "sqlite" else _bare_postgres
    processes = [
        _SPAWN.Process(target=target, args=(url, n, ready, counts)) for n in range(WORKERS)
    ]
    for process in processes:
        process.start()
    total = sum(counts.get() for _ in processes)
    for process in processes:
        process.join()
    return float(total / BARE_SECONDS)


def _bare_sqlite(url: str, number: int, ready: Barrier, counts: multiprocessing.Queue[int]) -> None:
    db = apsw.Connection(f"{url.removeprefix('sqlite:///')}.bare")
    db.set_busy_timeout(60_000)
    db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE IF NOT EXISTS bare (id INTEGER PRIMARY KEY, value INTEGER)")
    db.execute("INSERT INTO bare VALUES (?, 0)", (number,))
    ready.wait()
    done, stop = 0, time.perf_counter() + BARE_SECONDS
    while time.perf_counter() < stop:
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE bare SET value = value + 1 WHERE id = ?", (number,))
        db.execute("COMMIT")
        done += 1
    counts.put(done)


def _bare_postgres(
    url: str, number: int, ready: Barrier, counts: multiprocessing.Queue[int]
) -> None:
    async def main() -> int:
        connection = await asyncpg.connect(url)
        name = f"bare_{number}"
        await connection.execute(f"CREATE TABLE {name} AS SELECT 0 AS value")
        ready.wait()
        done, stop = 0, time.perf_counter() + BARE_SECONDS
        while time.perf_counter() < stop:
            await connection.execute(f"UPDATE {name} SET value = value + 1")  # noqa: S608 - ours
            done += 1
        await connection.close()
        return done

    counts.put(asyncio.run(main()))


# Old rows.


def _beside_old_rows(console: Console, urls: dict[str, str]) -> None:
    table = Table(title="A claim and an end, one after the other, median ms")
    for column in ("", "few jobs that are over", f"{OVER:,} that are over", "times as long"):
        table.add_column(column, justify="left" if not column else "right")
    for kind, url in urls.items():
        before = asyncio.run(_median(url, "few"))
        (_many_over_sqlite if kind == "sqlite" else _many_over_postgres)(url)
        after = asyncio.run(_median(url, "many"))
        ratios.note(f"jobs: {kind}, a claim beside a million jobs that are over", before, after)
        table.add_row(kind, f"{before:.2f}", f"{after:.2f}", f"{after / before:.2f}")
    console.print(table)


async def _median(url: str, name: str) -> float:
    store: Store = await open_store(url)
    jobs = [NewJob(kind="one", key=f"{name} {number}") for number in range(ROUNDS)]
    await store.jobs.enqueue(_SCOPE, jobs)
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        (job,) = await store.jobs.claim(Claim(kinds=("one",)))
        assert await store.jobs.finish(job)
        times.append((time.perf_counter() - began) * 1000)
    await store.close()
    return statistics.median(times)


_COLUMNS = (
    "session, kind, key, ref_id, priority, state, max_attempts, most_cost, created_at, completed_at"
)


def _many_over_sqlite(url: str) -> None:
    db = apsw.Connection(str(Path(url.removeprefix("sqlite:///"))))
    db.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000")
    db.execute(
        f"INSERT INTO jobs (workspace, owner, {_COLUMNS})"  # noqa: S608 - constants
        " WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers"
        f" WHERE n < {OVER}) SELECT 'w', 'o', '', 'one', 'old ' || n, '', 5, 'done', 3, 0, n, n"
        " FROM numbers"
    )
    db.close()


def _many_over_postgres(url: str) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute(
            f"INSERT INTO holdfast.jobs (workspace, username, {_COLUMNS})"  # noqa: S608 - constants
            " SELECT 'w', 'o', '', 'one', 'old ' || n, '', 5, 'done', 3, 0, n, n"
            f" FROM generate_series(1, {OVER}) AS n"
        )
        await connection.execute("ANALYZE holdfast.jobs")
        await connection.close()

    asyncio.run(main())
