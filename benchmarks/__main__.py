"""Run the benchmarks: `python -m benchmarks [--save] [NAME ...]`, or `regret` or
`worse` with its options.

Alone too: `million [TURNS]`, a million turns on PostgreSQL, and `recall words`, without vectors.

What fell by more than a third against `ratios.json` is named in the end; `--save` writes that file
anew for the benchmarks that ran. Then docs/benchmarks.md is written; `--page` does that alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from rich.console import Console

from benchmarks import (
    agent,
    allocate,
    answers,
    assemble,
    budget,
    cite,
    count,
    expand,
    facts,
    fit,
    guard,
    integrations,
    jobs,
    lazy,
    mcp,
    memory,
    million,
    page,
    proxy,
    ratios,
    recall,
    regret,
    replay,
    research,
    store,
    summaries,
    tools,
    walk,
    wire,
    worse,
)

ALL: dict[str, Callable[[Console], None]] = {
    "wire": wire.run,
    "count": count.run,
    "guard": guard.run,
    "fit": fit.run,
    "budget": budget.run,
    "allocate": allocate.run,
    "assemble": assemble.run,
    "cite": cite.run,
    "expand": expand.run,
    "store": store.run,
    "facts": facts.run,
    "summaries": summaries.run,
    "jobs": jobs.run,
    "lazy": lazy.run,
    "recall": recall.run,
    "answers": answers.run,
    "research": research.run,
    "agent": agent.run,
    "integrations": integrations.run,
    "replay": replay.run,
    "regret": regret.run,
    "proxy": proxy.run,
    "mcp": mcp.run,
    "memory": memory.run,
    "tools": tools.run,
    "walk": walk.run,
}


def main() -> None:
    console = Console(width=110)
    if sys.argv[1:2] == ["regret"]:  # it takes minutes, and options that shorten it
        regret.run(Console(width=150), sys.argv[2:])
        return
    if sys.argv[1:2] == ["worse"]:  # half an hour for all sessions
        if not worse.run(Console(width=150), sys.argv[2:]):
            sys.exit(1)
        return
    if sys.argv[1:2] == ["million"]:  # minutes too, and some gigabytes of disk
        million.run(console, *map(int, sys.argv[2:3]))
        return
    if sys.argv[1:2] == ["recall"] and sys.argv[2:] == ["words"]:
        recall.run(console, words_only=True)
        return
    if sys.argv[1:] == ["--page"]:
        _write_page(console)
        return
    names = [name for name in sys.argv[1:] if name != "--save"]
    for name in names or ALL:
        if name not in ALL:
            sys.exit(f"There is no benchmark {name}. Choose from: {', '.join(ALL)}.")
        ALL[name](console)
    if "--save" in sys.argv[1:]:
        ratios.save(console)
    unfallen = "--save" in sys.argv[1:] or ratios.compare(console)
    _write_page(console)
    if not unfallen:
        sys.exit(1)


def _write_page(console: Console) -> None:
    for name in page.write():
        console.print(f"wrote docs/{name}", highlight=False)


main()
