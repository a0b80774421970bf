"""Open turns are recorded before the proxy stops, and then it does stop."""

from __future__ import annotations

import asyncio
import threading

from holdfast.settings import Settings
from holdfast.surfaces.proxy.server import opened

PATIENCE = 20


def test_draining_ends_though_the_loop_has_not_yet_let_go_of_what_is_done() -> None:
    ended = threading.Event()

    async def work() -> None:
        pass

    async def main() -> None:
        async with opened(Settings(store_url="memory:")) as service:
            service.later(work())
            # Its turn comes right after that of the work, and before that of the work's callbacks.
            await asyncio.create_task(service.drain())
        ended.set()

    # In a separate thread: if it hangs, it blocks a timeout of the loop.
    threading.Thread(target=asyncio.run, args=(main(),), daemon=True).start()
    assert ended.wait(PATIENCE)
