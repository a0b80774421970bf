"""Remembered turns: the same on every store, separate by scope, and gone when forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from holdfast.errors import StoreError
from holdfast.store import Scope, Store
from holdfast.store.fact_store import Fact, FactSource, NewFact
from holdfast.store.turn_store import (
    Changes,
    KnownMessage,
    NewTurn,
    RememberedTurn,
    TurnFilter,
    print_of,
)
from tests.store.harness import (
    HERE,
    OTHER_USER,
    OTHER_WORKSPACE,
    ChangeTable,
    Opener,
    exported,
    lines_of,
    session,
    turn,
)


def said(content: str, role: str = "user", **more: Any) -> NewTurn:
    fields: dict[str, Any] = {
        "at": 1_700_000_000.0,
        "maker": "m",
        "index": content[:3].encode("utf-8", "replace") or b"-",
    } | more
    name = str(fields.get("name", ""))
    return NewTurn(role=role, content=content, print=print_of(role, name, content, None), **fields)


async def remember(store: Store, scope: Scope, *turns: NewTurn) -> list[str]:
    known = await store.remembered.known(scope, turns)
    new = [
        NewTurn(**{**_fields(each), "id": here.id})
        for each, here in zip(turns, known, strict=True)
        if not here.is_here
    ]
    assert await store.remembered.add(scope, new) == len(new)
    return [here.id for here in known]


def _fields(new: NewTurn) -> dict[str, Any]:
    return {name: getattr(new, name) for name in new.__struct_fields__}


async def contents(store: Store, scope: Scope) -> list[str]:
    return [row.content for row in await store.remembered.recent(scope, limit=100)]


def test_turns_come_back_as_they_were_said(opener: Opener) -> None:
    odd = "a lone \ud800 surrogate, a zero \0 and 日本語 " + "long " * 200

    async def work(store: Store) -> None:
        await remember(store, HERE, said("first"), said(odd, "assistant", name="Bot", tokens=7))
        (one, two) = await store.remembered.recent(HERE, limit=5)
        assert (one.content, one.role, one.number, one.session) == ("first", "user", 1, "s1")
        assert two == RememberedTurn(
            id=two.id,
            session="s1",
            role="assistant",
            content=odd,
            at=1_700_000_000.0,
            name="Bot",
            number=2,
            tokens=7,
        )
        assert await store.remembered.recent(HERE, limit=1) == [two]
        assert await store.remembered.recent(HERE, limit=5, before=2) == [one]
        rows = await store.remembered.indexed(HERE)
        assert [row.index for row in rows] == [b"fir", b"a l"]
        places = [row.place for row in rows]
        assert await store.remembered.turns(HERE, places) == dict(
            zip(places, (one, two), strict=True)
        )
        assert await store.remembered.indexed(HERE, after=places[0], limit=1) == rows[1:]

    opener.run(work)


def test_a_history_that_is_sent_again_is_known_and_only_its_end_is_new(opener: Opener) -> None:
    first, second, third = said("a"), said("b", "assistant"), said("c")

    async def work(store: Store) -> None:
        ids = await remember(store, HERE, first, second)
        assert await remember(store, HERE, first, second, third) == [
            *ids,
            ids_ := (await store.remembered.recent(HERE, limit=1))[0].id,
        ]
        assert await remember(store, HERE, first, second) == ids
        assert await remember(store, HERE, third) == [ids_]
        assert await remember(store, HERE, second, third) == [ids[1], ids_]
        assert await contents(store, HERE) == ["a", "b", "c"]
        again = await remember(store, HERE, first)  # after c, "a" matches the beginning
        assert again == ids[:1]
        await remember(store, HERE, said("d", "assistant"), first)
        assert await contents(store, HERE) == ["a", "b", "c", "d", "a"]

    opener.run(work)


def test_an_id_stands_for_one_message_of_its_session(opener: Opener) -> None:
    async def work(store: Store) -> None:
        assert await remember(store, HERE, said("a", id="m1"), said("a", id="m2")) == ["m1", "m2"]
        assert await remember(store, HERE, said("other", id="m1")) == ["m1"]
        assert await contents(store, HERE) == ["a", "a"]
        await remember(store, HERE.of("s2"), said("of another", id="m1"))
        assert await contents(store, HERE.of("s2")) == ["of another"]
        assert await store.remembered.add(HERE, [said("x", id="m3"), said("x", id="m3")]) == 1

    opener.run(work)


def test_an_index_that_is_replaced_is_noticed_whatever_is_written_with_it(opener: Opener) -> None:
    async def work(store: Store) -> None:
        turns = [said(f"turn {n}", id=f"m{n}") for n in range(4)]
        await store.remembered.add(HERE, turns)
        before = await store.remembered.changes(HERE)
        again = [said(f"turn {n}", id=f"m{n}", maker="n", index=b"new") for n in range(3)]
        await store.remembered.add(HERE, [*again, turns[3]])
        after = await store.remembered.changes(HERE)
        assert after.added == before.added
        assert after.removed > before.removed, "though the last turn of the call is as it was"

    opener.run(work)


def test_another_makers_index_takes_the_place_of_the_one_before(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.remembered.add(HERE, [said("a", id="m1")])
        before = await store.remembered.changes(HERE)
        await store.remembered.add(HERE, [said("a", id="m1", index=b"same maker")])
        assert await store.remembered.changes(HERE) == before
        await store.remembered.add(HERE, [said("a", id="m1", maker="n", index=b"new")])
        (row,) = await store.remembered.indexed(HERE)
        assert (row.maker, row.index) == ("n", b"new")
        after = await store.remembered.changes(HERE)
        assert (after.added, after.removed) == (before.added, before.removed + 1)

    opener.run(work)


def test_every_change_is_counted_and_only_in_its_scope(opener: Opener) -> None:
    async def work(store: Store) -> None:
        assert await store.remembered.changes(HERE) == Changes()
        await remember(store, HERE, said("a"), said("b"))
        assert await store.remembered.changes(HERE) == Changes(2, 0)
        assert await store.remembered.changes(OTHER_USER) == Changes()
        (row, _) = await store.remembered.indexed(HERE)
        assert await store.remembered.forget(OTHER_USER, [row.place]) == 0
        assert await store.remembered.forget(HERE, [row.place, row.place]) == 1
        assert await store.remembered.changes(HERE) == Changes(2, 1)
        assert await store.remembered.forget(HERE, [row.place]) == 0
        assert await store.remembered.changes(HERE) == Changes(2, 1)

    opener.run(work)


def test_nobody_sees_the_turns_of_another_scope(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await remember(store, HERE, said("my secret garden"))
        (row,) = await store.remembered.indexed(HERE)
        for other in (OTHER_USER, OTHER_WORKSPACE):
            turns = store.remembered
            assert await turns.indexed(other) == []
            assert await turns.turns(other, [row.place]) == {}
            assert await turns.recent(other, limit=9) == []
            assert await turns.with_words(other, ["secret"], limit=9) == []
            assert await turns.select(other, TurnFilter()) == []
            known = await turns.known(other, [said("my secret garden")])
            assert not known[0].is_here
        assert Scope("ann", "blue") in await store.scopes()
        assert OTHER_USER.of("") not in await store.scopes()

    opener.run(work)


def test_words_find_turns_whatever_their_endings(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await remember(store, HERE, said("We planted tomatoes."), said("It rained."))
        await remember(store, HERE.of("s2"), said("A tomato and a planting plan"))

        async def places(scope: Scope, *words: str) -> list[tuple[str, int]]:
            rows = await store.remembered.with_words(scope, words, limit=5)
            return sorted((row.session, row.number) for row in rows)

        everywhere = HERE.of("")
        assert await places(everywhere, "planting") == [("s1", 1), ("s2", 1)]
        assert await places(HERE, "planting", "raining") == [("s1", 1), ("s1", 2)]
        assert await places(everywhere, "nothing", '"', "(") == []
        # A single word for PostgreSQL's parser may contain query operators.
        assert await places(everywhere, "C:\\it's\\rain", "x'q\\z", "rained") == [("s1", 2)]

    opener.run(work)


def test_turns_of_other_sessions_do_not_crowd_out_those_of_the_session(opener: Opener) -> None:
    async def work(store: Store) -> None:
        # Short ones rank before the long one, and there are more of them than are asked for.
        await remember(store, HERE.of("s2"), *(said(f"tomato {n}") for n in range(4)))
        words = " ".join(f"word{n}" for n in range(30))
        await remember(store, HERE, said(f"A tomato among {words}"))
        rows = await store.remembered.with_words(HERE, ["tomato"], limit=2)
        assert [(row.session, row.number) for row in rows] == [("s1", 1)]

    opener.run(work)


def test_a_history_that_begins_again_is_the_same_though_its_end_looks_like_its_beginning(
    opener: Opener,
) -> None:
    async def work(store: Store) -> None:
        yes, plan, done = said("Yes."), said("The plan."), said("Done.")
        ids = await remember(store, HERE, yes, plan, done, yes)
        assert len(set(ids)) == 4
        assert await remember(store, HERE, yes, plan, done) == ids[:3]

    opener.run(work)


def test_a_filter_means_ids_sessions_and_times_together(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await remember(store, HERE, *(said(f"t{n}", id=f"m{n}", at=float(n)) for n in range(4)))
        await remember(store, HERE.of("s2"), said("t9", id="m1", at=9.0))

        async def meant(**wanted: Any) -> list[str]:
            rows = await store.remembered.select(HERE, TurnFilter(**wanted))
            return [row.content for _, row in rows]

        assert await meant() == ["t0", "t1", "t2", "t3", "t9"]
        assert await meant(ids=("m1",)) == ["t1", "t9"]
        assert await meant(ids=("m1",), session="s1") == ["t1"]
        assert await meant(since=1.0, before=3.0) == ["t1", "t2"]
        (first, second, *_) = await store.remembered.select(HERE, TurnFilter(), limit=2)
        assert (await store.remembered.select(HERE, TurnFilter(), limit=1, after=first[0])) == [
            second
        ]

    opener.run(work)


def test_turns_go_with_their_session(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.add_turn(HERE, turn(1), session(), {})
        await remember(store, HERE, said("goes"))
        await remember(store, HERE.of("s2"), said("stays"))
        before = await store.remembered.changes(HERE)
        await store.delete_session(HERE)
        assert await contents(store, HERE) == []
        assert await contents(store, HERE.of("s2")) == ["stays"]
        assert (await store.remembered.changes(HERE)).removed == before.removed + 1

    opener.run(work)


def told_in(ref: str, session: str = HERE.session) -> FactSource:
    return FactSource(ref, "", session)


def known(text: str, *sources: FactSource) -> list[NewFact]:
    """Return a fact as it is added once for each source."""
    return [NewFact(fact=Fact(id=f"{text} {n}", text=text, sources=(source,)))
            for n, source in enumerate(sources)]  # fmt: skip


async def sources(store: Store, scope: Scope) -> dict[str, list[str]]:
    """Return the refs of the facts of a scope, by their texts."""
    facts = await store.facts.latest(scope.of(""), current=False)
    return {each.text: [source.ref for source in each.sources] for each in facts}


def test_facts_of_forgotten_turns_alone_are_forgotten_with_them(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await remember(store, HERE, said("a", id="t1"), said("b", id="t2"))
        for scope in (HERE, OTHER_USER, OTHER_WORKSPACE):
            await store.facts.add(
                scope,
                [
                    *known("of one", told_in("t1")),
                    *known("of both", told_in("t1"), told_in("t2")),
                    *known("of one and a content", told_in("t1"), told_in("ref:log:0")),
                    *known("of the other", told_in("t2")),
                    *known("of the same id in another session", told_in("t1", "s2")),
                ],
            )
        before = await store.facts.changes(HERE)
        elsewhere = await store.facts.changes(OTHER_USER)
        [(place, _)] = await store.remembered.select(HERE, TurnFilter(ids=("t1",)))
        assert await store.remembered.forget(HERE, [place]) == 1
        assert await sources(store, HERE) == {
            "of both": ["t2"],
            "of one and a content": ["ref:log:0"],
            "of the other": ["t2"],
            "of the same id in another session": ["t1"],
        }
        after = await store.facts.changes(HERE, before.counter)
        assert {row.text for row in after.rows} == {"of both", "of one and a content"}
        assert after.ids is not None, "indexes are told to look which facts are left"
        for scope in (OTHER_USER, OTHER_WORKSPACE):
            assert len(await sources(store, scope)) == 5
        assert await store.facts.changes(OTHER_USER) == elsewhere
        assert await store.verify(HERE) == []

    opener.run(work)


def test_turns_without_facts_leave_facts_unchanged(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await remember(store, HERE, said("a", id="t1"))
        await store.facts.add(HERE, known("of another", told_in("t2")))
        before = await store.facts.changes(HERE)
        places = [place for place, _ in await store.remembered.select(HERE, TurnFilter())]
        assert await store.remembered.forget(HERE, places) == 1
        assert await store.facts.changes(HERE) == before

    opener.run(work)


def test_facts_of_expired_turns_expire_with_them(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await remember(store, HERE, said("a", id="t1", at=10.0))
        [fact] = known("said long ago, and dated by a clock", told_in("t1"))
        late = msgspec.structs.replace(fact.fact, created_at=1e9)
        await store.facts.add(HERE, [msgspec.structs.replace(fact, fact=late)])
        assert (await store.expire(HERE, 20.0)).records == 2
        assert await sources(store, HERE) == {}

    opener.run(work)


def test_turns_are_exported_and_restored_once(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await remember(store, HERE, said("a"), said("b \ud800", "assistant", name="Bot"))
        lines = await exported(store, HERE)
        assert await store.restore(HERE, lines_of(lines)) == 0
        assert await store.restore(OTHER_USER, lines_of(lines)) == 2
        assert await exported(store, OTHER_USER) == lines
        assert await contents(store, OTHER_USER) == ["a", "b \ud800"]
        assert (await store.remembered.known(OTHER_USER, [said("a")]))[0].is_here

    opener.run(work)


@pytest.mark.parametrize(
    "wrong",
    [{"role": ""}, {"at": float("nan")}, {"name": "x" * 501}, {"id": "a\0b"}, {"name": "\ud800"}],
)
def test_what_cannot_be_stored_is_refused_without_its_content(
    opener: Opener, wrong: dict[str, Any]
) -> None:
    async def work(store: Store) -> None:
        bad = NewTurn(**{**_fields(said("private", id="m")), **wrong})
        for call in (store.remembered.known, store.remembered.add):
            with pytest.raises(StoreError) as caught:
                await call(HERE, [bad])
            assert "private" not in str(caught.value)
        with pytest.raises(StoreError, match="names no session"):
            await store.remembered.known(HERE.of(""), [said("a")])

    opener.run(work)


def test_a_damaged_turn_is_never_served_and_verify_tells(
    opener: Opener, change_table: ChangeTable
) -> None:
    async def work(store: Store) -> None:
        await remember(store, HERE, said("whole"), said("damaged"))
        await change_table("remembered", "data = 'x'", "number = 2")
        assert await contents(store, HERE) == ["whole"]
        assert len(await store.verify(HERE)) == 1
        await store.delete_session(HERE)
        assert await store.verify(HERE) == []

    opener.run(work)


def test_a_forgotten_turn_is_in_no_byte_of_the_file(sqlite: Opener) -> None:
    """In no table, no index of words, no freed page: zebras and quokkas occur nowhere else."""

    async def work(store: Store) -> None:
        await remember(store, HERE, said("before", id="m0"))
        many = [said(f"my zebra{n} met a quokka " + "x" * n, id=f"z{n}") for n in range(300)]
        await remember(store, HERE, *many)
        await remember(store, HERE.of("s2"), said("one more quokka"), said("a heron stays"))
        rows = await store.remembered.select(HERE, TurnFilter(session="s1"), limit=500)
        await store.remembered.forget(HERE, [place for place, row in rows if row.id != "m0"])
        await store.delete_session(HERE.of("s3"))
        places = [
            place
            for place, row in await store.remembered.select(HERE, TurnFilter(session="s2"))
            if "quokka" in row.content
        ]
        await store.remembered.forget(HERE, places)

    sqlite.run(work)
    file = Path(sqlite.url.removeprefix("sqlite:///"))
    raw = b"".join(path.read_bytes() for path in file.parent.iterdir())
    assert b"heron" in raw
    for word in (b"zebra", b"quokka", b"z299"):
        assert word not in raw, word


def test_known_tells_what_a_new_turn_will_be_called(opener: Opener) -> None:
    async def work(store: Store) -> None:
        (first,) = await store.remembered.known(HERE, [said("a")])
        assert first == KnownMessage(first.id, False)
        assert await remember(store, HERE, said("a")) == [first.id]
        (second,) = await store.remembered.known(HERE, [said("a", "assistant")])
        assert second.id != first.id

    opener.run(work)


def test_no_word_of_a_forgotten_long_turn_stays_in_the_index(sqlite: Opener) -> None:
    """The index has the beginning of a long turn, and is given that very beginning to remove."""
    path = Path(sqlite.url.removeprefix("sqlite:///"))
    long = "markfirst " + "filler " * 40_000 + "marklast"

    def words() -> list[str]:
        db = apsw.Connection(str(path))
        db.execute(
            "CREATE VIRTUAL TABLE temp.vocabulary"
            " USING fts5vocab('main', 'remembered_words', 'row')"
        )
        terms = [str(term) for (term,) in db.execute("SELECT term FROM vocabulary")]
        db.close()
        return terms

    async def work(store: Store) -> None:
        await remember(store, HERE, said(long), said("short stays"))
        assert "markfirst" in words()
        ((place, _),) = [each for each in await store.remembered.select(HERE, TurnFilter())
                         if each[1].content == long]  # fmt: skip
        await store.remembered.forget(HERE, [place])
        left = words()
        assert "short" in left
        assert not {"markfirst", "filler", "marklast"} & set(left)

    sqlite.run(work)
