"""Children of the nursery, from outside: born, watched, stopped and killed.

births: after nursery. A child is known by its pid and held by a descriptor of it, so that its end
is seen when it comes, and no other process can be mistaken for it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0


class Child:
    """A process that may be killed at any moment."""

    def __init__(self, pid: int, announced: dict[str, Any]) -> None:
        self.pid = pid
        self.announced = announced
        """Its first report."""
        self._handle: int | None = None
        with suppress(ProcessLookupError):  # its work was short: it has ended already
            self._handle = os.pidfd_open(pid)

    def send(self, what: signal.Signals) -> None:
        if self._handle is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, what)

    def kill(self) -> None:
        """End it with SIGKILL; return when it is gone."""
        self.send(signal.SIGKILL)
        self._ended()
        with suppress(ProcessLookupError):  # its own children, which end with it
            os.killpg(self.pid, signal.SIGKILL)

    def _ended(self) -> None:
        """Wait for its end."""
        if self._handle is not None:
            ends = select.poll()
            ends.register(self._handle, select.POLLIN)
            assert ends.poll(PATIENCE * 1000), "the process does not end"
            os.close(self._handle)
            self._handle = None


class Nursery:
    """Where children are asked for."""

    def __init__(self, process: subprocess.Popen[str], log: IO[str]) -> None:
        self._process = process
        self._log = log
        assert self._line() == {"pid": process.pid, "ready": True}

    def born(self, work: str, **asked: Any) -> Child:
        """A child that has begun its work."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"work": work, **asked}) + "\n")
        self._process.stdin.flush()
        announced = self._line()
        return Child(announced.pop("pid"), announced)

    def _line(self) -> Any:
        assert self._process.stdout
        while True:
            line = self._process.stdout.readline()
            assert line, f"the nursery has ended: {self.logged()[-2000:]}"
            news = json.loads(line)
            if not news.get("done"):  # the late output of an earlier child
                return news

    def logged(self) -> str:
        """Return the children's log since the last call."""
        return self._log.read()


@contextmanager
def nursery(folder: Path, module: str = "tests.hardening.nursery") -> Iterator[Nursery]:
    """Yield a nursery that ends with the block; its children log to a file."""
    file = folder / "log"
    with (
        file.open("a") as log,
        file.open() as read,
        subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
        ) as process,
    ):
        try:
            yield Nursery(process, read)
        finally:
            assert process.stdin
            process.stdin.close()
