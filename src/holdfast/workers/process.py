"""One worker process, seen from its parent: start it, ask it, and kill it at its deadline.

process: after child, before pool. A deadline is a timer that kills the process. Threads that wait
for a pipe of it then see its end, whether the worker hangs, was stopped, or never read its order.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from typing import BinaryIO, cast

import msgspec

from holdfast.workers.tasks import Order, Task, TaskAnswer, pack, receive, send

# Not multiprocessing: it would run the user's main module again, and forking a process that has
# threads copies the locks they hold. Modules are looked for where this process looks for them.
_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from holdfast.workers.child import main; main(int(sys.argv[2]))"
)


class WorkerGoneError(Exception):
    """The worker did not answer; the text gives the reason, as the end of a sentence."""

    def __init__(self, why: str, kind: str) -> None:
        super().__init__(why)
        self.kind = kind
        """In a word, for counters: `deadline`, `crash`, `busy` or `failed`."""


class WorkerProcess:
    """A process that obeys one order at a time."""

    def __init__(self, memory_bytes: int) -> None:
        """Start it; OSError if there is no way to."""
        command = [sys.executable, "-I", "-X", "utf8", "-c", _CODE]
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
            [*command, json.dumps(sys.path), str(memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a traceback may hold content
            # Signals of the terminal are for the parent. A separate session would be scheduled like
            # a separate program (autogroups of Linux), and niceness would have no effect.
            process_group=0 if os.name == "posix" else None,
        )
        self.leaves = False
        self.is_retired = False
        """Whether it must not be used again, because its memory may contain removed text."""
        self._overdue = False

    @property
    def pid(self) -> int:
        """Its number in the system."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it may be asked again."""
        return not (self.leaves or self.is_retired) and self._process.poll() is None

    def ask(self, task: Task, data: bytes, seconds: float) -> TaskAnswer:
        """Have a task done, or WorkerGoneError; then the worker is dead."""
        order = pack(Order(task, seconds))
        self._overdue = False
        timer = threading.Timer(seconds, self._expire)
        timer.daemon = True
        timer.start()
        try:
            send(cast("BinaryIO", self._process.stdin), order, data)
            head, _ = receive(cast("BinaryIO", self._process.stdout))
            answer = msgspec.msgpack.decode(head, type=TaskAnswer)
        except (OSError, EOFError, ValueError, msgspec.MsgspecError):
            self.close()
            if self._overdue:
                why = f"took longer than {seconds:,.1f} seconds"
                raise WorkerGoneError(why, "deadline") from None
            raise WorkerGoneError("broke the process that did it", "crash") from None
        finally:
            timer.cancel()
        self.leaves = answer.leaves
        return answer

    def _expire(self) -> None:
        self._overdue = True
        self._process.kill()

    def close(self) -> None:
        """End it and close its pipes; a thread that waits for its answer gets an error."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError, ValueError):  # unsent bytes are discarded
                    pipe.close()
