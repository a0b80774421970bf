"""The counters of all worker processes, from any of them.

Each worker answers the others at a Unix socket that the parent created before it started any; the
replacement of a dead worker uses the same one. Nothing is written, so requests cost nothing for it,
and the figures are current.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
from prometheus_client import Metric
from prometheus_client.samples import Sample

_ANSWER_SECONDS = 1.0
"""A worker that is starting, or busy for longer, is left out: its counters come the next time."""
_MOST_BYTES = 10_000_000
_STARTED = "process_start_time_seconds"


class WorkerCounters(NamedTuple):
    """A metric of one worker."""

    name: str
    documentation: str
    kind: str
    samples: list[tuple[str, dict[str, str], float]]


class Peers:
    """The workers of one proxy, of which this process is one."""

    def __init__(self, number: int, sockets: Sequence[socket.socket], folder: Path) -> None:
        self.number = number
        self.total = len(sockets)
        self.folder = folder
        """Folder for data that outlives a worker; the parent removes it."""
        self._own = sockets[number]
        self._addresses = {n: sock.getsockname() for n, sock in enumerate(sockets) if n != number}

    @asynccontextmanager
    async def answering(
        self, counted: Callable[[], Sequence[WorkerCounters]]
    ) -> AsyncIterator[None]:
        """Serve this worker's counters to the others."""

        async def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(msgspec.msgpack.encode(counted()))
            writer.close()
            await writer.wait_closed()

        async with await asyncio.start_unix_server(tell, sock=self._own):
            yield

    async def gathered(self, own: Sequence[WorkerCounters]) -> dict[int, Sequence[WorkerCounters]]:
        """What each worker counted, by its number."""
        responses = await asyncio.gather(*map(_asked, self._addresses.values()))
        counters = {
            n: theirs for n, theirs in zip(self._addresses, responses, strict=True) if theirs
        }
        return dict(sorted({**counters, self.number: own}.items()))


async def _asked(address: str) -> list[WorkerCounters] | None:
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_unix_connection(address, limit=_MOST_BYTES)
            try:
                return msgspec.msgpack.decode(await reader.read(), type=list[WorkerCounters])
            finally:
                writer.close()
    except (OSError, TimeoutError, msgspec.DecodeError):
        return None


class LabelledCounters:
    """The counters of all workers for Prometheus, each with the number of its worker.

    They are not summed: the counters of a replaced worker start at zero, which Prometheus detects
    only in separate series.
    """

    def __init__(self, by_worker: dict[int, Sequence[WorkerCounters]]) -> None:
        self._by_worker = by_worker

    def collect(self) -> Iterator[Metric]:
        """All metrics, as a registry gives them."""
        metrics: dict[str, Metric] = {}
        for number, counted in self._by_worker.items():
            for each in counted:
                metric = metrics.setdefault(
                    each.name, Metric(each.name, each.documentation, each.kind)
                )
                for name, labels, value in each.samples:
                    metric.samples.append(Sample(name, {**labels, "worker": str(number)}, value))
        yield from metrics.values()


def summed(by_worker: dict[int, Sequence[WorkerCounters]]) -> list[WorkerCounters]:
    """The counters of all workers as if they were one process, for people."""
    sums: dict[str, WorkerCounters] = {}
    values: dict[tuple[str, str, tuple[tuple[str, str], ...]], float] = {}
    for counted in by_worker.values():
        for metric in counted:
            sums.setdefault(metric.name, metric._replace(samples=[]))
            for name, labels, value in metric.samples:
                key = (metric.name, name, tuple(labels.items()))
                if name == _STARTED:
                    values[key] = min(values.get(key, value), value)
                else:
                    values[key] = values.get(key, 0.0) + value
    for (metric_name, name, pairs), value in values.items():
        sums[metric_name].samples.append((name, dict(pairs), value))
    return list(sums.values())
