"""Helpers for the tests of all stores: a manual clock, generated records."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from holdfast.store import Content, Scope, SessionRecord, Store, Turn, open_store
from holdfast.store.records import Edit, Trail, TurnUsage
from holdfast.store.refs import digest, ref_id

T = TypeVar("T")

HERE = Scope("ann", "blue", "s1")
OTHER_USER = Scope("bob", "blue", "s1")
OTHER_WORKSPACE = Scope("ann", "red", "s1")


@dataclass
class Clock:
    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Opener:
    """Opens the store under test, as often as a test likes."""

    url: str
    clock: Clock = field(default_factory=Clock)

    @property
    def kind(self) -> str:
        return self.url.partition(":")[0]

    def run(self, work: Callable[[Store], Awaitable[T]]) -> T:
        async def main() -> T:
            store = await open_store(self.url, clock=self.clock)
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(main())


ChangeTable = Callable[[str, str, str], Awaitable[None]]
"""Changes rows of a table: its name, an assignment, and a condition."""


def has_postgres() -> bool:
    return importlib.util.find_spec("holdfast.store.postgres.store") is not None


def content(data: bytes | str, kind: str = "log", **more: Any) -> Content:
    data = data.encode() if isinstance(data, str) else data
    sha256 = digest(data)
    made = Content(ref_id=ref_id(kind, sha256), kind=kind, sha256=sha256, data=data)
    return msgspec.structs.replace(made, **more)


def session(name: str = "s1", **more: Any) -> SessionRecord:
    return msgspec.structs.replace(
        SessionRecord(session=name, dialect="anthropic", head=f"head of {name}"), **more
    )


def turn(number: int = 1, messages: Iterable[bytes] = (), **more: Any) -> Turn:
    hashes = tuple(map(digest, messages))
    made = Turn(
        number=number,
        started_at=1_800_000_000.0 + number,
        model="claude",
        sent=Trail(0, hashes, digest(b"frame")),
        edits=(Edit(action="cite", why="long", where="lines 1-9", from_tokens=90, to_tokens=9),),
        usage=TurnUsage(predicted=100, untouched=900, input=101, cached=50, output=7, cost=0.25),
    )
    return msgspec.structs.replace(made, **more)


def named(*messages: bytes) -> dict[str, bytes]:
    return {digest(data): data for data in (*messages, b"frame")}


def noise(size: int, seed: int = 0) -> bytes:
    """Bytes that nothing can compress."""
    return hashlib.shake_256(str(seed).encode()).digest(size)


async def lines_of(lines: Iterable[bytes]) -> AsyncIterator[bytes]:
    for line in lines:
        yield line


async def exported(store: Store, scope: Scope) -> list[bytes]:
    return [line async for line in store.export(scope)]
