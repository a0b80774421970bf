"""One conversation: what was sent before, so that it stays the same, and what it cost.

session: after accounting, before holdfast.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.answers import Kept
from holdfast.cite import CitingRules
from holdfast.engine.accounting import Counted, Expanded, turn_usage
from holdfast.engine.trails import followed_trails, heads, prefix_share, rebuilt, sharing, trail
from holdfast.errors import RefCollisionError, StoreConflictError
from holdfast.fitting import FitState, Fitted, fit
from holdfast.store import Scope, SessionRecord, Store, Turn
from holdfast.store.records import Edit
from holdfast.tokens import Calibration, count
from holdfast.trim.pieces import CITED, Cut
from holdfast.wire import Conversation

_ATTEMPTS = 5


class Session:
    """A conversation over many requests; get one from `Holdfast.session`."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        citing: CitingRules,
        calibration: Calibration,
        clock: Callable[[], float],
    ) -> None:
        self.scope = scope
        self.record = SessionRecord(session=scope.session)
        self.state: FitState | None = None
        self.kept: tuple[Kept, ...] = ()
        """Answers with hidden calls, to be brought back into the next request."""
        self._store = store
        self._citing = citing
        self._calibration = calibration
        self._clock = clock
        self._client: tuple[str, ...] = ()
        self._sent: tuple[str, ...] = ()
        self._untouched = 0
        self._loaded = False
        self._writing = asyncio.Lock()

    @property
    def name(self) -> str:
        """The session's name."""
        return self.scope.session

    async def load(self) -> Session:
        """Bring back what the store knows of this session, once."""
        if self._loaded:
            return self
        self._loaded = True
        known = await self._store.session(self.scope)
        if known is None:
            return self
        self.record = known
        turns = await self._store.turns(self.scope)
        clients = [turn.client for turn in turns if turn.client is not None]
        sents = [turn.sent for turn in turns if turn.sent is not None]
        if not clients or len(sents) != len(clients):
            return self
        self._client, self._sent = followed_trails(clients), followed_trails(sents)
        origins: tuple[tuple[int, int], ...] = ()
        for turn in turns:
            if turn.sent is not None:
                origins = origins[: turn.sent.shared] + turn.origins
        names = {*self._client, *self._sent, clients[-1].frame, sents[-1].frame}
        stored = await self._store.messages(self.scope, sorted(names))
        self.state = rebuilt(
            known.dialect,
            (self._client, clients[-1].frame),
            (self._sent, sents[-1].frame),
            origins,
            stored,
        )
        self._untouched = turns[-1].usage.untouched
        return self

    async def fit(self, body: object, **how: Any) -> Fitted:
        """Make the session's next request fit; what left it is stored when this returns."""
        body = await self._known(body)
        rules: CitingRules | None = how.pop("citing", self._citing)
        while True:
            fitted = fit(body, state=self.state, citing=rules, calibration=self._calibration, **how)
            if not fitted.contents:
                break
            try:
                await self._store.put(self.scope, fitted.contents)
                break
            except RefCollisionError:
                rules = longer_refs(rules or self._citing)
        self.state = fitted.state
        return fitted

    async def preview(self, body: object, **how: Any) -> Fitted:
        """What the next request would be; nothing is stored or remembered."""
        body = await self._known(body)
        rules: CitingRules | None = how.pop("citing", self._citing)
        return fit(body, state=self.state, citing=rules, calibration=self._calibration, **how)

    async def _known(self, body: object) -> object:
        """A request that was read already, with what is known about its messages."""
        await self.load()
        if self.state is None or not isinstance(body, Conversation):
            return body  # bytes are read with what is known
        return sharing(body, self.state.asked or self.state.source)

    async def observe(
        self,
        fitted: Fitted,
        usage: object = None,
        *,
        status: int = 200,
        expanded: Expanded | None = None,
        milliseconds: float = 0.0,
        warnings: tuple[str, ...] = (),
    ) -> Turn:
        """Write down a request that was sent, and learn from the usage that was reported."""
        async with self._writing:  # a turn is written as what changed against the one before
            return await self._observed(
                fitted, usage, status, expanded or Expanded(), milliseconds, warnings
            )

    async def _observed(
        self,
        fitted: Fitted,
        usage: object,
        status: int,
        expanded: Expanded,
        milliseconds: float,
        warnings: tuple[str, ...],
    ) -> Turn:
        now = self._clock()
        if usage is not None and not expanded.calls:
            self._calibration.observe(fitted.count, usage)
        source, sent = fitted.state.source, fitted.state.sent
        model = fitted.count.model
        untouched = count(source, model=model).tokens
        counted = Counted(
            predicted=fitted.tokens, untouched=untouched, untouched_before=self._untouched
        )
        used = turn_usage(usage, counted, expanded, model=model, now=now)
        client_trail, client, new = trail(source, self._client)
        sent_trail, out, more = trail(sent, self._sent)
        turn = Turn(
            number=self.record.turns + 1,
            started_at=now,
            model=model,
            status=status,
            client=client_trail,
            sent=sent_trail,
            origins=fitted.state.origins[sent_trail.shared :],
            edits=tuple(map(edit_of, fitted.report)),
            usage=used,
            warnings=(*fitted.warnings, *warnings),
            prefix_share=prefix_share(sent, sent_trail.shared),
            milliseconds=milliseconds,
        )
        turn = await self._add(turn, source.dialect, heads(source.messages)[0], {**new, **more})
        self._client, self._sent, self._untouched = client, out, untouched
        return turn

    async def _add(self, turn: Turn, dialect: str, head: str, messages: dict[str, bytes]) -> Turn:
        for attempt in range(_ATTEMPTS):
            record = msgspec.structs.replace(
                self.record,
                dialect=dialect,
                model=turn.model,
                head=head,
                turns=turn.number,
                created_at=self.record.created_at or turn.started_at,
                updated_at=turn.started_at,
                closed_at=None,
            )
            try:
                await self._store.add_turn(self.scope, turn, record, messages)
            except StoreConflictError:
                # Another process has written to this session: number the turn behind its last.
                known = await self._store.session(self.scope)
                if known is None or attempt == _ATTEMPTS - 1:
                    raise
                self.record = known
                turn = msgspec.structs.replace(turn, number=known.turns + 1)
            else:
                self.record = record
                break
        return turn


def edit_of(cut: Cut) -> Edit:
    """The fidelity record of a cut."""
    action = "cite" if cut.what == CITED else cut.what.split()[0]
    return Edit(
        action=action,
        why=cut.why,
        where=cut.where,
        from_tokens=cut.from_tokens,
        to_tokens=cut.to_tokens,
        ref_id=cut.ref_id,
    )


def longer_refs(rules: CitingRules) -> CitingRules:
    """Rules for the case that two contents share the digits of a ref."""
    return msgspec.structs.replace(rules, ref_digits=min(64, rules.ref_digits * 2))
