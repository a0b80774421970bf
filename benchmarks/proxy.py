"""What a proxy adds: latency, requests a second, open streams and memory, beside its peers.

One fake provider and one client for all; each proxy is a process of its own, started as its users
start it. HOLDFAST_BENCH_REQUESTS is how many requests the memory is watched for.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from statistics import median, quantiles
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from benchmarks.proxy_peers import client, servers
from benchmarks.wire import WORDS

LARGE, SMALL = 200_000, 8_500
"""Bytes of a conversation before its last turns, which bring the small one to 10 KB."""
CONVERSATIONS, TURNS = 24, 12
AT_ONCE = 40
STREAMS = 500
ROUNDS = 3
REQUESTS = int(os.environ.get("HOLDFAST_BENCH_REQUESTS", "10000"))
_TOOL = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Reads a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}


class Measured(NamedTuple):
    """What one proxy did."""

    known: tuple[float, float]
    """Added milliseconds of a turn whose beginning was seen before: p50 and p99."""
    cold: tuple[float, float]
    """The same of a conversation that was never seen."""
    cpu: tuple[float, float]
    """CPU milliseconds of a known turn, and of a request of 10 KB; work behind answers included."""
    rate: float
    """Requests of 10 KB a second, the best of the rounds."""
    streams: tuple[int, float]
    """How many came to their end, and the seconds it took."""
    rss: tuple[float, float]
    """MB when it had started, and in the end."""


def run(console: Console) -> None:
    """Print the tables."""
    found: dict[str, Measured] = {}
    failed: dict[str, str] = {}
    with servers.upstream() as port:
        for name, start in servers.PROXIES.items():
            try:
                with start(port) as served:
                    found[name] = asyncio.run(_measure(served, port))
            except (RuntimeError, OSError, EOFError) as error:
                failed[name] = f"{type(error).__name__}: {error}"
        _compare(console, found, failed)
        with servers.holdfast(port) as served:
            _watch(console, served)


async def _measure(served: servers.Served, upstream: int) -> Measured:
    began = served.rss
    cold: list[float] = []
    known: list[float] = []
    cpu: list[float] = []
    for bodies in _conversations("large", CONVERSATIONS, TURNS, LARGE):
        base = median(await client.times(upstream, bodies))
        cold += (ms - base for ms in await client.times(served.port, bodies[:1]))
        before = served.cpu
        known += (ms - base for ms in await client.times(served.port, bodies[1:]))
        cpu.append((served.cpu - before) / len(bodies[1:]))
    rates: list[float] = []
    small_cpu: list[float] = []
    for number in range(ROUNDS):
        small = list(_conversations(f"small {number}", AT_ONCE, TURNS // 2, SMALL))
        before = served.cpu
        rates.append(await client.rate(served.port, small))
        small_cpu.append((served.cpu - before) / sum(map(len, small)))
    asked = [_body(_messages(f"stream {n}", 1_000), stream=True) for n in range(STREAMS)]
    ended = await client.streams(served.port, asked)
    return Measured(
        _p50_p99(known),
        _p50_p99(cold),
        (median(cpu), min(small_cpu)),
        max(rates),
        ended,
        (began, served.rss),
    )


def _p50_p99(times: Sequence[float]) -> tuple[float, float]:
    return median(times), quantiles(times, n=100, method="inclusive")[-1]


def _conversations(name: str, number: int, turns: int, size: int) -> Iterator[list[bytes]]:
    """Conversations of `size` bytes and a little more with every turn: the bodies of the turns."""
    words = (80, 640) if size >= LARGE else (20, 80)
    for one in range(number):
        messages = _messages(f"{name} {one}", size, words, more=turns - 1)
        first = len(messages) - 2 * (turns - 1)
        yield [_body(messages[: first + 2 * turn]) for turn in range(turns)]


def _messages(
    seed: str, size: int, words_of_a_result: tuple[int, int] = (20, 80), more: int = 0
) -> list[dict[str, Any]]:
    """A question, then calls and results until the size is reached, and some more of them."""
    chance = random.Random(seed)
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a careful engineer. " + " ".join(WORDS)},
        {"role": "user", "content": f"Find out why the build of {seed} fails."},
    ]
    total = number = 0
    while total < size or more > 0:
        more -= total >= size
        number += 1
        function = {"name": "read_file", "arguments": json.dumps({"path": f"src/{number}.py"})}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        words = chance.choices(WORDS, k=chance.randint(*words_of_a_result))
        lines = (" ".join(words[n : n + 12]) for n in range(0, len(words), 12))
        text = "\n".join(
            f"{n}: {line} {chance.getrandbits(32):08x}" for n, line in enumerate(lines)
        )
        messages.append({"role": "assistant", "content": "Reading on.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": text})
        total += len(text) + 250
    return messages


def _body(messages: list[dict[str, Any]], *, stream: bool = False) -> bytes:
    body = {"model": "gpt-4o", "messages": messages, "tools": [_TOOL]}
    return json.dumps({**body, "stream": True} if stream else body).encode()


# --- the tables --------------------------------------------------------------------------------

_RATE = "10 KB requests a second (500)"
_ENDED = f"streams that ended, of {STREAMS}"
_MORE_IS_BETTER = (_RATE, _ENDED)
_ROWS: tuple[tuple[str, Callable[[Measured], float], str], ...] = (
    ("known turn, added ms, p50 (target 5)", lambda one: one.known[0], "{:.1f}"),
    ("  p99 (20)", lambda one: one.known[1], "{:.1f}"),
    ("  CPU ms", lambda one: one.cpu[0], "{:.1f}"),
    ("first sight, added ms, p50", lambda one: one.cold[0], "{:.1f}"),
    ("  p99", lambda one: one.cold[1], "{:.1f}"),
    (_RATE, lambda one: one.rate, "{:,.0f}"),
    ("  CPU ms a request", lambda one: one.cpu[1], "{:.2f}"),
    (_ENDED, lambda one: one.streams[0], "{}"),
    ("  seconds", lambda one: one.streams[1], "{:.1f}"),
    ("MB when started", lambda one: one.rss[0], "{:.0f}"),
    ("MB in the end", lambda one: one.rss[1], "{:.0f}"),
)


def _compare(console: Console, found: dict[str, Measured], failed: dict[str, str]) -> None:
    table = Table(title="A request of 200 KB, and others, through proxies of one worker, or two")
    table.add_column("")
    for name in found:
        table.add_column(name, justify="right")
        if name != "holdfast":
            table.add_column("times ours", justify="right")
    group = ""
    for title, value, form in _ROWS:
        row = []
        group = (
            f"{group.split(' / ', maxsplit=1)[0]} / {title.strip()}"
            if title.startswith(" ")
            else title
        )
        for name, one in found.items():
            row.append(form.format(value(one)))
            if name != "holdfast":
                ours = value(found["holdfast"]) if "holdfast" in found else 0
                sides = (ours, value(one)) if title in _MORE_IS_BETTER else (value(one), ours)
                ratios.note(f"proxy: {group}, {name}", *sides)
                row.append(f"{value(one) / ours:.1f}" if ours else "")
        table.add_row(title, *row)
    console.print(table)
    for name, why in failed.items():
        console.print(f"{name} could not be measured: {why}")
    console.print(
        "Added: through the proxy less the median of the same requests straight to the provider. "
        "A known turn\nadds a call and its result of half a KB to 5 KB. Ours counts, cites, stores "
        "and fits; litellm translates and\nroutes; headroom compresses.\n"
    )


def _watch(console: Console, served: servers.Served) -> None:
    """Memory as requests go on, in conversations that come and go."""
    table = Table(title=f"Memory over {REQUESTS:,} requests of 10 KB")
    for column in ("requests", "MB"):
        table.add_column(column, justify="right")
    table.add_row("0", f"{served.rss:.0f}")
    steps, turns = 5, TURNS // 2
    for step in range(1, steps + 1):
        rounds = max(1, REQUESTS // steps // (AT_ONCE * turns))
        for number in range(rounds):
            some = list(_conversations(f"watch {step} {number}", AT_ONCE, turns, SMALL))
            asyncio.run(client.rate(served.port, some))
        table.add_row(f"{step * rounds * AT_ONCE * turns:,}", f"{served.rss:.0f}")
    console.print(table)
