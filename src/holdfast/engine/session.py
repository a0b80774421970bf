"""One conversation: what was sent before, so that it stays the same, and what it cost.

session: after accounting, before holdfast.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec

from holdfast.cite import CitingRules
from holdfast.engine.accounting import Counted, Expanded, turn_usage
from holdfast.engine.trails import (
    Sides,
    head_of,
    last_sides,
    prefix_share,
    rebuilt,
    sharing,
    trail,
)
from holdfast.errors import RefCollisionError, StoreConflictError
from holdfast.fitting import FitState, Fitted, fit
from holdfast.privacy import find
from holdfast.store import Scope, SessionRecord, Store, Turn
from holdfast.tokens import Calibration, count
from holdfast.wire import Conversation
from holdfast.wire.answers import Kept

_ATTEMPTS = 5
_LARGE_BYTES = 200_000
_T = TypeVar("_T")


class Session:
    """A conversation over many requests; get one from `Holdfast.session`."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        rules: CitingRules,
        calibration: Calibration,
        clock: Callable[[], float],
        *,
        cites: bool = True,
    ) -> None:
        self.scope = scope
        self.record = SessionRecord(session=scope.session)
        self.state: FitState | None = None
        self.kept: dict[str, tuple[Kept, ...]] = {}
        """Answers with hidden calls, by dialect, to be brought back into the next request."""
        self._store = store
        self._rules = rules
        self._cites = cites
        self._calibration = calibration
        self._clock = clock
        self._client: tuple[str, ...] = ()
        self._sent: tuple[str, ...] = ()
        self._untouched = 0
        self._put_any = False
        self._loaded = False
        self._loading = asyncio.Lock()
        self._fitting = asyncio.Lock()
        self._writing = asyncio.Lock()

    @property
    def name(self) -> str:
        """The session's name."""
        return self.scope.session

    @property
    def size(self) -> int:
        """Bytes of the messages that are kept in memory, hidden calls included."""
        held = sum(one.size for kept in self.kept.values() for one in kept)
        if self.state is not None:
            listed = (*self.state.source.messages, *self.state.sent.messages)
            held += sum({id(one): len(memoryview(one.span)) for one in listed}.values())
        return held

    async def load(self) -> Session:
        """Bring back what the store knows of this session, once."""
        async with self._loading:  # whoever asks meanwhile waits for it
            if not self._loaded:
                last = await self._catch_up()
                if last is not None and self.record.closed_at is None:
                    names = {*last.client, *last.sent, last.client_frame, last.sent_frame}
                    stored = await self._store.messages(self.scope, sorted(names))
                    self.state = rebuilt(self.record.dialect, last, stored)
                self._loaded = True
        return self

    async def _catch_up(self) -> Sides | None:
        """Read what was written down last, here or by another process; None if nothing was."""
        record = await self._store.session(self.scope)
        turns = await self._turns() if record is not None else []
        last = last_sides(turns)
        if self._was_deleted(record):
            self.state = None
        self.record = record or SessionRecord(session=self.name)
        self._client, self._sent = (last.client, last.sent) if last is not None else ((), ())
        self._untouched = turns[-1].usage.untouched if turns else 0
        return last

    async def _turns(self) -> list[Turn]:
        turns = page = await self._store.turns(self.scope)
        while page:
            page = await self._store.turns(self.scope, after=turns[-1].number)
            turns += page
        return turns

    async def _forget_if_gone(self) -> None:
        """Begin anew where the session was closed or deleted: its refs may be gone."""
        if self.state is None:
            return
        if not self.record.turns:  # nothing was written down but contents
            if self._put_any and not await self._store.refs(self.scope, limit=1):
                self.state = None
            return
        known = await self._store.session(self.scope)
        if self._was_deleted(known) or (known is not None and known.closed_at is not None):
            self.state = None

    def _was_deleted(self, known: SessionRecord | None) -> bool:
        """Whether the session we wrote to is gone, be it that there is another of its name."""
        return self.record.turns > 0 and (
            known is None or known.created_at != self.record.created_at
        )

    async def fit(self, body: object, **how: Any) -> Fitted:
        """Make the session's next request fit; what left it is stored when this returns."""
        async with self._fitting:  # the next goes on from what this one sends
            body = await self._known(body)
            how |= {"state": self.state, "calibration": self._calibration}
            rules = self._rules_for(how)
            fitted = await fit_and_store(self._store, self.scope, body, rules, **how)
            self.state = fitted.state
            self._put_any = self._put_any or bool(fitted.contents)
            return fitted

    async def preview(self, body: object, **how: Any) -> Fitted:
        """What the next request would be; nothing is stored or remembered."""
        body = await self._known(body)
        rules = self._rules_for(how)
        return fit(body, state=self.state, citing=rules, calibration=self._calibration, **how)

    def _rules_for(self, how: dict[str, Any]) -> CitingRules | None:
        rules: CitingRules | None = how.pop("citing", self._rules if self._cites else None)
        return rules

    async def _known(self, body: object) -> object:
        """A request that was read already, with what is known about its messages."""
        await self.load()
        await self._forget_if_gone()
        if self.state is None or not isinstance(body, Conversation):
            return body  # bytes are read with what is known
        return sharing(body, self.state.asked or self.state.source)

    async def observe(  # noqa: PLR0913 - named arguments, of which most calls need one
        self,
        fitted: Fitted,
        usage: object = None,
        *,
        status: int = 200,
        asked: Conversation | None = None,
        untouched: int | None = None,
        expanded: Expanded | None = None,
        milliseconds: float = 0.0,
        warnings: tuple[str, ...] = (),
        learn: bool = True,
    ) -> Turn:
        """Write down a request that was sent, and learn from the usage that was reported.

        `asked` is what the client sent and `untouched` its tokens, where that is not what was
        fitted. Usage that is our own count teaches nothing: then `learn` is false.
        """
        expanded = expanded or Expanded()
        if learn and usage is not None and not expanded.calls:
            self._calibration.observe(fitted.count, usage)
        model = fitted.count.model
        if untouched is None:
            untouched = count(fitted.state.source, model=model).tokens
        now = self._clock()
        async with self._writing:  # a turn is written as what changed against the one before
            counted = Counted(
                predicted=fitted.tokens, untouched=untouched, untouched_before=self._untouched
            )
            turn = Turn(
                number=0,
                started_at=now,
                model=model,
                status=status,
                edits=fitted.edits,
                usage=turn_usage(usage, counted, expanded, model=model, now=now),
                warnings=(*fitted.warnings, *warnings),
                milliseconds=milliseconds,
            )
            asked = asked or fitted.state.asked or fitted.state.source
            return await self._written(turn, fitted.state, head_of(asked.messages))

    async def _written(self, turn: Turn, state: FitState, head: str) -> Turn:
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._add(turn, state, head)
            except StoreConflictError:  # another process has written to this session, or ended it
                await self._catch_up()
        return await self._add(turn, state, head)

    async def _add(self, turn: Turn, state: FitState, head: str) -> Turn:
        """Write a turn down behind the last, as what changed against it."""
        source, sent = state.source, state.sent
        client_trail, client, new = trail(source, self._client)
        sent_trail, out, more = trail(sent, self._sent)
        turn = msgspec.structs.replace(
            turn,
            number=self.record.turns + 1,
            client=client_trail,
            sent=sent_trail,
            origins=state.origins[sent_trail.shared :],
            prefix_share=prefix_share(sent, sent_trail.shared),
        )
        record = msgspec.structs.replace(
            self.record,
            dialect=source.dialect,
            model=turn.model,
            head=head,
            turns=turn.number,
            created_at=self.record.created_at or turn.started_at,
            updated_at=turn.started_at,
            closed_at=None,
        )
        await self._store.add_turn(self.scope, turn, record, self._storable({**new, **more}))
        self.record, self._client, self._sent = record, client, out
        self._untouched = turn.usage.untouched
        return turn

    def _storable(self, messages: dict[str, bytes]) -> dict[str, bytes]:
        """The messages that the policy lets into the store; the others are only named by hash."""
        if self._rules.privacy != "refuse":
            return messages
        return {
            name: data
            for name, data in messages.items()
            if not find(data.decode("utf-8", "replace"))
        }


async def fit_and_store(
    store: Store, scope: Scope, body: object, rules: CitingRules | None, **how: Any
) -> Fitted:
    """Make a request fit; what left it is stored when this returns."""
    state: FitState | None = how.get("state")
    known = len(state.source.messages) if state is not None else 0
    new = body.messages[known:] if isinstance(body, Conversation) else body
    while True:
        fitted = await in_thread_if_large(new, partial(fit, body, citing=rules, **how))
        try:
            if fitted.contents:
                await store.put(scope, fitted.contents)
        except RefCollisionError:
            rules = rules and longer_refs(rules)
        else:
            return fitted


async def in_thread_if_large(content: object, work: Callable[[], _T]) -> _T:
    """Do work on a content; what may take long is done while others go on."""
    if isinstance(content, tuple):  # of messages
        size = sum(len(message.span) for message in content)
    else:
        size = len(content) if isinstance(content, (str, bytes)) else _LARGE_BYTES
    return work() if size < _LARGE_BYTES else await asyncio.to_thread(work)


def longer_refs(rules: CitingRules) -> CitingRules:
    """Rules for the case that two contents share the digits of a ref."""
    return msgspec.structs.replace(rules, ref_digits=min(64, rules.ref_digits * 2))
