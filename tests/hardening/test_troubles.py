"""Failures of the machine itself: the disk is full or broken, the clock jumps.

Acknowledged writes are kept, impossible operations raise a typed error, and service recovers when
the failure is over. The proxy answers throughout; see tests/surfaces/proxy.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast.engine import Holdfast
from holdfast.errors import StoreError
from holdfast.store import Content, Scope, Store, open_store
from holdfast.store.refs import digest
from tests.hardening.asks import Asked
from tests.hardening.campaign import Campaign, short_and_full
from tests.hardening.disk import Disk, recording
from tests.hardening.driving import Era, era
from tests.hardening.shapes import KEYS, seeds
from tests.store.harness import content, noise, session, turn
from tests.surfaces.proxy.harness import path_of

SCOPE = Scope("trouble", "test")
STEPS = 40
FAULTS = (apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError)
HEADERS = [(n.encode(), v.encode()) for n, v in {"host": "localhost", **KEYS}.items()]

pytestmark = pytest.mark.filterwarnings("ignore::holdfast.tokens.counter.UnknownModelWarning")


EXPECTED = ("event=not_written", "event=store_unavailable", "status 503")
"""Allowed log lines while the disk fails."""


class Trouble:
    """A disk that fails for a while, at some things."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.share = 0.0
        self.is_short = False
        """It fails once: apsw cannot take a second failure of a VFS while it gives up a copy."""

    def __call__(self, doing: str, file: str) -> apsw.Error | None:
        del doing, file
        if self.chance.random() >= self.share:
            return None
        if self.is_short:
            self.share = 0.0
        return self.chance.choice(FAULTS)("the disk fails")


def _content(number: int) -> Content:
    return content(noise(100 + number * 7919 % 30_000, seed=number))


# --- the store -----------------------------------------------------------------------------------


async def _suffer(url: str, disk: Disk, folder: Path, chance: random.Random) -> str:
    """Write on a failing disk; return the faults at the end, if any."""
    trouble = Trouble(chance)
    store = await open_store(url)
    disk.fault = trouble
    acknowledged: list[int] = []
    turns = 0
    try:
        for number in range(STEPS):
            trouble.share = chance.choice((0.0, 0.0, 0.05, 0.5, 1.0))
            with suppress(StoreError):
                await store.put(SCOPE.of("contents"), [_content(number)])
                acknowledged.append(number)
            with suppress(StoreError):
                message = f"message {turns + 1}".encode()
                await store.add_turn(
                    SCOPE.of("talk"),
                    turn(turns + 1, [message]),
                    session("talk"),
                    {digest(message): message},
                )
                turns += 1
            if number % 10 == 9:
                await _copy(store, folder, trouble)
        trouble.share = 0.0
        return await _remembered(store, acknowledged, turns)
    finally:
        trouble.share = 0.0
        await store.close()


async def _copy(store: Store, folder: Path, trouble: Trouble) -> None:
    """A copy is whole or not there, and leaves nothing beside it."""
    trouble.share, trouble.is_short = 0.02, True
    with suppress(StoreError):
        await store.backup(str(folder / "copy.db"))
    trouble.share, trouble.is_short = 0.0, False
    if (folder / "copy.db").exists():
        copy = await open_store(f"sqlite:///{folder / 'copy.db'}")
        assert await copy.verify(SCOPE) == []
        await copy.close()
    for file in folder.glob("copy.db*"):
        assert not file.name.endswith(".partial"), file.name
        file.unlink()


async def _remembered(store: Store, acknowledged: list[int], turns: int) -> str:
    for number in acknowledged:
        stored = await store.get(SCOPE, _content(number).ref_id)
        if stored is None or stored.data != _content(number).data:
            return f"content {number} is lost"
    numbers = [stored.number for stored in await store.turns(SCOPE.of("talk"), limit=1000)]
    if numbers != list(range(1, turns + 1)):
        return f"{turns} turns were acknowledged, there are {numbers}"
    await store.put(SCOPE.of("contents"), [_content(STEPS)])  # everything works again
    damages = await store.verify(SCOPE)
    return f"damaged: {damages[0]}" if damages else ""


def _fill_disks(campaign: Campaign, folder: Path, rounds: int) -> None:
    for number in campaign.rounds(rounds):
        place = folder / f"disk{number}"
        with recording("troubled") as disk:
            wrong = asyncio.run(
                _suffer(f"sqlite:///{place}/holdfast.db", disk, place, campaign.chance(number))
            )
        if wrong:
            campaign.found(f"round {number}: {wrong}")
        for file in place.iterdir():
            file.unlink()


@short_and_full("rounds", 3, 500)
def test_nothing_acknowledged_is_lost_on_a_failing_disk(
    campaign: Campaign, tmp_path: Path, rounds: int
) -> None:
    _fill_disks(campaign, tmp_path, rounds)


# --- the proxy -----------------------------------------------------------------------------------


