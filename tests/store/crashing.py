"""A writer process to be killed, which prints acknowledged writes on stdout.

Run as a process: `python -m tests.store.crashing URL NAME`. Each line is the number of a content
of this writer, printed after `put` returned; `content_of` creates the same content again. In
between it adds turns, opens, forgets and cleans up, so that it is killed during every kind of
work.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys

from holdfast.store import Content, Scope, Store, open_store
from holdfast.store.refs import digest
from tests.store.harness import content, noise, session, turn

SCOPE = Scope("crash", "test")


def content_of(name: str, number: int) -> Content:
    size = 50 + (number * 7919) % 30_000
    return content(noise(size, seed=hash_of(name, number)))


def hash_of(name: str, number: int) -> int:
    return int(digest(f"{name} {number}".encode())[:12], 16)


def tell(line: str) -> None:
    # One write, so that a line is whole or missing.
    os.write(1, f"{line}\n".encode())


async def puts(store: Store, name: str, lane: int) -> None:
    for number in itertools.count(lane, 3):
        await store.put(SCOPE.of(name), [content_of(name, number)])
        tell(str(number))


async def rest(store: Store, name: str) -> None:
    scope = SCOPE.of(name)
    passing = content_of(name, -1)
    for number in itertools.count(1):
        message = f"{name} {number}".encode()
        await store.add_turn(
            scope, turn(number, [message]), session(name), {digest(message): message}
        )
        tell(f"turn {number}")
        await store.put(SCOPE.of(f"{name} passing"), [passing])
        await store.get(scope, content_of(name, 0).ref_id)
        await store.delete_session(SCOPE.of(f"{name} passing"))
        await store.gc(scope, grace_seconds=0.0)


async def main(url: str, name: str) -> None:
    store = await open_store(url)
    tell("open")
    await asyncio.gather(*(puts(store, name, lane) for lane in range(3)), rest(store, name))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
