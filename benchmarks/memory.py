"""What a running proxy holds: idle, while it works on a large request, and after twenty of them.

The proxy is a process of its own with its default store. Each request is a conversation of its own,
so that nothing is shared. Resident memory is what the system counts: of the proxy itself, and
beside it of the workers that read large contents. HOLDFAST_BENCH_MB is the size of a request.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any, NamedTuple

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from benchmarks.proxy_peers import servers
from benchmarks.wire import WORDS

SIZE = int(os.environ.get("HOLDFAST_BENCH_MB", "20")) * 1_000_000
REQUESTS = 20
REST_SECONDS = 3.0
"""After an answer its turn is written down and the heap trimmed, with nobody waiting for it."""


class LabelledText(NamedTuple):
    """Megabytes of one proxy."""

    idle: float
    """After a small request: vocabularies are loaded with the first one."""
    first: float
    """After one large request."""
    peak: float
    """While the second one was worked on."""
    workers: float
    """Those of its workers, at most, meanwhile."""
    last: float
    """After all of them."""


def log(seed: int, size: int) -> str:
    """Lines of a log: no two are alike, as a compressor would like them."""
    chance = random.Random(seed)
    lines, length = [], 0
    while length < size:
        words = " ".join(chance.choices(WORDS, k=8))
        lines.append(f"2026-11-{len(lines) % 28 + 1:02} INFO {words} {chance.getrandbits(64):x}")
        length += len(lines[-1]) + 1
    return "\n".join(lines)


def rows(seed: int, size: int) -> str:
    """A table as JSON."""
    chance = random.Random(seed)
    values: list[Any] = []
    while len(values) * 120 < size:
        name = " ".join(chance.choices(WORDS, k=5))
        values.append({"id": len(values), "name": name, "hash": f"{chance.getrandbits(128):x}"})
    return json.dumps(values)


def several(seed: int, size: int) -> list[str]:
    """Two hundred results, as a long session has them."""
    return [log(seed * 1_000 + number, size // 200) for number in range(200)]


SHAPES: dict[str, Callable[[int, int], list[str]]] = {
    "one log": lambda seed, size: [log(seed, size)],
    "one table": lambda seed, size: [rows(seed, size)],
    "200 results": several,
}


def request(seed: int, results: list[str]) -> bytes:
    """A question, and what tools answered to it."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"Question {seed}: which disk is full?"}
    ]
    for number, text in enumerate(results):
        function = {"name": "read_file", "arguments": json.dumps({"path": f"{seed}/{number}"})}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": text})
    return json.dumps({"model": "gpt-4o", "messages": messages}).encode()


def run(console: Console) -> None:
    """Print the table."""
    table = Table(title=f"Resident MB of a proxy, requests of {SIZE / 1e6:.0f} MB")
    columns = ("idle", "after 1", "peak", "x body while at work", "workers", f"after {REQUESTS}")
    for column in ("shape", *columns):
        table.add_column(column, justify="left" if column == "shape" else "right")
    with servers.upstream() as port:
        for name, results in SHAPES.items():
            with servers.holdfast(port) as served:
                held = measure(served, lambda seed, of=results: request(seed, of(seed, SIZE)))
            # The first body stays with its session: of the second one, what it takes while it is
            # worked on is what comes on top of that.
            times = (held.peak - held.first) * 1e6 / SIZE
            figures = (held.idle, held.first, held.peak, times, held.workers, held.last)
            table.add_row(name, *(f"{figure:.1f}" for figure in figures))
            ratios.note(f"memory: {name}, the body", 1, times)
    console.print(table)


def measure(served: servers.Served, body_of: Callable[[int], bytes]) -> LabelledText:
    """Send the requests one after the other."""
    _ask(served.port, request(REQUESTS, [log(REQUESTS, 100_000)]))
    idle = _megabytes(served.process)
    _ask(served.port, body_of(0))
    first = _megabytes(served.process)
    with _watched(served) as figures:
        _ask(served.port, body_of(1))
    for seed in range(2, REQUESTS):
        _ask(served.port, body_of(seed))
    own, of_workers = map(max, zip(*figures, strict=True))
    return LabelledText(idle, first, own, of_workers, _megabytes(served.process))


def _megabytes(process: psutil.Process) -> float:
    return float(process.memory_info().rss / 1e6)


def _ask(port: int, body: bytes) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("POST", "/v1/chat/completions", body, {"authorization": "Bearer key"})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"the proxy answered {answer.status}: {text[:200]!r}")
    time.sleep(REST_SECONDS)


@contextmanager
def _watched(served: servers.Served) -> Iterator[list[tuple[float, float]]]:
    """Megabytes of the proxy and of its workers, every few milliseconds of what happens inside."""
    figures: list[tuple[float, float]] = [(0.0, 0.0)]
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            own = _megabytes(served.process)
            figures.append((own, served.rss - own))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield figures
    finally:
        ended.set()
        watcher.join()
