"""Clean-up, verification and the way out and in again, on every kind of store."""

from __future__ import annotations

import asyncio
import contextlib
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import RefCollisionError, StoreError
from holdfast.store import Scope, Store, open_store, transfer
from holdfast.store.protocol import GRACE_SECONDS
from holdfast.store.records import CleanupResult
from holdfast.store.refs import digest
from tests.store.harness import HERE, Opener, content, exported, lines_of, named, session, turn
from tests.store.oracle.records import Ref

BEHIND = HERE.of("")


async def states(store: Store, *contents_: str) -> list[str]:
    found = [await store.info(HERE, content(text).ref_id) for text in contents_]
    return ["unknown" if info is None else info.state for info in found]


def test_stale_content_goes_after_the_grace_period_and_leaves_its_summary(opener: Opener) -> None:
    made = content("old news", summary="news", compressed="old …", tokens=4, ttl_seconds=60.0)

    async def work(store: Store) -> None:
        await store.put(BEHIND, [made])
        opener.clock.advance(60 + GRACE_SECONDS - 1)
        assert await store.gc(HERE) == CleanupResult(0, 0, 0)
        opener.clock.advance(1)
        assert await store.gc(HERE) == CleanupResult(1, 1, 8)
        info = await store.info(HERE, made.ref_id)
        assert info is not None
        assert (info.state, info.summary, info.compressed) == ("removed", "news", "")
        assert await store.get(HERE, made.ref_id) is None
        assert await store.refs(HERE) == []
        assert (await store.audit(HERE))[0].action == "removed"
        assert await store.gc(HERE) == CleanupResult(0, 0, 0)
        await store.put(BEHIND, [made])
        assert await states(store, "old news") == ["fresh"]

    opener.run(work)


