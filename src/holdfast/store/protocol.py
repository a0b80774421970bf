"""The interface of a store, which all implementations share.

sqlite/ and postgres/ implement it, and one test suite runs over both.

Rules for every store:
- A call sees only its scope: another user's or workspace's records do not exist for it.
- A writing call is durable when it returns: a killed process loses nothing of it.
- A call is atomic.
- Failures of the driver are raised as `StoreError`, or a subclass, without content.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Literal, Protocol

from holdfast.store.across import AcrossScopes
from holdfast.store.answer_store import AnswerStore
from holdfast.store.fact_store import FactStore
from holdfast.store.journal import JournalStore
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
    Turn,
    UsageTotal,
)
from holdfast.store.scope import Scope
from holdfast.store.tool_store import ToolStore
from holdfast.store.turn_store import TurnStore
from holdfast.store.usage_ledger import UsageLedger

GRACE_SECONDS = 3600.0
"""Seconds that expired content is kept: content that is being written or was just used is not
removed."""

Progress = Callable[[int, int], None]
"""Told how much is done, and of how much."""


class Store(Protocol):
    """Contents of refs, sessions and their turns, usage and calibration."""

    url: str
    """Its address, without a password."""
    across: AcrossScopes
    """Several workspaces of one user at once."""
    jobs: JobQueue
    """Work for the background."""
    remembered: TurnStore
    """Remembered messages, turn by turn."""
    facts: FactStore
    """Facts from the conversations."""
    answers: AnswerStore
    """Answers that may be given again."""
    tools: ToolStore
    """Tools and their schemas, as they were pinned."""
    journal: JournalStore
    """Journals of agents and research runs."""
    ledger: UsageLedger
    """Daily use of tenants, for limits."""

    # Contents and refs. Equal content is stored once per workspace.

    async def put(self, scope: Scope, contents: Sequence[Content]) -> None:
        """Store originals, all or none; known ones are noted as used by `scope.session`.

        Of a known one the longer life counts, what its record lacks is filled in, and damage is
        healed; the rest stays as it was.

        Raises:
            RefCollisionError: another content has the same ref in this scope.
        """

    async def get(self, scope: Scope, ref: str, *, peek: bool = False) -> Stored | None:
        """Open a ref, in any form that refs.py understands; return None if there is none.

        Counts as an access, and as a use by `scope.session` if it names one; later calls see that.
        With `peek` it counts as neither: a person views it, or a background job reads it. Content
        that `info` reports as removed is None here.

        Raises:
            RefCollisionError: the digits match two contents.
            DamagedContentError: the content is damaged; it is quarantined.
        """

    async def info(self, scope: Scope, ref: str) -> RefInfo | None:
        """Return the facts about a ref, even after its content was removed."""

    async def refs(
        self,
        scope: Scope,
        *,
        kind: str = "",
        limit: int = 100,
        before: str = "",
    ) -> list[RefInfo]:
        """Return the newest refs, of `scope.session` if it names one, without removed ones.

        `before` is the last ref of the previous page.

        Raises:
            StoreError: `before` is no ref of this scope.
        """

    async def forget(self, scope: Scope, refs: Sequence[str]) -> int:
        """Remove refs without a trace, and contents without other refs; return their number."""

    # Summaries of contents, which can be created again at a price.

    async def summary(self, scope: Scope, key: str) -> bytes | None:
        """Return the summary of a key; None if there is none, or it is expired or damaged."""

    async def put_summary(
        self,
        scope: Scope,
        key: str,
        value: bytes,
        ttl_seconds: float | None = None,
        *,
        source: str = "",
    ) -> None:
        """Store a summary, replacing an earlier one with its key.

        `source` is the SHA-256 of its stored content, with which it is removed.
        """

    # Sessions and turns.

    async def session(self, scope: Scope) -> SessionRecord | None:
        """The session that the scope names."""

    async def session_beside(self, scope: Scope, journal: str) -> tuple[SessionRecord | None, int]:
        """The session that the scope names, and how many entries one of its journals has.

        One look for both: every request wants to know whether another process has written either.
        """

    async def sessions(
        self, scope: Scope, *, limit: int = 100, before: str = "", client_session: str = ""
    ) -> list[SessionRecord]:
        """Return the most recently used sessions, of one client session if that is given.

        `before` is the last session of the previous page.
        """

    async def session_with_head(
        self, scope: Scope, heads: Sequence[str], *, client: ClientKey | None = None
    ) -> SessionRecord | None:
        """Return the open session whose head is the first of `heads` that any has.

        With `client`, only sessions whose `client_key` is equal count; without, all do.
        """

    async def add_turn(
        self,
        scope: Scope,
        turn: Turn,
        session: SessionRecord,
        messages: Mapping[str, bytes | memoryview],
    ) -> None:
        """Append a turn to `scope.session`, with the new state of the session.

        `messages` are the bytes of the turn's hashes that may be new.

        Raises:
            StoreConflictError: the session has a turn of that number already.
            StoreError: the number leaves a gap, or bytes do not match their hash.
        """

    async def turns(self, scope: Scope, *, after: int = 0, limit: int = 1000) -> list[Turn]:
        """Return the turns of `scope.session` in order, after number `after`."""

    async def messages(self, scope: Scope, hashes: Sequence[str]) -> dict[str, bytes]:
        """The bytes of messages and frames that turns of this scope name."""

    async def link(self, scope: Scope, names: Sequence[str]) -> None:
        """Note that a provider holds the history of `scope.session` under these names.

        They are the provider's own, such as ids of responses. A name that was another session's
        is this one's from now on.
        """

    async def session_linked(self, scope: Scope, *names: str) -> str:
        """The session that has the first of these names which any has; empty if none does."""

    async def close_session(self, scope: Scope) -> None:
        """Mark a session as over: its exclusive records may be removed after the grace period.

        Contents that were stored for a session without turns count too; an unknown session is no
        error.
        """

    async def delete_session(self, scope: Scope) -> int:
        """Remove a session, its turns, links and exclusive refs; return the number of refs.

        They are removed without a trace, as by `forget`.
        """

    # Usage, calibration, audit.

    async def usage(
        self,
        scope: Scope,
        *,
        by: Literal["model", "session", "day"] = "model",
        since: float = 0.0,
    ) -> list[UsageTotal]:
        """Usage summed over turns, of `scope.session` if it names one."""

    async def calibration(self, scope: Scope) -> bytes | None:
        """Return the calibration of this workspace, as saved."""

    async def save_calibration(self, scope: Scope, data: bytes) -> None:
        """Save the calibration."""

    async def audit(self, scope: Scope, *, limit: int = 100, before: int = 0) -> list[AuditEntry]:
        """The newest compressions; `before` skips that many."""

    # Upkeep.

    async def check(self) -> None:
        """Raise StoreUnavailableError unless the store can be read and written now."""

    async def stats(self, scope: Scope) -> StoreStats:
        """How full the store is."""

    async def verify(self, scope: Scope, progress: Progress | None = None) -> list[Damage]:
        """Read everything once; what does not match its hash is set apart and listed."""

    async def gc(self, scope: Scope, *, grace_seconds: float = GRACE_SECONDS) -> CleanupResult:
        """Remove expired contents and those of closed sessions, after the grace period.

        Content that an open session refers to, or that was written or opened within the grace
        period, is kept. A session is open until it was closed, even without turns. Content without
        a session is removed only when expired. `info` still knows removed contents.
        """

    async def expire(self, scope: Scope, before: float) -> ErasedRecords:
        """Remove the sessions last used before a time, and records that no session has used since.

        A session is removed with all its records, as by `delete_session`. Refs, remembered turns,
        facts, answers and journals without a session are removed by their own time, and so are
        entries of the audit. Tools, calibration and summaries without a content are kept. The work
        is done in small transactions, so that others can write in between.
        """

    async def erase_session(self, scope: Scope) -> ErasedRecords:
        """Remove a session as `delete_session` does, and return the numbers of all its records."""

    async def erase(self, scope: Scope) -> ErasedRecords:
        """Remove every record of this user and workspace, for any session of the scope.

        Contents that other users of the workspace refer to are kept. Counters without content are
        kept, so that other processes notice that their indexes are out of date.
        """

    async def erase_all(self) -> ErasedRecords:
        """Remove every record of everyone."""

    async def scrub(self, *, whole: bool = False) -> bool:
        """Overwrite removed records in the database's own files; return whether that succeeded.

        Calls that forget, delete and erase begin this themselves, and nobody waits for it; after
        `gc` and `expire`, which are called for many users in turn, the caller does. Where another
        process was in the way, or the file or a table is large, something may be left. `whole`
        rewrites large ones too, which may take minutes, and others wait for it.
        """

    async def removals(self) -> int:
        """Return the number of removals: after a change, callers drop their cached copies."""

    def export(self, scope: Scope) -> AsyncIterator[bytes]:
        """Every record of the scope as lines of JSON, to be read by `restore`."""

    async def restore(self, scope: Scope, lines: AsyncIterator[bytes]) -> int:
        """Import the output of `export` into this scope; return the number of new records.

        Each part is atomic: after a failure, run it again. Existing records are kept.
        """

    async def scopes(self) -> list[Scope]:
        """Return all scopes with a session or a ref, most recently used first; for the operator."""

    async def secret(self) -> bytes:
        """Return a random key of this store, generated once, and the same for all its processes.

        It is in no export and no backup, so that names derived from it reveal nothing there.
        """

    async def backup(self, path: str) -> None:
        """Write a copy of the whole store while it is in use.

        Raises:
            StoreError: this kind of store is backed up by its own tools.
        """

    async def close(self) -> None:
        """Finish pending writes and close; closing twice is allowed."""
