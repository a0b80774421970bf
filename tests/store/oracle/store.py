"""The model of a store, in plain dictionaries: the expected result of every call."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Literal, cast

import msgspec

from holdfast.store import rules, transfer
from holdfast.store.across import AcrossScopes
from holdfast.store.answer_store import AnswerStore
from holdfast.store.fact_store import FactStore
from holdfast.store.journal import JournalStore
from holdfast.store.protocol import GRACE_SECONDS, Progress, Store
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
from holdfast.store.refs import parse
from holdfast.store.scope import Scope
from holdfast.store.tool_store import ToolStore
from holdfast.store.turn_store import TurnStore
from holdfast.store.usage_ledger import UsageLedger
from tests.store.oracle.across import ModelAcross
from tests.store.oracle.answers import ModelAnswers
from tests.store.oracle.facts import ModelFacts
from tests.store.oracle.journal import ModelJournal
from tests.store.oracle.ledger import ModelLedger
from tests.store.oracle.lines import add_line, lines_of
from tests.store.oracle.queue import ModelQueue, Moment
from tests.store.oracle.records import Ref, Shelf
from tests.store.oracle.tools import ModelTools
from tests.store.oracle.turns import ModelTurns


class ModelStore:
    """A store in dictionaries, with those methods of a store that have a scope."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._workspaces: dict[str, dict[str, bytes]] = {}
        self._shelves: dict[tuple[str, str], Shelf] = {}
        self.across: AcrossScopes = ModelAcross(self._shelves, self._info, self._stats)
        """Several workspaces at once."""
        self._queue = ModelQueue(self._moment, self._keep_summary, self._retell)
        self.jobs: JobQueue = self._queue
        """Work for the background."""
        self._facts = ModelFacts()
        self.facts: FactStore = self._facts
        """Facts from messages."""
        self._remembered = ModelTurns(self._facts)
        self.remembered: TurnStore = self._remembered
        """Remembered messages, turn by turn."""
        self._answers = ModelAnswers(clock)
        self.answers: AnswerStore = self._answers
        """Answers that may be given again."""
        self._tools = ModelTools(clock)
        self.tools: ToolStore = self._tools
        """Tools and their schemas."""
        self._journal = ModelJournal(clock)
        self.journal: JournalStore = self._journal
        """Journals."""
        self._ledger = ModelLedger()
        self.ledger: UsageLedger = self._ledger
        """Daily use of tenants."""

    def _moment(self) -> Moment:
        now = self._clock()
        return Moment(now, now)

    def _contents(self, scope: Scope) -> dict[str, bytes]:
        """Return the bytes that the users of a workspace share, by their hashes."""
        return self._workspaces.setdefault(scope.workspace, {})

    def _shelf(self, scope: Scope) -> Shelf:
        return self._shelves.setdefault((scope.workspace, scope.user), Shelf())

    # Contents and refs.

    async def put(self, scope: Scope, contents: Sequence[Content]) -> None:
        """Store originals."""
        for content in contents:
            rules.check_content(content)
        self._check_collisions(scope, [(c.ref_id, c.sha256) for c in contents])
        for content in contents:
            self._put(scope, content, self._clock())

    def _check_collisions(self, scope: Scope, added: Iterable[tuple[str, str]]) -> None:
        taken: dict[str, str] = {}
        for ref_id, sha256 in added:
            name = parse(ref_id)
            near = self._shelf(scope).named(name) if name is not None else []
            others = {ref.sha256 for ref in near if ref.content.ref_id == ref_id}
            if {*others, taken.setdefault(ref_id, sha256)} != {sha256}:
                raise rules.collision()

    def _put(self, scope: Scope, content: Content, now: float) -> None:
        shelf, expires_at = self._shelf(scope), rules.expiry(now, content.ttl_seconds)
        ref = shelf.refs.get((content.kind, content.sha256))
        known = ref is not None and not ref.removed
        if ref is not None and known:
            ref.content = rules.filled(ref.content, content)
            ref.written_at = now
            ref.expires_at = rules.longer(ref.expires_at, expires_at)
        else:
            bare = msgspec.structs.replace(content, data=b"")
            ref = Ref(bare, len(content.data), now, now, expires_at)
            shelf.add(ref)
        ref.uses.add(scope.session)
        self._contents(scope)[content.sha256] = content.data
        action = "seen again" if known else "stored"
        self._note(scope, action, ref, now, to_tokens=content.compressed_tokens)

    def _note(self, scope: Scope, action: str, ref: Ref, now: float, *, to_tokens: int = 0) -> None:
        self._shelf(scope).audit.append(
            AuditEntry(
                at=now,
                session=scope.session,
                ref_id=ref.content.ref_id,
                sha256=ref.sha256,
                action=action,
                size=ref.size,
                from_tokens=ref.content.tokens,
                to_tokens=to_tokens,
                flags=ref.content.flags,
            )
        )

    def _find(self, scope: Scope, name: str) -> Ref | None:
        parsed = parse(name)
        return None if parsed is None else self._shelf(scope).find(parsed)

    async def get(self, scope: Scope, ref: str, *, peek: bool = False) -> Stored | None:
        """Open a ref."""
        entry = self._find(scope, ref)
        if entry is None or entry.removed:
            return None
        if not peek:
            entry.accesses += 1
            entry.accessed_at = self._clock()
            if scope.session:
                entry.uses.add(scope.session)
        return Stored(self._info(scope, entry), self._contents(scope)[entry.sha256])

    def _info(self, scope: Scope, ref: Ref) -> RefInfo:
        del scope
        return ref.info(self._clock())

    async def info(self, scope: Scope, ref: str) -> RefInfo | None:
        """Return the facts about a ref."""
        stored = self._find(scope, ref)
        return None if stored is None else self._info(scope, stored)

    async def refs(
        self, scope: Scope, *, kind: str = "", limit: int = 100, before: str = ""
    ) -> list[RefInfo]:
        """The refs stored last."""
        newest = list(reversed(self._shelf(scope).refs.values()))
        if before:
            last = self._find(scope, before)
            if last is None:
                raise rules.no_place_to_go_on(before)
            newest = newest[next(i for i, ref in enumerate(newest) if ref is last) + 1 :]
        newest_first = [
            ref
            for ref in newest
            if not ref.removed
            and kind in ("", ref.content.kind)
            and (not scope.session or scope.session in ref.uses)
        ]
        return [self._info(scope, ref) for ref in newest_first[: max(limit, 0)]]

    async def forget(self, scope: Scope, refs: Sequence[str]) -> int:
        """Remove refs without a trace."""
        there = [ref for ref in (self._find(scope, name) for name in refs) if ref is not None]
        gone = list({ref.key: ref for ref in there}.values())
        for ref in gone:
            self._drop(scope, ref)
        return len(gone)

    def _drop(self, scope: Scope, ref: Ref) -> None:
        del self._shelf(scope).refs[ref.key]
        if not ref.removed:
            self._note(scope, "removed", ref, self._clock())
        self._shelf(scope).drop_summaries_of(ref.sha256)
        self._queue.drop_of_ref(scope, ref.content.ref_id)
        self._facts.drop_of_ref(scope, ref.content.ref_id)
        self._answers.drop_of_ref(scope, ref.content.ref_id)
        self._sweep(scope, ref.sha256)

    def _sweep(self, scope: Scope, sha256: str) -> int:
        """Remove a content without refs in the workspace; return 1 if it was removed."""
        shelves = [shelf for (name, _), shelf in self._shelves.items() if name == scope.workspace]
        if any(sha256 in shelf.messages for shelf in shelves):
            return 0
        if any(not ref.removed for shelf in shelves for ref in shelf.of_content(sha256)):
            return 0
        return int(self._contents(scope).pop(sha256, None) is not None)

    # Summaries.

    async def summary(self, scope: Scope, key: str) -> bytes | None:
        """Return the summary of a key."""
        summary = self._shelf(scope).summaries.get(key)
        if summary is None or rules.is_over(summary.expires_at, self._clock()):
            return None
        return summary.value

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
        expires_at = rules.expiry(self._clock(), ttl_seconds)
        self._keep_summary(scope, Summary(key, value, source, expires_at))

    def _retell(self, scope: Scope, ref_id: str, gist: str) -> None:
        ref = self._find(scope, ref_id)
        if ref is not None:
            ref.content = msgspec.structs.replace(ref.content, summary=gist)

    def _keep_summary(self, scope: Scope, summary: Summary) -> None:
        self._shelf(scope).summaries[summary.key] = summary

    # Sessions and turns.

    async def session(self, scope: Scope) -> SessionRecord | None:
        """The session that the scope names."""
        return self._shelf(scope).sessions.get(scope.session)

    async def session_beside(self, scope: Scope, journal: str) -> tuple[SessionRecord | None, int]:
        """The session that the scope names, and how long one of its journals is."""
        return await self.session(scope), len(await self.journal.read(scope, journal))

    async def sessions(
        self, scope: Scope, *, limit: int = 100, before: str = "", client_session: str = ""
    ) -> list[SessionRecord]:
        """The sessions last used."""
        latest = sorted(self._shelf(scope).sessions.values(), key=_use, reverse=True)
        if client_session:
            latest = [record for record in latest if record.client_session == client_session]
        if before:
            last = self._shelf(scope).sessions.get(before)
            if last is None:
                raise rules.no_place_to_go_on(before)
            latest = [record for record in latest if _use(record) < _use(last)]
        return latest[: max(limit, 0)]

    async def session_with_head(
        self, scope: Scope, heads: Sequence[str], *, client: ClientKey | None = None
    ) -> SessionRecord | None:
        """Return the open session with the first of these heads."""
        order = {head: -n for n, head in enumerate(dict.fromkeys(filter(None, heads)))}
        having = [
            record
            for record in self._shelf(scope).sessions.values()
            if record.head in order
            and record.closed_at is None
            and client in (None, record.client_key)
        ]
        return max(having, key=lambda each: (order[each.head], *_use(each)), default=None)

    async def add_turn(
        self,
        scope: Scope,
        turn: Turn,
        session: SessionRecord,
        messages: Mapping[str, bytes | memoryview],
    ) -> None:
        """Append a turn to the scope's session."""
        rules.check_turn(scope, session, messages)
        shelf = self._shelf(scope)
        rules.check_number(turn.number, len(shelf.turns.get(scope.session, {})))
        shelf.turns.setdefault(scope.session, {})[turn.number] = turn
        shelf.sessions[scope.session] = session
        for sha256, data in messages.items():
            self._contents(scope)[sha256] = bytes(data)
            shelf.messages.setdefault(sha256, set())
        self._name_messages(scope, {*rules.hashes_of(turn), *messages})

    def _name_messages(self, scope: Scope, hashes: Iterable[str]) -> None:
        """Record which of this user's messages the session uses."""
        named = self._shelf(scope).messages
        for sha256 in named.keys() & set(hashes):
            named[sha256].add(scope.session)

    async def turns(self, scope: Scope, *, after: int = 0, limit: int = 1000) -> list[Turn]:
        """The turns of the session in order."""
        turns = self._shelf(scope).turns.get(scope.session, {})
        return [turns[number] for number in sorted(turns) if number > after][: max(limit, 0)]

    async def messages(self, scope: Scope, hashes: Sequence[str]) -> dict[str, bytes]:
        """The bytes of messages that this user's turns name."""
        stored = [
            sha256 for sha256 in rules.distinct(hashes) if sha256 in self._shelf(scope).messages
        ]
        return {sha256: self._contents(scope)[sha256] for sha256 in stored}

    async def link(self, scope: Scope, names: Sequence[str]) -> None:
        """Note under which names a provider holds the session's history."""
        rules.check_session(scope)
        self._shelf(scope).links.update(dict.fromkeys(names, scope.session))

    async def session_linked(self, scope: Scope, *names: str) -> str:
        """The session that has the first of these names."""
        links = self._shelf(scope).links
        return next((links[name] for name in names if name in links), "")

    async def close_session(self, scope: Scope) -> None:
        """Note that a session is over."""
        rules.check_session(scope)
        now, shelf = self._clock(), self._shelf(scope)
        record = shelf.sessions.get(scope.session)
        if record is not None:
            shelf.sessions[scope.session] = msgspec.structs.replace(record, closed_at=now)
        elif any(scope.session in ref.uses for ref in shelf.refs.values()):
            shelf.sessions[scope.session] = rules.closed(scope.session, now)

    async def delete_session(self, scope: Scope) -> int:
        """Remove a session, its turns and the refs that only it used."""
        return (await self.erase_session(scope)).refs

    async def erase_session(self, scope: Scope) -> ErasedRecords:
        """Remove a session as `delete_session` does, and return the numbers of all its records."""
        rules.check_session(scope)
        return self._delete(scope)

    def _delete(self, scope: Scope) -> ErasedRecords:
        shelf = self._shelf(scope)
        only = [ref for ref in shelf.refs.values() if ref.uses == {scope.session}]
        for ref in only:
            self._drop(scope, ref)
        for ref in shelf.refs.values():
            ref.uses.discard(scope.session)
        for sha256, sessions in list(shelf.messages.items()):
            sessions.discard(scope.session)
            if not sessions:
                del shelf.messages[sha256]
                self._sweep(scope, sha256)
        for name in [name for name, session in shelf.links.items() if session == scope.session]:
            del shelf.links[name]
        self._queue.drop_of_session(scope)
        records = self._remembered.drop_of_session(scope)
        records += self._facts.drop_of_session(scope)
        records += self._answers.drop_of_session(scope)
        records += self._journal.drop_of_session(scope)
        turns = shelf.turns.pop(scope.session, {})
        known = shelf.sessions.pop(scope.session, None) is not None
        return ErasedRecords(sessions=int(known), turns=len(turns), refs=len(only), records=records)

    # Usage, calibration, audit.

    async def usage(
        self,
        scope: Scope,
        *,
        by: Literal["model", "session", "day"] = "model",
        since: float = 0.0,
    ) -> list[UsageTotal]:
        """Usage summed over turns."""
        named: dict[str, list[Turn]] = {}
        for session, turns in self._shelf(scope).turns.items():
            for turn in turns.values():
                if scope.session in ("", session) and turn.started_at >= since:
                    names = {"session": session, "model": turn.model}
                    name = names.get(by) if by != "day" else rules.day_of(turn.started_at)
                    named.setdefault(name or "", []).append(turn)
        return [rules.total(name, turns) for name, turns in sorted(named.items())]

    async def calibration(self, scope: Scope) -> bytes | None:
        """Return the calibration."""
        return self._shelf(scope).calibration

    async def save_calibration(self, scope: Scope, data: bytes) -> None:
        """Save the calibration."""
        self._shelf(scope).calibration = data

    async def audit(self, scope: Scope, *, limit: int = 100, before: int = 0) -> list[AuditEntry]:
        """The newest compressions."""
        newest = sorted(self._shelf(scope).audit, key=lambda entry: entry.at)[::-1]
        return newest[max(before, 0) :][: max(limit, 0)]

    # Upkeep.

    async def stats(self, scope: Scope) -> StoreStats:
        """How full the store is."""
        return self._stats(scope)

    def _stats(self, scope: Scope) -> StoreStats:
        shelf, live = self._shelf(scope), list(self._shelf(scope).live())
        states = Counter(self._info(scope, ref).state for ref in live)
        sizes = {ref.sha256: ref.size for ref in live}
        return StoreStats(
            refs=len(live),
            contents=len(sizes),
            size=sum(sizes.values()),
            stored=sum(sizes.values()),
            sessions=rules.count_sessions(shelf.sessions.values()),
            turns=sum(map(len, shelf.turns.values())),
            stale=states["stale"],
            damaged=states["damaged"],
            flagged=sum(bool(ref.content.flags) for ref in live),
            by_kind=dict(sorted(Counter(ref.content.kind for ref in live).items())),
        )

    async def verify(self, scope: Scope, progress: Progress | None = None) -> list[Damage]:
        """Return no damage: nothing here is ever damaged."""
        shelf = self._shelf(scope)
        hashes = shelf.messages.keys() | {ref.sha256 for ref in shelf.live()}
        if progress is not None and hashes:
            progress(len(hashes), len(hashes))
        return []

    async def gc(self, scope: Scope, *, grace_seconds: float = GRACE_SECONDS) -> CleanupResult:
        """Remove expired contents, and those of closed sessions."""
        cutoff = self._clock() - grace_seconds
        shelf = self._shelf(scope)
        gone = [ref for ref in shelf.live() if shelf.may_go(ref, cutoff)]
        for key, summary in list(shelf.summaries.items()):
            if rules.is_over(summary.expires_at, self._clock()):
                del shelf.summaries[key]
        self._answers.drop_expired(scope)
        contents = size = 0
        for ref in gone:
            ref.removed = True
            ref.content = msgspec.structs.replace(ref.content, compressed="")
            self._note(scope, "removed", ref, self._clock())
            shelf.drop_summaries_of(ref.sha256)
            if self._sweep(scope, ref.sha256):
                contents, size = contents + 1, size + ref.size
        return CleanupResult(len(gone), contents, size)

    async def expire(self, scope: Scope, before: float) -> ErasedRecords:
        """Remove the sessions last used before a time, and what no session has used since."""
        shelf, erased = self._shelf(scope), ErasedRecords()
        for record in list(shelf.sessions.values()):
            if record.updated_at < before:
                erased += self._delete(scope.of(record.session))
        for ref in list(shelf.refs.values()):
            used = max(ref.written_at, ref.accessed_at or 0.0)
            if used < before and not ref.uses & shelf.sessions.keys():
                self._drop(scope, ref)
                erased += ErasedRecords(refs=1)
        kept = shelf.sessions.keys()
        entries = len(shelf.audit)
        shelf.audit = [entry for entry in shelf.audit if entry.at >= before]
        records = (
            self._remembered.expire(scope, before, kept)
            + self._facts.expire(scope, before, kept)
            + self._answers.expire(scope, before, kept)
            + self._journal.expire(scope, before, kept)
            + (entries - len(shelf.audit))
        )
        return erased + ErasedRecords(records=records)

    async def erase(self, scope: Scope) -> ErasedRecords:
        """Remove every record of this user and workspace."""
        erased = await self.expire(scope, float("inf"))
        shelf = self._shelf(scope)
        records = len(shelf.summaries) + self._queue.erase(scope) + self._tools.erase(scope)
        self._shelves.pop((scope.workspace, scope.user))
        self._ledger.erase(scope)
        return erased + ErasedRecords(records=records)

    async def export(self, scope: Scope) -> AsyncIterator[bytes]:
        """Every record of the scope as lines of JSON."""
        owned = (self._queue.of(scope), self._facts.of(scope), self._answers.of(scope).values())
        for line in lines_of(self._shelf(scope), self._contents(scope), *owned):
            yield transfer.encode(line)
        for turn in self._remembered.lines(scope):
            yield transfer.encode(turn)
        for entry in self._journal.lines(scope):
            yield transfer.encode(entry)
        for tool in self._tools.lines(scope):
            yield transfer.encode(tool)

    async def restore(self, scope: Scope, lines: AsyncIterator[bytes]) -> int:
        """Read what `export` wrote."""
        shelf, contents = self._shelf(scope), self._contents(scope)
        new = 0
        async for batch in transfer.batches(lines):
            refs = [line for line in batch if isinstance(line, transfer.RefLine)]
            self._check_collisions(scope, [(line.ref_id, line.sha256) for line in refs])
            for line in batch:
                if isinstance(line, transfer.JobLine):
                    new += self._queue.restore(scope, line)
                elif isinstance(line, transfer.RememberedLine):
                    new += self._remembered.restore(scope, line)
                elif isinstance(line, transfer.FactLine):
                    new += self._facts.restore(scope, line)
                elif isinstance(line, transfer.AnswerLine):
                    new += self._answers.restore(scope, line)
                elif isinstance(line, transfer.JournalLine):
                    new += self._journal.restore(scope, line)
                elif isinstance(line, transfer.ToolLine):
                    new += self._tools.restore(scope, line)
                else:
                    new += add_line(shelf, contents, line)
        return new


def model_store(clock: Callable[[], float]) -> Store:
    """Return a model to compare a store with; of the protocol it has what takes a scope."""
    return cast("Store", ModelStore(clock))


def _use(record: SessionRecord) -> tuple[float, str]:
    return (record.updated_at, record.session)
