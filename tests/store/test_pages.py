"""Every paged list: pages of any size have all entries in the same order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast.store import Scope, Store
from holdfast.store.records import TurnUsage
from holdfast.store.turn_store import TurnFilter
from tests.store.everything import AT, answer, fact, said, tool
from tests.store.harness import Opener, content, named, session, turn

HERE = Scope("ann", "blue", "s1")
USER = HERE.of("")
NUMBER = 5
Page = Callable[[Store, Any, int], Awaitable[list[Any]]]


async def fill(store: Store, opener: Opener, scope: Scope) -> None:
    """Store `NUMBER` records of every kind; some share their time, so that ties are cut too."""
    for n in range(NUMBER):
        opener.clock.advance(n % 2)
        await store.put(scope, [content(f"content {n}")])
        if n > 0:  # beside the session that the scope names
            record = session(f"other {n}", updated_at=AT + n // 2)
            await store.add_turn(scope.of(f"other {n}"), turn(1, [b"m"]), record, named(b"m"))
        failed = TurnUsage(failed=True)
        made = turn(n + 1, usage=failed, started_at=AT + n)
        await store.add_turn(scope, made, session("s1", turns=n + 1, updated_at=AT), {})
        await store.answers.put(scope, answer(f"a{n}", "prompt", f"answer {n}", (), "s1"))
        await store.facts.add(scope, [fact(f"f{n}", f"Fact {n}.", "m1", "s1")])
        await store.tools.add(scope, [tool(f"tool{n}", f"tool {n}")])
        await store.remembered.add(scope, [said(f"t{n}", f"words {n}")])


async def refs(store: Store, last: Any, limit: int) -> list[Any]:
    return await store.refs(USER, limit=limit, before=last.ref_id if last else "")


async def refs_across(store: Store, last: Any, limit: int) -> list[Any]:
    before = (last[0], last[1].ref_id) if last else None
    return list(await store.across.refs([USER], limit=limit, before=before))


async def sessions(store: Store, last: Any, limit: int) -> list[Any]:
    return await store.sessions(USER, limit=limit, before=last.session if last else "")


async def turns(store: Store, last: Any, limit: int) -> list[Any]:
    return await store.turns(HERE, after=last.number if last else 0, limit=limit)


async def answers(store: Store, last: Any, limit: int) -> list[Any]:
    return await store.answers.latest(USER, limit=limit, before=last.id if last else "")


async def facts(store: Store, last: Any, limit: int) -> list[Any]:
    return await store.facts.page(USER, after=last.id if last else "", limit=limit)


async def tools(store: Store, last: Any, limit: int) -> list[Any]:
    return await store.tools.page(USER, after=last.revision if last else 0, limit=limit)


async def indexed(store: Store, last: Any, limit: int) -> list[Any]:
    return await store.remembered.indexed(USER, after=last.place if last else 0, limit=limit)


async def selected(store: Store, last: Any, limit: int) -> list[Any]:
    after = last[0] if last else 0
    return list(await store.remembered.select(USER, TurnFilter(), limit=limit, after=after))


PAGES: list[Page] = [
    refs, refs_across, sessions, turns, answers, facts, tools, indexed, selected,
]  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_pages_of_any_size_give_all_in_the_same_order(opener: Opener, page: Page) -> None:
    async def work(store: Store) -> None:
        for scope in (Scope("bob", "blue", "s1"), HERE, Scope("ann", "red", "s1")):
            await fill(store, opener, scope)
        whole = await page(store, None, 1000)
        assert len(whole) == NUMBER
        for limit in range(1, NUMBER + 2):
            pages: list[Any] = []
            last = None
            for _ in range(NUMBER + 1):
                some = await page(store, last, limit)
                assert len(some) <= limit
                if not some:
                    break
                pages, last = pages + some, some[-1]
            assert pages == whole, limit

    opener.run(work)


LISTS: list[tuple[str, Callable[[Store, int], Awaitable[list[Any]]], int]] = [
    ("audit", lambda store, n: store.audit(USER, limit=n), NUMBER),
    ("failures", lambda store, n: store.across.failures([USER], limit=n), NUMBER),
    ("sessions", lambda store, n: store.across.sessions([USER], limit=n), NUMBER),
    ("facts", lambda store, n: store.facts.latest(USER, limit=n), NUMBER),
    ("words", lambda store, n: store.remembered.with_words(USER, ["words"], limit=n), NUMBER),
]


@pytest.mark.parametrize(("name", "first", "number"), LISTS)
def test_the_first_of_a_list_are_its_beginning(
    opener: Opener, name: str, first: Callable[[Store, int], Awaitable[list[Any]]], number: int
) -> None:
    async def work(store: Store) -> None:
        await fill(store, opener, Scope("bob", "blue", "s1"))
        await fill(store, opener, HERE)
        whole = await first(store, 1000)
        assert len(whole) == number, name
        for limit in range(number + 2):
            assert await first(store, limit) == whole[:limit]

    opener.run(work)


def test_the_last_turns_come_in_their_order_and_before_a_number(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await fill(store, opener, Scope("bob", "blue", "s1"))
        await fill(store, opener, HERE)
        whole = await store.remembered.recent(HERE, limit=1000)
        assert [each.content for each in whole] == [f"words {n}" for n in range(NUMBER)]
        for limit in range(1, NUMBER + 2):
            assert await store.remembered.recent(HERE, limit=limit) == whole[-limit:]
        for at, each in enumerate(whole[1:], 1):
            earlier = await store.remembered.recent(HERE, limit=2, before=each.number)
            assert earlier == whole[max(0, at - 2) : at]

    opener.run(work)
