"""Records removed from the store leave memory too, whichever process removed them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec.structs import replace

from holdfast.engine import Holdfast
from holdfast.engine.live import RemovalWatch
from holdfast.privacy import Policy
from holdfast.settings import Settings
from holdfast.store import open_store
from holdfast.workers import Workers, WorkLimits
from tests.store.harness import Clock, content


def test_workers_are_replaced_and_sessions_dropped_after_another_process_forgot(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/holdfast.db"

    async def work() -> None:
        async with Holdfast.open(url, settings=Settings(background_jobs=False)) as engine:
            workers = Workers(WorkLimits(processes=2))
            try:
                await asyncio.to_thread(workers.warm)
                (before,) = workers.pids
                session = engine.session("s")
                watch = RemovalWatch(engine.store, engine.live, workers)
                await watch.look()
                await watch.look()
                assert workers.pids == (before,)
                assert list(engine.live) == [session]
                other = await open_store(url)
                await other.put(engine.scope, [content("secret")])
                await other.forget(engine.scope, [content("secret").ref_id])
                await other.close()
                await watch.look()
                (after,) = workers.pids
                assert after != before
                assert list(engine.live) == []
            finally:
                workers.close()

    asyncio.run(work())


def test_the_summary_of_a_removed_content_is_masked_by_the_policy() -> None:
    async def shown(policy: Policy) -> str:
        clock = Clock()
        settings = Settings(store_url="memory:", privacy_policy=policy, background_jobs=False)
        async with Holdfast.open(settings=settings, clock=clock) as engine:
            made = replace(content("x"), summary="mail of ann@example.org", ttl_seconds=1.0)
            await engine.store.put(engine.scope, [made])
            clock.now += 1e6
            await engine.store.gc(engine.scope, grace_seconds=0)
            return (await engine.expand_ref(made.ref_id)).text

    assert "It was: mail of ann@example.org" in asyncio.run(shown("allow"))
    assert "It was: mail of (email masked)" in asyncio.run(shown("mask"))
