"""store: the protocol on SQLite. What a call does stands in originals, sessions and upkeep.

store: the last of this folder. It hashes and compresses in threads, and asks the clock.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import apsw

from holdfast.store import answer_shelf, rules, tool_shelf, transfer
from holdfast.store.across import AcrossScopes
from holdfast.store.answer_shelf import AnswerShelf
from holdfast.store.deadline import REQUEST_SECONDS
from holdfast.store.fact_shelf import FactShelf
from holdfast.store.journal import JournalShelf
from holdfast.store.operations import facts, journal, ledger, summaries, turns
from holdfast.store.pack import Packed, pack
from holdfast.store.protocol import GRACE_SECONDS, Progress
from holdfast.store.queue import JobQueue
from holdfast.store.records import (
    AuditEntry,
    Cleaned,
    ClientKey,
    Content,
    Damage,
    Erased,
    RefInfo,
    SessionRecord,
    Stored,
    StoreStats,
    Summary,
    Turn,
    UsageTotal,
)
from holdfast.store.scope import Scope
from holdfast.store.sqlite import (
    answers,
    erasing,
    moving,
    originals,
    scrubbing,
    sessions,
    tools,
    upkeep,
)
from holdfast.store.sqlite.across import SqliteAcross
from holdfast.store.sqlite.driver import BUSY_SECONDS, Job
from holdfast.store.sqlite.memory import MemoryDatabase
from holdfast.store.sqlite.queue import SqliteQueue
from holdfast.store.sqlite.running import SqliteRunner
from holdfast.store.sqlite.ticking import Ticking
from holdfast.store.sqlite.writer import Database, FileDatabase
from holdfast.store.tool_shelf import ToolShelf
from holdfast.store.turn_shelf import TurnShelf
from holdfast.store.usage_ledger import UsageLedger

_PART = 100
"""Contents that are read, and refs that are removed, in one go."""

_TOGETHER = 8
"""Contents that one thread hashes and compresses, while others do the next."""

_AT_ONCE_BYTES = 16_000
"""Hashed and compressed on the spot: that takes less than it costs to wake a thread (0.1 ms)."""

_T = TypeVar("_T")


class SqliteStore:
    """Keeps everything in one file, which several processes may use at once, or in memory."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self.url = database.url
        self._database = database
        self._writer = writer = database.writer
        self._readers = readers = database.readers
        self._runner = SqliteRunner(writer, readers)
        self._read = readers.read
        self._clock = clock
        self._ticking = Ticking.of(clock)
        self.across: AcrossScopes = SqliteAcross(self._read, self._read_all, clock)
        """Several workspaces at once."""
        self.jobs: JobQueue = SqliteQueue(writer, readers, self._ticking)
        """Work for the background."""
        self.remembered: TurnShelf = turns.SqlTurnStore(self._runner)
        """What was said, turn by turn."""
        self.facts: FactShelf = facts.SqlFactStore(self._runner)
        """What was said."""
        self.answers: AnswerShelf = answers.SqliteAnswers(writer, readers, clock)
        """Answers that may be given again."""
        self.tools: ToolShelf = tools.SqliteTools(writer, readers, clock)
        """Tools and their schemas."""
        self.journal: JournalShelf = journal.SqlJournal(self._runner, clock)
        """What was done, entry behind entry."""
        self.ledger: UsageLedger = ledger.SqlLedger(self._runner)
        """Daily use of tenants."""
        self._noting: asyncio.Future[None] | None = None
        """The access noted last, until it is written."""

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        *,
        clock: Callable[[], float] = time.time,
        busy_seconds: float = BUSY_SECONDS,
    ) -> Self:
        """Open the file, and make it if it is not there."""
        file = await asyncio.to_thread(FileDatabase, Path(path).absolute(), busy_seconds)
        store = cls(file, clock)
        file.breaker.check = store.check
        return store

    @classmethod
    def in_memory(cls, *, clock: Callable[[], float] = time.time) -> Self:
        """Return an empty store that keeps nothing beyond its process."""
        return cls(MemoryDatabase(), clock)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    async def _write(self, job: Job[_T]) -> _T:
        return await self._writer.submit(job)

    async def _read_all(self, job: Job[_T]) -> _T:
        """Read after the accesses that were noted before."""
        noting = self._noting
        if noting is None or noting.done():
            return await self._read(job)
        if noting.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([noting], timeout=REQUEST_SECONDS)
        return await self._read(job)

    # Contents and refs.

    async def put(self, scope: Scope, contents: Sequence[Content]) -> None:
        """Store originals."""
        if sum(len(content.data) for content in contents) <= _AT_ONCE_BYTES:
            packed = _checked(contents)
        else:
            parts = [contents[at : at + _TOGETHER] for at in range(0, len(contents), _TOGETHER)]
            work = [self._readers.run(partial(_checked, part)) for part in parts]
            packed = [each for part in await asyncio.gather(*work) for each in part]
        now = self._clock()
        await self._write(lambda db: originals.put(db, scope, packed, now))

    async def get(self, scope: Scope, ref: str, *, peek: bool = False) -> Stored | None:
        """Open a ref."""
        opened = await self._read(lambda db: originals.open_ref(db, scope, ref))
        if opened is None:
            return None
        row, data = opened
        if data is None:
            await self._set_apart(scope, row.sha256)
            raise rules.damaged(row.ref_id)
        now = self._clock()
        if peek:
            return Stored(row.info(now), data)
        self._note(lambda db: originals.note_access(db, scope, row.id, now))
        noted = row._replace(accesses=row.accesses + 1, accessed_at=now)
        return Stored(noted.info(now), data)

    def _note(self, job: Job[None]) -> None:
        """Write without waiting: an access is worth neither a delay nor a failure."""
        self._noting = self._writer.submit(job)
        self._noting.add_done_callback(_heard)

    async def _set_apart(self, scope: Scope, *hashes: str) -> list[Damage]:
        now = self._clock()
        return await self._write(lambda db: upkeep.set_apart(db, scope, hashes, now))

    async def info(self, scope: Scope, ref: str) -> RefInfo | None:
        """What is known of a ref."""
        row = await self._read_all(lambda db: originals.find(db, scope, ref))
        return None if row is None else row.info(self._clock())

    async def refs(
        self, scope: Scope, *, kind: str = "", limit: int = 100, before: str = ""
    ) -> list[RefInfo]:
        """The refs stored last."""
        rows = await self._read_all(
            lambda db: originals.newest(db, scope, kind=kind, limit=limit, before=before)
        )
        return [row.info(self._clock()) for row in rows]

    async def forget(self, scope: Scope, refs: Sequence[str]) -> int:
        """Remove refs without a trace."""
        now = self._clock()
        return await self._writer.remove(lambda db: originals.forget(db, scope, refs, now))

    # Summaries.

    async def summary(self, scope: Scope, key: str) -> bytes | None:
        """What was kept under this key."""
        return await self._runner.fetch(summaries.get, scope, key, self._clock())

    async def put_summary(
        self,
        scope: Scope,
        key: str,
        value: bytes,
        ttl_seconds: float | None = None,
        *,
        source: str = "",
    ) -> None:
        """Keep a summary."""
        rules.check_key(key)
        summary = Summary(key, value, source, rules.expiry(self._clock(), ttl_seconds))
        await self._runner.write_one(summaries.put, scope, summaries.values_of(summary))

    # Sessions and turns.

    async def session(self, scope: Scope) -> SessionRecord | None:
        """The session that the scope names."""
        return await self._readers.look(lambda db: sessions.get(db, scope))

    async def session_beside(self, scope: Scope, journal: str) -> tuple[SessionRecord | None, int]:
        """The session that the scope names, and how long one of its journals is."""
        return await self._readers.look(lambda db: sessions.get_beside(db, scope, journal))

    async def sessions(
        self, scope: Scope, *, limit: int = 100, before: str = "", client_session: str = ""
    ) -> list[SessionRecord]:
        """The sessions last used."""
        return await self._read(
            lambda db: sessions.latest(
                db, scope, limit=limit, before=before, client_session=client_session
            )
        )

    async def session_with_head(
        self, scope: Scope, heads: Sequence[str], *, client: ClientKey | None = None
    ) -> SessionRecord | None:
        """Return the open session with the first of these heads."""
        return await self._readers.look(lambda db: sessions.with_head(db, scope, heads, client))

    async def add_turn(
        self,
        scope: Scope,
        turn: Turn,
        session: SessionRecord,
        messages: Mapping[str, bytes | memoryview],
    ) -> None:
        """Append a turn to the scope's session."""

        def work() -> dict[str, tuple[int, Packed]]:
            rules.check_turn(scope, session, messages)
            return {sha256: (len(data), pack(data)) for sha256, data in messages.items()}

        if sum(map(len, messages.values())) <= _AT_ONCE_BYTES:  # by who writes, who is awake then
            await self._write(lambda db: sessions.add_turn(db, scope, turn, session, work()))
            return
        packed = await self._readers.run(work)
        await self._write(lambda db: sessions.add_turn(db, scope, turn, session, packed))

    async def turns(self, scope: Scope, *, after: int = 0, limit: int = 1000) -> list[Turn]:
        """The turns of the session in order."""
        return await self._read(lambda db: sessions.turns(db, scope, after=after, limit=limit))

    async def messages(self, scope: Scope, hashes: Sequence[str]) -> dict[str, bytes]:
        """The bytes of messages that this user's turns name."""

        def job(db: apsw.Connection) -> dict[str, bytes | None]:
            stored = sessions.stored_messages(db, scope, rules.distinct(hashes))
            return {message.sha256: message.original() for message in stored}

        stored = await self._read(job)
        whole = {sha256: data for sha256, data in stored.items() if data is not None}
        if lost := [sha256 for sha256 in stored if sha256 not in whole]:
            await self._set_apart(scope, *lost)
            raise rules.damaged(lost[0])
        return whole

    async def link(self, scope: Scope, names: Sequence[str]) -> None:
        """Note under which names a provider holds the session's history."""
        rules.check_session(scope)
        await self._write(lambda db: sessions.link(db, scope, names))

    async def session_linked(self, scope: Scope, *names: str) -> str:
        """The session that has the first of these names."""
        return await self._readers.look(lambda db: sessions.linked(db, scope, names))

    async def close_session(self, scope: Scope) -> None:
        """Note that a session is over."""
        rules.check_session(scope)
        now = self._clock()
        await self._write(lambda db: sessions.close(db, scope, now))

    async def delete_session(self, scope: Scope) -> int:
        """Remove a session, its turns and the refs that only it used."""
        rules.check_session(scope)
        now = self._clock()
        erased = await self._writer.remove(lambda db: sessions.delete(db, scope, now))
        return erased.refs

    # Usage, calibration, audit.

    async def usage(
        self,
        scope: Scope,
        *,
        by: Literal["model", "session", "day"] = "model",
        since: float = 0.0,
    ) -> list[UsageTotal]:
        """Usage summed over turns."""
        return await self._read(lambda db: sessions.usage(db, scope, by=by, since=since))

    async def calibration(self, scope: Scope) -> bytes | None:
        """What was learnt from reported usage."""
        return await self._read(lambda db: sessions.calibration(db, scope))

    async def save_calibration(self, scope: Scope, data: bytes) -> None:
        """Keep what was learnt."""
        await self._write(lambda db: sessions.save_calibration(db, scope, data))

    async def audit(self, scope: Scope, *, limit: int = 100, before: int = 0) -> list[AuditEntry]:
        """The newest compressions."""
        return await self._read(lambda db: sessions.audit(db, scope, limit=limit, before=before))

    # Upkeep.

    async def check(self) -> None:
        """Raise unless the store can be read and written now."""
        await self._readers.look(sessions.read_any)
        await self._write(_check_writable)

    async def stats(self, scope: Scope) -> StoreStats:
        """How full the store is."""
        now = self._clock()
        return await self._read(lambda db: upkeep.stats(db, scope.user, [scope.workspace], now))

    async def verify(self, scope: Scope, progress: Progress | None = None) -> list[Damage]:
        """Read everything once."""
        damages: list[Damage] = []
        total = await self._read(lambda db: upkeep.count_contents(db, scope))
        done, after = 0, ""
        while True:
            part = await self._read(partial(upkeep.check, scope=scope, after=after, limit=_PART))
            if part.unsound:
                damages += await self._set_apart(scope, *part.unsound)
            done, after = done + part.read, part.last
            if progress is not None and part.read:
                progress(done, max(done, total))
            if part.read < _PART:
                break
        damages += await summaries.verify(self._runner, scope)
        damages += await turns.verify(self._runner, scope)
        damages += await journal.verify(self._runner, scope)
        damages += await facts.verify(self._runner, scope)
        unsound = await self._read(partial(answers.unsound, scope=scope))
        if unsound:
            await self._write(partial(answers.remove_unsound, scope=scope, unsound=unsound))
        damages += [answer_shelf.damaged(sha256) for sha256 in unsound.values()]
        torn_tools = await self._read(partial(tools.unsound, scope=scope))
        if torn_tools:
            await self._write(partial(tools.remove_unsound, scope=scope, unsound=torn_tools))
        return damages + [tool_shelf.damaged(sha256) for sha256 in torn_tools.values()]

    async def gc(self, scope: Scope, *, grace_seconds: float = GRACE_SECONDS) -> Cleaned:
        """Remove what is stale and what closed sessions left."""
        now = self._clock()
        cutoff = now - grace_seconds
        refs = removed = size = after = 0
        await self._runner.write_one(summaries.remove_expired, scope, now)
        await self._write(partial(answers.remove_expired, scope=scope, now=now))
        while True:
            # Looked for by a reader, which keeps nobody from writing; judged again when removed.
            ids = await self._read(
                partial(upkeep.candidates, scope=scope, cutoff=cutoff, after=after, limit=_PART)
            )
            if not ids:
                break
            part = await self._write(
                partial(upkeep.remove, scope=scope, ids=ids, cutoff=cutoff, now=now)
            )
            refs, removed, size = refs + part.refs, removed + part.contents, size + part.bytes
            after = ids[-1]
        while not await self._write(scrubbing.shrink):
            pass
        return Cleaned(refs, removed, size)

    async def expire(self, scope: Scope, before: float) -> Erased:
        """Remove the sessions last used before a time, and what no session has used since."""
        now = self._clock()
        return await self._in_parts(lambda db: erasing.expire(db, scope, before=before, now=now))

    async def erase(self, scope: Scope) -> Erased:
        """Remove every record of this user and workspace."""
        erased = await self._erase(scope)
        self._database.scrub_soon()
        return erased

    async def erase_all(self) -> Erased:
        """Remove every record of everyone."""
        erased = Erased()
        for scope in await self._read(erasing.owners):
            erased += await self._erase(scope)
        self._database.scrub_soon()
        return erased

    async def _erase(self, scope: Scope) -> Erased:
        now = self._clock()
        # Sessions and other large parts go in small transactions; then what is left, in one.
        erased = await self._in_parts(
            lambda db: erasing.expire(db, scope, before=float("inf"), now=now)
        )
        return erased + await self._write(lambda db: erasing.erase_rest(db, scope))

    async def _in_parts(self, job: Job[Erased]) -> Erased:
        erased = Erased()
        while part := await self._write(job):
            erased += part
        return erased

    async def scrub(self, *, whole: bool = False) -> bool:
        """Overwrite removed records in the file and its log."""
        return await self._database.scrub(whole=whole)

    async def removals(self) -> int:
        """Return how often records were removed for good."""
        return await self._read(scrubbing.removals)

    async def export(self, scope: Scope) -> AsyncIterator[bytes]:
        """Every record of the scope as lines of JSON."""
        yield transfer.encode(transfer.Header())
        await self._write(_nothing)
        reads: list[moving.Read] = [*moving.ALL, partial(moving.job_lines, self._ticking)]
        for read in reads:
            after: Any = None
            while True:
                lines, after = await self._read(partial(_page, read, scope, after))
                for line in lines:
                    yield transfer.encode(line)
                if after is None:
                    break

    async def restore(self, scope: Scope, lines: AsyncIterator[bytes]) -> int:
        """Read what `export` wrote."""
        new = 0
        async for batch in transfer.batches(lines):
            packed = await self._readers.run(partial(_packed, batch))
            new += await self._write(
                partial(
                    moving.restore,
                    scope=scope,
                    batch=batch,
                    packed=packed,
                    ticking=self._ticking,
                )
            )
        return new

    async def scopes(self) -> list[Scope]:
        """Everyone who has something here."""
        return await self._read(sessions.scopes)

    async def secret(self) -> bytes:
        """Return a random key of this store."""
        return await self._database.secret()

    async def backup(self, path: str) -> None:
        """Write a copy of the whole store while it is in use."""
        await self._write(_nothing)
        await self._database.write_copy(Path(path).absolute())

    async def close(self) -> None:
        """Finish what is being written and let go."""
        await self._database.close()


def _heard(noted: asyncio.Future[None]) -> None:
    """An access that could not be noted is nobody's concern, nor is one that nobody waits for."""
    if not noted.cancelled():
        noted.exception()


def _nothing(db: apsw.Connection) -> None:
    """Come behind everything that was queued before."""


def _check_writable(db: apsw.Connection) -> None:
    # An empty transaction succeeds on a file that may only be read.
    if db.readonly("main"):
        raise apsw.ReadOnlyError("attempt to write a readonly database")


def _page(read: moving.Read, scope: Scope, after: Any, db: apsw.Connection) -> transfer.Page:
    return read(db, scope, after)


def _checked(contents: Sequence[Content]) -> list[tuple[Content, Packed]]:
    for content in contents:
        rules.check_content(content)
    return [(content, pack(content.data)) for content in contents]


def _packed(batch: list[transfer.Line]) -> dict[str, Packed]:
    return {
        line.sha256: pack(line.data)
        for line in batch
        if isinstance(line, transfer.RefLine | transfer.MessageLine) and line.data is not None
    }
