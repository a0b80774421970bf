"""Tools are kept as they were pinned, on every kind of store, and go without a trace."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from holdfast.errors import StoreError
from holdfast.store import Scope, Store, open_store
from holdfast.store.tool_store import DAMAGE, StoredTool
from tests.store.harness import HERE, OTHER_USER, OTHER_WORKSPACE, Opener, exported, lines_of

SECRET = "a-description-nobody-may-read-again"


def pinned(name: str = "search", server: str = "github", **more: Any) -> StoredTool:
    tool = StoredTool(
        server=server,
        name=name,
        definition=b'{"name":"search","description":"' + SECRET.encode() * 9 + b'"}',
        hash="h1",
        tokens=12,
        intent="Search code",
        warnings=("conceals",),
        maker="1 words",
        read=b"\x00\xff",
        updated_at=1_800_000_000.0,
    )
    return msgspec.structs.replace(tool, **more)


def plain(tool: StoredTool | None) -> StoredTool:
    assert tool is not None
    return msgspec.structs.replace(tool, revision=0)


def test_a_tool_is_added_once_and_changed_only_by_who_saw_it_last(opener: Opener) -> None:
    async def work(store: Store) -> None:
        tools = store.tools
        key = ("github", "search")
        assert await tools.get(HERE, key) is None
        assert await tools.add(HERE, [pinned(), pinned("open")]) == [key, ("github", "open")]
        assert await tools.add(HERE, [pinned(hash="h2")]) == []
        first = await tools.get(HERE.of("other"), key)
        assert first is not None
        assert plain(first) == pinned()
        await tools.used(HERE, [key, ("x", "y")])
        changed = msgspec.structs.replace(
            first, offered=b"{}", offered_hash="h2", renamed_from="find", version=2
        )
        assert await tools.replace(HERE, changed)
        assert not await tools.replace(HERE, changed)
        second = await tools.get(HERE, key)
        assert second is not None
        assert second.revision > first.revision
        assert (second.uses, second.used_at) == (1, opener.clock.now)
        offer = (second.offered, second.offered_hash, second.renamed_from)
        assert offer == (b"{}", "h2", "find")
        assert not await tools.replace(HERE, pinned("nobody", revision=1))

    opener.run(work)


def test_pages_go_by_revision_and_the_stamp_tells_every_change(opener: Opener) -> None:
    async def work(store: Store) -> None:
        tools, stamps = store.tools, []
        stamps.append(await tools.stamp(HERE))
        await tools.add(HERE, [pinned(f"t{n}") for n in range(5)])
        stamps.append(await tools.stamp(HERE))
        first = await tools.page(HERE, limit=3)
        rest = await tools.page(HERE, after=first[-1].revision)
        assert [tool.name for tool in first + rest] == [f"t{n}" for n in range(5)]
        assert await tools.page(HERE, after=rest[-1].revision) == []
        assert await tools.replace(HERE, rest[0])
        stamps.append(await tools.stamp(HERE))
        last = (await tools.page(HERE))[-1]
        assert last.name == rest[0].name
        assert await tools.forget(HERE, [last.key, last.key]) == 1
        await tools.add(HERE, [pinned("another")])
        stamps.append(await tools.stamp(HERE))
        await tools.used(HERE, [("github", "t0")])
        assert await tools.stamp(HERE) == stamps[-1]
        assert len(set(stamps)) == len(stamps)

    opener.run(work)


def test_no_one_else_has_a_tool(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.tools.add(HERE, [pinned()])
        for other in (OTHER_USER, OTHER_WORKSPACE):
            assert await store.tools.get(other, ("github", "search")) is None
            assert await store.tools.page(other) == []
            assert (await store.tools.stamp(other)).tools == 0
            assert await store.tools.forget(other, [("github", "search")]) == 0
            await store.tools.used(other, [("github", "search")])
        tool = await store.tools.get(HERE, ("github", "search"))
        assert tool is not None
        assert tool.uses == 0
        assert Scope(HERE.user, HERE.workspace) in await store.scopes()

    opener.run(work)


def test_tools_move_with_an_export_and_those_that_are_there_stay(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.tools.add(HERE, [pinned(), pinned("open", hash="h9")])
        await store.tools.used(HERE, [("github", "search")])
        lines = await exported(store, HERE)
        await store.tools.add(OTHER_USER, [pinned("open", hash="mine")])
        assert await store.restore(OTHER_USER, lines_of(lines)) == 1
        moved = await store.tools.get(OTHER_USER, ("github", "search"))
        assert plain(moved) == pinned(uses=1, used_at=opener.clock.now)
        mine = await store.tools.get(OTHER_USER, ("github", "open"))
        assert mine is not None
        assert mine.hash == "mine"
        assert await store.restore(OTHER_USER, lines_of(lines)) == 0

    opener.run(work)


def test_a_tool_without_a_name_is_refused(opener: Opener) -> None:
    async def work(store: Store) -> None:
        with pytest.raises(StoreError):
            await store.tools.add(HERE, [pinned("")])
        assert (await store.tools.stamp(HERE)).tools == 0

    opener.run(work)


def test_a_damaged_tool_is_missing_and_verify_tells(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def work() -> None:
        store = await open_store(f"sqlite:///{path}")
        await store.tools.add(HERE, [pinned(), pinned("open")])
        db = apsw.Connection(str(path))
        db.execute("UPDATE tools SET data = x'00' WHERE tool_name = 'search'")
        db.close()
        assert await store.tools.get(HERE, ("github", "search")) is None
        assert [tool.name for tool in await store.tools.page(HERE, limit=1)] == ["open"]
        assert [damage.why for damage in await store.verify(HERE)] == [DAMAGE]
        assert await store.verify(HERE) == []
        assert (await store.tools.stamp(HERE)).tools == 1
        await store.close()

    asyncio.run(work())


def test_a_forgotten_tool_leaves_no_byte_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def work() -> None:
        store = await open_store(f"sqlite:///{path}")
        short = pinned(definition=SECRET.encode(), intent="")  # too short to be compressed
        await store.tools.add(HERE, [short])
        await store.tools.forget(HERE, [short.key])
        await store.close()

    asyncio.run(work())
    left = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert SECRET.encode() not in left
