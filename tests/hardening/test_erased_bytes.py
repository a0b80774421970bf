"""No erased or forgotten bytes are left in the database's files, also while proxies use them.

Marks, unique words, are stored through every call of the store, and through a proxy; half of them
are removed, by each call that removes. Then all files are read, byte by byte.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from holdfast.store import Scope, Store, open_store
from holdfast.store.turn_store import TurnFilter
from tests.hardening.campaign import Campaign, short_and_full
from tests.hardening.shapes import KEYS
from tests.hardening.test_kills import Siege, siege
from tests.store.everything import TOOL, fill
from tests.store.postgres_server import Server, running_server
from tests.surfaces.proxy.harness import ask

Files = Callable[[], dict[str, bytes]]
"""All files of a database, as they are now, by their names."""

TENANTS = ("forgotten", "deleted", "expired", "erased")
"""What becomes of the records of each."""
KEPT = "kept"
ASKED = "asked through a proxy"
_END = "zq7"
"""The end of every mark, after 18 hexadecimal digits."""
_SHARED = 3
"""Characters at a mark's beginning that an index may share with another word."""
_ENDING = 18 + len(_END) - _SHARED


class Marks:
    """Unique words, by owner."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.by_tenant: dict[str, list[str]] = {}

    def new(self, tenant: str) -> str:
        """Return a word that no stemmer shortens and that shares no beginning with others."""
        mark = f"{self._chance.getrandbits(72):018x}{_END}"
        self.by_tenant.setdefault(tenant, []).append(mark)
        return mark

    def say(self, tenant: str, place: str) -> str:
        """Return a text for a place, with a mark."""
        return f"{place} {self.new(tenant)}"

    def left(self, files: dict[str, bytes], *tenants: str) -> list[str]:
        """Return the places of marks, without the beginning that an index may share.

        Reads each file once: to look for 6,000 marks one by one in 50 MB took a minute and more.
        """
        endings = {name: _endings_in(data) for name, data in files.items()}
        return [
            f"{tenant}, {name}"
            for tenant in tenants
            for mark in self.by_tenant[tenant]
            for name, present in endings.items()
            if mark[_SHARED:].encode() in present
        ]


def _endings_in(data: bytes) -> set[bytes]:
    """Return all possible endings of marks."""
    ends = (match.end() for match in re.finditer(_END.encode(), data))
    return {data[max(end - _ENDING, 0) : end] for end in ends}


async def _fill(store: Store, marks: Marks, sessions: int) -> None:
    for number in range(sessions):
        for tenant in (*TENANTS, KEPT):
            await fill(store, Scope("local", tenant, f"s{number}"), partial(marks.say, tenant))


async def _forget(store: Store) -> None:
    """Remove records of each kind by the call that removes that kind."""
    here = Scope("local", "forgotten")
    sessions = [record.session for record in await store.sessions(here, limit=10_000)]
    await store.forget(here, [info.ref_id for info in await store.refs(here, limit=10_000)])
    turns = await store.remembered.select(here, TurnFilter(), limit=10_000)
    await store.remembered.forget(here, [place for place, _ in turns])
    while facts := await store.facts.page(here):
        await store.facts.remove(here, [fact.id for fact in facts])
    answers = await store.answers.latest(here, limit=10_000)
    await store.answers.forget(here, [answer.id for answer in answers])
    await store.tools.forget(here, [TOOL, ("github", "open")])
    for name in sessions:
        await store.journal.forget(here.of(name), "j")
    # Records without a removing call: turns, messages and links are removed with their session,
    # calibration and summaries without a content with the tenant.
    for name in sessions:
        await store.delete_session(here.of(name))
    await store.erase(here)


async def _remove(store: Store) -> None:
    await _forget(store)
    deleted = Scope("local", "deleted")
    for record in await store.sessions(deleted, limit=10_000):
        await store.delete_session(deleted.of(record.session))
    await store.erase(deleted)
    await store.expire(Scope("local", "expired"), 1e12)
    for tenant in ("erased", "expired"):
        await store.erase(Scope("local", tenant))
    for scope in await _asked_through_proxies(store):
        await store.delete_session(scope)


async def _asked_through_proxies(store: Store) -> list[Scope]:
    named = [scope.of(ASKED) for scope in await store.scopes()]
    return [scope for scope in named if await store.session(scope) is not None]


def _ask(proxy: str, mark: str) -> None:
    """Send a request with a mark, in a session of the tenant whose other sessions stay."""
    lines = "\n".join(f"{number} INFO served {mark}" for number in range(400))
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 50,
        "messages": [
            {"role": "user", "content": f"What does {mark} mean?"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": mark}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": lines}]},
        ],
    }  # fmt: skip
    headers = dict(KEYS) | {"x-holdfast-session": ASKED}
    answer = ask(f"{proxy}/v1/messages", json.dumps(body).encode(), headers)
    assert answer.status == 200, answer.body


async def _round(url: str, besieged: Siege, marks: Marks, files: Files, sessions: int) -> int:
    """Store marks, remove them, and look for them; return how many there were."""
    first, second = besieged.proxy(url), besieged.proxy(url)
    campaign = besieged.campaign
    store = await open_store(url)
    try:
        await _fill(store, marks, sessions)
        besieged.board.wait_for_answers(2)
        for child in (first, second):
            await asyncio.to_thread(_ask, child.announced["url"], marks.new("erased"))
        assert await _asked_through_proxies(store)
        seen = marks.left(files(), *TENANTS)
        assert len(seen) > sum(map(len, marks.by_tenant.values())) / 3, "the marks are not seen"
        await _remove(store)
        if not await store.scrub(whole=True):
            campaign.found("others were in the way of overwriting")
        left = marks.left(files(), *TENANTS)
        for place in sorted(set(left)):
            campaign.found(f"{left.count(place)} marks are left: {place}")
        kept = marks.left(files(), KEPT)
        if not kept:
            campaign.found("marks that nobody removed are gone")
        besieged.board.wait_for_answers(2)
    finally:
        await store.close()
        besieged.board.shut()
        first.kill()
        second.kill()
    return sum(len(marks.by_tenant[tenant]) for tenant in TENANTS)


def _sqlite(campaign: Campaign, folder: Path, *, rounds: int, sessions: int) -> None:
    with siege(campaign, folder) as besieged:
        for number in campaign.rounds(rounds):
            place = folder / f"store{number}"
            marks = Marks(campaign.chance("marks", number))

            def files(place: Path = place) -> dict[str, bytes]:
                return {file.name: file.read_bytes() for file in place.iterdir()}

            url = f"sqlite:///{place}/holdfast.db"
            work = _round(url, besieged, marks, files, sessions)
            campaign.figures["marks"] = asyncio.run(work)


def _postgres(campaign: Campaign, folder: Path, *, rounds: int, sessions: int) -> None:
    with running_server() as server, siege(campaign, folder) as besieged:
        for number in campaign.rounds(rounds):
            marks = Marks(campaign.chance("marks", number))
            with server.database() as url:  # dropped: databases of earlier rounds slow the server
                reader = _tables_of(server, url)
                work = _round(url, besieged, marks, reader, sessions)
                campaign.figures["marks"] = asyncio.run(work)
            campaign.figures["of these in the server's log"] = _count_in_log(server, marks)


def _count_in_log(server: Server, marks: Marks) -> int:
    """Return how many removed marks the write-ahead log holds: a figure, for nobody promises 0."""
    files = (file for file in (server.folder / "data" / "pg_wal").iterdir() if file.is_file())
    endings = set[bytes]().union(*(_endings_in(file.read_bytes()) for file in files))
    removed = (mark for tenant in TENANTS for mark in marks.by_tenant[tenant])
    return sum(mark[_SHARED:].encode() in endings for mark in removed)


def _tables_of(server: Server, url: str) -> Files:
    """Read all files of a database: tables, TOAST tables, indexes, and the catalog."""

    async def flushed() -> str:
        await server.execute("ANALYZE", url)  # which copies samples to the catalog
        await server.execute("CHECKPOINT", url)
        ((place,),) = await server.execute(
            "SELECT 'base/' || oid FROM pg_database WHERE datname = current_database()", url
        )
        return str(place)

    def files() -> dict[str, bytes]:
        with asyncio.Runner() as runner:
            place = server.folder / "data" / runner.run(flushed())
        return {file.name: file.read_bytes() for file in place.iterdir() if file.is_file()}

    def in_thread() -> dict[str, bytes]:
        with ThreadPoolExecutor(1) as threads:  # the caller is inside of a loop
            return threads.submit(files).result()

    return in_thread


@pytest.mark.parametrize("erase", [_sqlite, _postgres], ids=["sqlite", "postgres"])
@short_and_full("rounds, sessions", (1, 12), (50, 60))
def test_no_mark_is_left_in_the_files(
    erase: Callable[..., None], campaign: Campaign, tmp_path: Path, rounds: int, sessions: int
) -> None:
    erase(campaign, tmp_path, rounds=rounds, sessions=sessions)
