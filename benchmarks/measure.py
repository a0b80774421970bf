"""How the benchmarks measure: the best of several runs, and the peak of allocated memory."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable


def best_ms(run: Callable[[], object], *, repeats: int = 15, seconds: float = 2.0) -> float:
    """Milliseconds of the fastest run: the one that the rest of the machine disturbed least."""
    run()
    gc.collect()
    fastest = float("inf")
    stop = time.perf_counter() + seconds
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        fastest = min(fastest, time.perf_counter() - start)
        if time.perf_counter() > stop:
            break
    return fastest * 1000


def peak_bytes(run: Callable[[], object]) -> int:
    """The most memory that a run held at once, its result included."""
    gc.collect()
    tracemalloc.start()
    result = run()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del result
    return peak
