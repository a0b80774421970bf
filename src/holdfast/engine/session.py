"""One conversation: its earlier requests, so that sent bytes stay the same, and its cost.

session: after writer, before sessions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol
from weakref import ref

import msgspec

from holdfast.cite import CitingRules
from holdfast.engine.bill import (
    RequestCounts,
    prefixes_of,
    remembered_usage,
    turn_usage,
    with_tools,
)
from holdfast.engine.content_reader import ContentReader
from holdfast.engine.heads import let_go_of, sharing
from holdfast.engine.identity import OpenRequest, Sender
from holdfast.engine.observation import Observation
from holdfast.engine.parts import EngineParts
from holdfast.engine.put_back import JOURNAL, PutBack, Wishes
from holdfast.engine.record import (
    Sides,
    asked_body,
    held_in,
    last_fitted,
    last_sides,
    state_of,
)
from holdfast.engine.token_parts import parts_of
from holdfast.engine.vendor_cache import Lives, Prefixes, cache_lives
from holdfast.engine.writer import TurnWriter, answers_before, erased
from holdfast.errors import (
    BudgetExceededError,
    ContextOptimizationError,
    RefCollisionError,
    SettingsError,
    StoreError,
)
from holdfast.fitting import FitOptions, FitPlan, FitState, Fitted, plan
from holdfast.fitting.open_ahead import search_bytes
from holdfast.fitting.restore import hidden_again, names_behind
from holdfast.jobs import FoldSummaries
from holdfast.store import Content, Scope, SessionRecord, Store, Turn
from holdfast.store.records import OFFLINE, TurnParts
from holdfast.tokens import Calibration
from holdfast.tokens.counter import Correction
from holdfast.wire import Conversation
from holdfast.wire.places import head_of
from holdfast.wire.responses import HiddenTurn
from holdfast.wire.stored_history import stored_history_id
from holdfast.workers import LARGE_BYTES, Workers

_MOST_HIDDEN = 200


class Planner(Protocol):
    """Plans the request that goes out: `plan`, or the function that assembles a turn."""

    def __call__(
        self,
        body: object,
        options: FitOptions,
        *,
        state: FitState | None = None,
        hidden: Sequence[HiddenTurn] = (),
        calibration: Correction | None = None,
    ) -> FitPlan | Fitted:
        """Return the plan of a request within its limit, or the request."""


class Session:
    """A conversation over many requests; get one from `Holdfast.session`."""

    def __init__(
        self,
        parts: EngineParts,
        scope: Scope,
        calibration: Calibration,
        on_stored: StoredListener | None = None,
    ) -> None:
        self.scope = scope
        self.options = parts.options
        """How its requests are fitted, unless a call gives other options."""
        self.head = ""
        """The place of its last request, stored or not: the request after it belongs here."""
        self.state: FitState | None = None
        self.hidden: tuple[HiddenTurn, ...] = ()
        """Answers with calls that the client never saw, to be restored in its requests."""
        self._parts = parts
        self._store = parts.store
        self._calibration = calibration
        self._clock = parts.clock
        self._workers = parts.workers
        self._on_stored = on_stored
        self._writer = TurnWriter(parts.store, scope, parts.workers, titles=parts.titles)
        self.wishes = Wishes(parts.store, scope)
        """Contents that people asked to have whole."""
        self._put_any = False
        self._loaded = False
        self._request: ref[OpenRequest] | None = None
        """The last request that came in, as long as somebody holds it."""
        self._caught_up: ref[Conversation] | None = None
        """The request that it was caught up for: any other has to look again."""
        self._loading = asyncio.Lock()
        self._fitting = asyncio.Lock()
        self._writing = asyncio.Lock()

    @property
    def name(self) -> str:
        """The session's name."""
        return self.scope.session

    @property
    def record(self) -> SessionRecord:
        """The session's record in the store."""
        return self._writer.record

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes, hidden calls included."""
        hidden = sum(answer.size for answer in self.hidden)
        return hidden + (self.state.held_bytes if self.state is not None else 0)

    async def weighed(self) -> int:
        """Its size, looked up off the event loop where it has very many messages."""
        about = size_of(self.state.asked) // COMPARING if self.state is not None else 0
        return await self._workers.off_loop(about, lambda: self.size)

    def let_go(self) -> None:
        """Break what refers to itself, so that the memory is free at once: nobody comes back."""
        if self.state is not None:
            for message in (*self.state.asked.messages, *self.state.sent.messages):
                message.let_go()

    async def _go_on_from(self, state: FitState | None) -> None:
        """Replace the last request, and free the messages that only the one before contains."""
        before, self.state = self.state, state
        if before is not None:
            work = partial(let_go_of, (before.asked, before.sent), state)
            await self._workers.off_loop(size_of(before.asked) // COMPARING, work)

    async def load(self) -> Session:
        """Read this session from the store, once there is a record."""
        async with self._loading:  # concurrent callers wait for the first
            if not (self._loaded or self.record.turns or self.state is not None):
                await self._read()
        return self

    async def _read(self) -> None:
        turns = await self._writer.catch_up()
        sides = last_fitted(turns)
        if sides is not None and self.record.closed_at is None:
            held_history = held_in(self.state)
            lacking = [name for name in sides.names if name not in held_history]
            stored = held_history | await self._store.messages(self.scope, lacking)
            state = state_of(self.record.dialect, sides, stored, self.state)
            if state is not None and state.untold:
                summaries = await self._writer.told(turns)
                state = msgspec.structs.replace(state, told=summaries)
            await self._go_on_from(state)
            answers = (*await self._writer.inherited(),
                       *await self._writer.hidden(turns))  # fmt: skip
            unwritten = tuple(answer for answer in self.hidden if answer not in answers)
            self.hidden = (*answers, *unwritten)[-_MOST_HIDDEN:]
        self.head = self.record.head
        self._loaded = bool(turns)

    async def catch_up(self, request: Conversation | None = None) -> Session:
        """Read the turns that other processes have recorded, and whether the session was ended.

        The request of the caller is noted, so that `fit` need not check again. The note applies to
        that request only: one that is answered from memory, counted or abandoned must not save the
        check of a later one.
        """
        self._caught_up = None if request is None else ref(request)
        if self.state is None:
            return self
        if not self.record.turns:  # nothing was written down here but contents
            stored = await self._store.session(self.scope)
            if stored is not None and stored.turns and not self._writing.locked():
                async with self._loading:
                    await self._read()
            elif self._put_any and not await self._store.refs(self.scope, limit=1):
                await self._go_on_from(None)
            return self
        stored, self.wishes.length = await self._store.session_beside(self.scope, JOURNAL)
        ended = stored is not None and stored.closed_at is not None
        if stored is None or ended or self._writer.was_deleted(stored):
            await self._go_on_from(None)  # start again, because its refs may be deleted
            self.wishes = Wishes(self._store, self.scope)
            if stored is None:
                self._writer.begin_anew()
        elif stored.turns > self.record.turns and not self._writing.locked():
            async with self._loading:
                await self._read()
        return self

    @property
    def answers_first(self) -> bool:
        """Whether its first request is still on its way to an answer."""
        request = self._request() if self._request is not None else None
        return not self.record.turns and request is not None and request.is_open

    def sent_by(self, sender: Sender, request: OpenRequest | None = None) -> Session:
        """Note the client's ids on the record; of several ids, the last one counts."""
        if request is not None:
            self._request = ref(request)
        record = self.record
        if sender.session and (record.client, *record.client_key) != sender[:3]:
            self._writer.record = msgspec.structs.replace(
                record,
                client=sender.client,
                client_session=sender.session,
                client_agent=sender.agent,
            )
        elif sender.client and not record.client:
            self._writer.record = msgspec.structs.replace(record, client=sender.client)
        return self

    def begin(
        self, other: Session | None = None, shared: int = 0, messages: int = 0, purpose: str = ""
    ) -> Session:
        """Begin, with the first messages of another session if the conversation branched off there.

        Only answers among the first `messages`, those of the request, are inherited: the answer at
        the point where the conversations part belongs to the other session.
        """
        self._loaded = True
        if purpose:
            self._writer.record = msgspec.structs.replace(self.record, purpose=purpose)
        if other is not None:
            self._writer.record = msgspec.structs.replace(
                self.record, forked_from=other.name, shared=min(shared, messages - 1)
            )
            self.hidden = answers_before(other.hidden, self.record.shared)
        return self

    def hide(self, answer: HiddenTurn) -> None:
        """Keep an answer with calls that the client never saw, for its next request."""
        self.hidden = (*self.hidden[1 - _MOST_HIDDEN :], answer)

    # --- requests --------------------------------------------------------------------------------

    async def fit(
        self,
        body: object,
        options: FitOptions | None = None,
        *,
        limit: int | None = None,
        planner: Planner = plan,
        size: int = 0,
    ) -> Fitted:
        """Make the session's next request fit; hidden content is stored before this returns.

        `limit` defaults to that of the options, and the options to the session's own. `planner`
        plans the sent request from the asked one and the previous one; it works on at least `size`
        bytes.
        """
        options = with_limit(options or self.options, limit)
        async with self._fitting:  # the next request continues from this one
            body = await self._shared(body)
            options = await self._with_wishes(options)
            work = partial(self._fitted, body, planner=planner)
            size = max(size, _size(body, self.state), search_bytes(body, self.state, options))
            fitted = await fit_and_store(
                self._store, self.scope, self._workers, size, options, work, told=self._on_stored
            )
            summaries = self._parts.summaries
            if summaries is not None and options.summary_tokens and fitted.state.untold:
                fitted = await self._asked_about(fitted, summaries)
            fitted = await self._with_continuation(fitted)
            await self._go_on_from(fitted.state)
            if options.whole and (names := hidden_again(fitted.state, options.whole)):
                await self.wishes.end(names)
            self._put_any = self._put_any or bool(fitted.contents)
            return fitted

    async def _with_continuation(self, fitted: Fitted) -> Fitted:
        """Note how a request continues the last answered one.

        It is noted when the request is sent: answers that come at the same time may be recorded in
        any order, and cost the same.
        """
        work = partial(self._writer.continued, fitted.state, self._clock())
        size = size_of(fitted.state.asked) // COMPARING
        continuation = await self._workers.off_loop(size, work)
        return msgspec.structs.replace(fitted, continuation=continuation)

    async def _asked_about(self, fitted: Fitted, summaries: FoldSummaries) -> Fitted:
        """Queue summaries of folded messages, and note those that are finished.

        They are used in the next request, which is why this request's record contains them.
        """
        state = fitted.state
        with suppress(StoreError):  # no reason for a request to fail
            if any(edit.action == "fold" for edit in fitted.edits):
                await summaries.ask(self.scope, state.asked.dialect, state.awaited)
            finished = await summaries.ready(self.scope, state.asked.dialect, state.awaited)
            if finished:
                state = msgspec.structs.replace(state, told={**state.told, **finished})
                return msgspec.structs.replace(fitted, state=state)
        return fitted

    async def preview(self, body: object, options: FitOptions | None = None) -> Fitted:
        """Return the next request without storing or remembering it."""
        body = await self._shared(body)
        options = await self._with_wishes(options or self.options)
        size = max(_size(body, self.state), search_bytes(body, self.state, options))
        reader = ContentReader(self._workers)
        return await self._workers.off_loop(size, partial(self._fitted, body, options, reader))

    def _fitted(
        self, body: object, options: FitOptions, reader: ContentReader, planner: Planner = plan
    ) -> Fitted:
        if "refuse" in (options.rules.privacy, self.options.rules.privacy):
            self._writer.refuse_secrets()
        planned = partial(
            planner, body, state=self.state, hidden=self.hidden, calibration=self._calibration
        )
        if options.whole:
            # A wish for a whole content never prevents a request: if it does not fit, ignore the
            # wish.
            with suppress(BudgetExceededError, ContextOptimizationError):
                fitted = reader.finish(planned(options))
                if not hidden_again(fitted.state, options.whole):
                    return fitted
        return reader.finish(planned(msgspec.structs.replace(options, whole=frozenset())))

    async def _with_wishes(self, options: FitOptions) -> FitOptions:
        if not self.record.turns:
            return options  # nothing was sent of which anything could be wanted back
        return msgspec.structs.replace(options, whole=await self.wishes.names())

    async def _shared(self, body: object) -> object:
        """Return a parsed request with the known messages reused."""
        await self.load()
        looked_for, self._caught_up = self._caught_up, None
        if looked_for is None or looked_for() is not body:
            await self.catch_up()
        if self.state is None or not isinstance(body, Conversation):
            return body  # bytes are parsed with the known messages later
        work = partial(sharing, body, self.state.asked)
        return await self._workers.off_loop(size_of(body) // COMPARING, work)

    async def put_back(self, ref: str, *, whole: bool = True) -> PutBack:
        """Send the content of a ref whole from the next request on, or cite it again.

        Raises:
            StoreError: the last sent request does not contain the ref.
        """
        await self.load()
        wishes = await self.wishes.all()
        names = names_behind(self.state, ref) if self.state is not None else ()
        if not names and ref in wishes:
            names = wishes[ref].names
        if not names:
            raise StoreError(
                "nothing that was last sent in this session stands for the ref",
                where=ref,
                fix="Only what is hidden in the session's last request can be put back.",
            )
        return await self.wishes.add(ref, names, whole=whole)

    # --- what became of them ---------------------------------------------------------------------

    async def observe(self, fitted: Fitted, usage: object = None, **outcome: Any) -> Turn:
        """Record a request that was sent; other arguments are the fields of `Observation`."""
        return await self.record_turn(fitted, Observation(usage=usage, **outcome))

    async def record_turn(self, fitted: Fitted, observation: Observation) -> Turn:
        """Record a request that was sent, and calibrate counting with the reported usage."""
        expanded = observation.expanded
        reports = observation.reports
        if observation.learn and len(reports) == 1 and not (expanded.calls or expanded.rounds):
            self._calibration.observe(fitted.count, reports[0])
        model = fitted.count.model
        now = self._clock()
        async with self._writing:  # a turn is written as what changed against the one before
            looks = partial(self._look, fitted)
            size = size_of(fitted.state.asked) // COMPARING
            lives, head, parts, prefixes = await self._workers.off_loop(size, looks)
            sent_count, asked_count = (
                observation.first or fitted.count,
                fitted.asked_count or fitted.count,
            )
            counted = RequestCounts(
                predicted=sent_count.plain,
                untouched=asked_count.plain,
                unclaimed=fitted.unclaimed,
                is_exact=sent_count.accuracy == "exact",
                prefixes=prefixes,
                cache_lives=lives,
                billed=observation.billed,
                window=self.known_window(model),
            )
            if observation.remembered is None:
                usage, status = observation.usage, observation.status
                used = turn_usage(usage, counted, expanded, model=model, now=now, status=status)
                used = with_tools(used, observation.tools, fitted.state.frame_edits)
                predicted = 0 if used.failed else fitted.tokens
                used = msgspec.structs.replace(used, predicted=predicted)
            else:
                used = remembered_usage(observation.remembered, counted, model=model, now=now)
            turn = Turn(
                number=0,
                started_at=now,
                model=model if observation.billed else model + OFFLINE,
                status=observation.status,
                error=observation.error if used.failed else "",
                edits=(*fitted.edits, *expanded.edits),
                floor=fitted.state.floor,
                read_only=observation.read_only or observation.remembered is not None,
                usage=used,
                parts=parts,
                warnings=(*fitted.warnings, *observation.warnings),
                milliseconds=observation.milliseconds,
            )
            sent_at = fitted.continuation.sent_at if fitted.continuation is not None else None
            await self._check_not_erased(fitted)
            hidden = observation.hidden
            written = await self._writer.add(turn, fitted.state, head, hidden, sent_at=sent_at)
            await self._workers.off_loop(size, fitted.state.let_go)  # 60 ms for 100,000 messages
            return written

    async def _check_not_erased(self, fitted: Fitted) -> None:
        """Raise if a content cited by a session's first request was erased since it was sent.

        For a session with turns, the store itself notices that when the next one is recorded.
        """
        if self.record.turns or not fitted.contents:
            return
        if await self._store.info(self.scope, fitted.contents[0].ref_id) is None:
            raise erased(self.scope)

    def known_window(self, model: str) -> int | None:
        """Return the model's context window; None if nobody states it or the name is no name."""
        with suppress(SettingsError):
            return self.options.registry.known_window(model)
        return None

    def _look(self, fitted: Fitted) -> tuple[Lives, str, TurnParts, Prefixes]:
        """Return the facts that are recorded beside the messages; this reads all of them."""
        state, conversation = fitted.state, fitted.state.asked
        # A history that the provider stores is found by its response id: see `ResponseChains`.
        head = self.record.head if stored_history_id(conversation) else head_of(conversation)
        parts = parts_of(state, fitted.count)
        return cache_lives(conversation), head, parts, prefixes_of(fitted)

    async def rebuild(self, turn: int) -> bytes:
        """Return the client's request of a turn, byte for byte, from the sent one and its edits."""
        turns = await self._writer.turns(turn)
        sides, names = None, list[str]()
        if 0 < turn == len(turns):
            # Always in a thread: 100,000 messages take 0.4 s.
            sides, names = await self._workers.off_loop(LARGE_BYTES, partial(_named_sides, turns))
        if sides is None:
            last = await self._store.session(self.scope)
            raise StoreError(
                "there is no record of such a turn",
                where=f"turn {turn}",
                fix=f"The session has {last.turns if last is not None else 0} turns.",
            )
        stored = await self._store.messages(self.scope, names)
        return await self._workers.off_loop(LARGE_BYTES, partial(asked_body, sides, stored))


def _named_sides(turns: list[Turn]) -> tuple[Sides | None, list[str]]:
    """Return both sides of the last request, and the names of all that must be read for them."""
    sides = last_sides(turns)
    return sides, sides.names if sides is not None else []


def with_limit(options: FitOptions, limit: int | None) -> FitOptions:
    """The same options with a limit, if one is given."""
    return options if limit is None else msgspec.structs.replace(options, limit=limit)


def _new(body: object, state: FitState | None) -> object:
    """Return the messages that are new since the last request; their size decides on the thread."""
    first_new = len(state.asked.messages) if state is not None else 0
    return body.messages[first_new:] if isinstance(body, Conversation) else body


def _size(body: object, state: FitState | None) -> int:
    """Return the bytes that need work: the new messages, and the bytes around all messages.

    A client with 10,000 tools sends them with every request.
    """
    around = len(body.frame.hollow) if isinstance(body, Conversation) else 0
    return size_of(_new(body, state)) + around


StoredListener = Callable[[Scope, Sequence[Content]], None]
"""Called with contents that were stored, while their bytes are still in memory."""


async def fit_and_store(  # noqa: PLR0913 - all that a request goes through
    store: Store,
    scope: Scope,
    workers: Workers,
    size: int,
    options: FitOptions,
    work: Callable[[FitOptions, ContentReader], Fitted],
    *,
    told: StoredListener | None = None,
) -> Fitted:
    """Make a request fit; hidden content is stored before this returns."""
    while True:
        fitted = await workers.off_loop(size, partial(work, options, ContentReader(workers)))
        try:
            if fitted.contents:
                await store.put(scope, fitted.contents)
        except RefCollisionError:
            options = msgspec.structs.replace(options, rules=longer_refs(options.rules))
        else:
            if told is not None and fitted.contents:
                told(scope, fitted.contents)
            asked_size = size_of(fitted.state.asked)
            return await workers.off_loop(asked_size // COMPARING, partial(_stored, fitted))


def _stored(fitted: Fitted) -> Fitted:
    """A request whose contents are in the store: nobody holds their bytes while it is answered."""
    if not fitted.contents:
        return fitted
    fitted.state.let_go()
    contents = tuple(msgspec.structs.replace(content, data=b"") for content in fitted.contents)
    return msgspec.structs.replace(fitted, contents=contents)


COMPARING = 256
"""How many times faster bytes are compared or hashed than read."""


def size_of(content: object) -> int:
    """Return the bytes of a request, content or messages; other values count as large."""
    if isinstance(content, Conversation):
        content = content.source or content.messages
    if isinstance(content, tuple):  # of messages
        return sum(message.size for message in content)
    return len(content) if isinstance(content, (str, bytes)) else LARGE_BYTES


def longer_refs(rules: CitingRules) -> CitingRules:
    """Rules for the case that two contents share the digits of a ref."""
    return msgspec.structs.replace(rules, ref_digits=min(64, rules.ref_digits * 2))
