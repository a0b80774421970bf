"""The proxy for one program: it starts before the program, and stops with it.

Both run in the foreground of one terminal: only the program prints there, and the program handles
the interrupt key.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from holdfast.settings import Settings
from holdfast.surfaces.proxy.heap import use_few_heaps
from holdfast.surfaces.proxy.server import Server, base_url, listen, opened, stopped_by
from holdfast.surfaces.proxy.tally import RunReport


class Program(NamedTuple):
    """A program to be run: no shell reads its words."""

    command: Sequence[str]
    environment: Mapping[str, str]


async def beside(settings: Settings, program_at: Callable[[str], Program]) -> tuple[int, RunReport]:
    """Serve while a program runs with the proxy's address; return its exit code, and its usage."""
    use_few_heaps()
    settings = msgspec.structs.replace(settings, serve_port=0)
    with listen(settings) as listener:
        async with opened(settings) as service:
            ready = asyncio.Event()
            server = Server(service, ready.set)
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                await ready.wait()
                code = await run(program_at(base_url(listener)))
            finally:
                # A background process of the program may still read a response.
                with stopped_by(server, signal.SIGINT, signal.SIGTERM):
                    server.stop()
                    await serving
            await service.drain()  # an answer is not kept waiting for its turn to be written down
            return code, service.telemetry.tally.report()


async def run(program: Program) -> int:
    """Run a program in this terminal; return the exit code as shells report it.

    Raises:
        OSError: it cannot be started.
    """
    loop = asyncio.get_running_loop()
    running: list[asyncio.subprocess.Process] = []

    def forward(number: int) -> None:
        for process in running:
            with suppress(ProcessLookupError):  # it has just ended by itself
                process.send_signal(number)

    # The terminal sends Ctrl-C to the program too, which may mean "stop this answer", not "end".
    # All are in place before the program is: one that comes meanwhile would end us alone.
    handlers: dict[int, Callable[..., object]] = {signal.SIGINT: lambda _: None}
    handlers[signal.SIGTERM] = forward
    if os.name == "posix":
        handlers[signal.SIGHUP] = forward
    with suppress(NotImplementedError):  # Windows: Ctrl-C ends both
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler, number)
    try:
        environment = dict(program.environment)
        running.append(await asyncio.create_subprocess_exec(*program.command, env=environment))
        code = await running[0].wait()
    finally:
        with suppress(NotImplementedError):
            for number in handlers:
                loop.remove_signal_handler(number)
    return 128 - code if code < 0 else code
