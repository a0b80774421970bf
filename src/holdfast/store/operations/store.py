"""The calls of the protocol that are the same on SQLite and PostgreSQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Literal

from holdfast.store import rules, transfer
from holdfast.store.across import AcrossScopes
from holdfast.store.answer_store import AnswerStore
from holdfast.store.fact_store import FactStore
from holdfast.store.journal import JournalStore
from holdfast.store.operations import (
    answers,
    erasing,
    facts,
    journal,
    ledger,
    moving,
    originals,
    sessions,
    summaries,
    tools,
    turn_records,
    turns,
    upkeep,
)
from holdfast.store.operations.across import SqlAcross
from holdfast.store.operations.jobs import SqlJobQueue
from holdfast.store.protocol import GRACE_SECONDS, Progress
from holdfast.store.queue import JobQueue
from holdfast.store.records import (
    AuditEntry,
    CleanupResult,
    ClientKey,
    Content,
    Damage,
    ErasedRecords,
    RefInfo,
    SessionRecord,
    Stored,
    StoreStats,
    Summary,
    Turn,
    UsageTotal,
)
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Runner, Values
from holdfast.store.tool_store import ToolStore
from holdfast.store.turn_store import TurnStore
from holdfast.store.usage_ledger import UsageLedger


class SqlStore(ABC):
    """A store in a database that runs operations."""

    def __init__(self, runner: Runner, clock: Callable[[], float], jobs: SqlJobQueue) -> None:
        self._runner = runner
        self._clock = clock
        self._jobs = jobs
        self.jobs: JobQueue = jobs
        """Jobs of the background."""
        self.across: AcrossScopes = SqlAcross(runner, clock)
        """Several workspaces at once."""
        self.answers: AnswerStore = answers.SqlAnswerStore(runner, clock)
        """Answers that may be given again."""
        self.tools: ToolStore = tools.SqlToolStore(runner, clock)
        """Tools and their schemas."""
        self.facts: FactStore = facts.SqlFactStore(runner)
        """Facts."""
        self.remembered: TurnStore = turns.SqlTurnStore(self._runner)
        """Remembered turns."""
        self.journal: JournalStore = journal.SqlJournal(self._runner, clock)
        """Journals."""
        self.ledger: UsageLedger = ledger.SqlLedger(self._runner)
        """Daily use of tenants."""

    # Contents and refs.

    async def put(self, scope: Scope, contents: Sequence[Content]) -> None:
        """Store originals."""
        await originals.put(self._runner, scope, contents, self._clock)

    async def get(self, scope: Scope, ref: str, *, peek: bool = False) -> Stored | None:
        """Open a ref."""
        return await originals.get(self._runner, scope, ref, self._clock, peek=peek)

    async def info(self, scope: Scope, ref: str) -> RefInfo | None:
        """Return the record of a ref."""
        await self._runner.noted()
        row = await self._runner.fetch(originals.find, scope, ref)
        return None if row is None else row.info(self._clock())

    async def refs(
        self, scope: Scope, *, kind: str = "", limit: int = 100, before: str = ""
    ) -> list[RefInfo]:
        """The refs stored last."""
        await self._runner.noted()
        rows = await self._runner.fetch(
            originals.newest, scope, kind=kind, limit=limit, before=before
        )
        return [row.info(self._clock()) for row in rows]

    async def forget(self, scope: Scope, refs: Sequence[str]) -> int:
        """Remove refs without a trace."""
        return await self._runner.remove(
            originals.TABLES, originals.forget, scope, refs, self._clock()
        )

    # Summaries.

    async def summary(self, scope: Scope, key: str) -> bytes | None:
        """Return a summary by its key."""
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
        return await self._runner.look(sessions.get, scope)

    async def session_beside(self, scope: Scope, journal: str) -> tuple[SessionRecord | None, int]:
        """The session that the scope names, and how long one of its journals is."""
        return await self._runner.look(sessions.get_beside, scope, journal)

    async def sessions(
        self, scope: Scope, *, limit: int = 100, before: str = "", client_session: str = ""
    ) -> list[SessionRecord]:
        """The sessions last used."""
        return await self._runner.fetch(
            sessions.latest, scope, limit=limit, before=before, client_session=client_session
        )

    async def session_with_head(
        self, scope: Scope, heads: Sequence[str], *, client: ClientKey | None = None
    ) -> SessionRecord | None:
        """Return the open session with the first of these heads."""
        return await self._runner.look(sessions.with_head, scope, heads, client)

    async def add_turn(
        self,
        scope: Scope,
        turn: Turn,
        session: SessionRecord,
        messages: Mapping[str, bytes | memoryview],
    ) -> None:
        """Append a turn to the scope's session."""
        await turn_records.add(self._runner, scope, turn, session, messages)

    async def turns(self, scope: Scope, *, after: int = 0, limit: int = 1000) -> list[Turn]:
        """The turns of the session in order."""
        return await self._runner.fetch(turn_records.turns, scope, after=after, limit=limit)

    async def messages(self, scope: Scope, hashes: Sequence[str]) -> dict[str, bytes]:
        """The bytes of messages that this user's turns name."""
        return await turn_records.messages(self._runner, scope, hashes, self._clock)

    async def link(self, scope: Scope, names: Sequence[str]) -> None:
        """Note under which names a provider holds the session's history."""
        rules.check_session(scope)
        await self._runner.write(sessions.link, scope, names)

    async def session_linked(self, scope: Scope, *names: str) -> str:
        """The session that has the first of these names."""
        return await self._runner.look(sessions.linked, scope, names)

    async def close_session(self, scope: Scope) -> None:
        """Note that a session is over."""
        rules.check_session(scope)
        await self._runner.write(sessions.close, scope, self._clock())

    async def delete_session(self, scope: Scope) -> int:
        """Remove a session, its turns and the refs that only it used."""
        return (await self.erase_session(scope)).refs

    async def erase_session(self, scope: Scope) -> ErasedRecords:
        """Remove a session as `delete_session` does, and return the numbers of all its records."""
        rules.check_session(scope)
        return await self._runner.remove(
            sessions.TABLES, sessions.delete_whole, scope, self._clock()
        )

    # Usage, calibration, audit.

    async def usage(
        self,
        scope: Scope,
        *,
        by: Literal["model", "session", "day"] = "model",
        since: float = 0.0,
    ) -> list[UsageTotal]:
        """Usage summed over turns."""
        return await self._runner.fetch(turn_records.usage, scope, by=by, since=since)

    async def calibration(self, scope: Scope) -> bytes | None:
        """Return the calibration of this workspace."""
        return await self._runner.fetch(sessions.calibration, scope)

    async def save_calibration(self, scope: Scope, data: bytes) -> None:
        """Save the calibration of this workspace."""
        await self._runner.write_one(sessions.save_calibration, scope, data)

    async def audit(self, scope: Scope, *, limit: int = 100, before: int = 0) -> list[AuditEntry]:
        """The newest compressions."""
        return await self._runner.fetch(originals.entries, scope, limit=limit, before=before)

    # Upkeep.

    async def stats(self, scope: Scope) -> StoreStats:
        """How full the store is."""
        return await self._runner.fetch(upkeep.stats, scope, [scope.workspace], self._clock())

    async def verify(self, scope: Scope, progress: Progress | None = None) -> list[Damage]:
        """Read everything once."""
        damages = await upkeep.verify(self._runner, scope, self._clock, progress)
        for table in (summaries, turns, journal, facts, answers, tools):
            damages += await table.verify(self._runner, scope)
        return damages

    async def gc(self, scope: Scope, *, grace_seconds: float = GRACE_SECONDS) -> CleanupResult:
        """Remove expired contents and those that only closed sessions used."""
        await self._runner.write_one(answers.remove_expired, scope, self._clock())
        await self._runner.write_one(summaries.remove_expired, scope, self._clock())
        return await upkeep.clean(self._runner, scope, self._clock, grace_seconds)

    async def expire(self, scope: Scope, before: float) -> ErasedRecords:
        """Remove the sessions last used before a time, and what no session has used since."""
        return await erasing.expire(self._runner, scope, before, self._clock())

    async def erase(self, scope: Scope) -> ErasedRecords:
        """Remove every record of this user and workspace."""
        erased = await erasing.erase(self._runner, scope, self._clock())
        self._scrub_soon()
        return erased

    async def erase_all(self) -> ErasedRecords:
        """Remove every record of everyone."""
        erased = ErasedRecords()
        for scope in await self._runner.fetch(erasing.owners):
            erased += await erasing.erase(self._runner, scope, self._clock())
        self._scrub_soon()
        return erased

    @abstractmethod
    def _scrub_soon(self) -> None:
        """Have the bytes of removed records overwritten; nobody waits for it."""

    async def scopes(self) -> list[Scope]:
        """Everyone who has something here."""
        return await self._runner.fetch(sessions.scopes)

    async def restore(self, scope: Scope, lines: AsyncIterator[bytes]) -> int:
        """Read what `export` wrote, each part in one transaction; return how much was new."""
        new = 0
        async for batch in transfer.batches(lines):
            packed = await self._runner.compute(moving.packed, batch)
            new += await self._runner.write(self._restore, scope, batch, packed)
        return new

    def _restore(
        self, scope: Scope, batch: Sequence[transfer.Line], packed: list[Values]
    ) -> Operation[int]:
        yield from moving.prepare(scope, packed)
        new = 0
        for line in batch:
            if isinstance(line, transfer.JobLine):
                new += yield from self._jobs.restore(scope, line)
            else:
                new += yield from moving.restore(scope, line)
        return new