def _valid(chance: random.Random) -> Asked:
    """A request that every provider would take."""
    seed = chance.choice(seeds())
    stream = seed.dialect == "gemini" and chance.random() < 0.5
    name = (b"x-holdfast-session", b"s%d" % chance.randrange(4))
    headers = [*HEADERS, *([name] if chance.random() < 0.5 else [])]
    target = path_of(seed.dialect, stream=stream, model=seed.model)
    return Asked("POST", target, headers, seed.written, seed.dialect)


def _pages(chance: random.Random) -> Asked:
    names = (
        "/",
        "/stats",
        "/metrics",
        "/healthz",
        "/sessions/s1",
        "/sessions/s2/turns/1",
        "/refs/x",
    )
    return Asked("GET", chance.choice(names), HEADERS, b"")


async def _ask_all(
    campaign: Campaign, proxy: Era, chance: random.Random, expected: tuple[str, ...]
) -> None:
    request = _valid(chance) if chance.random() < 0.8 else _pages(chance)
    _, wrong = await proxy.judged(request, chance)
    for complaint in wrong:
        if not any(word in complaint for word in expected):
            campaign.found(f"{complaint} | {request!r:.1000}")


async def _answer_on_failing_disks(campaign: Campaign, folder: Path, rounds: int) -> None:
    for number in campaign.rounds(rounds):
        chance = campaign.chance(number)
        trouble = Trouble(chance)
        settings: dict[str, Any] = {"on_store_failure": chance.choice(("pass", "refuse"))}
        settings["store_url"] = f"sqlite:///{folder}/{number}/holdfast.db"
        with recording("troubled") as disk:
            async with era(**settings) as proxy:
                disk.fault = trouble
                for _ in range(STEPS):
                    trouble.share = chance.choice((0.0, 0.05, 0.5, 1.0))
                    await _ask_all(campaign, proxy, chance, EXPECTED)
                trouble.share = 0.0
                await _recovered(proxy, chance)
                for _ in range(5):
                    await _ask_all(campaign, proxy, chance, ())


async def _recovered(proxy: Era, chance: random.Random) -> None:
    """Wait until the proxy has seen that the disk works again: it looks at intervals."""
    health = Asked("GET", "/healthz", HEADERS, b"")
    async with asyncio.timeout(10):
        while (await proxy.judged(health, chance))[1]:
            await asyncio.sleep(0.05)


@pytest.mark.slow
def test_the_proxy_answers_on_a_failing_disk(campaign: Campaign, tmp_path: Path) -> None:
    asyncio.run(_answer_on_failing_disks(campaign, tmp_path, 3))


@pytest.mark.campaign
def test_the_proxy_answers_on_hundreds_of_failing_disks(campaign: Campaign, tmp_path: Path) -> None:
    asyncio.run(_answer_on_failing_disks(campaign, tmp_path, 300))


# --- the clock -----------------------------------------------------------------------------------

YEAR = 365 * 86_400.0


class JumpingClock:
    """A clock that somebody sets: forward and back, by a moment or by decades, to 1970."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        if self.chance.random() < 0.2:
            jump = self.chance.choice((0.001, 1.0, 3_600.0, 86_400.0, YEAR, 30 * YEAR))
            self.now += jump * self.chance.choice((-1, 1))
        if self.chance.random() < 0.02:
            self.now = self.chance.choice((0.0, 1_800_000_000.0, 4_102_444_800.0))
        self.now = max(self.now, 0.0)
        return self.now


async def _jump(campaign: Campaign, folder: Path, rounds: int) -> None:
    urls = ("memory:", f"sqlite:///{folder}/holdfast.db")
    for number in campaign.rounds(rounds):
        chance = campaign.chance(number)
        settings: dict[str, Any] = {"content_ttl_hours": chance.choice((0, 1, 24))}
        settings["store_url"] = urls[number % len(urls)]
        async with era(clock=JumpingClock(chance), **settings) as proxy:
            for _ in range(STEPS):
                await _ask_all(campaign, proxy, chance, ())
            for wrong in await _disorder(proxy.service.engine.store):
                campaign.found(f"round {number}: {wrong}")


async def _disorder(store: Store) -> list[str]:
    """Return the sessions and contents that the clock has damaged."""
    wrong = []
    for scope in await store.scopes():
        for record in await store.sessions(scope):
            turns = await store.turns(scope.of(record.session), limit=10_000)
            numbers = [turn.number for turn in turns]
            if numbers != list(range(1, record.turns + 1)):
                wrong.append(f"the turns of a session are {numbers}")
            for number in numbers:
                await Holdfast(store, scope).session(record.session).rebuild(number)
        await store.gc(scope)
        wrong += [f"damaged: {damage}" for damage in await store.verify(scope)]
    return wrong


@pytest.mark.slow
def test_all_goes_on_when_the_clock_jumps(campaign: Campaign, tmp_path: Path) -> None:
    asyncio.run(_jump(campaign, tmp_path, 3))


@pytest.mark.campaign
def test_all_goes_on_when_the_clock_jumps_thousands_of_times(
    campaign: Campaign, tmp_path: Path
) -> None:
    asyncio.run(_jump(campaign, tmp_path, 300))
