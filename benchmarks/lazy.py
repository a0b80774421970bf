"""What a request costs when the schemas of its tools are set aside: tokens before and after.

Tools of real MCP servers, the first of `../shared/data/tools/livemcp` that make so many, in every
dialect. Counted as the providers count; the time is that of one whole fit, seen for the first time
and again, so it is of this machine.

Then recorded agents with sixty of these tools beside their own, told again through a running proxy:
every call must reach the client as it was recorded, or it ends. Requests in which the model looks
for a tool count among those sent, and a vendor's cache is reckoned by the bytes that stay.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from itertools import islice
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

import holdfast
from benchmarks import figures
from benchmarks.fit import PRICES
from holdfast.fitting import FitOptions, fit_request
from holdfast.settings import Settings
from holdfast.upstream.tool_finder import lazy_rules
from tests.support.recorded import DATA
from tests.surfaces.proxy.harness import DIALECTS, request_in, running_proxy
from tests.surfaces.proxy.lazy_replaying import kept_shares, lazy_model, requests_of, with_tools
from tests.surfaces.proxy.replaying import (
    MODELS,
    chosen,
    in_prompt_order,
    retell,
    same_bytes,
    story_of,
)
from tests.surfaces.proxy.upstream import Upstream

_SIZES = (40, 120, 400)
_BESIDE, _CONVERSATIONS, _WINDOW = 60, 20, 16_000


def run(console: Console) -> None:
    """Print the table."""
    listed = DATA / "tools" / "livemcp" / "tools.jsonl"
    if not listed.exists():
        console.print("lazy: the recorded tools are not on this machine; set HOLDFAST_DATA")
        return
    tools = _tools(listed.read_text().splitlines())
    table = Table("tools", "dialect", "asked", "sent", "share", "ms first", "ms again")
    for size in _SIZES:
        for dialect in DIALECTS:
            table.add_row(f"{size}", dialect, *_measured(tools[:size], dialect))
    console.print(table)
    if (DATA / "trajectories").exists():
        _replayed(console, [each["function"] for each in tools[:_BESIDE]])


def _replayed(console: Console, more: list[dict[str, Any]]) -> None:
    table = Table("dialect", "turns", "requests", "asked", "sent", "share", *PRICES, "prefix kept")
    table.title = f"recorded agents with {len(more)} tools more; cost as a share of the untouched"
    rows: list[tuple[str, ...]] = []
    recordings = list(islice(chosen(_WINDOW, overflows=False), _CONVERSATIONS))
    for dialect, way in (*((dialect, "own") for dialect in DIALECTS), ("anthropic", "provider")):
        sums: Counter[str] = Counter()
        shares: list[float] = []
        settings = {"lazy_tool_tokens": 5_000, "lazy_tools": way}
        with Upstream() as upstream, running_proxy(settings, upstream.url) as proxy:
            for recording in recordings:
                story = with_tools(story_of(recording, dialect), more)
                told = retell(story, proxy, upstream, lazy_model(dialect))
                if told.refusal or upstream.refused:
                    raise SystemExit(f"refused: {told.refusal or upstream.refused[0]}")
                sums += _costs("asked", [turn.asked for turn in told.turns], dialect)
                sums += _costs("sent", [got.body for got in requests_of(told)], dialect)
                shares += kept_shares(told)
        rows.append(
            (
                dialect if way == "own" else f"{dialect}, held back by the provider",
                *(f"{sums['asked requests']:,}", f"{sums['sent requests']:,}"),
                *(f"{sums['asked']:,}", f"{sums['sent']:,}", f"{sums['sent'] / sums['asked']:.3f}"),
                *(f"{sums[f'sent {vendor}'] / sums[f'asked {vendor}']:.3f}" for vendor in PRICES),
                f"{fmean(shares):.4f}",
            )
        )
        table.add_row(*rows[-1])
    console.print(table)
    figures.record(
        "lazy-tools",
        figures.table(
            ("dialect", "turns", "requests sent", "tokens asked", "tokens sent", "share",
             *(f"cost, {vendor} cache" for vendor in PRICES), "prefix kept"),
            rows,
        ),
    )  # fmt: skip


def _costs(name: str, bodies: list[bytes], dialect: str) -> Counter[str]:
    """The tokens of requests that follow each other, and their cost in tokens of plain input."""
    sums: Counter[str] = Counter({f"{name} requests": len(bodies)})
    before = b""
    for body in bodies:
        tokens = holdfast.count(body, dialect=dialect, model=MODELS[dialect]).tokens
        now = in_prompt_order(body, dialect)
        cached = tokens * same_bytes(before, now) / len(now)
        sums[name] += tokens
        for vendor, (reading, writing) in PRICES.items():
            sums[f"{name} {vendor}"] += round(cached * reading + (tokens - cached) * writing)
        before = now
    return sums


def _tools(lines: list[str]) -> list[dict[str, Any]]:
    """Functions with names of their own."""
    tools: dict[str, dict[str, Any]] = {}
    for entry in map(json.loads, lines):
        name = "".join(c if c.isascii() and c.isalnum() else "_" for c in entry["name"])[:64]
        schema = entry["input_schema"] or {"type": "object", "properties": {}}
        function = {"name": name, "description": entry["description"], "parameters": schema}
        tools.setdefault(name, {"type": "function", "function": function})
    return list(tools.values())


def _measured(tools: list[dict[str, Any]], dialect: str) -> list[str]:
    chat = {"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    body = request_in(dialect, chat)
    rules = lazy_rules(Settings(lazy_tool_tokens=1_000))
    options = FitOptions(dialect=dialect, model="gpt-5", cites=True, opens=True, lazy=rules)
    started = time.perf_counter()
    first = fit_request(body, options)
    between = time.perf_counter()
    fit_request(body, options, state=first.state)
    ended = time.perf_counter()
    return [
        f"{first.untouched:,}",
        f"{first.tokens:,}",
        f"{first.tokens / first.untouched:.3f}",
        f"{(between - started) * 1000:.0f}",
        f"{(ended - between) * 1000:.0f}",
    ]
