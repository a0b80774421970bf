"""Run the benchmarks: `python -m benchmarks [NAME ...]`, or `regret` alone with its options."""

from __future__ import annotations

import sys
from collections.abc import Callable

from rich.console import Console

from benchmarks import (
    budget,
    cite,
    count,
    expand,
    fit,
    guard,
    memory,
    proxy,
    regret,
    replay,
    store,
    walk,
    wire,
)

ALL: dict[str, Callable[[Console], None]] = {
    "wire": wire.run,
    "count": count.run,
    "guard": guard.run,
    "fit": fit.run,
    "budget": budget.run,
    "cite": cite.run,
    "expand": expand.run,
    "store": store.run,
    "replay": replay.run,
    "regret": regret.run,
    "proxy": proxy.run,
    "memory": memory.run,
    "walk": walk.run,
}


def main() -> None:
    console = Console(width=110)
    if sys.argv[1:2] == ["regret"]:  # it takes minutes, and options that shorten it
        regret.run(Console(width=150), sys.argv[2:])
        return
    for name in sys.argv[1:] or ALL:
        if name not in ALL:
            sys.exit(f"There is no benchmark {name}. Choose from: {', '.join(ALL)}.")
        ALL[name](console)


main()
