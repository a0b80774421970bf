"""Send a bomb to a running proxy, with pings in parallel, and report both results."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.hardening import pinging
from tests.hardening.blunt import Blunt
from tests.hardening.bombs import BOMBS, Bomb, Thrown, log_lines, result
from tests.surfaces.proxy.test_server import Process

_PATIENCE = 300.0
MOST_PAGE_BYTES = 2_000_000
"""Maximum size of a dashboard page."""
_AFTER = 0.5
"""Seconds in which pings still count after a bomb: its clean-up may be slow too."""


class Outcome(NamedTuple):
    """What became of a bomb."""

    name: str
    statuses: tuple[int, ...]
    seconds: float
    """Until it was answered."""
    cpu_seconds: float
    """Of the proxy itself."""
    worker_seconds: float
    """CPU seconds of its workers, including killed ones."""
    worst: float
    """The longest that a ping took, in seconds."""
    p99: float


class Pings:
    """A process that pings a server."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.answers: list[tuple[float, float]] = []
        command = [sys.executable, pinging.__file__, str(parts.hostname), str(parts.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            due, answered = map(float, line.split())
            self.answers.append((due, answered))

    def between(self, start: float, stop: float) -> list[float]:
        """How long the pings took that were due in a time, the last of them waited for."""
        while not self.answers or self.answers[-1][0] < stop:
            if self._process.poll() is not None:
                raise AssertionError("the proxy has hung up on the ping")
            time.sleep(pinging.EVERY)
        return [answered - due for due, answered in self.answers if start <= due <= stop]

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._thread.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def target(folder: Path, *options: str) -> Iterator[tuple[Process, Blunt]]:
    """Yield a proxy, as users run it, with a blunt upstream."""
    with Blunt() as upstream:
        process = Process(folder, "--openai", upstream.url, "--anthropic", upstream.url, *options)
        drain = threading.Thread(target=process.stderr.read)  # a full pipe would stop the proxy
        drain.start()
        try:
            yield process, upstream
        finally:
            process.process.terminate()
            process.process.wait(timeout=60)
            drain.join()
            process.stderr.close()


def thrown(bomb: Bomb, scale: float, process: Process, upstream: Blunt, pings: Pings) -> Outcome:
    """Throw a bomb, and wait for its answers."""
    built = bomb.build(scale)
    upstream.answer = built.answer
    own, workers = cpu_seconds(process.process.pid)
    start = time.monotonic()
    with ThreadPoolExecutor(min(50, len(built.bodies))) as clients:
        statuses = tuple(clients.map(lambda body: send(process.url, built, body), built.bodies))
    stop = time.monotonic()
    times = sorted(pings.between(start, stop + _AFTER))
    own_after, workers_after = cpu_seconds(process.process.pid)
    return Outcome(
        bomb.name,
        tuple(sorted(set(statuses))),
        stop - start,
        own_after - own,
        workers_after - workers,
        times[-1],
        times[min(len(times) - 1, int(len(times) * 0.99))],
    )


def send(url: str, built: Thrown, body: bytes) -> int:
    """Send one request of a bomb as it is to be sent; the status of its answer."""
    parts = urlsplit(url)
    client = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_PATIENCE)
    headers = {"content-type": "application/json", **dict(built.headers)}
    try:
        if built.chunk:
            pieces = (body[at : at + built.chunk] for at in range(0, len(body), built.chunk))
            client.request("POST", built.path, pieces, headers, encode_chunked=True)
        else:
            client.request("POST", built.path, body, headers)
        response = client.getresponse()
        response.read()
        warning = response.getheader("x-holdfast-warning")  # a turn not written down has no page
        for page in built.pages:
            client.request("GET", page)
            shown = client.getresponse()
            assert len(shown.read()) < MOST_PAGE_BYTES or page.endswith("asked"), page
            assert shown.status == 200, (page, shown.status, warning)
        return response.status
    finally:
        client.close()


def cpu_seconds(pid: int) -> tuple[float, float]:
    """Return the CPU seconds of a process, and of its children, including ended ones."""
    ticks = os.sysconf("SC_CLK_TCK")
    own, ended = _ticks(pid)
    threads = Path(f"/proc/{pid}/task").iterdir()
    children = [child for each in threads for child in (each / "children").read_text().split()]
    running = sum(sum(_ticks(int(child))) for child in children)
    return own / ticks, (ended + running) / ticks


def _ticks(pid: int) -> tuple[int, int]:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0, 0
    return int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])


def all_thrown(
    folder: Path, scale: float = 1.0, names: tuple[str, ...] = ()
) -> Iterator[tuple[Bomb, Outcome]]:
    """Throw bombs in turn at one proxy."""
    with target(folder) as (process, upstream):
        # A proxy loads its words and its first worker when they are needed, once.
        send(process.url, Thrown((result(log_lines(50_000)),)), result(log_lines(50_000)))
        pings = Pings(process.url)
        try:
            for bomb in BOMBS:
                if not names or any(name in bomb.name for name in names):
                    yield bomb, thrown(bomb, scale, process, upstream, pings)
        finally:
            pings.end()


def row(outcome: Outcome) -> str:
    """An outcome as a row of a table in Markdown."""
    answered = ", ".join(map(str, outcome.statuses))
    return (
        f"| {outcome.name} | {answered} | {outcome.seconds:.1f} s | {outcome.cpu_seconds:.1f} s "
        f"| {outcome.worker_seconds:.1f} s | {outcome.worst * 1000:.0f} ms "
        f"| {outcome.p99 * 1000:.0f} ms |"
    )


TABLE_HEAD = (
    "| bomb | answer | until answered | CPU, proxy | CPU, workers | worst ping | p99 |\n"
    "|---|---|--:|--:|--:|--:|--:|"
)


if __name__ == "__main__":
    import tempfile

    sys.stdout.write(f"{TABLE_HEAD}\n")
    for _, outcome in all_thrown(Path(tempfile.mkdtemp()), float(sys.argv[1]), tuple(sys.argv[2:])):
        sys.stdout.write(row(outcome) + "\n")
        sys.stdout.flush()
