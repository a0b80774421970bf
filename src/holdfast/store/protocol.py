"""What the engine needs of a store, in its own words; three stores do it.

protocol: after records. memory.py is the reference; sqlite/ and postgres/ do the same, and one
suite of tests runs over all three.

Rules that every store keeps:
- A call sees only its scope: another user's or workspace's records do not exist for it.
- What a writing call returns from is durable: a killed process loses nothing of it.
- A call either happens whole or not at all.
- Failures of the driver are raised as `StoreError`, or one of its branches, without content.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Literal, Protocol

from holdfast.store.across import AcrossScopes
from holdfast.store.answer_shelf import AnswerShelf
from holdfast.store.fact_shelf import FactShelf
from holdfast.store.journal import JournalShelf
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
    Turn,
    UsageTotal,
)
from holdfast.store.scope import Scope
from holdfast.store.tool_shelf import ToolShelf
from holdfast.store.turn_shelf import TurnShelf
from holdfast.store.usage_ledger import UsageLedger

GRACE_SECONDS = 3600.0
"""How long what is out of date stays: nothing that is being written or was just used goes."""

Progress = Callable[[int, int], None]
"""Told how much is done, and of how much."""


class Store(Protocol):
    """Contents behind refs, sessions and their turns, usage and what was learnt from it."""

    url: str
    """What it was opened with, without a password."""
    across: AcrossScopes
    """Several workspaces of one user at once."""
    jobs: JobQueue
    """Work for the background."""
    remembered: TurnShelf
    """What was said, turn by turn, to be recalled."""
    facts: FactShelf
    """What was said, as statements that stand on their own."""
    answers: AnswerShelf
    """Answers that may be given again."""
    tools: ToolShelf
    """Tools and their schemas, as they were pinned."""
    journal: JournalShelf
    """What was done, entry behind entry, to be gone on from."""
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
        """Open a ref, in any form that refs.py understands; None if there is nothing to open.

        Counts as an access, and as a use by `scope.session` if it names one; other calls see
        that once they read after it. With `peek` it counts as neither: a person looks at it, or
        a background job reads it. What `info` calls removed is None here.

        Raises:
            RefCollisionError: the digits fit two contents.
            DamagedContentError: what is stored is not what was stored; it is set apart.
        """

    async def info(self, scope: Scope, ref: str) -> RefInfo | None:
        """What is known of a ref, even of one whose content was removed."""

    async def refs(
        self,
        scope: Scope,
        *,
        kind: str = "",
        limit: int = 100,
        before: str = "",
    ) -> list[RefInfo]:
        """The refs stored last, of `scope.session` if it names one, without removed ones.

        `before` is the ref to go on behind.

        Raises:
            StoreError: `before` is no ref of this scope.
        """

    async def forget(self, scope: Scope, refs: Sequence[str]) -> int:
        """Remove refs without a trace, and contents that nobody else refers to; how many went."""

    # Summaries of contents: what can be made again, but not for nothing.

    async def summary(self, scope: Scope, key: str) -> bytes | None:
        """What was kept under this key; None if nothing is, or it is past its time or damaged."""

    async def put_summary(
        self,
        scope: Scope,
        key: str,
        value: bytes,
        ttl_seconds: float | None = None,
        *,
        source: str = "",
    ) -> None:
        """Keep a summary in the place of an earlier one with its key.

        `source` is the SHA-256 of the stored content that it is of: with that it goes.
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
        """Return the sessions last used, of one client session if that is given.

        `before` is the session to go on behind.
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
        """Append a turn to `scope.session`, with the session as it is afterwards.

        `messages` are the bytes behind the hashes in the turn's trails that may be new.

        Raises:
            StoreConflictError: the session has a turn of that number already.
            StoreError: the number leaves a gap, or bytes do not match their hash.
        """

    async def turns(self, scope: Scope, *, after: int = 0, limit: int = 1000) -> list[Turn]:
        """The turns of `scope.session` in order, behind number `after`."""

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
        """Note that a session is over: what only it refers to may go after the grace period.

        What was put for a session without turns counts as well; a session nobody knows is none.
        """

    async def delete_session(self, scope: Scope) -> int:
        """Remove a session, its turns, links and the refs that only it used; how many refs went.

        They go without a trace, as with `forget`.
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
        """What was learnt from reported usage in this workspace, as it was saved."""

    async def save_calibration(self, scope: Scope, data: bytes) -> None:
        """Keep what was learnt."""

    async def audit(self, scope: Scope, *, limit: int = 100, before: int = 0) -> list[AuditEntry]:
        """The newest compressions; `before` skips that many."""

    # Upkeep.

    async def check(self) -> None:
        """Raise StoreUnavailableError unless the store can be read and written now."""

    async def stats(self, scope: Scope) -> StoreStats:
        """How full the store is."""

    async def verify(self, scope: Scope, progress: Progress | None = None) -> list[Damage]:
        """Read everything once; what does not match its hash is set apart and listed."""

    async def gc(self, scope: Scope, *, grace_seconds: float = GRACE_SECONDS) -> Cleaned:
        """Remove what is stale and what closed sessions left, once the grace period is over.

        Nothing goes that an open session refers to, or that was written or opened within the
        grace period. A session is open until it was closed, even if it has no turns. What was
        put without a session goes only when stale. `info` still knows what went.
        """

    async def expire(self, scope: Scope, before: float) -> Erased:
        """Remove the sessions last used before a time, and what no session has used since.

        A session goes with all that is its own, as with `delete_session`. Refs, remembered turns,
        facts, answers and journals of no session that is left go by their own time, and so do
        entries of the audit. Tools, calibration and summaries without a content stay. The work is
        done in small transactions, so that others can write in between.
        """

    async def erase_session(self, scope: Scope) -> Erased:
        """Remove a session as `delete_session` does, and return the numbers of all its records."""

    async def erase(self, scope: Scope) -> Erased:
        """Remove every record of this user and workspace, whatever session the scope names.

        Contents that other users of the workspace refer to stay theirs. Counters without content
        stay, so that other processes notice that their indexes are out of date.
        """

    async def erase_all(self) -> Erased:
        """Remove every record of everyone."""

    async def scrub(self, *, whole: bool = False) -> bool:
        """Overwrite removed records in the database's own files; return whether that succeeded.

        Calls that forget, delete and erase begin this themselves, and nobody waits for it; after
        `gc` and `expire`, which are called for many users in turn, the caller does. Where another
        process was in the way, or the file or a table is large, something may be left. `whole`
        rewrites large ones too, which may take minutes, and others wait for it.
        """

    async def removals(self) -> int:
        """Return how often records were removed for good: a change tells to drop copies of them."""

    def export(self, scope: Scope) -> AsyncIterator[bytes]:
        """Every record of the scope as lines of JSON, to be read by `restore`."""

    async def restore(self, scope: Scope, lines: AsyncIterator[bytes]) -> int:
        """Read what `export` wrote into this scope; how many records were new.

        Goes in parts, each whole: after a failure, run it again. What is there already stays.
        """

    async def scopes(self) -> list[Scope]:
        """Everyone who has a session or a ref here, who used it last first; for its owner."""

    async def secret(self) -> bytes:
        """A random key of this store: made once, and the same for all who open it.

        Names that are made with it tell nothing to who has only the records: neither exports nor
        backups hold it.
        """

    async def backup(self, path: str) -> None:
        """Write a copy of the whole store while it is in use.

        Raises:
            StoreError: this kind of store is backed up by its own tools.
        """

    async def close(self) -> None:
        """Finish what is being written and let go; closing twice is once."""
