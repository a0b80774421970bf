"""Record a session's turns, each as the difference to the one before.

writer: after record and accounting, before session. Two processes may write to one session: the
second reads the turn of the first, and retries after it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from holdfast.engine.record import Before, TurnChange, continued, last_sides, written
from holdfast.engine.titles import title_of
from holdfast.errors import SessionErasedError, StoreConflictError
from holdfast.fitting import FitState
from holdfast.fitting.state import Continuation
from holdfast.privacy import flags_in_json
from holdfast.store import Scope, SessionRecord, Store, Turn
from holdfast.store.records import Patch
from holdfast.store.refs import digest
from holdfast.trim.provenance import Sentence, Told
from holdfast.wire.responses import HiddenTurn
from holdfast.workers import Workers

_ATTEMPTS = 100
"""One that fails is a turn that another process has written meanwhile; five in a row were seen on a
machine with too much to do, and then the turn was in no record."""
_MOST_FORKS = 8
"""Sessions that one was split from, and that from another, whose answers are looked through."""
_HASHING = 256
"""How many times faster bytes are hashed than read."""
_MOST_HIDDEN = 200
"""Answers with hidden calls that are brought back after a restart: few are ever needed again."""


class TurnWriter:
    """The stored state of one session, and the function that adds to it."""

    def __init__(
        self, store: Store, scope: Scope, workers: Workers, *, titles: bool = True
    ) -> None:
        self.record = SessionRecord(session=scope.session)
        self._store = store
        self._scope = scope
        self._workers = workers
        self.titles = titles
        """Whether the first question of a session becomes its title."""
        self._may_store: Callable[[bytes | memoryview], bool] = lambda _: True
        self._before = Before()
        self._answered = Before()
        """The last request that a provider answered: its cache holds no other of this session."""
        self._answered_at = 0.0
        """When that was sent."""

    async def catch_up(self) -> list[Turn]:
        """Read the recorded turns, of this process and of others."""
        record = await self._store.session(self._scope)
        turns = await self.turns() if record is not None else []
        sides = last_sides(turns)
        if record is not None or self.record.turns:  # a session without turns may be a fork
            self.record = record or SessionRecord(session=self._scope.session)
        self._before = Before(sides.lines) if sides is not None else Before()
        self._answered, self._answered_at = _last_answered(turns, self._before)
        return turns

    def begin_anew(self) -> None:
        """Begin again after the session was deleted: the next request has no past."""
        self.record = SessionRecord(session=self._scope.session)
        self._before = self._answered = Before()
        self._answered_at = 0.0

    async def turns(self, up_to: int | None = None) -> list[Turn]:
        """All turns in order, or those up to a number."""
        turns = page = await self._store.turns(self._scope)
        while page and (up_to is None or turns[-1].number < up_to):
            page = await self._store.turns(self._scope, after=turns[-1].number)
            turns += page
        return turns if up_to is None else turns[:up_to]

    async def hidden(self, turns: list[Turn]) -> tuple[HiddenTurn, ...]:
        """The answers whose calls the client never saw, the latest of them."""
        names = [turn.hidden for turn in turns if turn.hidden][-_MOST_HIDDEN:]
        stored = await self._store.messages(self._scope, sorted(set(names))) if names else {}
        return tuple(
            msgspec.json.decode(stored[name], type=HiddenTurn) for name in names if name in stored
        )

    async def told(self, turns: list[Turn]) -> Told:
        """Return the summaries of folded messages, as of the last fitted request."""
        name = next((turn.told for turn in reversed(turns) if not turn.read_only), "")
        stored = await self._store.messages(self._scope, [name]) if name else {}
        if name not in stored:
            return {}
        return msgspec.json.decode(stored[name], type=dict[str, tuple[Sentence, ...]])

    async def inherited(self) -> tuple[HiddenTurn, ...]:
        """Return the answers that a branched session may restore in the messages that it shares."""
        answers: tuple[HiddenTurn, ...] = ()
        record, shared = self.record, self.record.shared
        for _ in range(_MOST_FORKS):
            if not record.forked_from:
                break
            parent = TurnWriter(self._store, self._scope.of(record.forked_from), self._workers)
            hidden = await parent.hidden(await parent.catch_up())
            answers = (*answers_before(hidden, shared), *answers)
            record = parent.record
            shared = min(shared, record.shared)
        return answers

    def _title(self, state: FitState) -> str:
        """Return the session's title: the first request with words of the user gives it."""
        if self.record.title or not self.titles:
            return self.record.title
        return title_of(state.asked)

    def refuse_secrets(self) -> None:
        """Store nothing from here on that a policy which refuses secrets keeps out."""
        self._may_store = refuses_secrets
        self.titles = False  # names are personal data that no pattern finds

    def continued(self, state: FitState, now: float) -> Continuation:
        """Return how a request that is sent now continues the last answered one."""
        how = continued(state, self._answered)
        idle = now - self._answered_at if self._answered.lines else 0.0
        return msgspec.structs.replace(how, sent_at=now, idle_seconds=idle)

    def was_deleted(self, known: SessionRecord | None) -> bool:
        """Return whether our session was deleted, even if there is a new one of the same name."""
        return self.record.turns > 0 and (
            known is None or known.created_at != self.record.created_at
        )

    def _storable(self, messages: dict[str, bytes | memoryview]) -> dict[str, bytes | memoryview]:
        return {name: data for name, data in messages.items() if self._may_store(data)}

    async def add(
        self,
        turn: Turn,
        state: FitState,
        head: str,
        hidden: HiddenTurn | None = None,
        *,
        sent_at: float | None = None,
    ) -> Turn:
        """Add a turn after the last; `sent_at` is the time when its request was sent."""
        for _ in range(_ATTEMPTS):
            try:
                written_turn = await self._add(turn, state, head, hidden)
                break
            except StoreConflictError as error:  # another process has written to it, or ended it
                conflict = error
                if self.record.turns and await self._store.session(self._scope) is None:
                    raise erased(self._scope) from None
                await self.catch_up()
        else:
            raise conflict
        if _was_cached(turn):
            self._answered = self._before
            self._answered_at = turn.started_at if sent_at is None else sent_at
        return written_turn

    async def _add(self, turn: Turn, state: FitState, head: str, hidden: HiddenTurn | None) -> Turn:
        work = partial(written, state, self._before)
        change = await self._workers.off_loop(_size(state) // _HASHING, work)
        messages = dict(change.messages)
        unseen = msgspec.json.encode(hidden) if hidden is not None else b""
        if unseen:
            messages[digest(unseen)] = unseen
        summaries = msgspec.json.encode(state.told) if state.told else b""
        if summaries:
            messages[digest(summaries)] = summaries
        turn = msgspec.structs.replace(
            turn,
            hidden=digest(unseen) if unseen else "",
            told=digest(summaries) if summaries else "",
        )
        turn = _completed(turn, change, self.record.turns + 1)
        record = msgspec.structs.replace(
            self.record,
            dialect=state.asked.dialect,
            model=turn.model,
            head=head,
            title=self._title(state),
            turns=turn.number,
            created_at=self.record.created_at or turn.started_at,
            updated_at=turn.started_at,
            closed_at=None,
        )
        # Content that a policy keeps out of the store is only named by its hash.
        size = sum(map(len, messages.values())) if self._may_store is refuses_secrets else 0
        storable = await self._workers.off_loop(size, partial(self._storable, messages))
        if not all(self._may_store(patch.was) for patch in turn.patches):
            turn = msgspec.structs.replace(turn, patches=tuple(map(_emptied, turn.patches)))
            storable.pop(change.trail.frame, None)  # there is no way back from it
        await self._store.add_turn(self._scope, turn, record, storable)
        before = change.known._replace(
            undone=frozenset(
                name
                for name in change.known.undone
                if name in storable or name in self._before.undone
            )
        )
        if before.frame not in storable and before.frame != self._before.frame:
            before = before._replace(frame="")  # it was kept out: the next turn may bring it
        self.record, self._before = record, before
        return turn


def erased(scope: Scope) -> SessionErasedError:
    """Return the error for a turn whose session was deleted.

    Recording the turn would restore erased text, with citations whose originals no longer exist.
    """
    return SessionErasedError(
        "the session was erased while its answer was under way",
        where=f"session {scope.session}",
        fix="Nothing is to be done: the next request begins a new one.",
    )


def _was_cached(turn: Turn) -> bool:
    """Whether the turn's request reached a model: the provider's cache may hold it."""
    return not (turn.usage.failed or turn.usage.answered)


def _last_answered(turns: list[Turn], before: Before) -> tuple[Before, float]:
    """Return the last request that a provider answered, and when; `before` is the last of all."""
    for n in range(len(turns), 0, -1):
        if _was_cached(turns[n - 1]):
            sides = last_sides(turns[:n]) if n < len(turns) else None
            lines = before if n == len(turns) else Before(sides.lines) if sides else Before()
            return lines, turns[n - 1].started_at
    return Before(), 0.0


def answers_before(hidden: tuple[HiddenTurn, ...], shared: int) -> tuple[HiddenTurn, ...]:
    """Return the answers at most `shared` messages from the beginning."""
    return tuple(answer for answer in hidden if answer.index <= shared)


def _size(state: FitState) -> int:
    """Bytes that are read to write a request down."""
    return len(state.asked.source or b"") or sum(message.size for message in state.asked.messages)


def _emptied(patch: Patch) -> Patch:
    return msgspec.structs.replace(patch, was=b"")


def _completed(turn: Turn, change: TurnChange, number: int) -> Turn:
    return msgspec.structs.replace(
        turn,
        number=number,
        sent=change.trail,
        standings=change.standings,
        patches=change.patches,
        asked=change.asked,
        prefix_share=change.prefix_share,
    )


def refuses_secrets(data: bytes | memoryview) -> bool:
    """Whether a policy that refuses secrets lets some bytes into the store."""
    return not flags_in_json(bytes(data))
