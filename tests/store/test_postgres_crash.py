"""Writers and the server are killed at random points: nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.store.postgres.store import PostgresStore
from holdfast.store.refs import digest
from tests.store.postgres_server import Server
from tests.store.postgres_writer import contents_of, message_of, scope_of

WRITERS = ("ann", "bob", "cid")
VICTIMS = ("writers", "server", "both")
ROOT = Path(__file__).parents[2]


class Writer:
    """A process that writes, and its acknowledged writes."""

    def __init__(self, url: str, name: str, news: threading.Condition) -> None:
        self.name = name
        self.acknowledged = 0
        self.checked = 0
        self._url = url
        self._news = news
        self.start()

    def start(self) -> None:
        command = (sys.executable, "-m", "tests.store.postgres_writer")
        self._process = subprocess.Popen(
            [*command, self._url, self.name, str(self.acknowledged + 1)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            with self._news:
                if line.endswith("\n"):  # a killed process may leave half a line
                    self.acknowledged = int(line)
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def check_alive(self) -> None:
        if self._process.poll() is not None:
            assert self._process.stderr
            raise AssertionError(self._process.stderr.read())

    def kill(self) -> None:
        """Kill it, and read its earlier output."""
        self._process.kill()
        self._listener.join()
        with self._process as process:
            assert process.stderr
            assert process.stderr.read() == ""
        assert self._process.returncode == -9


class Crashes:
    """Writers at a server, killed in turn."""

    def __init__(self, server: Server, url: str, seed: int) -> None:
        self.slowest = 0.0
        self._server = server
        self._url = url
        self._chance = random.Random(seed)
        self._news = threading.Condition()
        self.writers = [Writer(url, name, self._news) for name in WRITERS]

    def round(self, victims: str) -> None:
        """Let them write for a while, kill, and check the acknowledged writes."""
        wanted = self._total() + self._chance.randint(1, 20)
        self._until(lambda: self._total() >= wanted)
        time.sleep(self._chance.random() * 0.03)  # anywhere inside a step
        if victims != "server":
            for writer in self.writers:
                writer.kill()
        if victims != "writers":
            self._server.kill()
            self._server.start()
        asyncio.run(self._check())
        if victims != "server":
            for writer in self.writers:
                writer.start()
        before = [writer.acknowledged for writer in self.writers]
        self._until(
            lambda: all(w.acknowledged > b for w, b in zip(self.writers, before, strict=True))
        )

    def _total(self) -> int:
        return sum(writer.acknowledged for writer in self.writers)

    def _until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + 120
        with self._news:
            while not holds():
                for writer in self.writers:
                    writer.check_alive()
                assert self._news.wait(end - time.monotonic())

    async def _check(self) -> None:
        begun = time.monotonic()
        store = await PostgresStore.open(self._url)
        self.slowest = max(self.slowest, time.monotonic() - begun)
        try:
            for writer in self.writers:
                await _check_writer(store, writer)
        finally:
            await store.close()

    async def check_all(self) -> None:
        """Every content, not only those since the last round; and each against its hash."""
        for writer in self.writers:
            writer.checked = 0
        await self._check()
        store = await PostgresStore.open(self._url)
        try:
            for writer in self.writers:
                assert await store.verify(scope_of(writer.name)) == []
        finally:
            await store.close()


async def _check_writer(store: PostgresStore, writer: Writer) -> None:
    scope, last = scope_of(writer.name), writer.acknowledged
    for number in range(writer.checked + 1, last + 1):
        for content in contents_of(writer.name, number):
            stored = await store.get(scope, content.ref_id)
            assert stored is not None
            assert stored.data == content.data
        message = message_of(writer.name, number)
        assert await store.messages(scope, [digest(message)]) == {digest(message): message}
    turns = await store.turns(scope, after=writer.checked, limit=1_000_000)
    numbers = [turn.number for turn in turns]
    assert numbers == list(range(writer.checked + 1, writer.checked + 1 + len(numbers)))
    assert writer.checked + len(numbers) >= last
    writer.checked = last


@contextmanager
def crashes(server: Server, url: str, seed: int) -> Iterator[Crashes]:
    made = Crashes(server, url, seed)
    try:
        yield made
    finally:
        for writer in made.writers:
            writer.kill()


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_when_writers_and_server_are_killed(
    postgres_server: Server, postgres_url: str
) -> None:
    with crashes(postgres_server, postgres_url, seed=3) as made:
        for victims in VICTIMS:
            made.round(victims)
    asyncio.run(made.check_all())


@pytest.mark.campaign
def test_nothing_acknowledged_is_lost_in_a_hundred_crashes(
    postgres_server: Server, postgres_url: str, record_property: Callable[[str, object], None]
) -> None:
    with crashes(postgres_server, postgres_url, seed=random.randrange(2**32)) as made:
        for _ in range(100):
            made.round(random.choice(VICTIMS))
    asyncio.run(made.check_all())
    record_property("acknowledged steps", sum(writer.acknowledged for writer in made.writers))
    record_property("slowest opening in seconds", made.slowest)
