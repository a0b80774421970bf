"""store: the store on PostgreSQL, for many processes and machines at once.

The last of its folder: it says which file does what, and asks the clock.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Literal, LiteralString

from holdfast.errors import StoreError
from holdfast.store import rules
from holdfast.store.across import AcrossScopes
from holdfast.store.answer_shelf import AnswerShelf
from holdfast.store.deadline import has_deadline, without_deadline
from holdfast.store.fact_shelf import FactShelf
from holdfast.store.journal import JournalShelf
from holdfast.store.operations import facts, journal, ledger, summaries, turns
from holdfast.store.postgres import (
    erasing,
    moving,
    originals,
    scrubbing,
    sessions,
    upkeep,
)
from holdfast.store.postgres.across import PostgresAcross
from holdfast.store.postgres.answers import PostgresAnswers
from holdfast.store.postgres.database import CONNECTIONS, Database, connect
from holdfast.store.postgres.migrate import migrate
from holdfast.store.postgres.queue import PostgresQueue
from holdfast.store.postgres.running import PostgresRunner
from holdfast.store.postgres.scrubbing import Scrubber
from holdfast.store.postgres.tools import PostgresTools
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
from holdfast.store.tool_shelf import ToolShelf
from holdfast.store.turn_shelf import TurnShelf
from holdfast.store.usage_ledger import UsageLedger

_SAVE_CALIBRATION: LiteralString = """
INSERT INTO holdfast.calibrations (workspace, username, data) VALUES ($1, $2, $3)
ON CONFLICT (workspace, username) DO UPDATE SET data = excluded.data
"""

_NEW_KEY: LiteralString = """
INSERT INTO holdfast.secrets (name, data) VALUES ('tenants', $1) ON CONFLICT DO NOTHING
"""
_KEY: LiteralString = "SELECT data FROM holdfast.secrets WHERE name = 'tenants'"

_MANY = 500
"""Contents; so many are found more slowly unless PostgreSQL knows that they are there."""


class PostgresStore:
    """Keeps everything in the schema `holdfast` of a database."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._put = 0
        self._scrubber = scrubber = Scrubber(database)
        self._runner = PostgresRunner(database, scrubber)
        self._looking: asyncio.Task[None] | None = None
        """Has PostgreSQL look at its tables; held, because a loop holds its tasks weakly."""
        self.url = database.url
        self.across: AcrossScopes = PostgresAcross(database, clock)
        """Several workspaces at once."""
        self.jobs: JobQueue = PostgresQueue(database, clock)
        """Work for the background."""
        self.remembered: TurnShelf = turns.SqlTurnStore(self._runner)
        """What was said, turn by turn."""
        self.facts: FactShelf = facts.SqlFactStore(self._runner)
        """What was said."""
        self.answers: AnswerShelf = PostgresAnswers(database, clock, scrubber)
        """Answers that may be given again."""
        self.tools: ToolShelf = PostgresTools(database, clock, scrubber)
        """Tools and their schemas."""
        self.journal: JournalShelf = journal.SqlJournal(self._runner, clock)
        """What was done, entry behind entry."""
        self.ledger: UsageLedger = ledger.SqlLedger(self._runner)
        """Daily use of tenants."""

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        clock: Callable[[], float] = time.time,
        connections: int = CONNECTIONS,
    ) -> PostgresStore:
        """Connect, and bring the tables up to date.

        Raises:
            StoreUnavailableError: the server cannot be reached, or refuses the login.
            StoreError: the URL cannot be read, or a newer version made the store.
        """
        database = await connect(url, connections)
        try:
            await migrate(database)
        except BaseException:
            await database.close()
            raise
        return cls(database, clock=clock)

    # Contents and refs.

    async def put(self, scope: Scope, contents: Sequence[Content]) -> None:
        """Store originals."""
        await originals.put(self._database, scope, contents, self._clock())
        before, self._put = self._put, self._put + len(contents)
        if before < _MANY <= self._put:
            looking = upkeep.look_at_once(self._database)
            if has_deadline():  # it takes longer than a request may wait
                self._looking = asyncio.create_task(looking, context=without_deadline())
            else:
                await looking

    async def get(self, scope: Scope, ref: str, *, peek: bool = False) -> Stored | None:
        """Open a ref."""
        return await originals.get(self._database, scope, ref, self._clock, peek=peek)

    async def info(self, scope: Scope, ref: str) -> RefInfo | None:
        """What is known of a ref."""
        return await originals.info(self._database, scope, ref, self._clock())

    async def refs(
        self, scope: Scope, *, kind: str = "", limit: int = 100, before: str = ""
    ) -> list[RefInfo]:
        """The refs stored last."""
        return await originals.refs(
            self._database, scope, self._clock(), kind=kind, limit=limit, before=before
        )

    async def forget(self, scope: Scope, refs: Sequence[str]) -> int:
        """Remove refs without a trace."""
        removed = await originals.forget(self._database, scope, refs, self._clock())
        self._scrubber.begin(scrubbing.OF_REFS if removed else ())
        return removed

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
        return await sessions.session(self._database, scope)

    async def session_beside(self, scope: Scope, journal: str) -> tuple[SessionRecord | None, int]:
        """The session that the scope names, and how long one of its journals is."""
        return await sessions.session_beside(self._database, scope, journal)

    async def sessions(
        self, scope: Scope, *, limit: int = 100, before: str = "", client_session: str = ""
    ) -> list[SessionRecord]:
        """The sessions last used."""
        return await sessions.sessions(
            self._database, scope, limit=limit, before=before, client_session=client_session
        )

    async def session_with_head(
        self, scope: Scope, heads: Sequence[str], *, client: ClientKey | None = None
    ) -> SessionRecord | None:
        """Return the open session with the first of these heads."""
        return await sessions.session_with_head(self._database, scope, heads, client)

    async def add_turn(
        self,
        scope: Scope,
        turn: Turn,
        session: SessionRecord,
        messages: Mapping[str, bytes | memoryview],
    ) -> None:
        """Append a turn to the scope's session."""
        await sessions.add_turn(self._database, scope, turn, session, messages)

    async def turns(self, scope: Scope, *, after: int = 0, limit: int = 1000) -> list[Turn]:
        """The turns of the session in order."""
        return await sessions.turns(self._database, scope, after=after, limit=limit)

    async def messages(self, scope: Scope, hashes: Sequence[str]) -> dict[str, bytes]:
        """The bytes of messages that this user's turns name."""
        return await sessions.messages(self._database, scope, hashes, self._clock())

    async def link(self, scope: Scope, names: Sequence[str]) -> None:
        """Note under which names a provider holds the session's history."""
        await sessions.link(self._database, scope, names)

    async def session_linked(self, scope: Scope, *names: str) -> str:
        """The session that has the first of these names."""
        return await sessions.session_linked(self._database, scope, names)

    async def close_session(self, scope: Scope) -> None:
        """Note that a session is over."""
        await sessions.close_session(self._database, scope, self._clock())

    async def delete_session(self, scope: Scope) -> int:
        """Remove a session, its turns and the refs that only it used."""
        erased = await sessions.delete_session(self._database, scope, self._clock())
        self._scrubber.begin(scrubbing.TABLES if erased else ())
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
        return await upkeep.usage(self._database, scope, by, since)

    async def calibration(self, scope: Scope) -> bytes | None:
        """What was learnt from reported usage."""
        rows = await self._database.fetch(moving.CALIBRATION, scope.workspace, scope.user)
        return rows[0]["data"] if rows else None

    async def save_calibration(self, scope: Scope, data: bytes) -> None:
        """Keep what was learnt."""
        await self._database.fetch(_SAVE_CALIBRATION, scope.workspace, scope.user, data)

    async def audit(self, scope: Scope, *, limit: int = 100, before: int = 0) -> list[AuditEntry]:
        """The newest compressions."""
        return await upkeep.audit(self._database, scope, limit, before)

    # Upkeep.

    async def check(self) -> None:
        """Raise unless the store can be read and written now."""
        await self._database.check()

    async def stats(self, scope: Scope) -> StoreStats:
        """How full the store is."""
        return await upkeep.stats(self._database, scope.user, [scope.workspace], self._clock())

    async def verify(self, scope: Scope, progress: Progress | None = None) -> list[Damage]:
        """Read everything once."""
        damages = await upkeep.verify(self._database, scope, self._clock(), progress)
        damages += await summaries.verify(self._runner, scope)
        damages += await turns.verify(self._runner, scope)
        damages += await journal.verify(self._runner, scope)
        return damages + await facts.verify(self._runner, scope)

    async def gc(self, scope: Scope, *, grace_seconds: float = GRACE_SECONDS) -> Cleaned:
        """Remove what is stale and what closed sessions left."""
        now = self._clock()
        await self._runner.write_one(summaries.remove_expired, scope, now)
        return await upkeep.gc(self._database, scope, now, grace_seconds)

    async def expire(self, scope: Scope, before: float) -> Erased:
        """Remove the sessions last used before a time, and what no session has used since."""
        return await erasing.expire(self._database, scope, before, self._clock())

    async def erase(self, scope: Scope) -> Erased:
        """Remove every record of this user and workspace."""
        erased = await erasing.erase(self._database, scope, self._clock())
        self._scrubber.begin(scrubbing.TABLES)
        return erased

    async def erase_all(self) -> Erased:
        """Remove every record of everyone."""
        erased = Erased()
        for scope in await erasing.owners(self._database):
            erased += await erasing.erase(self._database, scope, self._clock())
        self._scrubber.begin(scrubbing.TABLES)
        return erased

    async def scrub(self, *, whole: bool = False) -> bool:
        """Write the tables anew, so that nothing of removed records is left in their files."""
        return await self._scrubber.scrub(scrubbing.TABLES, whole=whole)

    async def removals(self) -> int:
        """Return how often records were removed for good."""
        return int((await self._database.fetch(scrubbing.REMOVALS))[0]["number"])

    def export(self, scope: Scope) -> AsyncIterator[bytes]:
        """Every record of the scope as lines of JSON, all of one moment."""
        return moving.export(self._database, scope)

    async def restore(self, scope: Scope, lines: AsyncIterator[bytes]) -> int:
        """Read what `export` wrote."""
        return await moving.restore(self._database, scope, lines)

    async def scopes(self) -> list[Scope]:
        """Everyone who has something here."""
        return await sessions.scopes(self._database)

    async def secret(self) -> bytes:
        """A random key, in the database itself: many machines must agree on it."""
        fresh = secrets.token_bytes(rules.SECRET_BYTES)
        await self._database.fetch(_NEW_KEY, fresh)
        return bytes((await self._database.fetch(_KEY))[0]["data"])

    async def backup(self, path: str) -> None:
        """Not for this store: PostgreSQL has its own tools."""
        raise StoreError(
            "a store on PostgreSQL is backed up by PostgreSQL",
            where=path,
            fix="Run `pg_dump --schema=holdfast`, or use `holdfast store export`.",
        )

    async def close(self) -> None:
        """Finish what is being written and let go."""
        if self._looking is not None:
            self._looking.cancel()
        await self.jobs.close()
        await self._scrubber.wait()
        await self._database.close()
