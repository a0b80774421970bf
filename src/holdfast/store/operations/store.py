"""The calls of the protocol that are the same on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from holdfast.store import rules
from holdfast.store.across import AcrossScopes
from holdfast.store.fact_shelf import FactShelf
from holdfast.store.operations import facts, originals, sessions, turn_records, upkeep
from holdfast.store.operations.across import SqlAcross
from holdfast.store.records import (
    AuditEntry,
    ClientKey,
    Content,
    RefInfo,
    SessionRecord,
    Stored,
    StoreStats,
    Turn,
    UsageTotal,
)
from holdfast.store.scope import Scope
from holdfast.store.statements import Runner


class SqlStore:
    """A store in a database that runs operations."""

    def __init__(self, runner: Runner, clock: Callable[[], float]) -> None:
        self._runner = runner
        self._clock = clock
        self.across: AcrossScopes = SqlAcross(runner, clock)
        """Several workspaces at once."""
        self.facts: FactShelf = facts.SqlFactStore(runner)
        """What was said."""

    # Contents and refs.

    async def put(self, scope: Scope, contents: Sequence[Content]) -> None:
        """Store originals."""
        await originals.put(self._runner, scope, contents, self._clock)

    async def get(self, scope: Scope, ref: str, *, peek: bool = False) -> Stored | None:
        """Open a ref."""
        return await originals.get(self._runner, scope, ref, self._clock, peek=peek)

    async def info(self, scope: Scope, ref: str) -> RefInfo | None:
        """What is known of a ref."""
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
        """What was learnt from reported usage."""
        return await self._runner.fetch(sessions.calibration, scope)

    async def save_calibration(self, scope: Scope, data: bytes) -> None:
        """Keep what was learnt."""
        await self._runner.write(sessions.save_calibration, scope, data)

    async def audit(self, scope: Scope, *, limit: int = 100, before: int = 0) -> list[AuditEntry]:
        """The newest compressions."""
        return await self._runner.fetch(originals.entries, scope, limit=limit, before=before)

    # Upkeep.

    async def stats(self, scope: Scope) -> StoreStats:
        """How full the store is."""
        return await self._runner.fetch(upkeep.stats, scope, [scope.workspace], self._clock())

    async def scopes(self) -> list[Scope]:
        """Everyone who has something here."""
        return await self._runner.fetch(sessions.scopes)
