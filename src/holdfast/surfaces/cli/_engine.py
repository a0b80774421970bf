"""engine: how commands that look something up open an engine, and close it again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.engine import Holdfast
from holdfast.settings import Settings
from holdfast.store import Scope

_T = TypeVar("_T")


def looking(output: str | None, color: str | None, store: str | None) -> Settings:
    """The settings of a command that waits for nothing in the queue: it does no jobs."""
    return Settings.load(output=output, color=color, store_url=store, background_jobs=False)


def with_engine(settings: Settings, scope: Scope, work: Callable[[Holdfast], Awaitable[_T]]) -> _T:
    """Open an engine over the store, work with it, close it."""

    async def main() -> _T:
        async with Holdfast.open(scope=scope, settings=settings) as engine:
            return await work(engine)

    return asyncio.run(main())
