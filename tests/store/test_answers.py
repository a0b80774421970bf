"""Answers are kept until their time is over, on every kind of store, and go without a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.errors import StoreError
from holdfast.store import Scope, Store
from holdfast.store.answer_store import DAMAGE, Candidate, StoredAnswer
from tests.store.harness import (
    HERE,
    OTHER_USER,
    OTHER_WORKSPACE,
    ChangeTable,
    Opener,
    content,
    exported,
    lines_of,
    session,
    turn,
)

SECRET = "the-question-nobody-may-read-again"


def kept(id_: str = "a1", **more: Any) -> StoredAnswer:
    answer = StoredAnswer(
        id=id_,
        prompt=f"What is {id_}?",
        signature="sig",
        answer=b"An answer. " * 40,
        vector=b"\x01\x02",
        embedder="e",
        session=HERE.session,
        created_at=1_800_000_000.0,
    )
    return msgspec.structs.replace(answer, **more)


def test_an_answer_is_there_until_its_time_is_over(opener: Opener) -> None:
    async def work(store: Store) -> None:
        answers = store.answers
        assert await answers.get(HERE, "a1") is None
        short = kept(expires_at=opener.clock.now + 60.0)
        await answers.put(HERE, short)
        await answers.put(HERE, kept("a2"))
        opener.clock.advance(59.0)
        assert await answers.get(HERE.of("s2"), "a1") == short
        assert await answers.candidates(HERE, "sig", "e") == [
            Candidate("a2", b"\x01\x02"),
            Candidate("a1", b"\x01\x02"),
        ]
        opener.clock.advance(1.0)
        assert await answers.get(HERE, "a1") is None
        assert [each.id for each in await answers.candidates(HERE, "sig", "e")] == ["a2"]
        assert [each.id for each in await answers.latest(HERE)] == ["a2", "a1"]
        await store.gc(HERE)
        assert [each.id for each in await answers.latest(HERE)] == ["a2"]

    opener.run(work)


def test_vectors_of_another_embedder_or_context_are_no_candidates(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.answers.put(HERE, kept("a1", embedder="other"))
        await store.answers.put(HERE, kept("a2", signature="other"))
        await store.answers.put(HERE, kept("a3", vector=b"", embedder=""))
        assert await store.answers.candidates(HERE, "sig", "e") == []
        assert await store.answers.candidates(HERE, "sig", "") == []

    opener.run(work)


def test_no_one_else_has_an_answer(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.answers.put(HERE, kept())
        for other in (OTHER_USER, OTHER_WORKSPACE):
            assert await store.answers.get(other, "a1") is None
            assert await store.answers.candidates(other, "sig", "e") == []
            assert await store.answers.latest(other) == []
            await store.answers.hit(other, "a1")
            assert await store.answers.forget(other, ["a1"]) == 0
        answer = await store.answers.get(HERE, "a1")
        assert answer is not None
        assert answer.hits == 0
        assert Scope("ann", "blue") in await store.scopes()

    opener.run(work)


def test_an_answer_takes_the_place_of_the_one_before_and_hits_are_counted(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.answers.put(HERE, kept())
        await store.answers.hit(HERE, "a1")
        await store.answers.put(HERE, kept("a2"))
        answer = await store.answers.get(HERE, "a1")
        assert answer is not None
        assert (answer.hits, answer.last_hit_at) == (1, opener.clock.now)
        await store.answers.put(HERE, kept(answer=b"other"))
        [newest, _] = await store.answers.latest(HERE)
        assert (newest.id, newest.answer, newest.hits) == ("a1", b"other", 0)

    opener.run(work)


def test_answers_are_listed_page_by_page_by_session_and_by_ref(opener: Opener) -> None:
    log = content("text")

    async def work(store: Store) -> None:
        for n in range(4):
            refs = (log.ref_id,) if n % 2 else ()
            await store.answers.put(HERE.of(f"s{n % 3}"), kept(f"a{n}", refs=refs))
        everywhere = HERE.of("")
        first = await store.answers.latest(everywhere, limit=3)
        assert [each.id for each in first] == ["a3", "a2", "a1"]
        rest = await store.answers.latest(everywhere, limit=3, before="a1")
        assert [each.id for each in rest] == ["a0"]
        assert [each.id for each in await store.answers.latest(HERE.of("s0"))] == ["a3", "a0"]
        by_ref = await store.answers.latest(everywhere, ref=log.ref_id)
        assert [each.id for each in by_ref] == ["a3", "a1"]
        assert await store.answers.latest(everywhere, limit=0) == []
        with pytest.raises(StoreError, match="no such record"):
            await store.answers.latest(everywhere, before="nobody")

    opener.run(work)


def test_an_answer_goes_with_what_it_was_made_from_and_with_its_session(opener: Opener) -> None:
    log = content("text")

    async def work(store: Store) -> None:
        await store.put(HERE, [log])
        await store.add_turn(HERE, turn(1), session(), {})
        await store.answers.put(HERE.of("s2"), kept("a1", refs=(log.ref_id,)))
        await store.answers.put(HERE, kept("a2"))
        await store.answers.put(HERE.of("s2"), kept("a3"))
        await store.forget(HERE, [log.ref_id])
        assert [each.id for each in await store.answers.latest(HERE.of(""))] == ["a3", "a2"]
        await store.delete_session(HERE)
        assert [each.id for each in await store.answers.latest(HERE.of(""))] == ["a3"]

    opener.run(work)


def test_answers_are_exported_and_restored_once(opener: Opener) -> None:
    odd = "half a pair: \ud83d, a zero: \0"

    async def work(store: Store) -> None:
        await store.answers.put(HERE, kept(prompt=odd, refs=("ref:log:0123456789abcdef",)))
        await store.answers.hit(HERE, "a1")
        lines = await exported(store, HERE)
        assert await store.restore(HERE, lines_of(lines)) == 0
        assert await store.restore(OTHER_USER, lines_of(lines)) == 1
        assert await exported(store, OTHER_USER) == lines
        restored = await store.answers.get(OTHER_USER, "a1")
        assert restored == await store.answers.get(HERE, "a1")
        assert restored is not None
        assert restored.prompt == odd

    opener.run(work)


@pytest.mark.parametrize(
    "wrong",
    [
        {"id_": ""},
        {"signature": ""},
        {"embedder": ""},
        {"vector": b""},
        {"refs": ("no ref",)},
    ],
)
def test_an_answer_that_cannot_be_kept_is_refused(opener: Opener, wrong: dict[str, Any]) -> None:
    async def work(store: Store) -> None:
        with pytest.raises(StoreError):
            await store.answers.put(HERE, kept(**wrong))
        assert await store.answers.latest(HERE) == []

    opener.run(work)


def test_a_damaged_answer_is_never_given_and_verify_removes_it(
    opener: Opener, change_table: ChangeTable
) -> None:
    async def work(store: Store) -> None:
        await store.answers.put(HERE, kept("whole"))
        await store.answers.put(HERE, kept("damaged"))
        await change_table("answers", "data = 'x'", "id = 'damaged'")
        assert await store.answers.get(HERE, "damaged") is None
        assert [each.id for each in await store.answers.latest(HERE)] == ["whole"]
        assert [damage.why for damage in await store.verify(HERE)] == [DAMAGE]
        assert await store.verify(HERE) == []

    opener.run(work)


def test_nothing_of_a_forgotten_answer_is_left_in_the_file(sqlite: Opener) -> None:
    """Short answers are uncompressed in the file: compressed text could not be found there."""
    words = dict.fromkeys(("a1", "a2", "a3", "a4"), "")
    log = content("text")

    async def fill(store: Store) -> None:
        await store.put(HERE, [log])
        for id_ in words:
            refs = (log.ref_id,) if id_ == "a3" else ()
            where = HERE.of("gone" if id_ == "a4" else "s1")
            answer = kept(id_, prompt=f"{SECRET}-{id_}", answer=b"short", refs=refs)
            await store.answers.put(where, answer)
        await store.add_turn(HERE.of("gone"), turn(1), session("gone"), {})

    async def remove(store: Store) -> None:
        assert await store.answers.forget(HERE, ["a1", "a2", "nobody"]) == 2
        await store.forget(HERE, [log.ref_id])
        await store.delete_session(HERE.of("gone"))
        assert await store.answers.latest(HERE.of("")) == []

    folder = Path(sqlite.url.removeprefix("sqlite:///")).parent
    sqlite.run(fill)
    raw = b"".join(file.read_bytes() for file in folder.iterdir())
    assert raw.count(SECRET.encode()) >= len(words)
    sqlite.run(remove)
    raw = b"".join(file.read_bytes() for file in folder.iterdir())
    assert SECRET.encode() not in raw
