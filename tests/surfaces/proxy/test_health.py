"""The store check of the proxy's health: bounded, and true."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from holdfast.errors import StoreUnavailableError
from holdfast.store import Scope
from holdfast.store.deadline import has_deadline
from holdfast.store.opening import open_memory
from holdfast.store.sqlite import SqliteStore
from holdfast.surfaces.proxy.health import StoreHealth
from holdfast.surfaces.proxy.report import report
from tests.store.harness import session, turn


class Checked(SqliteStore):
    """A store that fails on demand, and records whether its caller has a deadline."""

    is_broken = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.deadlines: list[bool] = []

    async def check(self) -> None:
        self.deadlines.append(has_deadline())
        if self.is_broken:
            raise StoreUnavailableError("the store does not answer")


def test_a_look_at_the_store_has_a_deadline_and_tells_what_it_saw() -> None:
    seen: list[str] = []

    async def main() -> None:
        store = Checked.in_memory()
        telemetry: Any = SimpleNamespace(store_fails=False)

        def look_at_store(failure: str) -> None:
            seen.append(failure)
            telemetry.store_fails = bool(failure)

        telemetry.look_at_store = look_at_store
        for is_broken in (False, True, False):
            store.is_broken = is_broken
            health = StoreHealth(store, telemetry)
            assert await health.is_available() is not is_broken
            await health.close()
        assert store.deadlines
        assert all(store.deadlines)

    asyncio.run(main())
    assert ["does not answer" in failure for failure in seen] == [False, True, False]


def test_every_way_of_summing_is_over_all_scopes() -> None:
    async def main() -> None:
        store = open_memory()
        scopes = [Scope("ann", workspace) for workspace in ("blue", "red", "green")]
        for scope in scopes:
            await store.add_turn(scope.of("s1"), turn(1), session(), {})
        told = await report(store, scopes, ("model", "day", "session"))
        assert told["totals"]["turns"] == 3
        for way in ("model", "day", "session"):
            rows = told[f"by_{way}"]
            assert sum(row["turns"] for row in rows) == 3
            assert sum(row["saved"] for row in rows) == told["totals"]["saved"]

    asyncio.run(main())
