"""Several workspaces read at once: the same as each on its own, and nothing of any other."""

from __future__ import annotations

import pytest

from holdfast.errors import StoreError
from holdfast.store import Scope, Store
from holdfast.store.across import Period
from holdfast.store.records import RefInfo, TurnUsage, summed
from tests.store.harness import Opener, content, session, turn

RED, BLUE, GREEN = (Scope("ann", name) for name in ("red", "blue", "green"))
FOREIGN = Scope("bob", "red")
DAY = 86_400.0
START = 1_800_000_000.0


async def filled(store: Store, opener: Opener) -> None:
    """Three workspaces of Ann, and one of Bob with the same name and sessions."""
    for place, scope in enumerate((RED, BLUE, GREEN, FOREIGN)):
        for number, name in enumerate(("first", "second")):
            at = START + place * 10 + number * 25
            usage = TurnUsage(untouched=100 + place, input=10, cost=0.25, failed=number == place)
            record = session(name, title=f"{name} of {scope.workspace}", turns=1, updated_at=at)
            made = turn(1, usage=usage, started_at=at + number * DAY)
            await store.add_turn(scope.of(name), made, record, {})
            opener.clock.advance(1)
            await store.put(
                scope.of(name), [content(f"{name} in {scope}", ("log", "json")[number])]
            )
    await store.put(BLUE.of("first"), [content("shared by two")])
    await store.put(GREEN.of("first"), [content("shared by two")])


def test_sessions_of_several_workspaces_come_in_the_order_of_their_use(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await filled(store, opener)
        both = await store.across.sessions([RED, GREEN], limit=10)
        assert [(scope.workspace, scope.session) for scope, _ in both] == [
            ("green", "second"), ("red", "second"), ("green", "first"), ("red", "first"),
        ]  # fmt: skip
        assert [record.title for _, record in both[:2]] == ["second of green", "second of red"]
        assert await store.across.sessions([RED, GREEN], limit=1) == both[:1]
        alone = await store.across.sessions([BLUE], limit=10)
        assert [record for _, record in alone] == await store.sessions(BLUE)
        assert await store.across.sessions([], limit=10) == []

    opener.run(work)


def test_usage_is_the_sum_over_the_workspaces(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await filled(store, opener)
        days = await store.across.usage_by_day([RED, BLUE])
        each = [await store.usage(scope, by="day") for scope in (RED, BLUE)]
        assert days == [summed(rows[0].name, rows) for rows in zip(*each, strict=True)]
        assert [day.turns for day in days] == [2, 2]
        named = [GREEN.of("second"), RED.of("first"), RED.of("nobody")]
        usage = await store.across.usage_of_sessions(named)
        assert [(one.name, one.turns, one.untouched) for one in usage] == [
            ("second", 1, 102), ("first", 1, 100), ("nobody", 0, 0),
        ]  # fmt: skip
        assert await store.across.usage_of_sessions([]) == []

    opener.run(work)


def test_failures_are_those_of_the_period(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await filled(store, opener)
        every = await store.across.failures([RED, BLUE, GREEN], limit=10)
        assert [(scope.workspace, scope.session) for scope, _ in every] == [
            ("blue", "second"), ("red", "first"),
        ]  # fmt: skip
        assert all(one.usage.failed for _, one in every)
        today = Period(START, START + DAY)
        early = await store.across.failures([RED, BLUE], limit=10, within=today)
        assert [scope.workspace for scope, _ in early] == ["red"]
        late = await store.across.failures([RED, BLUE], limit=10, within=Period(START + DAY))
        assert [scope.workspace for scope, _ in late] == ["blue"]
        assert await store.across.failures([GREEN], limit=10) == []
        assert await store.across.failures([RED, BLUE], limit=1) == every[:1]

    opener.run(work)


def test_refs_of_several_workspaces_can_be_paged_through(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await filled(store, opener)
        places = [RED, BLUE, GREEN]
        every = await store.across.refs(places, limit=50)
        assert len(every) == 8
        assert [scope.workspace for scope, _ in every[:3]] == ["green", "blue", "green"]
        for scope in places:
            mine = [info for at, info in every if at.workspace == scope.workspace]
            assert mine == await store.refs(scope)
        paged: list[tuple[Scope, RefInfo]] = []
        last: tuple[Scope, RefInfo] | None = every[0]
        while last:
            paged.append(last)
            before = (last[0], last[1].ref_id)
            last = next(iter(await store.across.refs(places, limit=1, before=before)), None)
        assert paged == every
        logs = await store.across.refs([RED, BLUE], kind="log", limit=50)
        assert {info.kind for _, info in logs} == {"log"}
        assert len(logs) == 3
        with pytest.raises(StoreError):
            await store.across.refs([RED], limit=1, before=(RED, "ref:log:0000000000000000"))

    opener.run(work)


def test_stats_are_the_sum_over_the_workspaces(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await filled(store, opener)
        each = [await store.stats(scope) for scope in (BLUE, GREEN)]
        both = await store.across.stats([BLUE, GREEN])
        for field in ("refs", "contents", "size", "sessions", "turns", "damaged"):
            assert getattr(both, field) == sum(getattr(one, field) for one in each), field
        assert both.by_kind == {"json": 2, "log": 4}
        assert await store.across.stats([RED]) == await store.stats(RED)

    opener.run(work)


def test_nothing_of_another_user_or_workspace_is_read(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await filled(store, opener)
        await store.delete_session(RED.of("first"))
        await store.delete_session(RED.of("second"))
        for scopes in ([RED], [Scope("ann", "nobody")], [Scope("nobody", "red")]):
            assert await store.across.sessions(scopes, limit=50) == []
            assert await store.across.usage_by_day(scopes) == []
            assert await store.across.failures(scopes, limit=50) == []
            assert await store.across.refs(scopes, limit=50) == []
            assert (await store.across.stats(scopes)).refs == 0
            [none] = await store.across.usage_of_sessions([scopes[0].of("first")])
            assert none.turns == 0
        with pytest.raises(StoreError):
            await store.across.sessions([RED, FOREIGN], limit=50)
        foreign = (await store.refs(FOREIGN))[0].ref_id
        with pytest.raises(StoreError):
            await store.across.refs([RED], limit=5, before=(RED, foreign))

    opener.run(work)
