"""A power cut at any moment of a store's work: acknowledged writes are there, and all is sound.

A run of the real store is recorded on a disk that records every write and flush; then the power is
cut at many moments, and each time another subset of unflushed writes is lost.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from pathlib import Path

import apsw

from holdfast.errors import StoreError
from holdfast.store import Content, Scope, Store, open_store
from holdfast.store.refs import digest
from tests.hardening.campaign import Campaign, short_and_full
from tests.hardening.disk import Disk, Event, Noted, Platter, recording
from tests.store.harness import content, noise, session, turn

SCOPE = Scope("power", "test")
FILE = "holdfast.db"
LANES = 3
CUTS = 60
"""Power cuts in one recorded run; it is as long as this many are worth."""


def _content(lane: int, number: int) -> Content:
    return content(noise(100 + (number * 7919 + lane) % 20_000, seed=lane * 1000 + number))


async def _put(store: Store, disk: Disk, lane: int, steps: int) -> None:
    for number in range(steps):
        await store.put(SCOPE.of("contents"), [_content(lane, number)])
        disk.note(Noted(("content", lane, number)))


async def _talk(store: Store, disk: Disk, steps: int) -> None:
    """Add turns, and run all operations that change or remove records which others must keep."""
    scope = SCOPE.of("talk")
    for number in range(1, steps + 1):
        message = f"message {number}".encode()
        await store.add_turn(
            scope, turn(number, [message]), session("talk"), {digest(message): message}
        )
        disk.note(Noted(("turn", number, 0)))
        passing = SCOPE.of("passing")
        await store.put(passing, [content(noise(9000, seed=-number))])
        await store.delete_session(passing)
        await store.gc(SCOPE, grace_seconds=0.0)


async def _checkpoint(path: Path, chance: random.Random, steps: int) -> None:
    """What any program that looks into the file may do: bring its log home."""
    db = apsw.Connection(str(path))
    db.set_busy_timeout(5000)
    try:
        for _ in range(steps):
            await asyncio.sleep(0.01)
            db.execute(
                f"PRAGMA wal_checkpoint({chance.choice(('PASSIVE', 'RESTART', 'TRUNCATE'))})"
            )
    except apsw.BusyError:
        pass
    finally:
        db.close()


def _recorded(folder: Path, chance: random.Random) -> Disk:
    """A run of the store from its first moment, closed in the end or not."""
    steps = chance.randint(3, 10)

    async def main(disk: Disk) -> None:
        for _ in range(chance.randint(1, 2)):
            store = await open_store(f"sqlite:///{folder / FILE}")
            lanes = [_put(store, disk, lane, steps) for lane in range(LANES)]
            work = [_talk(store, disk, steps) if not disk_has_turns(disk) else _nothing()]
            await asyncio.gather(*lanes, *work, _checkpoint(folder / FILE, chance, steps))
            await store.close()

    with recording("recorded") as disk:
        asyncio.run(main(disk))
    return disk


def disk_has_turns(disk: Disk) -> bool:
    return any(isinstance(event, Noted) and event.what[0] == "turn" for event in disk.events)


async def _nothing() -> None:
    """The second opening has no turns to add."""


async def _lost(folder: Path, acknowledged: set[tuple[str, int, int]]) -> str:
    """Return the missing or damaged records of a store after a power cut."""
    try:
        store = await open_store(f"sqlite:///{folder / FILE}")
    except StoreError as error:
        return error.what
    try:
        for kind, first, second in acknowledged:
            if kind == "content":
                stored = await store.get(SCOPE, _content(first, second).ref_id)
                if stored is None or stored.data != _content(first, second).data:
                    return f"content {first}.{second} is lost"
        turns = await store.turns(SCOPE.of("talk"), limit=1000)
        told = max((number for kind, number, _ in acknowledged if kind == "turn"), default=0)
        if not told <= len(turns) <= told + 1:
            return f"{told} turns were acknowledged, {len(turns)} are there"
        if damages := await store.verify(SCOPE):
            return f"damaged: {damages[0]}"
    except StoreError as error:
        return error.what
    finally:
        await store.close()
    db = apsw.Connection(str(folder / FILE))
    sound = db.execute("PRAGMA integrity_check").get
    db.close()
    return "" if sound == "ok" else f"integrity: {sound}"


def _cut_power(campaign: Campaign, folder: Path, rounds: int) -> None:
    counter = itertools.count()
    progress = campaign.rounds(rounds)
    while next(progress, None) is not None:
        number = next(counter)
        chance = campaign.chance("run", number)
        run = folder / f"run{number}"
        run.mkdir()
        events = _recorded(run, chance).events
        moments = sorted(chance.sample(range(len(events)), min(CUTS, len(events))))
        _cut_at(campaign, events, moments, run, chance)
        campaign.figures["power cuts"] = CUTS * (number + 1)


def _cut_at(
    campaign: Campaign, events: list[Event], moments: list[int], run: Path, chance: random.Random
) -> None:
    platter = Platter()
    acknowledged: set[tuple[str, int, int]] = set()
    wanted = set(moments)
    for number, event in enumerate(events):
        if number in wanted:
            image = run / f"cut{number}"
            image.mkdir()
            for name, data in platter.lose_power(chance).items():
                (image / name).write_bytes(data)
            wrong = asyncio.run(_lost(image, acknowledged))
            if wrong:
                campaign.found(f"{run.name}, cut at {number} of {len(events)}: {wrong}")
            for file in image.iterdir():
                file.unlink()
        if isinstance(event, Noted):
            acknowledged.add(event.what)
        platter.take(event)


@short_and_full("rounds", 2, 100)
def test_nothing_acknowledged_is_lost_in_power_cuts(
    campaign: Campaign, tmp_path: Path, rounds: int
) -> None:
    _cut_power(campaign, tmp_path, rounds)
