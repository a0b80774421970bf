"""The table of sessions with Holdfast and without, and the worst ten of them."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.worse.replay import MOST_SHARE, MOST_TOKENS, SessionCost, replay
from benchmarks.worse.sessions import (
    AGENT_SESSIONS,
    RecordedSession,
    agent_sessions,
    trajectory_sessions,
)
from holdfast.settings import Settings
from tests.support.recorded import DATA

MOST_RATIO = 1.01
"""Cost of a session as a share of the untouched session's: above this it is worse with us."""
_WORST = 10
"""Sessions that are listed."""


class Options(NamedTuple):
    """Which sessions are replayed, and how."""

    every: int = 1
    source: str = ""
    only: str = ""
    limit: int = 0
    jobs: int = 1
    output: str = ""


def parse(arguments: Sequence[str]) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks worse")
    parser.add_argument("--every", type=int, default=1, help="replay each N-th session of a source")
    parser.add_argument("--source", default="", help="replay the sessions of one source")
    parser.add_argument("--only", default="", help="replay the sessions whose id begins so")
    parser.add_argument("--limit", type=int, default=0, help="tokens of a request; 0: the window")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--output", default="", help="write each session to this file as JSON")
    given = parser.parse_args(arguments)
    return Options(**vars(given))


def run(console: Console, arguments: Sequence[str] = ()) -> bool:
    """Print the tables; return whether no session and no request is worse than allowed."""
    options = parse(arguments)
    if not has_data():
        console.print("(recorded sessions are not on this machine: set HOLDFAST_DATA)")
        return True
    costs = list(measured(options))
    console.print(_sources(costs))
    console.print(_worst_sessions(costs))
    console.print(_worst_requests(costs))
    console.print(_LEGEND)
    return not any(cost.ratio > MOST_RATIO or cost.above for cost in costs)


def has_data() -> bool:
    """Return whether both recordings are on this machine."""
    return AGENT_SESSIONS.exists() and (DATA / "trajectories").exists()


def sessions(options: Options) -> Iterator[RecordedSession]:
    """Read the chosen sessions."""
    for session in chain(agent_sessions(options.every), trajectory_sessions(options.every)):
        if options.source in ("", session.source) and session.id.startswith(options.only):
            yield session


def measured(options: Options) -> Iterator[SessionCost]:
    """Replay the chosen sessions, in several processes if asked to."""
    results = _in_processes(options) if options.jobs > 1 else _replayed(options, 0)
    with Path(options.output or os.devnull).open("wb") as output:
        for cost in results:
            output.write(msgspec.json.encode(cost) + b"\n")
            output.flush()
            yield cost


def _in_processes(options: Options) -> Iterator[SessionCost]:
    """Each process reads all recordings and replays its share: sessions are large to send."""
    with ProcessPoolExecutor(options.jobs) as pool:
        for costs in pool.map(_share, [options] * options.jobs, range(options.jobs)):
            yield from costs


def _share(options: Options, first: int) -> list[SessionCost]:
    return list(_replayed(options, first))


def _replayed(options: Options, first: int) -> Iterator[SessionCost]:
    settings = Settings(request_limit=options.limit)
    for number, session in enumerate(sessions(options)):
        if number % options.jobs == first:
            yield asyncio.run(replay(session, settings))


# --- tables --------------------------------------------------------------------------------------


def _sources(costs: Iterable[SessionCost]) -> Table:
    table = Table(title="Recorded sessions, with Holdfast and without")
    for column in ("", *_COLUMNS):
        table.add_column(column, justify="right" if column else "left")
    groups: defaultdict[tuple[str, str], list[SessionCost]] = defaultdict(list)
    for cost in costs:
        groups["all", ""].append(cost)
        groups[cost.source, cost.dialect].append(cost)
    for (source, dialect), members in groups.items():
        table.add_row(f"{source} {dialect}".strip(), *_cells(members))
    return table


_COLUMNS = (
    *("sessions", "requests", "openings", "needs", "cost", "worst", "above 1.01"),
    *("requests above", "late tool", "breaks", "refused"),
)


def _cells(members: Sequence[SessionCost]) -> Iterator[str]:
    sums: Counter[str] = Counter()
    for cost in members:
        sums.update(requests=cost.requests, calls=cost.calls, needs=cost.needs, above=cost.above)
        sums.update(
            late=cost.late, breaks=cost.breaks, refused=cost.refused, worse=cost.ratio > MOST_RATIO
        )
    untouched = sum(cost.untouched for cost in members)
    yield from (f"{number:,}" for number in (len(members), sums["requests"], sums["calls"]))
    yield f"{sums['needs']:,}"
    yield f"{sum(cost.cost for cost in members) / untouched:.3f}"
    yield f"{max(cost.ratio for cost in members):.4f}"
    yield from (f"{sums[name]:,}" for name in ("worse", "above", "late", "breaks", "refused"))


def _worst_sessions(costs: Sequence[SessionCost]) -> Table:
    columns = ("session", "source", "model", "first request", "requests", "openings", "edits")
    table = Table(*columns, "cost", title="The ten dearest sessions against untouched")
    for cost in sorted(costs, key=lambda each: -each.ratio)[:_WORST]:
        edits = ", ".join(f"{name} {number}" for name, number in sorted(cost.edits.items()))
        counts = (f"{number:,}" for number in (cost.first, cost.requests, cost.calls))
        table.add_row(cost.id, cost.source, cost.model, *counts, edits, f"{cost.ratio:.4f}")
    return table


def _worst_requests(costs: Sequence[SessionCost]) -> Table:
    columns = ("session", "source", "turn", "asked", "sent", "more", "of the allowed")
    table = Table(*columns, title="The ten requests that grew most, before anything was opened")
    for cost in sorted(costs, key=lambda each: -each.worst.excess)[:_WORST]:
        worst = cost.worst
        counts = (f"{number:,}" for number in (worst.turn, worst.asked, worst.sent, worst.tokens))
        table.add_row(cost.id, cost.source, *counts, f"{worst.excess:.2f}")
    return table


_LEGEND = f"""\
Cost: all input of a session, as a share of what the client's own requests would have cost, with the
provider's prompt cache, the recorded pauses, the client's own compactions, and every opening (its
call, its output and its result). Before anything is opened, a request may have {MOST_SHARE:.0%} or
{MOST_TOKENS} tokens more than were asked, whichever is more. Late tool: the tool came with the
first citation, which rewrites the prefix and saves more in that very request. Breaks: other
requests without a fold that do not begin with all of the request before.
"""
