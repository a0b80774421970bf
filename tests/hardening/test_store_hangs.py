"""A store that hangs, is locked, killed, replaced, truncated or full delays no request.

Twelve requests at once through a real proxy during the failure: each gets the provider's answer
before the failure ends, health reports it, and service recovers by itself. Acknowledged requests,
those answered without a warning, are rebuilt byte for byte.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest
from aiohttp import web

from holdfast.client import Client
from holdfast.errors import StoreUnavailableError
from holdfast.store.sqlite import SqliteStore
from tests.fitting.test_citing import chat
from tests.hardening.campaign import Campaign, short_and_full
from tests.store.postgres_server import Server
from tests.surfaces.proxy.harness import (
    KEYS,
    Answered,
    Running,
    ask,
    path_of,
    request_in,
    running_proxy,
    text_of,
)
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.upstream import PATIENCE, Fault, Upstream, UpstreamTurn

AT_ONCE = 12
ANSWER = "All went well."
DIALECT = "openai-chat"
KEY = KEYS["authorization"].removeprefix("Bearer ")
SUFFIXES = ("", "-wal", "-shm")

Trouble = Callable[[Running, Path], AbstractContextManager[None]]


def body_of(number: int, *, stream: bool = False) -> bytes:
    """A request with a tool result that is cited, and so stored before it is sent."""
    result = "\n".join(hashlib.sha256(b"%d %d" % (number, n)).hexdigest() for n in range(400))
    return request_in(DIALECT, chat(result, question=f"What is {number}?"), stream=stream)


def until(holds: Callable[[], bool]) -> float:
    """Wait until something holds, and return the seconds that it took."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.02)
    return time.monotonic() - began


# --- troubles of PostgreSQL ----------------------------------------------------------------------


@contextmanager
def tables_locked(url: str) -> Iterator[None]:
    """Another session holds every table, so that not even readers get in."""
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(url))
        rows = runner.run(
            connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'holdfast'")
        )
        names = ", ".join(f"holdfast.{row['tablename']}" for row in rows)
        runner.run(connection.execute(f"BEGIN; LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE"))
        try:
            yield
        finally:
            runner.run(connection.close())


@contextmanager
def killed(server: Server) -> Iterator[None]:
    server.kill()
    try:
        yield
    finally:
        server.start()


# --- troubles of SQLite --------------------------------------------------------------------------

_HOLDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked_by_another(_: Running, path: Path) -> Iterator[None]:
    command = [sys.executable, "-c", _HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"locked\n"
        yield
        assert holder.stdin
        holder.stdin.close()


def files_of(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in SUFFIXES]


@contextmanager
def deleted(_: Running, path: Path) -> Iterator[None]:
    """Delete all files, and restore them under other inodes."""
    copy = path.parent / "copy"
    copy.mkdir()
    for file in files_of(path):
        shutil.copy(file, copy)
        file.unlink()
    yield
    for file in files_of(path):
        (copy / file.name).rename(file)


@contextmanager
def replaced_by_another_file(_: Running, path: Path) -> Iterator[None]:
    good = path.with_name("good.db")
    asyncio.run(copied(path, good))
    bad = path.with_name("bad.db")
    bad.write_bytes(os.urandom(100_000))
    bad.rename(path)
    yield
    good.rename(path)


@contextmanager
def truncated(_: Running, path: Path) -> Iterator[None]:
    good = path.with_name("good.db")
    asyncio.run(copied(path, good))
    os.truncate(path, path.stat().st_size // 2)
    yield
    good.rename(path)


@contextmanager
def emptied(_: Running, path: Path) -> Iterator[None]:
    good = path.with_name("good.db")
    asyncio.run(copied(path, good))
    os.truncate(path, 0)
    yield
    good.rename(path)


async def copied(path: Path, target: Path) -> None:
    """A backup as `holdfast store backup` makes it."""
    store = await SqliteStore.open(path)
    try:
        await store.backup(str(target))
    finally:
        await store.close()


@contextmanager
def full(proxy: Running, _: Path) -> Iterator[None]:
    store = proxy.service.engine.store
    assert isinstance(store, SqliteStore)
    proxy.do(store._write(lambda db: db.execute("PRAGMA max_page_count = 1").get))
    yield
    proxy.do(store._write(lambda db: db.execute("PRAGMA max_page_count = 1000000").get))


SQLITE: dict[str, Trouble] = {
    "locked": locked_by_another,
    "deleted": deleted,
    "replaced": replaced_by_another_file,
    "truncated": truncated,
    "emptied": emptied,
    "full": full,
}


# --- what must hold ------------------------------------------------------------------------------


class Siege:
    """A proxy, its acknowledged requests, and its response times."""

    def __init__(self, proxy: Running, campaign: Campaign) -> None:
        self.proxy = proxy
        self.campaign = campaign
        self.acknowledged: list[tuple[str, bytes]] = []
        """Session and body of each request that was answered without a warning."""
        self._numbers = itertools.count(1)
        self._slowest: dict[str, float] = {}

    def send(self, body: bytes = b"", *, stream: bool = False) -> tuple[Answered, float]:
        """Send a request, by default one that was never sent; and the seconds that it took."""
        body = body or body_of(next(self._numbers), stream=stream)
        began = time.monotonic()
        url = self.proxy.url + path_of(DIALECT, stream=stream)
        answered = ask(url, body, KEYS, patience=PATIENCE)
        seconds = time.monotonic() - began
        assert answered.status == 200
        assert text_of(DIALECT, answered, stream=stream) == ANSWER
        if "x-holdfast-warning" not in answered.headers and not stream:
            self.acknowledged.append((answered.headers["x-holdfast-session"], body))
        return answered, seconds

    def send_at_once(self) -> float:
        """Send twelve requests at once, and return the seconds of the slowest."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            outcomes = list(threads.map(lambda _: self.send(), range(AT_ONCE)))
        for answered, _ in outcomes:
            assert "store" in answered.headers["x-holdfast-warning"]
        return max(seconds for _, seconds in outcomes)

    def is_healthy(self) -> bool:
        health = ask(f"{self.proxy.url}/healthz", patience=PATIENCE)
        assert health.status == 200
        assert health.body in (b"ok\n", b"ok, but the store is unavailable\n")
        return health.body == b"ok\n"

    def works_again(self) -> bool:
        answered, _ = self.send()
        return "x-holdfast-warning" not in answered.headers

    def endure(self, trouble: AbstractContextManager[None], *, hangs: bool) -> None:
        """Ask before, during and after a trouble."""
        until(self.works_again)
        self.proxy.settled()
        until(self.is_healthy)
        with trouble:  # all inside is answered while the trouble lasts
            self.note("slowest of 12 at once", self.send_at_once())
            until(lambda: not self.is_healthy())
            self.note("slowest of 3 later", max(self.send()[1] for _ in range(3)))
            if hangs:  # so that they did not wait for the deadline again
                assert self.breaker_is_open()
                assert ask(f"{self.proxy.url}/stats", patience=PATIENCE).status == 503
                assert ask(f"{self.proxy.url}/metrics", patience=PATIENCE).status == 200
        self.note("recovered after", until(self.works_again))
        until(self.is_healthy)
        self.proxy.settled()
        self.look_for_acknowledged()

    def look_at_health(self, trouble: AbstractContextManager[None]) -> None:
        """Check that health reports a failure that no request has met."""
        assert self.works_again()
        self.proxy.settled()
        assert self.is_healthy()
        with trouble:
            self.note("health told after", until(lambda: not self.is_healthy()))
        self.note("healthy after", until(self.is_healthy))

    def note(self, name: str, seconds: float) -> None:
        """Note the longest time of something for the table of the campaign."""
        self._slowest[name] = max(seconds, self._slowest.get(name, 0.0))
        self.campaign.figures[name] = f"{self._slowest[name]:.2f} s"

    def breaker_is_open(self) -> bool:
        store: Any = self.proxy.service.engine.store
        database = store._database
        breaker = database.breaker if hasattr(database, "breaker") else database._breaker
        return bool(breaker.is_open)

    def look_for_acknowledged(self) -> None:
        service = self.proxy.service
        engine = next(iter(service.tenants._recent.values()), service.engine)
        assert self.acknowledged
        for name, body in self.acknowledged:
            session = engine.session(name)
            turns = self.proxy.do(engine.store.turns(session.scope))
            assert body in [self.proxy.do(session.rebuild(turn.number)) for turn in turns]


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        running.always = says(text(ANSWER))
        yield running


def postgres_troubles(
    server: Server, url: str
) -> dict[str, Callable[[], AbstractContextManager[None]]]:
    return {
        "frozen": server.frozen,
        "locked": lambda: tables_locked(url),
        "killed": lambda: killed(server),
    }


def troubled_postgres(
    name: str, rounds: int, campaign: Campaign, upstream: Upstream, server: Server, url: str
) -> None:
    troubles = postgres_troubles(server, url)
    with running_proxy({"store_url": url, "tenant_by": "key"}, upstream.url) as proxy:
        siege = Siege(proxy, campaign)
        for _ in campaign.rounds(rounds):
            siege.endure(troubles[name](), hangs=name != "killed")


def troubled_sqlite(
    name: str, rounds: int, campaign: Campaign, upstream: Upstream, folder: Path
) -> None:
    for number in campaign.rounds(rounds):
        path = folder / str(number) / "store.db"
        with running_proxy({"store_url": f"sqlite:///{path}"}, upstream.url) as proxy:
            trouble = SQLITE[name](proxy, path)
            Siege(proxy, campaign).endure(trouble, hangs=name == "locked")


POSTGRES = ("frozen", "locked", "killed")


@pytest.mark.parametrize("name", POSTGRES)
@short_and_full("rounds", 1, 10)
def test_nobody_waits_for_a_postgresql_that_is(
    name: str,
    rounds: int,
    campaign: Campaign,
    upstream: Upstream,
    postgres_server: Server,
    postgres_url: str,
) -> None:
    troubled_postgres(name, rounds, campaign, upstream, postgres_server, postgres_url)


@pytest.mark.parametrize("name", SQLITE)
@short_and_full("rounds", 1, 10)
def test_nobody_waits_for_a_sqlite_file_that_is(
    name: str, rounds: int, campaign: Campaign, upstream: Upstream, tmp_path: Path
) -> None:
    troubled_sqlite(name, rounds, campaign, upstream, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", POSTGRES)
def test_health_tells_without_a_request_of_a_postgresql_that_is(
    name: str, campaign: Campaign, upstream: Upstream, postgres_server: Server, postgres_url: str
) -> None:
    troubles = postgres_troubles(postgres_server, postgres_url)
    with running_proxy({"store_url": postgres_url}, upstream.url) as proxy:
        Siege(proxy, campaign).look_at_health(troubles[name]())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SQLITE if name != "full"])
def test_health_tells_without_a_request_of_a_sqlite_file_that_is(
    name: str, campaign: Campaign, upstream: Upstream, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    with running_proxy({"store_url": f"sqlite:///{path}"}, upstream.url) as proxy:
        Siege(proxy, campaign).look_at_health(SQLITE[name](proxy, path))


# --- answers that are on their way ---------------------------------------------------------------


class HeldAnswer:
    """A provider's response that waits for a signal."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.released = threading.Event()

    async def spoil(self, spoken: UpstreamTurn) -> web.StreamResponse:
        self.asked.set()
        assert await asyncio.to_thread(self.released.wait, PATIENCE)
        return await spoken.say(spoken.truthful(says(text(ANSWER))))


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_answer_ends_while_the_store_is_frozen_and_its_turn_is_written_later(
    campaign: Campaign,
    upstream: Upstream,
    postgres_server: Server,
    postgres_url: str,
    stream: bool,
) -> None:
    held = HeldAnswer()
    with running_proxy({"store_url": postgres_url}, upstream.url) as proxy:
        siege = Siege(proxy, campaign)
        assert siege.works_again()
        body = body_of(0, stream=stream)
        upstream.turns.append(Fault(held.spoil))
        with ThreadPoolExecutor(1) as threads:
            sending = threads.submit(siege.send, body, stream=stream)
            assert held.asked.wait(PATIENCE)
            with postgres_server.frozen():
                held.released.set()
                answered, seconds = sending.result(PATIENCE)  # it is still frozen
                if not stream:  # the headers of a stream are sent before its turn is written
                    assert "not written" in answered.headers["x-holdfast-warning"]
        proxy.settled()
        siege.acknowledged.append((answered.headers["x-holdfast-session"], body))
        siege.look_for_acknowledged()
        siege.note("end of the answer", seconds)


@pytest.mark.slow
def test_a_library_client_is_told_at_the_deadline_and_keeps_an_answer_that_it_has(
    upstream: Upstream, postgres_server: Server, postgres_url: str
) -> None:
    held = HeldAnswer()
    question = [{"role": "user", "content": "What went wrong?"}]

    async def work() -> None:
        async with Client("gpt-4o", url=upstream.url, key=KEY, store=postgres_url) as client:
            first = await client.chat(question)
            upstream.turns.append(Fault(held.spoil))
            asking = asyncio.create_task(client.chat(question))
            assert await asyncio.to_thread(held.asked.wait, PATIENCE)
            with postgres_server.frozen():
                with pytest.raises(StoreUnavailableError, match="did not answer"):
                    await client.chat(question)
                held.released.set()
                reply = await asking  # it is still frozen
            assert reply.text == first.text == ANSWER
            assert [warning for warning in reply.warnings if "not written" in warning]
            engine = client.engine
            await asyncio.wait(client._recording)
            turns = await engine.store.turns(engine.session(client.name).scope)
            assert len(turns) == 2

    asyncio.run(work())


@pytest.mark.slow
def test_tenants_that_were_never_seen_are_answered_while_the_store_is_frozen(
    upstream: Upstream, postgres_server: Server, postgres_url: str
) -> None:
    settings = {"store_url": postgres_url, "tenant_by": "key"}
    with running_proxy(settings, upstream.url) as proxy, postgres_server.frozen():
        url = proxy.url + path_of(DIALECT)
        for number in range(3):
            headers = {**KEYS, "x-goog-api-key": f"of tenant {number}"}
            answered = ask(url, body_of(number), headers, patience=PATIENCE)
            assert text_of(DIALECT, answered) == ANSWER
            assert "store" in answered.headers["x-holdfast-warning"]
