"""Workers are killed, and stopped for longer than their lease: no job is lost, none is done twice.

The judge is the database: a trigger of the test's own writes down every job that becomes done, in
the transaction that makes it so.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw
import pytest

from holdfast.store import Scope, Store, open_store
from holdfast.store.queue import NewJob
from tests.hardening.births import Child, Nursery, nursery
from tests.hardening.campaign import Campaign, short_and_full
from tests.hardening.job_workers import KIND
from tests.store.postgres_server import Server, running_server

T = TypeVar("T")
OWNERS = [Scope("ann", f"w{number}") for number in range(8)]
SQLITE_JUDGE = """
CREATE TABLE effects (job INTEGER);
CREATE TRIGGER judge AFTER UPDATE OF state ON jobs WHEN NEW.state = 'done'
BEGIN INSERT INTO effects VALUES (NEW.id); END;
"""
POSTGRES_JUDGE = """
CREATE TABLE public.effects (job bigint);
CREATE FUNCTION public.judge() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO public.effects VALUES (NEW.id); RETURN NULL; END $$;
CREATE TRIGGER judge AFTER UPDATE OF state ON holdfast.jobs FOR EACH ROW
WHEN (NEW.state = 'done') EXECUTE FUNCTION public.judge();
"""
EFFECTS = "SELECT count(*), count(DISTINCT job) FROM effects"


class Trial(NamedTuple):
    """How much there is to do, and by whom."""

    jobs: int
    workers: int
    lease_seconds: float
    slots: int = 8


SHORT = Trial(jobs=250, workers=3, lease_seconds=0.5, slots=4)
LONG = Trial(jobs=100_000, workers=8, lease_seconds=2.0)


class Ground(NamedTuple):
    """A store, and the judge's results."""

    url: str
    prepare: Callable[[], None]
    effects: Callable[[], tuple[int, int]]


@contextmanager
def on_sqlite(folder: Path) -> Iterator[Ground]:
    file = folder / "jobs.db"

    def ask(sql: str) -> list[Any]:
        db = apsw.Connection(str(file))
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def effects() -> tuple[int, int]:
        ((total, distinct),) = ask(EFFECTS)
        return total, distinct

    def prepare() -> None:
        ask(SQLITE_JUDGE)

    yield Ground(f"sqlite:///{file}", prepare, effects)


@contextmanager
def on_postgres(server: Server) -> Iterator[Ground]:
    with server.database() as url:

        def effects() -> tuple[int, int]:
            ((total, distinct),) = asyncio.run(server.execute(EFFECTS, url))
            return total, distinct

        def prepare() -> None:
            asyncio.run(server.run_script(POSTGRES_JUDGE, url))

        yield Ground(url, prepare, effects)


def with_store(url: str, work: Callable[[Store], Awaitable[T]]) -> T:
    async def main() -> T:
        store = await open_store(url)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(main())


async def fill(store: Store, trial: Trial) -> None:
    for start in range(0, trial.jobs, 1_000):
        numbers = range(start, min(start + 1_000, trial.jobs))
        jobs = [
            # Every tenth may cost something; none gives up, however often it is hit.
            NewJob(kind=KIND, key=f"k{n}", max_attempts=0, most_cost=0 if n % 10 else 3)
            for n in numbers
        ]
        await store.jobs.enqueue(owner_of(start), jobs)


