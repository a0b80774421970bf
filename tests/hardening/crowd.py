"""Many clients of one proxy: `python -m tests.hardening.crowd [CLIENTS [ROUNDS]]`.

Runs in a separate process, so that its work is not part of the proxy's times. Each client keeps one
connection and one session, and pauses between two requests as clients do: often near the five
seconds after which uvicorn closes a connection by default. A refused client returns after
`Retry-After`, as the providers' SDKs do. The last line printed has the results, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path

import aiohttp

from tests.hardening.bombs import log_lines, result
from tests.hardening.throwing import Pings, target

MOST_TRIES = 30
PAUSES = (0.0, 1.0, 4.9, 5.0, 5.1, 6.0)
_PATIENCE = aiohttp.ClientTimeout(total=300)
_AGAIN = (429, 503)


class Crowd:
    """The results of the clients."""

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        """Kinds of errors of connections: there should be none."""
        self.accepted: list[float] = []
        """Seconds that each request took which was answered."""
        self.refused: list[float] = []
        """Seconds until a client was refused."""
        self.untimed = 0
        """Refusals without a time to retry."""
        self.failed = 0
        """Requests that were given up."""

    def told(self) -> dict[str, object]:
        """Return the figures."""
        return {
            "statuses": dict(self.statuses),
            "broken": dict(self.broken),
            "failed": self.failed,
            "untimed": self.untimed,
            "accepted": _quantiles(self.accepted),
            "refused": _quantiles(self.refused),
        }


def _quantiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    if not ordered:
        return {}
    at = {name: ordered[int((len(ordered) - 1) * q)] for name, q in (("p50", 0.5), ("p99", 0.99))}
    return {name: round(value, 3) for name, value in {**at, "worst": ordered[-1]}.items()}


async def client(url: str, number: int, rounds: int, crowd: Crowd, page: str) -> None:
    """Ask a few times over one connection."""
    chance = random.Random(number)
    connector = aiohttp.TCPConnector(limit=1, keepalive_timeout=600)
    async with aiohttp.ClientSession(connector=connector, timeout=_PATIENCE) as session:
        for turn in range(rounds):
            body = result(page, question=f"Client {number}, question {turn}: what went wrong?")
            await _answered(session, url, body, crowd)
            await asyncio.sleep(chance.choice(PAUSES))


async def _answered(session: aiohttp.ClientSession, url: str, body: bytes, crowd: Crowd) -> None:
    headers = {"content-type": "application/json"}
    for _ in range(MOST_TRIES):
        began = time.monotonic()
        try:
            async with session.post(url, data=body, headers=headers) as response:
                await response.read()
                status, wait = response.status, response.headers.get("retry-after", "")
        except aiohttp.ClientError as error:
            crowd.broken[type(error).__name__] += 1
            continue
        took = time.monotonic() - began
        crowd.statuses[str(status)] += 1
        if status not in _AGAIN:
            crowd.accepted.append(took)
            return
        crowd.refused.append(took)
        crowd.untimed += not wait
        await asyncio.sleep(float(wait or 1))
    crowd.failed += 1


async def crowd_at(url: str, clients: int, rounds: int) -> Crowd:
    """Let clients loose on a proxy, all at once."""
    crowd, page = Crowd(), log_lines(10_000)
    await asyncio.gather(*(client(url, n, rounds, crowd, page) for n in range(clients)))
    return crowd


def main(folder: Path, clients: int, rounds: int) -> dict[str, object]:
    """Run a proxy on SQLite with a crowd before it, and pings beside."""
    with target(folder) as (process, _):
        pings = Pings(process.url)
        start = time.monotonic()
        try:
            url = f"{process.url}/v1/chat/completions"
            crowd = asyncio.run(crowd_at(url, clients, rounds))
            times = pings.between(start, time.monotonic())
        finally:
            pings.end()
    return {**crowd.told(), "pings": _quantiles(times)}


if __name__ == "__main__":
    import tempfile

    given = [int(argument) for argument in sys.argv[1:]]
    count, turns = (*given, *(1000, 3)[len(given) :])
    sys.stdout.write(json.dumps(main(Path(tempfile.mkdtemp()), count, turns)) + "\n")
