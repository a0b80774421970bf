"""Erased records are gone, old ones expire, and used ones are kept."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.store import Scope, Store
from holdfast.store.records import ErasedRecords
from holdfast.store.turn_store import TurnFilter
from holdfast.store.usage_ledger import Amount, DayUse, Reservation
from tests.store.everything import AT, answer, do_jobs, fact, fill, observe, said
from tests.store.harness import HERE, OTHER_USER, Opener, content, session, turn

SESSIONS = ("s1", "s2")


def _say(place: str) -> str:
    return f"the {place}"


_RESERVATION = Reservation(token="r", day=7, most=Amount(9), least=Amount(1), expires_at=900.0)


async def _empty_view(store: Store) -> dict[str, object]:
    nobody = await observe(store, Scope("nobody", "nowhere"), SESSIONS)
    return {name: value for name, value in nobody.items() if name != "turn changes"}


def test_nothing_is_left_of_an_erased_tenant(opener: Opener) -> None:
    async def work(store: Store) -> None:
        opener.clock.now = AT
        for name in SESSIONS:
            await fill(store, HERE.of(name), _say)
        await store.ledger.reserve(HERE, _RESERVATION, Amount(100), 0.0)
        await fill(store, OTHER_USER, _say)
        await do_jobs(store)
        theirs = await observe(store, OTHER_USER, SESSIONS)
        before = await store.removals()
        erased = await store.erase(HERE)
        assert (erased.sessions, erased.turns, erased.refs) == (2, 4, 4)
        assert erased.records > 0
        assert await store.removals() > before
        seen = await observe(store, HERE, SESSIONS)
        seen.pop("turn changes")  # it records that something was removed
        assert seen == await _empty_view(store)
        assert await store.scopes() == [OTHER_USER.of("")]
        assert await observe(store, OTHER_USER, SESSIONS) == theirs
        assert await store.erase(HERE) == ErasedRecords()
        assert await store.ledger.day_use(HERE, 7) == DayUse()
        assert await store.scrub(whole=True)

    opener.run(work)


def test_indexes_in_memory_are_told_of_an_erased_tenant(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await fill(store, HERE, _say)
        turns, facts = await store.remembered.changes(HERE), await store.facts.changes(HERE)
        await store.erase(HERE)
        await fill(store, HERE, _say)
        assert (await store.remembered.changes(HERE)).removed > turns.removed
        assert (await store.facts.changes(HERE, facts.counter)).ids is not None

    opener.run(work)


def test_everything_of_everyone_can_be_erased(opener: Opener) -> None:
    async def work(store: Store) -> None:
        people = [HERE, OTHER_USER, Scope("cid", "green", "s1")]
        for person in people:
            await fill(store, person, _say)
        # Records of people whom `scopes` does not list.
        await store.put_summary(Scope("dan", "green"), "key", b"a summary")
        erased = await store.erase_all()
        assert erased.sessions == 3
        assert await store.scopes() == []
        assert await store.summary(Scope("dan", "green"), "key") is None
        assert await store.jobs.latest(None) == []
        for person in people:
            assert (await observe(store, person, SESSIONS))["contents"] == []

    opener.run(work)


def test_old_sessions_go_with_all_that_is_theirs_and_used_ones_stay(opener: Opener) -> None:
    async def work(store: Store) -> None:
        opener.clock.now = AT
        await fill(store, HERE, _say)
        new = HERE.of("s2")
        await store.put(new, [content("everybody's")])
        await store.add_turn(new, turn(1), session("s2", updated_at=AT + 100), {})
        assert not await store.expire(HERE, AT - 1)
        erased = await store.expire(HERE, AT + 50)
        assert (erased.sessions, erased.turns, erased.refs) == (1, 2, 2)
        assert [record.session for record in await store.sessions(HERE)] == ["s2"]
        assert [info.ref_id for info in await store.refs(HERE.of(""))] == [
            content("everybody's").ref_id
        ]
        assert await store.remembered.recent(HERE, limit=9) == []
        assert await store.journal.read(HERE, "j") == []
        assert not await store.expire(HERE, AT + 50)

    opener.run(work)


@pytest.mark.parametrize("is_kept", [False, True])
def test_records_of_no_session_go_by_their_own_time(opener: Opener, *, is_kept: bool) -> None:
    age = 100.0 if is_kept else -100.0

    async def work(store: Store) -> None:
        scope = HERE.of("no turns")
        opener.clock.now = AT + age
        await store.put(scope, [content("left")])
        await store.journal.append(scope, "j", [b"entry"])
        new = said("t1", "words")
        await store.remembered.add(scope, [msgspec.structs.replace(new, at=AT + age)])
        await store.facts.add(scope, [fact("f1", "Said.", "m1", "no turns")])
        await store.answers.put(scope, answer("a1", "p", "t", (), "no turns"))
        before = AT + 50.0 if is_kept else AT + 1.0
        await store.expire(HERE, before)
        kept = [
            len(await store.refs(HERE.of(""))),
            len(await store.journal.read(scope, "j")),
            len(await store.remembered.select(HERE, TurnFilter())),
            len(await store.audit(HERE)),
        ]
        # The last entry of the audit is new: it records the removal of the ref.
        assert kept == ([1, 1, 1, 1] if is_kept else [0, 0, 0, 0])
        assert await store.facts.latest(HERE.of("")) == []
        assert await store.answers.latest(HERE.of("")) == []

    opener.run(work)


def test_a_ref_that_was_opened_lately_stays(opener: Opener) -> None:
    async def work(store: Store) -> None:
        alone = HERE.of("")
        await store.put(alone, [content("old"), content("opened")])
        opener.clock.advance(100.0)
        await store.get(alone, content("opened").ref_id)
        assert (await store.expire(HERE, opener.clock.now - 50.0)).refs == 1
        assert [info.ref_id for info in await store.refs(alone)] == [content("opened").ref_id]

    opener.run(work)


def test_what_a_clean_up_left_of_a_ref_goes_too(opener: Opener) -> None:
    async def work(store: Store) -> None:
        made = content("gone", summary="what it was", ttl_seconds=1.0)
        await store.put(HERE.of(""), [made])
        opener.clock.advance(10_000.0)
        await store.gc(HERE)
        assert await store.info(HERE, made.ref_id) is not None
        assert (await store.expire(HERE, opener.clock.now)).refs == 1
        assert await store.info(HERE, made.ref_id) is None

    opener.run(work)


def test_many_sessions_go_in_parts(opener: Opener) -> None:
    async def work(store: Store) -> None:
        for number in range(25):
            scope = HERE.of(f"s{number}")
            await store.add_turn(scope, turn(1), session(scope.session, updated_at=AT), {})
        assert await store.expire(HERE, AT + 1) == ErasedRecords(sessions=25, turns=25)

    opener.run(work)


def test_every_removal_is_counted(opener: Opener) -> None:
    async def work(store: Store) -> None:
        counts = [await store.removals()]
        await fill(store, HERE, _say)
        counts.append(await store.removals())
        assert counts[0] == counts[1]
        assert not await store.forget(HERE, ["ref:log:0123456789abcdef"])
        assert await store.removals() == counts[1]
        await store.forget(HERE, [content("everybody's").ref_id])
        counts.append(await store.removals())
        await store.delete_session(HERE)
        counts.append(await store.removals())
        await fill(store, HERE, _say)
        await store.expire(HERE, 1e12)
        counts.append(await store.removals())
        assert counts[1:] == sorted(set(counts[1:]))
        assert not await store.expire(HERE, 1e12)
        assert await store.removals() == counts[-1]

    opener.run(work)