def owner_of(number: int) -> Scope:
    return OWNERS[number // 1_000 % len(OWNERS)]


async def left(store: Store) -> int:
    return sum(depth.jobs for depth in (await store.jobs.figures()).depths)


def harass(campaign: Campaign, mother: Nursery, ground: Ground, trial: Trial) -> None:
    """Kill and stop workers by chance until all is done; in the end none is left."""

    def born() -> Child:
        return mother.born(
            "worker", url=ground.url, lease_seconds=trial.lease_seconds, slots=trial.slots
        )

    workers = [born() for _ in range(trial.workers)]
    stopped: list[tuple[float, Child]] = []
    kills = stops = 0
    try:
        for number in campaign.rounds(100_000):
            chance = campaign.chance(number)
            time.sleep(chance.random() * trial.lease_seconds / 4)  # the moment, not a wait
            for until, child in [pair for pair in stopped if pair[0] < time.monotonic()]:
                child.send(signal.SIGCONT)
                stopped.remove((until, child))
            at = chance.randrange(len(workers))
            asleep = [child for _, child in stopped]
            if chance.random() < 0.6:
                workers[at].kill()
                stopped = [pair for pair in stopped if pair[1] is not workers[at]]
                workers[at] = born()
                kills += 1
            elif len(asleep) < len(workers) // 2 and workers[at] not in asleep:
                workers[at].send(signal.SIGSTOP)
                longer = trial.lease_seconds * (1 + chance.random())
                stopped.append((time.monotonic() + longer, workers[at]))
                stops += 1
            if not with_store(ground.url, left):
                break
    finally:
        for child in workers:
            child.kill()
    campaign.figures |= {"kills": kills, "stops": stops}


def judge(campaign: Campaign, ground: Ground, trial: Trial) -> None:
    """Check that every job is done, by one attempt, and every token is accounted for.

    If the time was up before, unfinished jobs must still be queued.
    """
    is_cut = time.monotonic() - campaign.begun >= campaign.seconds

    async def account(store: Store) -> tuple[list[str], int, int]:
        wrong, again, done = [], 0, 0
        for scope in OWNERS:
            jobs = await store.jobs.latest(scope, limit=trial.jobs)
            again += sum(max(0, job.attempts - 1) for job in jobs)
            undone = [job for job in jobs if job.state != "done"]
            done += len(jobs) - len(undone)
            wrong += [f"{job.key} is {job.state}" for job in undone if not is_cut]
            cost = sum(job.cost + (job.most_cost if job.state == "running" else 0) for job in jobs)
            spent = sum((await store.jobs.spent(scope)).values())
            if cost != spent:
                wrong.append(f"{scope.workspace}: the jobs cost {cost}, {spent} were debited")
            for job in jobs[:: max(1, len(jobs) // 50)]:
                if job.state == "done" and await store.summary(scope, job.key) is None:
                    wrong.append(f"what {job.key} made is lost")
            if len(jobs) != queued[scope]:
                wrong.append(f"{scope.workspace}: {queued[scope] - len(jobs)} jobs are lost")
        return wrong, again, done

    queued = Counter(owner_of(number) for number in range(trial.jobs))
    wrong, again, done = with_store(ground.url, account)
    total, distinct = ground.effects()
    if (total, distinct) != (done, done):
        wrong.append(f"{done} jobs that are done had {total} effects, on {distinct} of them")
    for what in wrong[:20]:
        campaign.found(what)
    campaign.figures |= {"jobs": trial.jobs, "done": done, "attempts lost": again}


def run(campaign: Campaign, folder: Path, ground: Ground, trial: Trial) -> None:
    began = time.monotonic()
    with_store(ground.url, lambda store: fill(store, trial))
    ground.prepare()
    with nursery(folder, "tests.hardening.job_workers") as mother:
        harass(campaign, mother, ground, trial)
    judge(campaign, ground, trial)
    campaign.figures["seconds for all"] = round(time.monotonic() - began)


@short_and_full("trial", SHORT, LONG)
def test_workers_that_die_lose_and_double_no_job(
    campaign: Campaign, tmp_path: Path, trial: Trial
) -> None:
    with on_sqlite(tmp_path) as ground:
        run(campaign, tmp_path, ground, trial)


@pytest.mark.slow
def test_workers_that_die_lose_and_double_no_job_on_postgresql(
    campaign: Campaign, tmp_path: Path, postgres_server: Server
) -> None:
    with on_postgres(postgres_server) as ground:
        run(campaign, tmp_path, ground, SHORT)


@pytest.mark.campaign
def test_many_workers_that_die_lose_and_double_no_job_on_postgresql(
    campaign: Campaign, tmp_path: Path
) -> None:
    with running_server(fsync="on") as server, on_postgres(server) as ground:
        run(campaign, tmp_path, ground, LONG)
