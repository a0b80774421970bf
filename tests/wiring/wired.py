"""The values of the tables of settings, and the contents that they are tried on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.engine import Holdfast
from holdfast.store import Scope
from tests.fitting.test_citing import log
from tests.privacy.made import UPPER, run

Observe = Callable[[Any, Path], object]


class Wired(NamedTuple):
    """Two values of a setting, and the observation for each."""

    observe: Observe
    first: object
    second: object


LONG = log(150)
"""A result of some 4,500 characters."""
MEDIUM = log(80)
"""Longer than the seed's threshold, and by itself not worth a citation."""
LARGE = log(1_500)
"""A result that is read in a worker."""
PROSE = "\n\n".join(
    f"Chapter {n} tells of {run(5 + n % 7)} and of {run(9 + n % 5)[::-1]}, who met {n} times."
    for n in range(200)
)
ORDERS = json.dumps(
    [{"order_id": f"ORD{n}", "status": "pending", "total": f"{n}.50"} for n in range(10, 90)]
)
"""A result that names things."""
SECRET = "AKIA" + run(16, UPPER)


def worker_memory(engine: Holdfast) -> list[str]:
    """Return the system's limits of workers, or those that they were started with."""
    files = [Path(f"/proc/{pid}/limits") for pid in engine.workers.pids]
    if not all(file.exists() for file in files):
        return [str(engine.workers.limits.memory_bytes)]
    lines = (line for file in files for line in file.read_text().splitlines())
    return [line for line in lines if line.startswith("Max data size")]


async def lifetime(engine: Holdfast, ref: str) -> float | None:
    info = await engine.store.info(Scope(), ref)
    assert info is not None
    return None if info.expires_at is None else round(info.expires_at - info.created_at)
