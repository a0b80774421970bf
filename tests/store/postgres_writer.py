"""A process that writes to PostgreSQL until it is killed, and reports acknowledged writes.

python -m tests.store.postgres_writer URL NAME FIRST prints a number once all of its step is
stored. The name and the number determine a step, so that the test can check it.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from holdfast.errors import StoreConflictError, StoreUnavailableError
from holdfast.store import Content, Scope
from holdfast.store.postgres.store import PostgresStore
from tests.store.harness import content, named, noise, session, turn

T = TypeVar("T")


def scope_of(name: str) -> Scope:
    return Scope(name, "shared", "main")


def common(number: int) -> bytes:
    """Bytes that all writers store and remove again and again."""
    return b"common %d " % (number % 5) * 2000


def contents_of(name: str, number: int) -> list[Content]:
    own = f"{name} {number} ".encode() * 300 + noise(number * 7919 % 60_000, number)
    return [content(own), content(common(number))]


def message_of(name: str, number: int) -> bytes:
    return f"message {number} of {name}".encode()


async def step(store: PostgresStore, name: str, number: int) -> None:
    scope, message = scope_of(name), message_of(name, number)
    await again(lambda: store.put(scope, contents_of(name, number)))
    passing = scope.of("passing")
    await again(lambda: store.put(passing, [content(common(number + 1), kind="passing")]))
    await again(lambda: store.delete_session(passing))
    after = session("main", turns=number)
    # A server or writer that died before its report may have committed it.
    with suppress(StoreConflictError):
        await again(lambda: store.add_turn(scope, turn(number, [message]), after, named(message)))


async def again(call: Callable[[], Awaitable[T]]) -> T:
    """Call until the server is there."""
    while True:
        try:
            return await call()
        except StoreUnavailableError:
            await asyncio.sleep(0.01)


async def main(url: str, name: str, first: str) -> None:
    store = await again(lambda: PostgresStore.open(url, connections=2))
    for number in itertools.count(int(first)):
        await step(store, name, number)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