def test_a_content_that_is_stored_again_is_kept_from_then_on(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.put(HERE, [content("left")])
        await store.close_session(HERE)
        opener.clock.advance(GRACE_SECONDS - 1)
        await store.put(HERE, [content("left")])
        opener.clock.advance(GRACE_SECONDS - 1)
        assert (await store.gc(HERE)).refs == 0
        opener.clock.advance(1)
        assert (await store.gc(HERE)).refs == 1

    opener.run(work)


def test_what_a_closed_session_left_goes_and_what_an_open_one_uses_stays(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.put(HERE, [content("left"), content("shared"), content("kept")])
        await store.put(HERE.of("s2"), [content("shared"), content("open", ttl_seconds=1.0)])
        await store.put(BEHIND, [content("kept"), content("free")])
        await store.add_turn(HERE, turn(1), session(), {})
        opener.clock.advance(GRACE_SECONDS)
        assert (await store.gc(HERE)).refs == 0
        await store.close_session(HERE)
        opener.clock.advance(GRACE_SECONDS - 1)
        assert (await store.gc(HERE)).refs == 0
        opener.clock.advance(1)
        assert await store.gc(HERE) == CleanupResult(1, 1, 4)
        expected = ["removed", "fresh", "fresh", "stale", "fresh"]
        assert await states(store, "left", "shared", "kept", "open", "free") == expected

    opener.run(work)


def test_session_without_turns_can_be_closed_and_a_session_nobody_knows_is_none(
    opener: Opener,
) -> None:
    async def work(store: Store) -> None:
        await store.put(HERE, [content("x")])
        await store.close_session(HERE)
        await store.close_session(HERE.of("nobody"))
        assert [record.session for record in await store.sessions(HERE)] == ["s1"]
        opener.clock.advance(GRACE_SECONDS)
        assert (await store.gc(HERE)).refs == 1

    opener.run(work)


def test_what_was_just_opened_or_written_again_stays(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.put(BEHIND, [content(name, ttl_seconds=1.0) for name in "abc"])
        opener.clock.advance(2 * GRACE_SECONDS)
        await store.get(BEHIND, content("a").ref_id)
        await store.put(BEHIND, [content("b", ttl_seconds=1.0)])
        assert (await store.gc(HERE)).refs == 1
        assert await states(store, "a", "b", "c") == ["stale", "fresh", "removed"]

    opener.run(work)


def test_clean_up_of_one_user_leaves_what_another_refers_to(opener: Opener) -> None:
    bob = Scope("bob", "blue")
    made = content("both have it", ttl_seconds=1.0)

    async def work(store: Store) -> None:
        await store.put(BEHIND, [made])
        await store.put(bob, [made])
        opener.clock.advance(2 * GRACE_SECONDS)
        assert await store.gc(HERE) == CleanupResult(1, 0, 0)
        assert await store.get(bob, made.ref_id)

    opener.run(work)


def test_clean_up_of_many_goes_in_parts_and_finds_all(opener: Opener) -> None:
    async def work(store: Store) -> None:
        stale = [content(f"stale {n}", ttl_seconds=1.0) for n in range(250)]
        await store.put(BEHIND, stale)
        await store.put(BEHIND, [content("stays")])
        opener.clock.advance(2 * GRACE_SECONDS)
        assert (await store.gc(HERE)).refs == 250
        assert [info.ref_id for info in await store.refs(BEHIND)] == [content("stays").ref_id]

    opener.run(work)


def test_clean_up_never_takes_what_is_being_written(opener: Opener) -> None:
    async def work(store: Store) -> None:
        made = [content(f"content {n}" * 20) for n in range(12)]

        async def write() -> None:
            for _ in range(6):
                for one in made:
                    await store.put(BEHIND, [one])
                    opened = await store.get(BEHIND, one.ref_id)
                    assert opened is not None
                    assert opened.data == one.data

        async def clean() -> None:
            for _ in range(12):
                # Everything is out of date at once; only the grace period protects it.
                await store.gc(HERE, grace_seconds=5.0)

        async def age() -> None:
            for _ in range(60):
                opener.clock.advance(0.1)
                await asyncio.sleep(0)

        await store.put(BEHIND, [content(f"content {n}" * 20, ttl_seconds=0.0) for n in range(12)])
        await asyncio.gather(write(), write(), clean(), age())
        assert await store.verify(HERE) == []
        assert {info.state for info in await store.refs(BEHIND)} == {"fresh"}

    opener.run(work)


def test_verify_reads_everything_and_tells_how_far_it_is(opener: Opener) -> None:
    async def work(store: Store) -> None:
        told: list[tuple[int, int]] = []
        await store.put(HERE, [content(f"content {n}") for n in range(130)])
        await store.add_turn(HERE, turn(1, [b"m"]), session(), named(b"m"))
        assert await store.verify(HERE, lambda done, of: told.append((done, of))) == []
        assert told[-1] == (132, 132)
        assert [done for done, _ in told] == sorted({done for done, _ in told})

    opener.run(work)


async def filled(store: Store, opener: Opener) -> None:
    """A bit of everything."""
    await store.put(HERE, [content("one", summary="\ud800"), content("one", "page")])
    await store.put(BEHIND, [content("gone", ttl_seconds=1.0, summary="it was")])
    opener.clock.advance(2 * GRACE_SECONDS)
    await store.gc(HERE)
    await store.put(HERE.of("s2"), [content(bytes(range(256)) * 9, flags=("key",))])
    await store.get(HERE.of("s2"), content("one").ref_id)
    for number in range(1, 61):
        message = f"message {number}".encode()
        await store.add_turn(HERE, turn(number, [message]), session(), named(message))
    await store.put(HERE, [content(f"many {n}") for n in range(120)])
    await store.close_session(HERE)
    await store.save_calibration(HERE, b"\0learnt")


def test_what_is_exported_is_restored_to_the_byte(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await filled(store, opener)
        lines = await exported(store, HERE)
        assert sum(json.loads(line)["type"] == "ref" for line in lines) == 124
        twin = await open_store("memory:", clock=opener.clock)
        assert await twin.restore(HERE, lines_of(lines)) == len(lines) - 1
        assert sorted(await exported(twin, HERE)) == sorted(lines)
        newest = [info.ref_id for info in await store.refs(BEHIND, limit=999)]
        assert [info.ref_id for info in await twin.refs(BEHIND, limit=999)] == newest

    opener.run(work)


def test_what_another_kind_of_store_exported_is_restored_to_the_byte(opener: Opener) -> None:
    async def work(store: Store) -> None:
        twin = await open_store("memory:", clock=opener.clock)
        await filled(twin, opener)
        lines = await exported(twin, HERE)
        assert await store.restore(HERE, lines_of(lines)) == len(lines) - 1
        assert sorted(await exported(store, HERE)) == sorted(lines)

    opener.run(work)


def test_restoring_twice_is_once_and_takes_nothing_away(opener: Opener) -> None:
    async def work(store: Store) -> None:
        twin = await open_store("memory:", clock=opener.clock)
        await filled(twin, opener)
        lines = await exported(twin, HERE)
        await store.put(HERE.of("s9"), [content("my own"), content("one", summary="kept")])
        await store.restore(HERE, lines_of(lines))
        before = await exported(store, HERE)
        assert await store.restore(HERE, lines_of(lines)) == 0
        assert await exported(store, HERE) == before
        assert await store.get(HERE, content("my own").ref_id)
        info = await store.info(HERE, content("one").ref_id)
        assert info is not None
        assert info.summary == "kept"
        assert await store.messages(HERE, [digest(b"message 7")])
        assert await store.verify(HERE) == []

    opener.run(work)


def test_restored_into_another_scope_it_belongs_there_alone(opener: Opener) -> None:
    bob = Scope("bob", "red")

    async def work(store: Store) -> None:
        await store.put(HERE, [content("x")])
        await store.restore(bob, lines_of(await exported(store, HERE)))
        await store.forget(HERE, [content("x").ref_id])
        assert await store.get(bob, content("x").ref_id)

    opener.run(work)


REF = Ref(content("whole"), 5, 1.0, 1.0, None).line(b"whole")


def broken_lines() -> list[list[bytes]]:
    header = b'{"type":"holdfast","version":1}\n'
    forged = {
        "type": "message", "sha256": digest(b"a"), "sessions": ["s"], "data": "Yg=="
    }  # fmt: skip
    return [
        [],
        [b"not json\n"],
        [header, header],
        [b'{"type":"holdfast","version":99}\n'],
        [b'{"type":"calibration","data":"YQ=="}\n'],
        [header, b'{"type":"calibration","data":"YQ=="}\n', b'{"type":"secret stuff"}\n'],
        [header, json.dumps(forged).encode()],
        [header, transfer.encode(msgspec.structs.replace(REF, size=7))],
        [header, transfer.encode(msgspec.structs.replace(REF, data=b"other"))],
        [header, transfer.encode(msgspec.structs.replace(REF, kind="page"))],
    ]


@pytest.mark.parametrize("lines", broken_lines())
def test_broken_export_is_refused_and_leaves_nothing(opener: Opener, lines: list[bytes]) -> None:
    async def work(store: Store) -> None:
        with pytest.raises(StoreError) as raised:
            await store.restore(HERE, lines_of(lines))
        assert "secret" not in str(raised.value)
        assert await exported(store, HERE) == [transfer.encode(transfer.Header())]

    opener.run(work)


@given(st.lists(st.binary(max_size=60), max_size=4))
def test_any_bytes_in_the_place_of_an_export_are_a_typed_error_or_nothing(
    lines: list[bytes],
) -> None:
    async def work() -> None:
        store = await open_store("memory:")
        with contextlib.suppress(StoreError):
            await store.restore(HERE, lines_of([b'{"type":"holdfast"}', *lines]))
        # No such bytes are a line of an export, so that nothing of them may be stored.
        assert await exported(store, HERE) == [transfer.encode(transfer.Header())]
        assert await store.scopes() == []

    asyncio.run(work())


def test_export_that_would_give_a_name_to_two_contents_is_refused(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.put(HERE, [content("a")])
        (line,) = [li for li in await exported(store, HERE) if b'"type":"ref"' in li]
        other = json.loads(line)
        other["sha256"] = other["sha256"][:16] + "0" * 48
        other["data"] = None
        lines = [b'{"type":"holdfast"}', json.dumps(other).encode()]
        with pytest.raises(RefCollisionError):
            await store.restore(HERE, lines_of(lines))

    opener.run(work)
