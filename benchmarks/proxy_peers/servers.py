"""The proxies that are compared, each started as its users start it, in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, NamedTuple

import psutil

from benchmarks.peers.environment import QUIET, ROOT
from benchmarks.proxy_peers import environment

PATIENCE = 120.0
"""Seconds that a proxy may take to start; some import for half a minute."""


class Served(NamedTuple):
    """A running proxy."""

    name: str
    port: int
    process: psutil.Process

    @property
    def rss(self) -> float:
        """Resident memory in MB, children included."""
        total = 0
        for one in (self.process, *self.process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):  # a worker may end between two looks
                total += one.memory_info().rss
        return total / 1e6

    @property
    def cpu(self) -> float:
        """Milliseconds of CPU that it has used, children included."""
        family = [self.process, *self.process.children(recursive=True)]
        times = [one.cpu_times() for one in family]
        return float(sum(one.user + one.system for one in times) * 1000)


@contextmanager
def upstream() -> Iterator[int]:
    """The fake provider; its port."""
    command = [sys.executable, "-m", "benchmarks.proxy_peers.upstream"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


@contextmanager
def holdfast(to: int, workers: int = 1) -> Iterator[Served]:
    """Ours, with its default store: a file."""
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "holdfast", "serve", "--port", str(port)]
        command += ["--store", f"sqlite:///{folder}/holdfast.db"]
        command += ["--openai", f"http://127.0.0.1:{to}", "--workers", str(workers)]
        with _running("holdfast", command, port, {}) as served:
            yield served


@contextmanager
def litellm(to: int) -> Iterator[Served]:
    """litellm's proxy, with every model sent to the fake provider."""
    port = _free_port()
    config = f"""
model_list:
  - model_name: gpt-4o
    litellm_params:
      model: openai/gpt-4o
      api_base: http://127.0.0.1:{to}/v1
      api_key: key-of-the-benchmark
litellm_settings:
  telemetry: false
"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(config)
        command = [str(environment.python("litellm").with_name("litellm")), "--config", str(path)]
        command += ["--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
        with _running("litellm", command, port, {"LITELLM_LOG": "ERROR"}) as served:
            yield served


@contextmanager
def headroom(to: int) -> Iterator[Served]:
    """headroom's proxy; without its cache of answers and its limits, which would hide the work."""
    port = _free_port()
    command = [str(environment.python("headroom").with_name("headroom")), "proxy"]
    command += ["--port", str(port), "--openai-api-url", f"http://127.0.0.1:{to}"]
    command += ["--no-cache", "--no-rate-limit", "--no-telemetry", "--no-subscription-tracking"]
    with _running("headroom", command, port, {"OPENAI_API_KEY": "key-of-the-benchmark"}) as served:
        yield served


PROXIES: dict[str, Callable[[int], AbstractContextManager[Served]]] = {
    "holdfast": holdfast,
    "two workers": partial(holdfast, workers=2),
    "litellm": litellm,
    "headroom": headroom,
}


@contextmanager
def _running(name: str, command: list[str], port: int, more: dict[str, str]) -> Iterator[Served]:
    with ExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile())
        process = subprocess.Popen(  # noqa: S603
            command, cwd=ROOT, env={**os.environ, **QUIET, **more}, stdout=log, stderr=log
        )
        try:
            _until_it_listens(process, port, log)
            yield Served(name, port, psutil.Process(process.pid))
        finally:
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
            process.kill()
            process.wait()


def _until_it_listens(process: subprocess.Popen[bytes], port: int, log: IO[bytes]) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        try:
            connection = HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/")
            connection.getresponse()
        except OSError:
            time.sleep(0.2)
        else:
            return
        finally:
            connection.close()
    log.seek(0)
    last = log.read().decode("utf-8", "replace").strip().splitlines()[-1:]
    raise RuntimeError(f"it does not start: {''.join(last)[:200]}")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
