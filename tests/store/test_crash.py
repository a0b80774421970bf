"""Killed at any moment, with several writers: acknowledged writes are there, complete."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import apsw
import pytest

from holdfast.store import Store
from holdfast.store.refs import digest
from tests.store.crashing import SCOPE, content_of
from tests.store.harness import Opener

ROOT = Path(__file__).parents[2]
WRITERS = 3
MOST_SECONDS = 0.25
"""A writer is killed at a random moment of its first part of a second at work."""


def start(url: str, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.store.crashing", url, name],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )


def killed(writer: subprocess.Popen[bytes]) -> Iterator[str]:
    """Kill a writer, and yield its earlier output."""
    writer.kill()
    assert writer.stdout is not None
    for line in writer.stdout.read().decode().splitlines():
        if line != "open":
            yield line


def crash(opener: Opener, round_: int, chance: random.Random) -> dict[str, list[str]]:
    """Let several writers work, kill one after another, and return the acknowledged writes of
    each.
    """
    names = [f"{round_}.{number}" for number in range(WRITERS)]
    with ExitStack() as stack:
        writers = [stack.enter_context(start(opener.url, name)) for name in names]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"open\n"
        told = {}
        for name, writer in zip(names, writers, strict=True):
            time.sleep(chance.uniform(0, MOST_SECONDS))  # the moment of death, not a wait for work
            told[name] = list(killed(writer))
    return told


def check(opener: Opener, told: dict[str, list[str]], *, whole: bool) -> float:
    """Open the store again and check all acknowledged writes; return the time to open it."""
    began = time.perf_counter()

    async def look(store: Store) -> float:
        took = time.perf_counter() - began
        for name, lines in told.items():
            turns = [line for line in lines if line.startswith("turn")]
            for number in (int(line) for line in lines if not line.startswith("turn")):
                made = content_of(name, number)
                opened = await store.get(SCOPE, made.ref_id)
                assert opened is not None, f"{name} lost {number}"
                assert opened.data == made.data
            kept = await store.turns(SCOPE.of(name), limit=10**6)
            assert len(turns) <= len(kept) <= len(turns) + 1
            assert [one.number for one in kept] == list(range(1, len(kept) + 1))
            hashes = [digest(f"{name} {one.number}".encode()) for one in kept]
            assert len(await store.messages(SCOPE, hashes)) == len(kept)
        if whole:
            assert await store.verify(SCOPE) == []
        return took

    took = opener.run(look)
    db = apsw.Connection(opener.url.removeprefix("sqlite:///"))
    pragma = "integrity_check" if whole else "quick_check"
    assert db.execute(f"PRAGMA {pragma}").get == "ok"
    assert db.execute("PRAGMA foreign_key_check").get is None
    orphans = (
        "SELECT count(*) FROM contents WHERE id NOT IN (SELECT content FROM refs WHERE content)"
        " AND id NOT IN (SELECT content FROM messages)"
    )
    assert db.execute(orphans).get == 0
    db.close()
    return took


def campaign(opener: Opener, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    everything: dict[str, list[str]] = {}
    slowest = 0.0
    for round_ in range(-(-kills // WRITERS)):
        told = crash(opener, round_, chance)
        everything |= told
        slowest = max(slowest, check(opener, told, whole=False))
    check(opener, everything, whole=True)
    acknowledged = sum(map(len, everything.values()))
    assert acknowledged
    print(  # noqa: T201 - shown by `pytest -s`
        f"{len(everything)} kills, {acknowledged:,} acknowledged writes, none lost;"
        f" opened again in at most {slowest:.3f} s"
    )


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_when_writers_are_killed(sqlite: Opener) -> None:
    campaign(sqlite, kills=6, seed=11 if os.environ.get("CI") else time.time_ns())


@pytest.mark.campaign
def test_nothing_acknowledged_is_lost_in_300_kills(sqlite: Opener) -> None:
    campaign(sqlite, kills=300, seed=time.time_ns())
