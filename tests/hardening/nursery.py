"""A process that has imported everything, and forks processes that are killed: one line each.

`python -m tests.hardening.nursery` reads lines of JSON, `{"work": …, …}`, and forks a child for
each, which does the work and reports in lines of JSON on standard output. A proxy started this way
runs the same code as `holdfast serve`, and is ready in a few hundredths of a second: a thousand can
be killed in minutes.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Any

from holdfast.engine import Holdfast
from holdfast.fitting import fit
from holdfast.settings import Settings
from holdfast.store import open_store
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.sqlite import SqliteStore
from holdfast.surfaces.proxy import logs
from holdfast.surfaces.proxy.server import ProxyAddresses, serve
from tests.fitting.test_citing import chat, in_dialect, log
from tests.hardening.forking import bear, tell
from tests.support.citing import ALWAYS
from tests.surfaces.proxy.harness import DIALECTS, with_families


def proxy(settings: dict[str, Any], upstream: str | None = None) -> None:
    """Serve until a signal ends it."""

    def started(where: ProxyAddresses) -> None:
        tell(url=where.url)

    logs.configure("json")
    upstreams = with_families({}, upstream)
    serve(
        Settings(**({"cite_policy": "always", "upstreams": upstreams} | settings)), started=started
    )


def opening(url: str) -> None:
    """Open a store, which migrates it, and close it."""

    async def work() -> None:
        tell(begun=True)
        store = await open_store(url)
        await store.close()
        tell(done=True)

    asyncio.run(work())


def backup(url: str, target: str) -> None:
    """Copy a store while others use it."""

    async def work() -> None:
        async with Holdfast.open(url, settings=Settings()) as engine:
            tell(begun=True)
            await engine.store.backup(target)
            tell(done=True)

    asyncio.run(work())


STORES = (PostgresStore, SqliteStore)
"""Imported only when they are opened, and so by each child again, if not here."""

WORKS: dict[str, Callable[..., None]] = {"proxy": proxy, "opening": opening, "backup": backup}


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them: they are watched
    for dialect in DIALECTS:  # vocabularies and condensers, which each child would load again
        fit(
            in_dialect(chat(log(200)), dialect),
            dialect=dialect,
            citing=ALWAYS,
        )
    bear(WORKS)


if __name__ == "__main__":
    main()
