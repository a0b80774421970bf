"""Two users of one workspace have the same ref and session; neither sees the other's changes.

One user makes each call in a store that three others have filled with the same names. It must
return the result of a model with only the user's records, leave the user with the same records,
and leave everyone else's unchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from holdfast.store import Scope, Store
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.queue import Claim, NewJob, Quotas
from holdfast.store.sqlite import SqliteStore
from holdfast.store.turn_store import TurnFilter
from tests.store.everything import (
    AT,
    TOOL,
    answer,
    do_jobs,
    fact,
    fill,
    observe,
    said,
    tool,
)
from tests.store.harness import Clock, Opener, content, lines_of, named, session, turn
from tests.store.oracle.store import model_store

HERE = Scope("ann", "blue", "s1")
OTHERS = [Scope("bob", "blue", "s1"), Scope("ann", "red", "s1"), Scope("bob", "red", "s1")]
SESSIONS = ("s1", "s2")
SHARED = content("everybody's")
Call = Callable[[Store], Awaitable[object]]


def _say(scope: Scope) -> Callable[[str], str]:
    """Words that differ from user to user, but sort and match alike."""
    return lambda place: f"{place} of {scope.user} in {scope.workspace}, {scope.session}"


async def _fill_all(store: Store, people: list[Scope]) -> None:
    # In turns, so that no user's records lie together, and the one who calls comes in the middle.
    for name in SESSIONS:
        for person in people:
            scope = person.of(name)
            await fill(store, scope, _say(scope))


async def _forget_shared(store: Store) -> object:
    return await store.forget(HERE, [SHARED.ref_id])


async def _forget_by_hash(store: Store) -> object:
    return await store.forget(HERE, [SHARED.sha256[:20], content("of s1").ref_id])


async def _delete_session(store: Store) -> object:
    return await store.delete_session(HERE)


async def _close_and_clean(store: Store) -> object:
    await store.close_session(HERE)
    await store.close_session(HERE.of("s2"))
    return (await store.gc(HERE, grace_seconds=-10.0)).refs  # others may need the contents


async def _clean(store: Store) -> object:
    return (await store.gc(HERE, grace_seconds=-1e7)).refs


async def _expire_all(store: Store) -> object:
    return await store.expire(HERE, 1e12)


async def _expire_one_session(store: Store) -> object:
    record = session("s2", updated_at=AT + 1000)
    await store.add_turn(HERE.of("s2"), turn(3, [b"new"]), record, named(b"new"))
    return await store.expire(HERE, AT + 500)


async def _expire_of_no_session(store: Store) -> object:
    for name in SESSIONS:
        scope = HERE.of(name)
        await store.delete_session(scope)
        await store.put(HERE.of("gone"), [SHARED])
        await store.remembered.add(HERE.of("gone"), [said("t1", "of no session")])
        await store.facts.add(HERE, [fact("f5", "Of no session.", "m1", "gone")])
        await store.answers.put(HERE.of("gone"), answer("a1", "p", "t", (), "gone"))
        await store.journal.append(HERE.of("gone"), "j", [b"entry"])
    return await store.expire(HERE, AT + 500)


async def _erase(store: Store) -> object:
    return await store.erase(HERE)


async def _open(store: Store) -> object:
    opened = await store.get(HERE.of("s2"), content("of s1").ref_id)
    assert opened is not None
    return opened


async def _put_again(store: Store) -> object:
    again = msgspec.structs.replace(SHARED, summary="another", ttl_seconds=5.0)
    await store.put(HERE.of("s2"), [again])
    return await store.info(HERE, SHARED.ref_id)


async def _put_removed(store: Store) -> object:
    await _clean_all(store)
    await store.put(HERE, [SHARED])
    return await store.info(HERE, SHARED.ref_id)


async def _clean_all(store: Store) -> object:
    for name in SESSIONS:
        await store.close_session(HERE.of(name))
    return (await store.gc(HERE, grace_seconds=-1e7)).refs


async def _add_turn(store: Store) -> object:
    record = session("s1", title="later", updated_at=AT + 9)
    await store.add_turn(HERE, turn(3, [b"new"]), record, named(b"new"))
    return await store.turns(HERE, after=1)


async def _name_messages_of_others(store: Store) -> object:
    theirs = _say(Scope("bob", "blue", "s1"))("message").encode()
    await store.add_turn(HERE, turn(3, [theirs]), session("s1"), {})
    return await store.messages(HERE, [turn(3, [theirs]).sent.added[0]])  # type: ignore[union-attr]


async def _link(store: Store) -> object:
    await store.link(HERE.of("s2"), ["resp_s1"])
    return await store.session_linked(HERE, "nobody's", "resp_s1", "resp_s2")


async def _close_without_turns(store: Store) -> object:
    await store.put(HERE.of("s3"), [content("third")])
    await store.close_session(HERE.of("s3"))
    await store.close_session(HERE.of("s4"))
    return await store.session(HERE.of("s3")), await store.session(HERE.of("s4"))


async def _summaries(store: Store) -> object:
    await store.put_summary(HERE, "k1", b"mine", 1.0, source=SHARED.sha256)
    return await store.summary(HERE, "k1")


async def _calibrate(store: Store) -> object:
    await store.save_calibration(HERE, b"mine")
    return await store.calibration(HERE)


async def _verify(store: Store) -> object:
    read: list[int] = []
    return await store.verify(HERE, lambda done, _: read.append(done)), len(read) > 0


async def _remember(store: Store) -> object:
    turns = [said("t1", "known"), said("t9", "new words")]
    anew = msgspec.structs.replace(said("t2 s1", "known"), maker="another", index=b"made anew")
    return await store.remembered.add(HERE, [*turns, anew])


async def _forget_turns(store: Store) -> object:
    return await store.remembered.forget(HERE, await _places_around(store))


async def _places_around(store: Store) -> list[int]:
    """The places of this user's turns, and those around them, where others' turns are."""
    places = [each.place for each in await store.remembered.indexed(HERE)]
    return list(range(min(places) - 50, max(places) + 50))


async def _turns_of_others(store: Store) -> object:
    opened = await store.remembered.turns(HERE, await _places_around(store))
    return sorted(turn_.content for turn_ in opened.values())


async def _select_turns(store: Store) -> object:
    by_id = await store.remembered.select(HERE, TurnFilter(ids=("t1", "t2 s1")))
    return [turn_ for _, turn_ in by_id]


async def _add_facts(store: Store) -> object:
    same = fact("f9", "Everybody says so.", "m9", "s2")
    return await store.facts.add(HERE, [same, fact("f8", "New.", "m1", "s1", subject="new")])


async def _supersede(store: Store) -> object:
    new = fact("f9", "The other way.", "m9", "s1", subject=_say(HERE)("subject"), said_by="x")
    added = await store.facts.add(HERE, [new])
    named_ = msgspec.structs.replace(fact("f7", "By name.", "m9", "s1"), supersedes=("f1",))
    return (
        added,
        await store.facts.add(HERE, [named_]),
        await store.facts.before(HERE, ["f9", "f7"]),
    )


async def _remove_facts(store: Store) -> object:
    before = (await store.facts.changes(HERE)).counter
    gone = await store.facts.remove(HERE, ["f1", "f3 s1"])
    return gone, (await store.facts.changes(HERE, before)).ids


async def _put_answer(store: Store) -> object:
    await store.answers.put(HERE, answer("a1", "again", "new", (), "s1"))
    await store.answers.hit(HERE, "a2 s1")
    return await store.answers.latest(HERE)


async def _forget_answers(store: Store) -> object:
    return await store.answers.forget(HERE, ["a1", "a2 s2"])


async def _expire_answers(store: Store) -> object:
    old = msgspec.structs.replace(answer("a1", "p", "t", (), "s1"), expires_at=AT - 1.0)
    await store.answers.put(HERE, old)
    gone = await store.answers.get(HERE, "a1")
    await store.gc(HERE)
    return gone, await store.answers.latest(HERE)


async def _journal(store: Store) -> object:
    following = await store.journal.append(HERE, "j", [b"third"], expect=3)
    return following, await store.journal.read(HERE, "j", after=1)


async def _forget_journal(store: Store) -> object:
    return await store.journal.forget(HERE, "j"), await store.journal.names(HERE, "j")


async def _tools(store: Store) -> object:
    added = await store.tools.add(HERE, [tool("search", "again"), tool("third", "new")])
    await store.tools.used(HERE, [TOOL])
    return added


async def _replace_tool(store: Store) -> object:
    known = await store.tools.get(HERE, TOOL)
    assert known is not None
    others = [await store.tools.get(scope, TOOL) for scope in OTHERS]
    revisions = [each.revision for each in others if each is not None]
    mine = msgspec.structs.replace(known, definition=b"changed", version=2)
    theirs = [msgspec.structs.replace(mine, revision=number) for number in revisions]
    return [await store.tools.replace(HERE, each) for each in (*theirs, mine)][-1], [
        await store.tools.replace(HERE, each) for each in theirs
    ].count(True)


async def _forget_tools(store: Store) -> object:
    return await store.tools.forget(HERE, [TOOL, ("github", "nobody's")])


async def _queue(store: Store) -> object:
    jobs = [NewJob(kind="x", key="shared"), NewJob(kind="x", key="new")]
    return await store.jobs.enqueue(HERE, jobs)


async def _restore(store: Store) -> object:
    lines = [line async for line in store.export(HERE.of(""))]
    await store.delete_session(HERE)
    await store.tools.forget(HERE, [TOOL])
    return await store.restore(HERE, lines_of(lines))


async def _restore_twice(store: Store) -> object:
    lines = [line async for line in store.export(HERE.of(""))]
    return await store.restore(HERE, lines_of(lines))


CALLS: dict[str, Call] = {
    name.removeprefix("_"): function
    for name, function in list(globals().items())
    if name.startswith("_")
    and asyncio.iscoroutinefunction(function)
    and name not in ("_fill_all", "_places_around")
}


def _differing(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {name: (one[name], other[name]) for name in one if one[name] != other[name]}


async def _outcome(store: Store, people: list[Scope], call: Call) -> tuple[object, Any]:
    await _fill_all(store, people)
    await do_jobs(store)
    result = await call(store)
    return result, await observe(store, HERE, SESSIONS)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_does_the_same_beside_others_as_alone_and_changes_nothing_of_theirs(
    opener: Opener, call: Call
) -> None:
    async def alone() -> tuple[object, Any]:
        return await _outcome(model_store(Clock(AT)), [HERE], call)

    async def others(store: Store) -> list[Any]:
        return [await observe(store, scope, SESSIONS) for scope in OTHERS]

    async def work(store: Store) -> None:
        people = [*OTHERS[:2], HERE, *OTHERS[2:]]
        await _fill_all(store, people)
        await do_jobs(store)
        before = await others(store)
        result = await call(store)
        for theirs, earlier in zip(await others(store), before, strict=True):
            assert _differing(theirs, earlier) == {}
        expected, mine = await alone()
        assert result == expected
        assert _differing(await observe(store, HERE, SESSIONS), mine) == {}

    opener.clock.now = AT
    opener.run(work)


async def _damage_everybody(store: Store) -> None:
    """Make answers, summaries and contents unreadable, those of everybody alike."""
    if isinstance(store, SqliteStore):
        for table in ("answers", "summaries", "contents"):
            sql = f"UPDATE {table} SET data = x'00'"
            await store._write(lambda db, sql=sql: db.execute(sql).fetchall())  # type: ignore[misc]
    elif isinstance(store, PostgresStore):
        for sql in (
            "UPDATE holdfast.answers SET data = '\\x00'",
            "UPDATE holdfast.summaries SET data = '\\x00'",
            "UPDATE holdfast.contents SET data = '\\x00'",
        ):
            await store._database.fetch(sql)


def test_damaged_records_are_removed_only_of_who_looks_for_them(opener: Opener) -> None:
    async def work(store: Store) -> None:
        if opener.kind == "memory":
            pytest.skip("nothing in memory can be damaged")
        people = [HERE, *OTHERS]
        for person in people:
            await store.answers.put(person, answer("same", "a prompt", "an answer", (), "s1"))
            await store.put_summary(person, "same", b"the same summary")
            await store.put(person, [SHARED])
        await _damage_everybody(store)
        for person in people:
            damages = await store.verify(person)
            assert len(damages) == 3, person
            assert [damage.refs for damage in damages if damage.refs] == [(SHARED.ref_id,)]
            # Derived data was removed; the content is quarantined, visible to its owners.
            assert len(await store.verify(person)) == 1

    opener.clock.now = AT
    opener.run(work)


def test_who_has_forgotten_everything_is_not_listed_for_what_others_hold(opener: Opener) -> None:
    async def work(store: Store) -> None:
        for person in (HERE, *OTHERS):
            await store.remembered.add(person, [said("t1", "words")])
            await store.facts.add(person, [fact("f1", "A fact.", "m1", "s1")])
        places = [each.place for each in await store.remembered.indexed(HERE)]
        await store.remembered.forget(HERE, places)
        await store.facts.remove(HERE, ["f1"])
        listed = {(scope.user, scope.workspace) for scope in await store.scopes()}
        assert listed == {(scope.user, scope.workspace) for scope in OTHERS}

    opener.run(work)


def test_a_job_over_its_sessions_quota_gives_back_only_its_owners_day(opener: Opener) -> None:
    async def work(store: Store) -> None:
        for person in (HERE, *OTHERS):
            jobs = [NewJob(kind="x", key=key, most_cost=10) for key in ("one", "two")]
            await store.jobs.enqueue(person, jobs)
        quotas = Quotas(session=15, day=100, artifact=50)
        claimed = await store.jobs.claim(Claim(kinds=("x",), limit=100, quotas=quotas))
        assert len(claimed) == 4
        for person in (HERE, *OTHERS):
            assert sorted((await store.jobs.spent(person)).values()) == [10, 10], person

    opener.clock.now = AT
    opener.run(work)


def test_a_subject_of_everybody_is_superseded_for_one(opener: Opener) -> None:
    async def work(store: Store) -> None:
        for person in (*OTHERS, HERE):
            old = fact("f1", "It is May.", "m1", "s1", subject="deadline", said_by="x")
            # Other users' facts are newer: a comparison with them would supersede this one.
            later = msgspec.structs.replace(old.fact, id=f"f of {person.user}", created_at=AT + 9)
            is_here = person == HERE
            added = old if is_here else msgspec.structs.replace(old, fact=later)
            await store.facts.add(person, [added])
        new = fact("f2", "It is June.", "m2", "s1", subject="deadline", said_by="x")
        await store.facts.add(HERE, [new])
        assert [each.text for each in await store.facts.latest(HERE)] == ["It is June."]
        for person in OTHERS:
            assert [each.text for each in await store.facts.latest(person)] == ["It is May."]

    opener.run(work)


def test_a_turn_that_is_forgotten_takes_no_fact_of_another_session_along(opener: Opener) -> None:
    """Ids of turns are those of their session."""

    async def work(store: Store) -> None:
        for name in SESSIONS:
            await store.remembered.add(HERE.of(name), [said("t1", f"in {name}")])
            await store.facts.add(HERE, [fact(f"f {name}", f"Said in {name}.", "t1", name)])
        places = [
            each.place for each in await store.remembered.indexed(HERE) if each.session == "s1"
        ]
        await store.remembered.forget(HERE, places)
        assert [each.text for each in await store.facts.latest(HERE.of(""))] == ["Said in s2."]

    opener.run(work)


async def _put_unused(store: Store, scope: Scope) -> None:
    """Store a record of each kind that is removed when no session of its owner uses it."""
    name = scope.session
    await store.put(scope, [content(f"of {name}")])
    await store.remembered.add(scope, [said(f"t {name}", f"in {name}")])
    await store.facts.add(scope, [fact(f"f {name}", f"Said in {name}.", "m1", name)])
    await store.answers.put(scope, answer(f"a {name}", "p", "t", (), name))
    await store.journal.append(scope, "j", [b"entry"])


def test_records_without_a_session_are_removed_only_of_who_expires_them(opener: Opener) -> None:
    """Nobody has the session "gone", others have "lost", and the caller has one of another name."""
    names = ("gone", "lost", "live")

    async def use(store: Store, scope: Scope) -> None:
        record = session(scope.session, updated_at=AT + 1000)
        await store.add_turn(scope, turn(1, [b"new"]), record, named(b"new"))

    async def expired(store: Store, people: list[Scope]) -> tuple[object, Any]:
        for person in people:
            for name in ("gone", "lost"):
                await _put_unused(store, person.of(name))
            await use(store, person.of("live" if person == HERE else "lost"))
        before = [await observe(store, person, names) for person in OTHERS]
        erased = await store.expire(HERE, AT + 500)
        for person, earlier in zip(OTHERS, before, strict=True):
            assert _differing(await observe(store, person, names), earlier) == {}
        return erased, await observe(store, HERE, names)

    async def work(store: Store) -> None:
        alone = await expired(model_store(Clock(AT)), [HERE])
        erased, mine = await expired(store, [*OTHERS[:2], HERE, *OTHERS[2:]])
        assert erased == alone[0]
        assert _differing(mine, alone[1]) == {}
        assert await store.refs(HERE) == []

    opener.clock.now = AT
    opener.run(work)


def test_the_end_of_a_session_is_known_whatever_others_said_in_theirs(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.remembered.add(HERE, [said(word, word) for word in ("a", "b", "c")])
        for person in OTHERS:
            await store.remembered.add(person, [said(f"{n}", "other") for n in range(9)])
        again = [
            msgspec.structs.replace(said("", word), print=word, id="") for word in ("b", "c", "d")
        ]
        known = await store.remembered.known(HERE, again)
        assert [each.is_here for each in known] == [True, True, False]

    opener.run(work)


def test_a_name_that_another_user_gave_to_another_content_is_free(opener: Opener) -> None:
    async def work(store: Store) -> None:
        made = content("a")
        await store.put(HERE, [made])
        lines = [line async for line in store.export(HERE)]
        other = [line.replace(made.sha256.encode(), made.sha256[:16].encode() + b"0" * 48)
                 for line in lines if b'"type":"ref"' in line]  # fmt: skip
        gone = [msgspec.json.encode({**msgspec.json.decode(line), "data": None}) for line in other]
        for person in OTHERS:
            assert await store.restore(person, lines_of([lines[0], *gone])) == 1
        await store.forget(HERE, [made.ref_id])
        await store.put(HERE, [made])
        assert await store.get(HERE, made.ref_id)

    opener.run(work)


def test_damage_is_seen_though_another_workspace_has_the_content_whole(opener: Opener) -> None:
    async def work(store: Store) -> None:
        if not isinstance(store, SqliteStore):
            pytest.skip("PostgreSQL compares the bytes themselves, and memory is not damaged")
        for person in (*OTHERS, HERE):
            await store.put(person, [SHARED])
        sql = "UPDATE contents SET data = CASE workspace WHEN ? THEN x'00' ELSE ? END"
        for workspace, others in (("blue", "red"), ("red", "blue")):
            values = (workspace, SHARED.data)
            await store._write(lambda db, v=values: db.execute(sql, v).fetchall())  # type: ignore[misc]
            await store._write(
                lambda db: db.execute("UPDATE contents SET damage = NULL").fetchall()
            )
            assert len(await store.verify(Scope("ann", workspace))) == 1
            assert await store.verify(Scope("ann", others)) == []

    opener.clock.now = AT
    opener.run(work)
