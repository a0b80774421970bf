"""Several worker processes on one port: started, watched, replaced and stopped together.

The parent answers no request. It opens the port and checks the store, then starts the workers,
which share both: a session may continue in any of them, because each turn is in the store before
the response ends. Each worker listens on a separate socket, among which Linux distributes
connections; with one shared socket, one worker took 12 of 13. The parent keeps all sockets open, so
that the replacement of a dead worker accepts its waiting connections.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from types import FrameType

import msgspec

from holdfast.errors import HoldfastError, SettingsError
from holdfast.settings import Settings
from holdfast.surfaces.proxy import preflight, server
from holdfast.surfaces.proxy.heap import use_few_heaps
from holdfast.surfaces.proxy.logs import Fields, log
from holdfast.surfaces.proxy.server import ProxyAddresses
from holdfast.surfaces.proxy.worker_counters import Peers
from holdfast.temporary import remove_stale_folders, temporary_folder

_LEAST_LIFE_SECONDS = 5.0
"""A worker that ends sooner will probably do so again."""
_PAUSE_SECONDS = 1.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(settings: Settings, *, started: Callable[[ProxyAddresses], None]) -> None:
    """Run the proxy until a signal stops it; `started` gets its addresses."""
    preflight.check(settings)
    remove_stale_folders()
    if settings.serve_workers == 1:
        server.serve(settings, started=started)
        return
    use_few_heaps()
    with ExitStack() as stack:
        listeners = _listeners(settings, stack)
        where = asyncio.run(_tried(settings, listeners[0]))
        folder = stack.enter_context(temporary_folder())
        sockets = [
            stack.enter_context(_unix_socket(folder / f"{number}.sock"))
            for number in range(settings.serve_workers)
        ]
        server.warm_up()  # once for all: the workers share these 45 MB
        gc.collect()
        # keeps shared memory shared: the collector writes to the objects that it visits
        gc.freeze()
        _Crew(settings, listeners, sockets, folder).run(lambda: started(where))
    log.info(Fields(event="stopped"))


def _listeners(settings: Settings, stack: ExitStack) -> list[socket.socket]:
    """A listening socket for each worker, at one port; one for all where only Linux's would do."""
    deals = sys.platform == "linux"
    first = stack.enter_context(server.listen(settings, beside_others=deals))
    if not deals:
        return [first] * settings.serve_workers
    same_port = msgspec.structs.replace(settings, serve_port=first.getsockname()[1])
    sockets = [
        stack.enter_context(server.listen(same_port, beside_others=True))
        for _ in range(settings.serve_workers - 1)
    ]
    return [first, *sockets]


async def _tried(settings: Settings, listener: socket.socket) -> ProxyAddresses:
    """Open once what the workers will open, to report errors before they start."""
    async with server.opened(settings) as service:
        return server.whereabouts(service, listener)


def _unix_socket(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()
    listening.setblocking(False)
    return listening


class _Crew:
    """The workers, as their parent sees them."""

    def __init__(
        self,
        settings: Settings,
        listeners: list[socket.socket],
        sockets: list[socket.socket],
        folder: Path,
    ) -> None:
        self._settings = settings
        self._listeners = listeners
        self._sockets = sockets
        self._folder = folder
        self._numbers: dict[int, int] = {}
        """The number of each worker by its process."""
        self._began: dict[int, float] = {}
        self._stopping = threading.Event()
        self._lifeline, self._held = os.pipe()
        """Closing its end tells the workers that the parent is gone, for any reason."""

    def run(self, ready: Callable[[], None]) -> None:
        """Start all, and keep them going until a signal comes."""
        before = {number: signal.signal(number, self._stop) for number in _SIGNALS}
        try:
            pipes = [self._start(number) for number in range(len(self._sockets))]
            if not all(map(_is_ready, pipes)) and not self._stopping.is_set():
                raise SettingsError(
                    "a worker ended while it started",
                    where=f"serve_workers {len(self._sockets)}",
                    fix="The log says why; with one worker the error is shown in full.",
                )
            if not self._stopping.is_set():
                ready()
            self._watch()
        finally:
            if not self._stopping.is_set():  # a second signal would drop their responses
                self._stop()
            while self._numbers:
                self._wait()
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(self._lifeline)
            os.close(self._held)

    def _watch(self) -> None:
        """Put a new worker in the place of each that ends, until all are to end."""
        while not self._stopping.is_set():
            worker, pid, code = self._wait()
            if self._stopping.is_set():
                return
            log.error(Fields(event="worker_ended", worker=worker, pid=pid, code=code))
            if time.monotonic() - self._began[worker] < _LEAST_LIFE_SECONDS:
                time.sleep(_PAUSE_SECONDS)
            if not self._stopping.is_set():
                os.close(self._start(worker))

    def _wait(self) -> tuple[int, int, int]:
        """The next worker that ends: its number, its process, and how it ended."""
        while True:
            pid, status = os.wait()
            if pid in self._numbers:  # in a container we are given the orphans of others too
                return self._numbers.pop(pid), pid, os.waitstatus_to_exitcode(status)

    def _stop(self, _: int = 0, __: FrameType | None = None) -> None:
        """Let every worker end its answers; the second time, drop them."""
        self._stopping.set()
        for pid in self._numbers:
            with suppress(ProcessLookupError):  # it has ended, and was just waited for
                os.kill(pid, signal.SIGTERM)

    def _start(self, number: int) -> int:
        """Start a worker; what its first byte can be read from, once it takes requests."""
        reading, writing = os.pipe()
        # Held back meanwhile, for the child has its parent's handlers until it has its own.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            # Ctrl-C is for the parent, which stops the workers
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            os.close(reading)
            os.close(self._held)
            self._work(number, writing)
        self._numbers[pid] = number
        self._began[number] = time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        os.close(writing)
        return reading

    def _work(self, number: int, writing: int) -> None:
        """Be a worker, to the end of this process."""
        code = 1
        try:
            worker = server.ProxyWorker(
                Peers(number, self._sockets, self._folder),
                partial(_tell_ready, writing),
                self._lifeline,
            )
            asyncio.run(server.work(self._settings, self._listeners[number], worker))
            code = 0
        except HoldfastError as error:
            log.error(Fields(event="worker_failed", worker=number, why=error.what))
        except BaseException as error:  # noqa: BLE001 - nothing of the parent's may run on here
            log.error(Fields(event="bug", worker=number, kind=type(error).__name__))
        finally:
            os._exit(code)


def _tell_ready(writing: int) -> None:
    with suppress(BrokenPipeError):  # nobody waits for a worker that takes another's place
        os.write(writing, b".")
    os.close(writing)


def _is_ready(reading: int) -> bool:
    try:
        return bool(os.read(reading, 1))
    finally:
        os.close(reading)
