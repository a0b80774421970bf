"""A proxy that is killed at any moment: every answered request can be rebuilt, byte for byte.

It is killed with SIGKILL, stopped and continued, or stopped and killed, while clients send requests
in all dialects, models open refs, and the store is backed up. On PostgreSQL, which flushes to the
disk, the server is killed too. Afterwards the store is opened and every request is checked.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from holdfast.engine import Holdfast
from holdfast.store import Store, open_store
from tests.hardening.births import Child, Nursery, nursery
from tests.hardening.campaign import Campaign, short_and_full
from tests.hardening.talkers import Acknowledged, Board, Talker, model
from tests.store.postgres_server import Server, running_server
from tests.surfaces.proxy.upstream import Upstream

TALKERS = 3
EPOCH = 25
"""Rounds on one store; then all of it is verified, and another begins, so that it stays small."""
MOMENT_SECONDS = 0.03
"""Death comes within so long of the last answer that was waited for: anywhere inside a step."""

NewStore = Callable[[], str]


class Siege:
    """A proxy under load that is killed again and again."""

    def __init__(self, campaign: Campaign, mother: Nursery, upstream: Upstream) -> None:
        self.campaign = campaign
        self.mother = mother
        self.upstream = upstream
        self.board = Board()
        self.kills = 0
        self.requests = 0
        self._acknowledged: list[Acknowledged] = []
        for number in range(TALKERS):
            chance = campaign.chance("talker", number)
            Talker(self.board, f"talker{number}", chance).start()

    def proxy(self, url: str) -> Child:
        """A proxy that listens, on a store."""
        settings = {"store_url": url, "serve_port": 0}
        child = self.mother.born("proxy", settings=settings, upstream=self.upstream.url)
        self.board.open(child.announced["url"])
        return child

    def round(self, url: str, chance: random.Random) -> None:
        """Let clients send requests for a while, kill the proxy, and check its acknowledged
        requests.
        """
        child = self.proxy(url)
        self.board.wait_for_answers(chance.randint(1, 6))
        time.sleep(chance.random() * MOMENT_SECONDS)  # the moment of death, not a wait for work
        draw = chance.random()
        if draw < 0.3:
            child.send(signal.SIGSTOP)
            time.sleep(chance.random() * MOMENT_SECONDS)
            if draw < 0.15:
                child.send(signal.SIGCONT)
                self.board.wait_for_answers(1)
        self.board.shut()
        child.kill()
        self.kills += 1
        self.look(url)

    def look(self, url: str, *, may_miss: int = 0) -> None:
        """Look for everything that was acknowledged since this was last done."""
        acknowledged = self.board.taken()
        missing = asyncio.run(_missing(url, acknowledged))
        if len(missing) > may_miss:
            self.campaign.found(f"{len(missing)} acknowledged requests lost: {missing[0].place}")
        self._acknowledged += [request for request in acknowledged if request not in missing]
        self.requests += len(acknowledged) - len(missing)
        self._complain()

    def end_epoch(self, url: str) -> None:
        """Look for everything once more, and read the whole store."""
        wrong = asyncio.run(_unsound(url, self._acknowledged))
        if wrong:
            self.campaign.found(wrong)
        self._acknowledged.clear()

    def _complain(self) -> None:
        """Report the faults that clients, the provider and the log have seen."""
        for line in self.mother.logged().splitlines():
            if '"bug"' in line or "Traceback" in line:
                self.campaign.found(f"log: {line[:500]}")
        for strange in (*self.board.strange, *self.upstream.refused):
            self.campaign.found(f"an answer: {strange}")
        self.board.strange.clear()
        self.upstream.refused.clear()
        self.upstream.requests.clear()


async def _missing(url: str, acknowledged: list[Acknowledged]) -> list[Acknowledged]:
    """Those of some acknowledged requests that cannot be rebuilt."""
    store = await open_store(url)
    try:
        sessions = {request.session for request in acknowledged}
        rebuilt = {session: await _rebuilt(store, session) for session in sessions}
    finally:
        await store.close()
    return [request for request in acknowledged if request.body not in rebuilt[request.session]]


async def _rebuilt(store: Store, session: str) -> list[bytes]:
    """Every request of a session, whichever key it was asked with."""
    bodies: list[bytes] = []
    for scope in await store.scopes():
        record = await store.session(scope.of(session))
        turns = record.turns if record is not None else 0
        talk = Holdfast(store, scope).session(session)
        bodies += [await talk.rebuild(number + 1) for number in range(turns)]
    return bodies


async def _unsound(url: str, acknowledged: list[Acknowledged]) -> str:
    """Return the faults of a store; empty if there are none."""
    missing = await _missing(url, acknowledged)
    if missing:
        return f"lost later: {missing[0].place}"
    store = await open_store(url)
    try:
        damages = [damage for scope in await store.scopes() for damage in await store.verify(scope)]
    finally:
        await store.close()
    if damages:
        return f"damaged: {damages[0]}"
    if url.startswith("sqlite"):
        db = apsw.Connection(url.removeprefix("sqlite:///"))
        sound = db.execute("PRAGMA integrity_check").get
        db.close()
        return "" if sound == "ok" else f"integrity: {sound}"
    return ""


@contextmanager
def siege(campaign: Campaign, folder: Path) -> Iterator[Siege]:
    """Everything a siege needs, and its end."""
    with nursery(folder) as mother, Upstream() as upstream:
        upstream.always = model(campaign.chance("model"))
        besieged = Siege(campaign, mother, upstream)
        try:
            yield besieged
        finally:
            besieged.board.go_home()
            campaign.figures["kills"] = besieged.kills
            campaign.figures["acknowledged requests"] = besieged.requests


# --- SQLite --------------------------------------------------------------------------------------


def _kill_on_sqlite(campaign: Campaign, folder: Path, rounds: int) -> None:
    url = ""
    with siege(campaign, folder) as besieged:
        for number in campaign.rounds(rounds):
            chance = campaign.chance("round", number)
            if number % EPOCH == 0:
                if url:
                    besieged.end_epoch(url)
                url = f"sqlite:///{folder}/{number}/holdfast.db"
            if number % 5 == 4:
                _kill_a_copy(besieged, url, folder / f"copy{number}.db", chance)
            besieged.round(url, chance)
        besieged.end_epoch(url)


def _kill_a_copy(besieged: Siege, url: str, target: Path, chance: random.Random) -> None:
    """Kill who copies the store: there is a whole copy, or there is none."""
    child = besieged.mother.born("backup", url=url, target=str(target))
    time.sleep(chance.random() * MOMENT_SECONDS)
    child.kill()
    besieged.kills += 1
    if not target.exists():
        return
    wrong = asyncio.run(_unsound(f"sqlite:///{target}", besieged._acknowledged))
    if wrong:
        besieged.campaign.found(f"half a copy: {wrong}")
    for file in target.parent.glob(f"{target.name}*"):
        file.unlink()


@short_and_full("rounds", 6, 1_000)
def test_answered_requests_are_given_back_after_kills(
    campaign: Campaign, tmp_path: Path, rounds: int
) -> None:
    _kill_on_sqlite(campaign, tmp_path, rounds)


# --- PostgreSQL ----------------------------------------------------------------------------------


def _kill_on_postgres(campaign: Campaign, folder: Path, rounds: int) -> None:
    with running_server("on") as server, siege(campaign, folder) as besieged:
        url = ""
        for number in campaign.rounds(rounds):
            chance = campaign.chance("round", number)
            if number % EPOCH == 0:
                if url:
                    besieged.end_epoch(url)
                    asyncio.run(server.drop_database(url))
                url = asyncio.run(server.create_database())
            if number % 4 == 3:
                _kill_the_server(besieged, server, url, chance)
            else:
                besieged.round(url, chance)
        besieged.end_epoch(url)


def _kill_the_server(besieged: Siege, server: Server, url: str, chance: random.Random) -> None:
    """Kill PostgreSQL, all of it, under a proxy that lives on."""
    child = besieged.proxy(url)
    besieged.board.wait_for_answers(chance.randint(1, 6))
    time.sleep(chance.random() * MOMENT_SECONDS)
    server.kill()
    besieged.kills += 1
    server.start()
    besieged.board.wait_for_answers(3)
    besieged.board.shut()
    child.kill()
    besieged.kills += 1
    # A response whose record could not be written is reported in the log, one line each.
    lines = besieged.mother.logged().splitlines()
    besieged.look(url, may_miss=sum('"not_written"' in line for line in lines))


@short_and_full("rounds", 4, 800)
def test_answered_requests_are_given_back_after_kills_on_postgres(
    campaign: Campaign, tmp_path: Path, rounds: int
) -> None:
    _kill_on_postgres(campaign, tmp_path, rounds)
