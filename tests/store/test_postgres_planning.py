"""PostgreSQL's plans match the stored data."""

from __future__ import annotations

import asyncio

from holdfast.store.postgres.store import PostgresStore
from tests.store.harness import HERE, content
from tests.store.postgres_server import Server


def test_many_contents_are_looked_at_by_the_planner(
    postgres_server: Server, postgres_url: str
) -> None:
    async def work() -> None:
        store = await PostgresStore.open(postgres_url)
        try:
            await store.put(HERE, [content(f"{n}") for n in range(499)])
            assert await looked_at() == [-1]
            await store.put(HERE, [content("one more")])
            assert await looked_at() == [500]
        finally:
            await store.close()

    async def looked_at() -> list[int]:
        sql = "SELECT reltuples::int FROM pg_class WHERE oid = 'holdfast.refs'::regclass"
        return [row[0] for row in await postgres_server.execute(sql, postgres_url)]

    asyncio.run(work())
