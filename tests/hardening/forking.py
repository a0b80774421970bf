"""A mother process: for each line of JSON on standard input, a child that does the work it names.

forking: the ground of nursery and job_workers. Children are forked from a process that has imported
everything, and so are there in a few hundredths of a second; nobody waits for their end.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any


def tell(**what: Any) -> None:
    # One write, so that a line is whole or missing.
    os.write(1, json.dumps({"pid": os.getpid(), **what}).encode() + b"\n")


def bear(works: Mapping[str, Callable[..., None]]) -> None:
    """Fork a child for each line, until there are no more."""
    gc.collect()
    gc.freeze()  # the collector of a child has nothing to look at, and copies no page by it
    tell(ready=True)
    for line in sys.stdin:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            sys.stdin.close()
            asked = json.loads(line)
            status = 1
            try:
                works[asked.pop("work")](**asked)
                status = 0
            finally:
                os._exit(status)
