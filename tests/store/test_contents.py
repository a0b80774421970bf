"""Contents of refs, on every store."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import StoreError
from holdfast.store import Store
from holdfast.store.pack import pack, unpack
from holdfast.store.records import RefInfo
from holdfast.store.refs import digest, ref_id
from tests.store.harness import HERE, Opener, content, noise


async def opened(store: Store, ref: str) -> bytes | None:
    stored = await store.get(HERE, ref)
    return None if stored is None else stored.data


async def the_info(store: Store, ref: str) -> RefInfo:
    info = await store.info(HERE, ref)
    assert info is not None
    return info


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        b"\0\xff" * 50,
        b"line\n" * 9000,
        noise(100_000),
        "\ud800 é \0".encode("utf-8", "surrogatepass"),
    ],
    ids=["empty", "short", "binary", "long", "noise", "surrogate"],
)
def test_content_comes_back_byte_by_byte(opener: Opener, data: bytes) -> None:
    async def work(store: Store) -> None:
        await store.put(HERE, [content(data)])
        assert await opened(store, content(data).ref_id) == data

    opener.run(work)


@given(st.binary(max_size=4000) | st.text(max_size=2000).map(lambda text: text.encode()))
def test_what_is_packed_is_unpacked_the_same_and_never_grows(data: bytes) -> None:
    packed = pack(data)
    assert len(packed.data) <= len(data)
    assert unpack(*packed, size=len(data), sha256=digest(data)) == data


def test_what_is_large_is_packed_piece_by_piece_and_unpacked_the_same() -> None:
    data = b"".join(b"%d times %d\n" % (n, n) for n in range(100_000))
    packed = pack(data)
    assert len(packed.data) < len(data) / 2
    assert unpack(*packed, size=len(data), sha256=digest(data)) == data


@given(data=st.binary(min_size=1, max_size=3000), at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_flipped_bit_is_never_unpacked_as_the_content(data: bytes, at: int, bit: int) -> None:
    codec, stored = pack(data * 3)
    broken = bytearray(stored)
    broken[at % len(broken)] ^= 1 << bit
    unpacked = unpack(codec, bytes(broken), size=len(data) * 3, sha256=digest(data * 3))
    assert unpacked in (None, data * 3)  # a bit of the frame may mean nothing


def test_record_keeps_every_field_whatever_its_text(opener: Opener) -> None:
    odd = "é \ud800 \0 \u2028 🙂"
    given_ = content(
        "data",
        summary=odd,
        compressed=odd,
        tokens=12,
        meta={odd: odd, "tool": "x"},
        flags=("email", odd),
        ttl_seconds=60.0,
    )

    async def work(store: Store) -> None:
        await store.put(HERE, [given_])
        assert await the_info(store, given_.ref_id) == RefInfo(
            ref_id=given_.ref_id,
            kind="log",
            sha256=given_.sha256,
            size=4,
            tokens=12,
            summary=odd,
            compressed=odd,
            meta={odd: odd, "tool": "x"},
            flags=("email", odd),
            created_at=opener.clock.now,
            expires_at=opener.clock.now + 60,
            accessed_at=None,
            accesses=0,
            state="fresh",
        )

    opener.run(work)


def test_every_form_of_a_name_opens_the_same(opener: Opener) -> None:
    made = content("some content")
    digits = made.sha256[:16]
    forms = [made.ref_id, f" {made.ref_id}:summary ", ref_id("log", made.sha256, 40), digits]
    forms += [f"content_{digits}", f"src_{digits}", f"sha256:{made.sha256}", made.sha256]

    async def work(store: Store) -> None:
        await store.put(HERE, [made])
        for form in forms:
            assert await opened(store, form) == made.data, form
        for wrong in ("", "ref:log:", ref_id("page", made.sha256), "f" * 16, digits[:15]):
            assert await opened(store, wrong) is None, wrong
            assert await store.info(HERE, wrong) is None, wrong

    opener.run(work)


def test_one_content_of_two_kinds_has_two_refs_and_is_stored_once(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.put(HERE, [content("same", "log"), content("same", "page")])
        stats = await store.stats(HERE)
        assert (stats.refs, stats.contents, stats.size) == (2, 1, 4)
        assert stats.by_kind == {"log": 1, "page": 1}
        assert await opened(store, content("same").sha256) == b"same"

    opener.run(work)


def test_equal_content_of_two_users_is_stored_once_and_outlives_one_of_them(
    opener: Opener,
) -> None:
    made = content("shared by chance")
    bob = msgspec.structs.replace(HERE, user="bob")

    async def work(store: Store) -> None:
        await store.put(HERE, [made])
        await store.put(bob, [made])
        assert await store.forget(HERE, [made.ref_id]) == 1
        assert await store.get(HERE, made.ref_id) is None
        stored = await store.get(bob, made.ref_id)
        assert stored is not None
        assert stored.data == made.data

    opener.run(work)


def test_known_content_lives_longer_and_gains_what_its_record_lacked(opener: Opener) -> None:
    first = content("x", summary="first", ttl_seconds=100.0)
    again = content("x", summary="second", compressed="short", tokens=5, ttl_seconds=50.0)

    async def work(store: Store) -> None:
        await store.put(HERE, [first])
        opener.clock.advance(10)
        await store.put(HERE.of("s2"), [again])
        info = await the_info(store, first.ref_id)
        assert (info.summary, info.compressed, info.tokens) == ("first", "short", 5)
        assert info.expires_at == info.created_at + 100
        opener.clock.advance(80)
        await store.put(HERE, [again])
        assert (await the_info(store, first.ref_id)).expires_at == opener.clock.now + 50
        await store.put(HERE, [content("x")])
        assert (await the_info(store, first.ref_id)).expires_at is None
        assert len(await store.refs(HERE.of("s2"))) == 1

    opener.run(work)


def test_state_turns_stale_at_its_end_and_the_content_stays(opener: Opener) -> None:
    made = content("x", ttl_seconds=60.0)

    async def work(store: Store) -> None:
        await store.put(HERE, [made])
        opener.clock.advance(59.5)
        assert (await the_info(store, made.ref_id)).state == "fresh"
        opener.clock.advance(0.5)
        assert (await the_info(store, made.ref_id)).state == "stale"
        assert await opened(store, made.ref_id) == b"x"
        assert (await store.stats(HERE)).stale == 1

    opener.run(work)


def test_a_peek_is_no_access(opener: Opener) -> None:
    made = content("x")

    async def work(store: Store) -> None:
        await store.put(HERE, [made])
        await store.get(HERE, made.ref_id)
        before = await the_info(store, made.ref_id)
        opener.clock.advance(1)
        stored = await store.get(HERE.of("another session"), made.ref_id, peek=True)
        assert stored is not None
        assert stored.data == made.data
        assert stored.info == await the_info(store, made.ref_id) == before
        assert await store.refs(HERE.of("another session")) == []

    opener.run(work)


def test_accesses_are_counted(opener: Opener) -> None:
    made = content("x")

    async def work(store: Store) -> None:
        await store.put(HERE, [made])
        for _ in range(3):
            opener.clock.advance(1)
            await store.get(HERE, made.ref_id)
        info = await the_info(store, made.ref_id)
        assert (info.accesses, info.accessed_at) == (3, opener.clock.now)

    opener.run(work)


def test_opening_a_ref_makes_it_the_sessions_own(opener: Opener) -> None:
    made = content("x")

    async def work(store: Store) -> None:
        await store.put(HERE, [made])
        assert await store.refs(HERE.of("s2")) == []
        await store.get(HERE.of("s2"), made.ref_id)
        assert [info.ref_id for info in await store.refs(HERE.of("s2"))] == [made.ref_id]
        await store.delete_session(HERE)
        assert await opened(store, made.ref_id) == b"x"

    opener.run(work)


def test_pages_of_refs_are_stable_while_others_arrive(opener: Opener) -> None:
    made = [content(f"content {n}", "log" if n % 3 else "page") for n in range(20)]

    async def pages(store: Store, scope_session: str, kind: str) -> list[str]:
        found: list[str] = []
        while page := await store.refs(
            HERE.of(scope_session), kind=kind, limit=3, before=found[-1] if found else ""
        ):
            found += [info.ref_id for info in page]
            await store.put(HERE, [content(f"late {len(found)} {kind} {scope_session}", "log")])
        return found

    async def work(store: Store) -> None:
        await store.put(HERE, made)
        newest = [c.ref_id for c in reversed(made)]
        assert await pages(store, "", "page") == [r for r in newest if ":page:" in r]
        assert [r for r in await pages(store, "s1", "") if r in newest] == newest
        assert [r for r in await pages(store, "", "") if r in newest] == newest
        assert await store.refs(HERE, limit=0) == []
        with pytest.raises(StoreError, match="go on"):
            await store.refs(HERE, before=content("never stored").ref_id)

    opener.run(work)


def test_what_does_not_belong_together_is_refused_and_nothing_of_the_call_is_stored(
    opener: Opener,
) -> None:
    good, other = content("good"), content("other")
    wrong = [
        content("x", sha256=other.sha256),
        content("x", ref_id=other.ref_id),
        msgspec.structs.replace(content("x"), kind="page"),
        content("x", "No Kind"),
        content("x", ref_id="nonsense"),
        content("x", summary="s" * 501),
    ]

    async def work(store: Store) -> None:
        for bad in wrong:
            with pytest.raises(StoreError) as raised:
                await store.put(HERE, [good, bad])
            assert "other" not in str(raised.value)
        assert await store.refs(HERE) == []
        assert await store.audit(HERE) == []
        await store.put(HERE, [])
        assert (await store.stats(HERE)).contents == 0

    opener.run(work)


def test_forgotten_refs_leave_no_trace_but_the_audit(opener: Opener) -> None:
    made = [content("one", tokens=3, flags=("key",)), content("two")]

    async def work(store: Store) -> None:
        await store.put(HERE, made)
        names = [made[0].ref_id, made[0].sha256, "ref:log:" + "0" * 16, "nonsense"]
        assert await store.forget(HERE, names) == 1
        assert await store.info(HERE, made[0].ref_id) is None
        assert await opened(store, made[1].ref_id) == b"two"
        (entry, *_) = await store.audit(HERE)
        assert (entry.action, entry.ref_id, entry.flags) == ("removed", made[0].ref_id, ("key",))
        assert (await store.stats(HERE)).contents == 1

    opener.run(work)


def test_audit_tells_what_happened_in_ids_and_counts(opener: Opener) -> None:
    made = content("secret text", tokens=100, compressed_tokens=9, compressed="secret …")

    async def work(store: Store) -> None:
        await store.put(HERE, [made])
        opener.clock.advance(5)
        await store.put(HERE.of("s2"), [made])
        newest = await store.audit(HERE)
        assert [(e.action, e.session, e.at) for e in newest] == [
            ("seen again", "s2", opener.clock.now),
            ("stored", "s1", opener.clock.now - 5),
        ]
        assert (newest[1].from_tokens, newest[1].to_tokens, newest[1].size) == (100, 9, 11)
        assert newest[1].sha256 == made.sha256
        assert "secret" not in repr(newest)
        assert await store.audit(HERE, limit=1, before=1) == newest[1:]

    opener.run(work)


def test_many_at_once_are_all_stored(opener: Opener) -> None:
    made = [content(f"content {n % 40}" * 50) for n in range(120)]

    async def work(store: Store) -> None:
        await asyncio.gather(*(store.put(HERE, [c]) for c in made))
        assert (await store.stats(HERE)).refs == 40
        found = await asyncio.gather(*(store.get(HERE, c.ref_id) for c in made))
        assert [stored and stored.data for stored in found] == [c.data for c in made]

    opener.run(work)


def test_closed_store_says_so_and_can_be_closed_again(sqlite: Opener) -> None:
    async def work(store: Store) -> None:
        await store.close()
        await store.close()
        with pytest.raises(StoreError, match="closed"):
            await store.put(HERE, [content("x")])
        with pytest.raises(StoreError, match="closed"):
            await store.get(HERE, content("x").ref_id)

    sqlite.run(work)
