"""Work in steps instead of seconds: the same figure on every machine and under any load.

Time that grows faster than its input is mostly a loop inside a loop. Its turns are counted here:
lines of Python that are executed, and calls of C functions. What happens inside these is not seen;
the time of each regular expression is bounded in `hardening/test_patterns.py`, and that of whole
requests in `make harden`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(work: Callable[[], object]) -> int:
    """Return the number of steps that `work` takes in this thread."""
    taken = 0

    def line(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal taken
        del frame, arg
        taken += event == "line"
        return line

    def call(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal taken
        del frame, arg
        taken += event == "c_call"

    tracer, profiler = sys.gettrace(), sys.getprofile()
    sys.settrace(line)
    sys.setprofile(call)
    try:
        work()
    finally:
        sys.setprofile(profiler)
        sys.settrace(tracer)
    return taken


def is_linear(work: Callable[[int], Callable[[], object]], size: int, *, slack: int = 500) -> bool:
    """Return whether four times the size takes at most four times the steps, and a tenth.

    `work` prepares an input of a size and returns the function to count. It is run once before, so
    that imports and caches are not counted. `slack` is for steps that do not depend on the size.
    If small inputs take a shortcut, the next two sizes decide.
    """
    work(size)()
    small, large = steps(work(size)), steps(work(4 * size))
    if large <= 4.4 * small + slack:
        return True
    return steps(work(16 * size)) <= 4.4 * large + slack
