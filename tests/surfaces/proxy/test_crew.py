"""Several workers at one port: one session whoever answers, and one proxy to who starts or ends it.

The workers are processes of `holdfast serve`, as users run it; a client keeps a connection to each.
"""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil  # type: ignore[import-untyped]
import pytest

from holdfast import Holdfast
from holdfast.errors import SettingsError
from holdfast.jobs import Attempt
from holdfast.settings import Settings
from holdfast.surfaces.proxy import crew
from holdfast.surfaces.proxy.login import COOKIE, MOST_TRIES, Logins
from holdfast.surfaces.proxy.metrics import Metrics
from holdfast.surfaces.proxy.worker_counters import Peers, WorkerCounters, summed
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy.harness import Answered, ask, path_of, request_in
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.test_server import Process, assert_answered
from tests.surfaces.proxy.test_tenants import ANN, SECRET, bearing, going_on, opens
from tests.surfaces.proxy.upstream import PATIENCE, Upstream

pytestmark = pytest.mark.skipif(os.name != "posix", reason="workers are forked")

CHAT = path_of("openai-chat")


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as provider:
        provider.always = says(text("All is well."))
        yield provider
        assert provider.refused == []


@pytest.fixture
def proxy(tmp_path: Path, upstream: Upstream) -> Iterator[Process]:
    store = f"sqlite:///{tmp_path}/store.db"
    process = Process(tmp_path, "--openai", upstream.url, "--workers", "2", "--store", store)
    yield process
    process.process.terminate()
    code, told = process.end()
    assert code == 0, told
    assert "Traceback" not in told


class Clients:
    """A client that keeps a connection to each worker."""

    def __init__(self, url: str, workers: int = 2) -> None:
        self._address = urlsplit(url).netloc
        self.of: dict[str, http.client.HTTPConnection] = {}
        for _ in range(200):  # either worker may accept a connection; both do, sooner or later
            connection = http.client.HTTPConnection(self._address, timeout=PATIENCE)
            worker = self.ask(connection, request_in("openai-chat", chat("short"))).headers[
                "x-holdfast-worker"
            ]
            if worker in self.of:
                connection.close()
            self.of.setdefault(worker, connection)
            if len(self.of) == workers:
                return
        raise AssertionError("one worker took all connections")

    def ask(self, connection: http.client.HTTPConnection, body: bytes) -> Answered:
        connection.request("POST", CHAT, body, bearing(ANN))
        response = connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Answered(response.status, headers, response.read())

    def close(self) -> None:
        for connection in self.of.values():
            connection.close()


def messages_of(body: bytes) -> bytes:
    """The bytes of a request up to the end of its messages, without the bracket that ends them."""
    messages: list[Any] = json.loads(body)["messages"]
    return json.dumps(messages).encode()[:-1]


@pytest.mark.slow
def test_a_session_goes_on_in_any_worker_with_the_same_bytes(
    proxy: Process, upstream: Upstream, tmp_path: Path
) -> None:
    body, asked = chat(log(600, 7)), []
    with closing(Clients(proxy.url)) as clients:
        first = len(upstream.requests)
        upstream.turns.append(opens)
        names = set()
        for turn in range(6):
            asked.append(request_in("openai-chat", body))
            answered = clients.ask(clients.of[f"{turn % 2}"], asked[-1])
            assert (answered.status, answered.headers["x-holdfast-worker"]) == (200, f"{turn % 2}")
            names.add(answered.headers["x-holdfast-session"])
            body = going_on(body, "All is well.", f"And {turn}?")
    [name] = names
    sent = [messages_of(request.body) for request in upstream.requests[first:]]
    assert len(sent) == 7, "one was the opening, which no client saw"
    assert SECRET.encode() in sent[1]
    for before, after in itertools.pairwise(sent):
        assert after.startswith(before)
    counters = ask(f"{proxy.url}/metrics").body.decode()
    assert 'worker="0"' in counters
    assert 'worker="1"' in counters

    async def rebuilt() -> list[bytes]:
        async with Holdfast.open(f"sqlite:///{tmp_path}/store.db") as engine:
            [scope] = await engine.store.scopes()
            session = (await engine.of(scope)).session(name)
            return [await session.rebuild(turn) for turn in range(1, 7)]

    assert asyncio.run(rebuilt()) == asked


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_and_its_sessions_go_on(
    proxy: Process, upstream: Upstream
) -> None:
    parent = psutil.Process(proxy.process.pid)
    body = chat(log(600, 7))
    with closing(Clients(proxy.url)) as clients:
        before = clients.ask(clients.of["0"], request_in("openai-chat", body))
        [victim] = [child for child in parent.children() if _serves(child, clients.of["0"])]
        victim.kill()
        victim.wait(PATIENCE)
    body = going_on(body, "All is well.", "And now?")
    with closing(Clients(proxy.url)) as clients:  # which finds two workers again
        after = clients.ask(clients.of["0"], request_in("openai-chat", body))
    assert after.status == 200
    assert after.headers["x-holdfast-session"] == before.headers["x-holdfast-session"]
    assert messages_of(upstream.requests[-1].body).startswith(
        messages_of(next(r.body for r in upstream.requests if b"ref:log" in r.body))
    )


