"""The main function of a worker process: handle one order after another until the parent is gone.

child: after tasks. It runs in a separate process, started by `process.py`, with pipes as input and
output. If its parent is killed, the process ends by itself, at the end of its input or when the
processor time of its last order is used up.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, BinaryIO

import msgspec

from holdfast.cite import count
from holdfast.errors import HoldfastError
from holdfast.workers.tasks import (
    FailureResult,
    Order,
    RefusalResult,
    TaskAnswer,
    pack,
    perform,
    receive,
    send,
)

# Windows has no such limits: there a worker has its deadline alone.
_resource: Any = import_module("resource") if find_spec("resource") else None
MEMORY = "needed too much memory"
_NICE = 10
"""Below the proxy: where both want a processor, the thread that its event loop waits for has it."""
_GROWN = 0.5
"""The share of its memory limit that a worker may keep between two orders."""


def main(memory_bytes: int) -> None:
    """Obey orders from the input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us in order
    if hasattr(os, "nice"):
        os.nice(_NICE)
    orders, answers = _pipes()
    _limit_memory(memory_bytes)
    count("a vocabulary is loaded before the first order")
    with suppress(EOFError, OSError):
        while _obeyed(orders, answers, memory_bytes):
            pass


def _pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return private input and output: text that a library prints must not appear among answers."""
    orders = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    sys.stdout = sys.stderr
    return orders, answers


def _obeyed(orders: BinaryIO, answers: BinaryIO, memory_bytes: int) -> bool:
    """Obey one order; False if it should be the last."""
    head, data = receive(orders)
    order = msgspec.msgpack.decode(head, type=Order)
    _limit_time(order.seconds)
    try:
        answer = TaskAnswer(perform(order.task, data))
    except HoldfastError as error:
        answer = TaskAnswer(RefusalResult(type(error).__name__, error.what, error.where, error.fix))
    except MemoryError:
        answer = TaskAnswer(FailureResult(MEMORY), leaves=True)
    except Exception:  # noqa: BLE001 - a bug; its text may hold content, and must not leave us
        answer = TaskAnswer(FailureResult("failed"))
    if _most_memory() > _GROWN * memory_bytes:
        answer = TaskAnswer(answer.result, leaves=True)
    send(answers, pack(answer))
    return not answer.leaves


def _limit_memory(memory_bytes: int) -> None:
    if _resource is not None:
        with suppress(OSError, ValueError):  # macOS knows the limit, and does not take it
            # Data, not address space: libraries reserve far more of that than they ever use.
            _resource.setrlimit(_resource.RLIMIT_DATA, (memory_bytes, memory_bytes))


def _limit_time(seconds: float) -> None:
    """Let the system end us where our parent cannot any more."""
    if _resource is not None:
        _, most = _resource.getrlimit(_resource.RLIMIT_CPU)
        used = time.process_time()
        with suppress(OSError, ValueError):
            _resource.setrlimit(_resource.RLIMIT_CPU, (int(used + seconds) + 2, most))


def _most_memory() -> int:
    """The most bytes that this process ever held."""
    if _resource is not None:
        unit = 1 if sys.platform == "darwin" else 1024
        most: int = _resource.getrusage(_resource.RUSAGE_SELF).ru_maxrss * unit
        return most
    return 0
