"""`holdfast jobs worker` does the jobs of a store, `holdfast jobs list` shows them."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.store import Scope, Store, open_store
from holdfast.store.queue import Claim, Job, NewJob
from tests.surfaces.harness import Cli, environment

FOLDER = ".local/share/holdfast"


async def _filled(store: Store) -> None:
    await store.jobs.enqueue(Scope(), [NewJob(kind="x", key="k1"), NewJob(kind="y", key="k2")])
    (job,) = await store.jobs.claim(Claim(kinds=("x",)))
    await store.jobs.fail(job, "ProviderError: it timed out", cost=1_234)


@pytest.fixture
def filled(cli: Cli) -> Cli:
    async def work() -> None:
        store = await open_store(None, folder=cli.folder / FOLDER)
        await _filled(store)
        await store.close()

    asyncio.run(work())
    return cli


def test_jobs_are_listed_as_json_in_a_pipe(filled: Cli) -> None:
    told = filled("jobs", "list", "--output", "json").json
    assert [(job["kind"], job["state"]) for job in told["jobs"]] == [
        ("y", "queued"),
        ("x", "failed"),
    ]
    assert all("token" not in job for job in told["jobs"])
    assert [depth["kind"] for depth in told["depths"]] == ["y"]
    assert told["cost_today"] == 0


def test_jobs_are_drawn_as_a_table(filled: Cli) -> None:
    drawn = filled("jobs", "list", "--output", "table", "--state", "failed").out
    assert "1,234" in drawn
    assert "it timed out" in drawn
    assert "queued" not in drawn


def test_an_empty_queue_says_so(cli: Cli) -> None:
    assert "No jobs match." in cli("jobs", "list", "--output", "table").err


def test_a_store_in_memory_has_no_worker(cli: Cli) -> None:
    refused = cli("jobs", "worker", "--store", "memory:")
    assert refused.code == 2
    assert "no other process" in refused.err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")
def test_a_worker_sweeps_and_ends_in_order_when_it_is_told_to(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/holdfast.db"
    with subprocess.Popen(
        [sys.executable, "-m", "holdfast", "jobs", "worker", "--store", url],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(tmp_path, HOLDFAST_LOG_FORMAT="json"),
    ) as process:
        assert process.stderr
        assert "runs the jobs of" in process.stderr.readline()
        attempt = json.loads(process.stderr.readline())
        assert (attempt["event"], attempt["kind"], attempt["state"]) == ("job", "sweep", "done")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0

    async def work() -> list[Job]:
        store = await open_store(url)
        jobs = await store.jobs.latest(None)
        await store.close()
        return jobs

    (job,) = asyncio.run(work())
    assert (job.state, job.attempts) == ("queued", 0)