def _serves(worker: psutil.Process, connection: http.client.HTTPConnection) -> bool:
    port = connection.sock.getsockname()[1]
    return any(c.raddr and c.raddr.port == port for c in worker.net_connections("tcp"))


@pytest.mark.slow
def test_workers_end_with_their_parent_even_if_it_is_killed(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    proxy = Process(tmp_path, "--workers", "2", "--store", store)
    workers = psutil.Process(proxy.process.pid).children(recursive=True)
    proxy.process.kill()
    _, alive = psutil.wait_procs(workers, PATIENCE)
    assert alive == []
    proxy.end()
    address = urlsplit(proxy.url)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.hostname, address.port or 0)).close()


@pytest.mark.slow
def test_a_signal_lets_every_worker_end_its_answers(tmp_path: Path) -> None:
    """The one that has nothing to do ends at once, and must not take the other with it."""
    proxy = Process(tmp_path, "--workers", "2", "--store", f"sqlite:///{tmp_path}/store.db")
    address = urlsplit(proxy.url)
    body = request_in("openai-chat", chat(log(600, 7)), stream=True)
    with socket.create_connection((address.hostname, address.port or 0), PATIENCE) as client:
        head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
        client.sendall(head.encode() + b"expect: 100-continue\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 100")
        workers = psutil.Process(proxy.process.pid).children()
        proxy.process.terminate()
        while all(map(psutil.Process.is_running, workers)):  # until the idle one has ended
            pass
        assert_answered(client, body)
    proxy.end_well()


def test_workers_cannot_share_a_store_in_memory() -> None:
    settings = Settings(serve_workers=2, store_url="memory:", serve_port=0)
    with pytest.raises(SettingsError, match="a store of its own"):
        crew.serve(settings, started=lambda _: None)


def test_a_worker_that_cannot_start_is_told_by_the_parent(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    before = signal.getsignal(signal.SIGTERM)
    url = f"sqlite:///{tmp_path}/file/store.db"
    settings = Settings(serve_workers=2, store_url=url, serve_port=0)
    with pytest.raises(Exception, match="the store"):
        crew.serve(settings, started=lambda _: None)
    assert signal.getsignal(signal.SIGTERM) == before


def test_counters_of_workers_are_summed_but_not_when_they_started() -> None:
    def counted(requests: float, started: float) -> list[WorkerCounters]:
        sample = ("requests_total", {"model": "gpt-4o"}, requests)
        start = ("process_start_time_seconds", dict[str, str](), started)
        return [
            WorkerCounters("requests", "", "counter", [sample]),
            WorkerCounters("start", "", "gauge", [start]),
        ]

    totals = {
        metric.name: metric.samples for metric in summed({0: counted(2, 9), 1: counted(3, 7)})
    }
    assert totals == {
        "requests": [("requests_total", {"model": "gpt-4o"}, 5)],
        "start": [("process_start_time_seconds", {}, 7)],
    }


def test_metrics_that_workers_tell_each_other_keep_their_types() -> None:
    class Alone:
        """The other workers, where there are none."""

        async def gathered(
            self, own: Sequence[WorkerCounters]
        ) -> dict[int, Sequence[WorkerCounters]]:
            return {0: own}

    def types(text: bytes) -> set[str]:
        return {line for line in text.decode().splitlines() if line.startswith("# TYPE")}

    async def main() -> None:
        metrics = Metrics(lambda: 0, lambda: 0)
        metrics.tried(Attempt(kind="x", state="done", seconds=0.5))
        alone = types(await metrics.text())
        assert {line.split()[3] for line in alone} >= {"counter", "gauge", "histogram"}
        assert types(await metrics.text(Alone())) == alone  # type: ignore[arg-type]

    asyncio.run(main())


def test_who_logs_out_is_logged_out_of_every_worker(tmp_path: Path) -> None:
    settings = Settings(serve_token="t0ken")
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
        here, there = (Peers(number, [first, second], tmp_path) for number in range(2))
    one, other = Logins(settings, peers=here), Logins(settings, peers=there)
    header = f"{COOKIE}={one.begin('t0ken', '127.0.0.1')}"
    assert other.token_of(header) == ""
    one.end(header)
    assert other.token_of(header) is None
    assert Logins(settings, peers=there).token_of(header) is None, "nor in one that comes later"
    for _ in range(MOST_TRIES // 2):
        one.begin("wrong", "127.0.0.1")
    assert one.must_wait("127.0.0.1"), "all workers together allow no more tries than one did"
