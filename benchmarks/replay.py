"""Recorded agents through the running proxy in a window of 16,000 tokens: what it sent and saved.

Every promise of the proxy is checked on every request while it runs: a broken one ends it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

import holdfast
from benchmarks import ratios
from benchmarks.fit import PRICES
from tests.support.recorded import DATA
from tests.surfaces.proxy.harness import DIALECTS, running_proxy
from tests.surfaces.proxy.replaying import (
    FOLDING,
    Retold,
    check,
    chosen,
    in_prompt_order,
    kept_prefixes,
    retell,
    same_bytes,
    story_of,
)
from tests.surfaces.proxy.upstream import Upstream

WINDOW = 16_000
OVERFLOWING, OTHERS = 80, 20
_COLUMNS = (
    ("conversations", "conversations"),
    ("turns", "turns"),
    ("overflowing", "turns too long as they came"),
    ("untouched", "tokens as they came"),
    ("sent", "tokens sent"),
    ("cites", "results cited"),
    ("folds", "folds"),
    ("final", "final turns"),
    ("refusals", "refused"),
)


def run(console: Console) -> None:
    """Print the table."""
    if not (DATA / "trajectories").exists():
        console.print("(recorded trajectories are not on this machine: set HOLDFAST_DATA)")
        return
    sums: dict[str, Counter[str]] = {dialect: Counter() for dialect in DIALECTS}
    kept: dict[str, list[tuple[float, bool]]] = {dialect: [] for dialect in DIALECTS}
    refusals: Counter[str] = Counter()
    with Upstream(window=WINDOW) as upstream:
        with running_proxy({"request_limit": WINDOW, "cite_policy": "auto"}, upstream.url) as proxy:
            for number, recording in enumerate(_recordings()):
                dialect = DIALECTS[number % len(DIALECTS)]
                told = retell(story_of(recording, dialect), proxy, upstream)
                check(told, proxy, WINDOW)
                sums[dialect] += _sums(told)
                kept[dialect] += kept_prefixes(told)
                refusals.update(filter(None, [told.refusal]))
                upstream.requests.clear()
        if upstream.refused:
            raise SystemExit(f"the upstream refused: {upstream.refused[0]}")
    _print(console, sums, kept, refusals)


def _recordings() -> Iterator[dict[str, Any]]:
    """Of different tasks and spread over the sources: most would overflow, some would not."""
    yield from _spread(list(chosen(WINDOW)), OVERFLOWING)
    yield from _spread(list(chosen(WINDOW, overflows=False)), OTHERS)


def _spread(all_of_them: list[dict[str, Any]], number: int) -> Iterator[dict[str, Any]]:
    for n in range(number):
        yield all_of_them[n * len(all_of_them) // number]


def _sums(told: Retold) -> Counter[str]:
    """What one conversation came to; cost is in tokens of plain input."""
    found: Counter[str] = Counter(conversations=1, turns=len(told.turns))
    dialect = told.story.dialect
    before = {"untouched": b"", "sent": b""}
    for turn in told.turns:
        found["final"] += "x-holdfast-final" in turn.answered.headers
        if turn.got is None:
            found["refusals"] += 1
            continue
        bodies = {"untouched": turn.asked, "sent": turn.got.body}
        for name, body in bodies.items():
            tokens = holdfast.count(body, dialect=dialect, model=turn.got.model).tokens
            now = in_prompt_order(body, dialect)
            cached = tokens * same_bytes(before[name], now) / len(now)
            found[name] += tokens
            for vendor, (reading, writing) in PRICES.items():
                found[f"{name} {vendor}"] += round(cached * reading + (tokens - cached) * writing)
            before[name] = now
        found["overflowing"] += (
            holdfast.count(turn.asked, dialect=dialect, model=turn.got.model).tokens > WINDOW
        )
    for written in told.written:
        found["cites"] += sum(edit.action == "cite" for edit in written.edits)
        found["folds"] += any(edit.action in FOLDING for edit in written.edits)
    return found


def _print(
    console: Console,
    sums: dict[str, Counter[str]],
    kept: dict[str, list[tuple[float, bool]]],
    refusals: Counter[str],
) -> None:
    table = Table(title=f"Recorded agents through the proxy, window {WINDOW:,}")
    table.add_column("")
    for dialect in (*DIALECTS, "all"):
        table.add_column(dialect, justify="right")
    columns = [*sums.values(), sum(sums.values(), Counter())]
    for key, title in _COLUMNS:
        table.add_row(title, *(f"{column[key]:,}" for column in columns))
    table.add_row("tokens sent, share", *(f"{c['sent'] / c['untouched']:.2f}" for c in columns))
    whole = columns[-1]
    ratios.note("replay: tokens, untouched", whole["untouched"], whole["sent"])
    for vendor in PRICES:
        cost = whole[f"untouched {vendor}"], whole[f"sent {vendor}"]
        ratios.note(f"replay: input cost, {vendor}, untouched", *cost)
        shares = (c[f"sent {vendor}"] / c[f"untouched {vendor}"] for c in columns)
        table.add_row(f"input cost, {vendor}, share", *(f"{share:.2f}" for share in shares))
    every = [*kept.values(), [one for several in kept.values() for one in several]]
    means = (fmean(share for share, _ in one) for one in every)
    table.add_row("prefix kept, turns without a fold", *(f"{mean:.4f}" for mean in means))
    changed = (sum(share < 1 and tools for share, tools in one) for one in every)
    table.add_row("  not whole: the first citation's tool", *(f"{number:,}" for number in changed))
    others = (sum(share < 1 and not tools for share, tools in one) for one in every)
    table.add_row("  not whole: other reasons", *(f"{number:,}" for number in others))
    console.print(table)
    for why, number in refusals.items():
        console.print(f"refused {number}x: {why}")
    console.print(
        "Checked on every request that reached the upstream, which judges and counts by itself: it "
        f"is valid, it has at most\n{WINDOW:,} tokens, the last question stands in it verbatim, "
        "every ref in it opens, and every text of\nthe client's request stands in it or behind its "
        "refs, byte for byte. Cost: shares of the untouched\nconversations' under the same cache "
        "rules.\n"
    )
