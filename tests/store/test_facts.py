"""Facts on every kind of store: merged, superseded, forgotten without a trace; nothing crosses."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.errors import StoreConflictError, StoreError
from holdfast.store import Store, open_store
from holdfast.store.fact_store import (
    DAMAGE,
    Fact,
    FactFilter,
    FactSource,
    NewFact,
    key_of,
)
from tests.store.harness import (
    HERE,
    OTHER_USER,
    OTHER_WORKSPACE,
    ChangeTable,
    Opener,
    content,
    exported,
    lines_of,
)

ALONE = HERE.of("")


def fact(text: str, number: int = 0, *, session: str = "s1", ref: str = "m1", **more: Any) -> Fact:
    place = more.pop("place", "")
    defaults: dict[str, Any] = {
        "created_at": float(number),
        "id": f"{number:04}-{key_of(text)[:8]}",
    }
    return Fact(text=text, sources=(FactSource(ref, place, session),), **defaults | more)


def new(text: str, number: int = 0, *, supersedes: Any = (), **more: Any) -> NewFact:
    return NewFact(
        fact=fact(text, number, **more), supersedes=supersedes, embedder="e", vector=b"v"
    )


async def texts(store: Store, *, current: bool = True) -> list[str]:
    return [each.text for each in await store.facts.latest(ALONE, current=current)]


def test_a_fact_comes_back_as_it_was_added(opener: Opener) -> None:
    whole = fact(
        "Ann: The deadline is 1 May 2026 ✓",
        7,
        kind="task",
        subject="deadline",
        said_by="Ann",
        tags=("plan", "release"),
        standing=True,
        decay_weight=0.5,
        place="characters 3-40",
    )

    async def work(store: Store) -> None:
        assert await store.facts.add(HERE, [NewFact(fact=whole)]) == [whole]
        assert await store.facts.get(HERE, ["nobody", whole.id, whole.id]) == [whole]
        assert await store.facts.latest(HERE) == [whole]
        assert await store.facts.latest(HERE, tag="plan", kind="task") == [whole]
        assert await store.facts.latest(HERE, tag="pla") == []
        assert await store.facts.latest(HERE.of("s2")) == []
        assert (whole.session, whole.source_ref, whole.place) == ("s1", "m1", "characters 3-40")
        assert await store.scopes() == [ALONE]
        await store.facts.remove(HERE, [whole.id])
        assert await store.scopes() == []

    opener.run(work)


def test_what_says_the_same_becomes_one_fact_with_both_sources(opener: Opener) -> None:
    async def work(store: Store) -> None:
        (first,) = await store.facts.add(HERE, [new("Ann lives in Rome.", 1, tags=("a",))])
        again = new("ANN lives  in Rome", 2, session="s2", ref="m9", tags=("b",))
        (merged,) = await store.facts.add(HERE, [again])
        assert merged.id == first.id
        assert [source.ref for source in merged.sources] == ["m1", "m9"]
        assert (merged.text, merged.tags, merged.created_at) == (first.text, ("a", "b"), 2.0)
        assert await store.facts.latest(HERE.of("s2")) == [merged]
        assert await store.facts.add(HERE, [again]) == [merged]

    opener.run(work)


def test_a_newer_statement_of_the_same_speaker_supersedes(opener: Opener) -> None:
    async def work(store: Store) -> None:
        told = {"subject": "home", "said_by": "Ann"}
        old, other = await store.facts.add(
            HERE,
            [new("Rome", 1, **told), new("Ann is in Bonn", 1, subject="home", said_by="Bob")],
        )
        (fresh,) = await store.facts.add(HERE, [new("Oslo", 3, **told)])
        (late,) = await store.facts.add(HERE, [new("Paris", 2, **told)])
        assert sorted(await texts(store)) == ["Ann is in Bonn", "Oslo"]
        assert late.superseded_by == fresh.id
        chain = await store.facts.history(HERE, old.id)
        assert [each.text for each in chain] == ["Rome", "Paris", "Oslo"]
        assert [each.is_current for each in chain] == [False, False, True]
        assert await store.facts.history(HERE, other.id) == [other]
        # An earlier fact can become true again: as a new fact.
        (back,) = await store.facts.add(HERE, [new("Rome", 4, **told)])
        assert back.id != old.id
        assert [each.text for each in await store.facts.history(HERE, back.id)] == [
            *("Rome", "Paris", "Oslo", "Rome")
        ]
        assert sorted(await texts(store)) == ["Ann is in Bonn", "Rome"]

    opener.run(work)


def test_what_is_superseded_by_name_must_be_current_and_else_nothing_is_written(
    opener: Opener,
) -> None:
    async def work(store: Store) -> None:
        (old,) = await store.facts.add(HERE, [new("Red", 1)])
        (fresh,) = await store.facts.add(HERE, [new("Blue", 2, supersedes=(old.id,))])
        assert await texts(store) == ["Blue"]
        for gone in (old.id, "nobody"):
            with pytest.raises(StoreConflictError, match="not current"):
                await store.facts.add(HERE, [new("Green", 3), new("Grey", 3, supersedes=(gone,))])
        assert await texts(store, current=False) == ["Blue", "Red"]
        (same,) = await store.facts.add(HERE, [new("Blue", 5, supersedes=(fresh.id,))])
        assert same.is_current

    opener.run(work)


@pytest.mark.parametrize(
    "change",
    [
        {"text": ""},
        {"text": "x" * 501},
        {"text": "a\0b"},
        {"text": "lone \ud800"},
        {"kind": "rumour"},
        {"tags": tuple(map(str, range(21)))},
        {"subject": "x" * 201},
        {"sources": ()},
        {"sources": (FactSource("", "", "s1"),)},
        {"created_at": float("nan")},
        {"decay_weight": -1.0},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_no_fact_is_refused(opener: Opener, change: dict[str, Any]) -> None:
    async def work(store: Store) -> None:
        wrong = msgspec.structs.replace(fact("whole"), **change)
        with pytest.raises(StoreError):
            await store.facts.add(HERE, [new("first"), NewFact(fact=wrong)])
        assert await texts(store) == []

    opener.run(work)


def test_a_fact_goes_with_its_last_source(opener: Opener) -> None:
    log = content("a log")

    async def work(store: Store) -> None:
        await store.put(HERE, [log])
        await store.put(HERE.of("s2"), [content("another")])
        await store.facts.add(
            HERE,
            [new("Both", 1), new("Only here", 2), new("Logged", 3, ref=log.ref_id, session="s2")],
        )
        await store.facts.add(HERE, [new("Both", 1, session="s2", ref="m2")])
        await store.delete_session(HERE)
        # The log was removed with the only session that used it, and so were its facts.
        assert await texts(store) == ["Both"]
        (left,) = await store.facts.latest(ALONE)
        assert [source.session for source in left.sources] == ["s2"]
        await store.put(HERE, [log])
        await store.facts.add(HERE, [new("Logged", 3, ref=log.ref_id)])
        await store.forget(HERE, [log.ref_id])
        assert await texts(store) == ["Both"]

    opener.run(work)


def test_a_filter_means_what_fulfils_all_of_it(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.facts.add(
            HERE,
            [
                new("Alpha beta", 1, kind="link", tags=("t",)),
                new("Alpha gamma", 2, session="s2", ref="m2"),
                *(new(f"filler {n}", 3) for n in range(600)),
            ],
        )

        async def meant(**which: Any) -> list[str]:
            facts = await store.facts.matching(HERE, FactFilter(**which))
            return sorted(each.text for each in facts)

        assert await meant(words="ALPHA") == ["Alpha beta", "Alpha gamma"]
        assert await meant(words="alpha", session="s2") == ["Alpha gamma"]
        assert await meant(kind="link", tag="t") == ["Alpha beta"]
        assert await meant(ref="m2") == ["Alpha gamma"]
        assert await meant(ids=("nobody",), words="alpha") == []
        assert len(await meant(session="s1")) == 601

    opener.run(work)


def test_changes_tell_what_an_index_has_missed(opener: Opener) -> None:
    async def work(store: Store) -> None:
        shelf = store.facts
        assert await shelf.changes(HERE) == (0, [], None)
        assert await shelf.confirm(HERE, [], 0) == []
        (one, two) = await shelf.add(HERE, [new("One", 1, subject="s"), new("Two", 2)])
        counter, rows, ids = await shelf.changes(HERE)
        assert ids is None
        assert {row.id for row in rows} == {one.id, two.id}
        assert {(row.embedder, bytes(row.vector), row.sessions) for row in rows} == {
            ("e", b"v", ("s1",))
        }
        assert await shelf.confirm(HERE, [two.id, one.id], counter) == [two, one]
        (three,) = await shelf.add(HERE, [new("Three", 3, subject="s")])
        assert await shelf.confirm(HERE, [one.id], counter) is None
        later, rows, ids = await shelf.changes(HERE, counter)
        assert {(row.id, row.superseded_by) for row in rows} == {(one.id, three.id), (three.id, "")}
        assert await shelf.remove(HERE, [two.id, "nobody"]) == 1
        last, rows, ids = await shelf.changes(HERE, later)
        assert (rows, ids) == ([], frozenset({one.id, three.id}))
        assert last > later > counter
        assert {row.id for row in (await shelf.changes(HERE)).rows} == {three.id}

    opener.run(work)


def test_nothing_crosses_users_or_workspaces(opener: Opener) -> None:
    async def work(store: Store) -> None:
        (mine,) = await store.facts.add(HERE, [new("Mine", 1, subject="s")])
        counter = (await store.facts.changes(HERE)).counter
        for stranger in (OTHER_USER, OTHER_WORKSPACE):
            assert await store.facts.get(stranger, [mine.id]) == []
            assert await store.facts.latest(stranger) == await store.facts.page(stranger) == []
            assert await store.facts.history(stranger, mine.id) == []
            assert await store.facts.matching(stranger, FactFilter(words="mine")) == []
            assert await store.facts.before(stranger, [mine.id]) == []
            assert await store.facts.changes(stranger) == (0, [], None)
            assert await store.facts.remove(stranger, [mine.id]) == 0
            with pytest.raises(StoreConflictError):
                await store.facts.add(stranger, [new("Theirs", 2, supersedes=(mine.id,))])
            await store.facts.add(stranger, [new("Mine", 1), new("Theirs", 2, subject="s")])
            await store.facts.remove(stranger, [mine.id])
        assert await store.facts.confirm(HERE, [mine.id], counter) == [mine]

    opener.run(work)


def test_facts_are_exported_and_restored_once(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.facts.add(HERE, [new("Old", 1, subject="s"), new("Kept", 1, tags=("t",))])
        await store.facts.add(HERE, [new("New", 2, subject="s")])
        lines = await exported(store, HERE)
        assert await store.restore(HERE, lines_of(lines)) == 0
        assert await store.restore(OTHER_USER, lines_of(lines)) == 3
        assert await exported(store, OTHER_USER) == lines
        # A newer value that is there already stays the current one.
        await store.facts.add(OTHER_WORKSPACE, [new("Newest", 9, subject="s")])
        await store.restore(OTHER_WORKSPACE, lines_of(lines))
        current = await store.facts.latest(OTHER_WORKSPACE.of(""))
        assert [each.text for each in current] == ["Newest", "Kept"]

    opener.run(work)


def test_a_damaged_fact_is_never_served_and_verify_removes_it(
    opener: Opener, change_table: ChangeTable
) -> None:
    async def work(store: Store) -> None:
        await store.facts.add(HERE, [new("Whole", 1), new("Damaged", 2)])
        await change_table("facts", "text = 'Forged'", "text = 'Damaged'")
        assert await texts(store) == ["Whole"]
        assert [damage.why for damage in await store.verify(HERE)] == [DAMAGE]
        assert await store.verify(HERE) == []

    opener.run(work)


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
def test_two_writers_at_once_leave_one_current_fact(store_url: str) -> None:
    async def write(store: Store, writer: str) -> None:
        for number in range(12):
            told = {"subject": "home", "said_by": "Ann", "session": writer}
            await store.facts.add(HERE, [new(f"{writer} {number}", number, **told)])
            await store.facts.add(HERE, [new(f"Ann said {number}", number, ref=writer)])

    async def work() -> None:
        stores = [await open_store(store_url) for _ in range(2)]
        await asyncio.gather(*(write(store, f"w{n}") for n, store in enumerate(stores)))
        current = await stores[0].facts.latest(ALONE, limit=1000)
        homes = [each for each in current if each.subject]
        assert len(homes) == 1
        assert homes[0].created_at == 11.0
        said = [each for each in current if not each.subject]
        assert len(said) == 12
        assert all({s.ref for s in each.sources} == {"w0", "w1"} for each in said)
        counters = [(await store.facts.changes(ALONE)).counter for store in stores]
        assert counters == [48, 48]
        for store in stores:
            await store.close()

    asyncio.run(work())


def test_what_was_forgotten_is_not_in_the_file_either(sqlite: Opener) -> None:
    file = Path(sqlite.url.removeprefix("sqlite:///"))
    secret = "Quetzalcoatl"

    async def work(store: Store) -> None:
        facts = [
            new(
                f"{secret}{n}x lives in town {n}",
                n,
                subject=f"{secret}sub{n}",
                tags=(f"{secret}tag".lower(),),
                said_by=f"{secret}by",
                ref=f"{secret}ref{n}",
                place=f"{secret}place",
            )
            for n in range(300)
        ]
        await store.facts.add(HERE, [new(f"filler {n}", n) for n in range(200)])
        added = await store.facts.add(HERE, facts)
        await store.facts.add(HERE, facts[:50])
        await store.facts.add(HERE, [new(f"more filler {n}", n) for n in range(200)])
        assert secret.encode() in b"".join(p.read_bytes() for p in file.parent.iterdir())
        await store.facts.remove(HERE, [each.id for each in added])

    sqlite.run(work)
    for path in file.parent.iterdir():
        assert secret.lower().encode() not in path.read_bytes().lower(), path.name
