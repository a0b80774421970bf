"""One conversation: what was sent before, so that it stays the same, and what it cost.

session: after writer, before holdfast.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec

from holdfast.cite import CitingRules
from holdfast.engine.accounting import Counted, Expanded, turn_usage
from holdfast.engine.heads import head_of, sharing
from holdfast.engine.record import asked_body, last_fitted, last_sides, state_of
from holdfast.engine.vendor_cache import cache_lives
from holdfast.engine.writer import TurnWriter
from holdfast.errors import RefCollisionError, StoreError
from holdfast.fitting import FitOptions, FitState, Fitted, fit_request
from holdfast.store import Scope, SessionRecord, Store, Turn
from holdfast.tokens import Calibration
from holdfast.wire import Conversation
from holdfast.wire.answers import Kept
from holdfast.wire.chained import held_under

_LARGE_BYTES = 200_000
_MOST_HIDDEN = 200
_T = TypeVar("_T")


class Session:
    """A conversation over many requests; get one from `Holdfast.session`."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        options: FitOptions,
        calibration: Calibration,
        clock: Callable[[], float],
    ) -> None:
        self.scope = scope
        self.options = options
        """How its requests are made to fit, unless a call says otherwise."""
        self.state: FitState | None = None
        self.hidden: tuple[Kept, ...] = ()
        """Answers with calls that the client never saw, to be brought back into its requests."""
        self._store = store
        self._calibration = calibration
        self._clock = clock
        self._writer = TurnWriter(store, scope)
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
    def record(self) -> SessionRecord:
        """What the store knows of it."""
        return self._writer.record

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes, hidden calls included."""
        hidden = sum(answer.size for answer in self.hidden)
        return hidden + (self.state.held_bytes if self.state is not None else 0)

    def let_go(self) -> None:
        """Break what refers to itself, so that the memory is free at once: nobody comes back."""
        if self.state is not None:
            for message in (*self.state.asked.messages, *self.state.sent.messages):
                message.let_go()

    async def load(self) -> Session:
        """Bring back what the store knows of this session, once."""
        async with self._loading:  # whoever asks meanwhile waits for it
            if not self._loaded:
                turns = await self._writer.catch_up()
                sides = last_fitted(turns)
                if sides is not None and self.record.closed_at is None:
                    stored = await self._store.messages(self.scope, sides.names)
                    self.state = state_of(self.record.dialect, sides, stored)
                    self.hidden = await self._writer.hidden(turns)
                self._loaded = True
        return self

    def hide(self, answer: Kept) -> None:
        """Keep an answer with calls that the client never saw, for its next request."""
        self.hidden = (*self.hidden[1 - _MOST_HIDDEN :], answer)

    # --- requests --------------------------------------------------------------------------------

    async def fit(
        self, body: object, options: FitOptions | None = None, *, limit: int | None = None
    ) -> Fitted:
        """Make the session's next request fit; what left it is stored when this returns.

        `limit` is that of the options, which are the session's own if none are given.
        """
        options = with_limit(options or self.options, limit)
        async with self._fitting:  # the next goes on from what this one sends
            body = await self._shared(body)
            work = partial(self._fitted, body)
            new = _new(body, self.state)
            fitted = await fit_and_store(self._store, self.scope, new, options, work)
            self.state = fitted.state
            self._put_any = self._put_any or bool(fitted.contents)
            return fitted

    async def preview(self, body: object, options: FitOptions | None = None) -> Fitted:
        """What the next request would be; nothing is stored or remembered."""
        return self._fitted(await self._shared(body), options or self.options)

    def _fitted(self, body: object, options: FitOptions) -> Fitted:
        if "refuse" in (options.rules.privacy, self.options.rules.privacy):
            self._writer.refuse_secrets()
        return fit_request(
            body,
            options,
            state=self.state,
            hidden=self.hidden,
            calibration=self._calibration,
        )

    async def _shared(self, body: object) -> object:
        """A request that was read already, with what is known about its messages."""
        await self.load()
        await self._forget_if_gone()
        if self.state is None or not isinstance(body, Conversation):
            return body  # bytes are read with what is known
        return sharing(body, self.state.asked)

    async def _forget_if_gone(self) -> None:
        """Begin anew where the session was closed or deleted: its refs may be gone."""
        if self.state is None:
            return
        if not self.record.turns:  # nothing was written down but contents
            if self._put_any and not await self._store.refs(self.scope, limit=1):
                self.state = None
            return
        stored = await self._store.session(self.scope)
        closed = stored is not None and stored.closed_at is not None
        if closed or self._writer.was_deleted(stored):
            self.state = None

    # --- what became of them ---------------------------------------------------------------------

    async def observe(  # noqa: PLR0913 - named arguments, of which most calls need one
        self,
        fitted: Fitted,
        usage: object = None,
        *,
        status: int = 200,
        expanded: Expanded | None = None,
        hidden: Kept | None = None,
        milliseconds: float = 0.0,
        warnings: tuple[str, ...] = (),
        read_only: bool = False,
        learn: bool = True,
        billed: bool = True,
    ) -> Turn:
        """Write down a request that was sent, and learn from the usage that was reported.

        `hidden` is what of the answer the client never saw; a `read_only` request is one that went
        out as it came. Usage that is our own count teaches
        nothing: then `learn` is false. The offline model is not `billed`.
        """
        expanded = expanded or Expanded()
        if learn and usage is not None and not expanded.calls:
            self._calibration.observe(fitted.count, usage)
        model = fitted.count.model
        now = self._clock()
        async with self._writing:  # a turn is written as what changed against the one before
            share = self._writer.repeated(fitted.state)
            counted = Counted(
                predicted=fitted.tokens,
                untouched=fitted.untouched,
                untouched_before=round(fitted.untouched * share.asked),
                sent_before=round(fitted.tokens * share.sent),
                idle_seconds=now - self.record.updated_at,
                cache_lives=cache_lives(fitted.state.asked),
                billed=billed,
            )
            turn = Turn(
                number=0,
                started_at=now,
                model=model,
                status=status,
                edits=fitted.edits,
                read_only=read_only,
                usage=turn_usage(usage, counted, expanded, model=model, now=now, status=status),
                warnings=(*fitted.warnings, *warnings),
                milliseconds=milliseconds,
            )
            asked = fitted.state.asked
            # What the provider holds the history of is known by its name: see engine/chains.py.
            head = self.record.head if held_under(asked) else head_of(asked.messages)
            return await self._writer.add(turn, fitted.state, head, hidden)

    async def rebuild(self, turn: int) -> bytes:
        """The client's request of a turn, byte for byte, from what was sent and its edits."""
        turns = await self._writer.turns(turn)
        sides = last_sides(turns) if 0 < turn == len(turns) else None
        if sides is None:
            last = await self._store.session(self.scope)
            raise StoreError(
                "there is no record of such a turn",
                where=f"turn {turn}",
                fix=f"The session has {last.turns if last is not None else 0} turns.",
            )
        return asked_body(sides, await self._store.messages(self.scope, sides.names))


def with_limit(options: FitOptions, limit: int | None) -> FitOptions:
    """The same options with a limit, if one is given."""
    return options if limit is None else msgspec.structs.replace(options, limit=limit)


def _new(body: object, state: FitState | None) -> object:
    """What of a request was not there last time: by its size it is worked on in a thread."""
    known = len(state.asked.messages) if state is not None else 0
    return body.messages[known:] if isinstance(body, Conversation) else body


async def fit_and_store(
    store: Store,
    scope: Scope,
    new: object,
    options: FitOptions,
    work: Callable[[FitOptions], Fitted],
) -> Fitted:
    """Make a request fit; what left it is stored when this returns."""
    while True:
        fitted = await in_thread_if_large(new, partial(work, options))
        try:
            if fitted.contents:
                await store.put(scope, fitted.contents)
        except RefCollisionError:
            options = msgspec.structs.replace(options, rules=longer_refs(options.rules))
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
