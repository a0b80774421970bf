"""The tables: every rule at every window, for every source and for all of them.

report: after telling.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.regret.recording import CODING, MODEL, Recording, recordings
from benchmarks.regret.rules import Clearing, Engine, Rule, clear_tool_uses, langchain_clears
from benchmarks.regret.telling import PRICES, Outcome, tell
from holdfast.cite import CitingRules
from holdfast.fitting import FitOptions
from holdfast.fitting.options import OfferExpand
from tests.support.recorded import DATA

OWN = 0
"""In the list of windows: that of the recorded model."""
WINDOWS = (16_000, 32_000, 200_000, OWN)

Make = Callable[[Recording, int], Rule]
Sums = dict[tuple[int, str, str], Counter[str]]
"""By window, rule and source."""


def ours(rules: CitingRules, offer: OfferExpand = "auto", *, opens_ahead: bool = False) -> Make:
    """Our engine with these rules, as the proxy has it."""

    def make(recording: Recording, window: int) -> Rule:
        options = FitOptions(
            model=MODEL,
            dialect="openai-chat",
            limit=window,
            rules=rules,
            cites=True,
            opens=True,
            offer_expand=offer,
            opens_ahead=opens_ahead,
        )
        return Engine(recording, options)

    return make


RULES: dict[str, Make] = {
    "no citing": ours(CitingRules(policy="never"), "when_cited"),  # folds alone leave refs
    "always (1,000 characters)": ours(CitingRules(policy="always")),
    "LangChain ClearToolUses": lambda recording, window: Clearing(
        recording, langchain_clears(window)
    ),
    "Anthropic clear_tool_uses": lambda recording, window: Clearing(
        recording, clear_tool_uses(window)
    ),
    "auto": ours(CitingRules(policy="auto")),
    "auto, opening ahead": ours(CitingRules(policy="auto"), opens_ahead=True),
}


class Options(NamedTuple):
    """What is run."""

    every: int = 1
    source: str = ""
    half: str = ""
    windows: Sequence[int] = WINDOWS
    rules: Sequence[str] = tuple(RULES)
    fetches: bool = True


def parse(arguments: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(prog="python -m benchmarks regret", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="every so many-th recording")
    parser.add_argument("--source", default="", help="only recordings of this source")
    parser.add_argument("--half", default="", choices=("", "learnt", "held-out"))
    parser.add_argument("--window", type=int, action="append", help="0: the model's own")
    parser.add_argument("--rule", action="append", choices=RULES)
    parser.add_argument("--no-fetching", action="store_true", help="needs cost nothing")
    given = parser.parse_args(arguments)
    return Options(
        every=given.every,
        source=given.source,
        half=given.half,
        windows=given.window or WINDOWS,
        rules=given.rule or tuple(RULES),
        fetches=not given.no_fetching,
    )


def run(console: Console, arguments: Sequence[str] = ()) -> None:
    """Print the tables."""
    options = parse(arguments)
    if not (DATA / "trajectories").exists():
        console.print("(recorded trajectories are not on this machine: set HOLDFAST_DATA)")
        return
    sums: Sums = defaultdict(Counter)
    for window, rule, recording, outcome in measured(options):
        for group in groups_of(recording):
            sums[window, rule, group].update(outcome.sums)
    for window in options.windows:
        console.print(_table(window, options, sums))
    console.print(_LEGEND)


def measured(options: Options) -> Iterator[tuple[int, str, Recording, Outcome]]:
    """Every chosen conversation at every window under every rule."""
    for recording in recordings(options.every, options.source):
        if options.half and recording.learns is not (options.half == "learnt"):
            continue
        for window in options.windows:
            limit = window or recording.own_window
            for name in options.rules:
                rule = RULES[name](recording, limit)
                yield window, name, recording, tell(recording, rule, limit, fetches=options.fetches)


def groups_of(recording: Recording) -> Iterable[str]:
    """The rows that a conversation counts for."""
    half = "learnt from" if recording.learns else "held out"
    kind = "coding agents" if recording.source in CODING else "other agents"
    return ("all", half, kind, recording.source)


def _table(window: int, options: Options, sums: Sums) -> Table:
    name = f"a window of {window:,}" if window else "the model's own window"
    table = Table(title=f"Recorded agents in {name}")
    for column in ("", *_COLUMNS):
        table.add_column(column, justify="right" if column else "left")
    groups = sorted({group for at, _, group in sums if at == window}, key=_order)
    for group in groups:
        number = sums[window, options.rules[0], group]["conversations"]
        table.add_row(f"[bold]{group}[/] ({number})")
        for rule in options.rules:
            table.add_row(f"  {rule}", *_cells(sums[window, rule, group]))
    return table


def _order(group: str) -> tuple[int, str]:
    first = ("all", "learnt from", "held out", "coding agents", "other agents")
    return (first.index(group) if group in first else len(first), group)


_COLUMNS = (
    "results\nhidden",
    "hidden and\nneeded",
    "in the\nnext turn",
    "extra\ncalls",
    *(f"cost\n{vendor}" for vendor in PRICES),
    "prefix\nkept",
    "rewrites",
    "over the\nwindow",
    "refused",
)


def _cells(sums: Counter[str]) -> Iterator[str]:
    number = max(1, sums["conversations"])
    yield f"{sums['cited'] / max(1, sums['results']):.0%}"
    yield from (f"{sums[name] / number:.2f}" for name in ("needs", "next", "calls"))
    yield from (f"{sums[v] / max(1, sums[f'{v}, untouched']):.3f}" for v in PRICES)
    yield f"{sums['kept'] / max(1, sums['quiet']):.4f}"
    yield from (f"{sums[name]:,}" for name in ("rewrites", "over", "refused"))


_LEGEND = """\
Hidden and needed, in the next turn, extra calls: for each conversation. Needed: 24 characters that
the model writes later, that stood in what it was given, and nowhere in what it sees then. Each need
is fetched: by expand_ref, a page of 1,000 tokens; under the peers' rules by the same call again.
Cost: input with the calls that fetch, as a share of the untouched conversation's as if that always
fitted, with cached input at 0.1 and new input at 1.25 (Anthropic), 0.1 and 1 (OpenAI), 0.5 and 1
(gpt-4o). Prefix kept: of the request before, on turns without a fold or another rewrite on purpose.
The peers' trigger is their own, 100,000 tokens, or 85 % of a smaller window.
"""
