"""A client in your program: fitted, guarded, sent, reconciled, recorded.

client: after exchange; the last word but `blocking`. Read `chat` from top to bottom.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec

from holdfast.budget import TokenBudgetManager, TokenBudgetSnapshot, Usage, reported_usage
from holdfast.budget.ledger import Kind
from holdfast.budget.manager import Counter
from holdfast.client import requests
from holdfast.client.exchange import ClientExchange, ExchangeResult
from holdfast.client.pace import Pace
from holdfast.client.replies import ClientReport, Reply, ReplyPart
from holdfast.client.transports import OFFLINE, Plugin, Transport, open_transport
from holdfast.engine import Holdfast, Observation, Session
from holdfast.errors import BudgetExceededError, PrivacyError, SettingsError, StoreError
from holdfast.faults import Faults, logged_faults
from holdfast.fitting import FitOptions, FitState, Fitted, shared_engine
from holdfast.fitting.draft import origins_of
from holdfast.fitting.options import LOW_WATER, LazyRules
from holdfast.settings import Settings
from holdfast.store import Scope, Turn
from holdfast.store.deadline import REQUEST_SECONDS, store_deadline, without_deadline
from holdfast.tokens import ModelContextRegistry, TokenCount, count
from holdfast.tokens.counter import count_by_length
from holdfast.tokens.limits import output_reserve
from holdfast.tokens.requested import request_limit
from holdfast.trim import AnchorDefinition, ContextStrategy
from holdfast.upstream.hidden_calls import SentRequest
from holdfast.wire import Conversation, read, write
from holdfast.wire.responses import turn_calls

if TYPE_CHECKING:
    from holdfast.client.sync_client import BlockingClient

Messages = Sequence[Mapping[str, Any]]
Budget = int | Mapping[str, int | None] | None
"""All tokens of a session, or a limit for each of `input`, `output` and `total`."""

TRIMS_PER_MINUTE = 30
_KINDS: tuple[Kind, ...] = ("input", "output", "total")


class Client:
    """Asks one model, in requests that fit; used inside `async with`.

    `budget` is for all requests of the client together, `limit` the most input tokens of one (by
    default the model's limit). `strategy` makes requests shorter, `preserve` are anchors that it
    keeps beside the usual ones; these three are also called `token_budget`, `context_strategy` and
    `context_preservation` (001-69). Without a `session` a new one begins. A caller that ends a full
    conversation by itself, as an agent does, passes `ends=False`.
    """

    def __init__(  # noqa: PLR0913 - named arguments, of which most programs need one
        self,
        model: str = OFFLINE,
        *,
        budget: Budget = None,
        strategy: str | ContextStrategy | None = None,
        preserve: Iterable[AnchorDefinition] | None = None,
        limit: int | None = None,
        max_output_tokens: int | None = None,
        session: str = "",
        scope: Scope | None = None,
        store: str | None = None,
        engine: Holdfast | None = None,
        settings: Settings | None = None,
        url: str = "",
        key: str = "",
        dialect: str = "",
        plugin: Plugin | None = None,
        trims_per_minute: int = TRIMS_PER_MINUTE,
        manager: TokenBudgetManager | None = None,
        ends: bool = True,
        token_budget: Budget = None,
        context_strategy: str | ContextStrategy | None = None,
        context_preservation: Iterable[AnchorDefinition] | None = None,
    ) -> None:
        _refuse_both("budget", budget, "token_budget", token_budget)
        _refuse_both("strategy", strategy, "context_strategy", context_strategy)
        _refuse_both("preserve", preserve, "context_preservation", context_preservation)
        self.settings = settings or Settings.load()
        self.model = model
        self.transport: Transport = open_transport(
            model, self.settings, url=url, key=key, dialect=dialect
        )
        self.name = session or uuid.uuid4().hex
        """Of the session."""
        self._scope = scope
        self._store = store
        self._engine = engine
        self._strategy = strategy or context_strategy or "auto"
        self._preserve = tuple(preserve or context_preservation or ())
        self._limit = limit
        self._ends = ends
        registry = ModelContextRegistry(self.settings)
        known = registry.resolve(self.transport.counted_as)
        self.max_output_tokens = max_output_tokens or output_reserve(known, agent_loop=True)
        """Room that each answer gets."""
        self._plugin = plugin
        self._pace = Pace(trims_per_minute)
        self._closing = AsyncExitStack()
        self._recording: set[asyncio.Task[Turn]] = set()
        """Turns that are being written down."""
        self._asked: requests.ParsedRequest | None = None
        """The request before, for `trim_context`."""
        counter = getattr(plugin, "estimate_token_usage", None)
        counters = {self.transport.counted_as: _plugin_counter(counter)} if counter else None
        self.budget = manager or TokenBudgetManager(counters=counters)
        limits = token_budget if budget is None else budget
        if limits is not None:
            self.set_token_budget(limits)

    async def __aenter__(self) -> Self:
        if self._engine is None:
            opening = Holdfast.open(self._store, scope=self._scope, settings=self.settings)
            self._engine = await self._closing.enter_async_context(opening)
        self._closing.push_async_callback(self.transport.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._recording:  # a store that answers again while the program ends gets them
            await asyncio.wait(self._recording, timeout=REQUEST_SECONDS)
        await self._closing.aclose()

    @property
    def engine(self) -> Holdfast:
        """The engine of the client, with its store and sessions."""
        if self._engine is None:
            raise SettingsError(
                "the client is not open", where="Client", fix="Use it inside `async with`."
            )
        return self._engine

    @cached_property
    def sync(self) -> BlockingClient:
        """The same client for programs that do not await; see `BlockingClient`."""
        from holdfast.client.sync_client import BlockingClient  # noqa: PLC0415 - few need it

        return BlockingClient(self)

    # --- asking ----------------------------------------------------------------------------------

    async def chat(
        self,
        messages: Messages,
        *,
        tools: Messages = (),
        system: str = "",
        limit: int | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Ask, and return the answer; parts that the model opens are answered on the way.

        `more` are fields of the request in the model's own dialect.

        Raises:
            BudgetExceededError: the session's budget would be exceeded; nothing was sent.
            ContextOptimizationError: the messages to keep do not fit; nothing was sent.
            ProviderError: the provider could not be reached, or refused.
        """
        sending = await self._prepare(self._build(messages, tools, system, more or {}), limit)
        try:
            answered = await sending.exchange.whole()
        except BaseException:
            self.budget.release(sending.id)
            raise
        return await self._record(sending, answered)

    async def stream(
        self,
        messages: Messages,
        *,
        tools: Messages = (),
        system: str = "",
        limit: int | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[ReplyPart]:
        """Ask, and give the text as it comes; the last part holds the reply.

        Raises what `chat` does.
        """
        streaming: dict[str, Any] = {} if self.transport.dialect == "gemini" else {"stream": True}
        if self.transport.dialect == "openai-chat":
            streaming |= {"stream_options": {"include_usage": True}}
        request = self._build(messages, tools, system, {**streaming, **(more or {})})
        sending = await self._prepare(request, limit)
        answered: ExchangeResult | None = None
        text = ""
        try:
            with sending.faults.caught("stream"):
                async for piece in sending.exchange.pieces():
                    if isinstance(piece, str):
                        text += piece
                        yield ReplyPart(piece)
                    else:
                        answered = piece
        finally:
            if answered is None:
                self.budget.release(sending.id)
        if answered is not None:
            yield ReplyPart(reply=await self._record(sending, answered))
            return
        # After an internal error the whole answer follows the part that was already given.
        reply = await self.chat(messages, tools=tools, system=system, limit=limit, more=more)
        yield ReplyPart(reply.text.removeprefix(text))
        warnings = (*sending.faults.warnings, *reply.warnings)
        yield ReplyPart(reply=msgspec.structs.replace(reply, warnings=warnings))

    def _build(
        self, messages: Messages, tools: Messages, system: str, more: Mapping[str, Any]
    ) -> requests.ParsedRequest:
        return requests.build(
            messages,
            tools,
            to=self.transport.dialect,
            model=self.transport.model,
            system=system,
            output=self.max_output_tokens,
            more=more,
            caps_completion=getattr(self.transport, "caps_completion", False),
        )

    def _options(self, asked: requests.ParsedRequest, limit: int | None) -> FitOptions:
        return msgspec.structs.replace(
            self.engine.options,
            model=self.transport.counted_as,
            dialect=self.transport.dialect,
            limit=limit or self._limit,
            output=self.max_output_tokens,
            strategy=self._strategy,
            anchors=requests.anchors_with(asked.marked, self._preserve),
            ends=self._ends and self.engine.options.ends,
            lazy=LazyRules(),  # callers do not answer the tools that replace deferred ones
        )

    async def _fit(
        self, asked: requests.ParsedRequest, limit: int | None
    ) -> tuple[Session, Fitted]:
        self._asked = asked
        session = self.engine.session(self.name)
        with store_deadline():
            return session, await session.fit(asked.conversation, self._options(asked, limit))

    async def fit(
        self, messages: Messages, *, tools: Messages = (), system: str = "", limit: int
    ) -> Fitted:
        """Return the request that `chat` would send, fitted within a limit; nothing is sent."""
        request = self._build(messages, tools, system, {})
        return (await self._fit(request, limit))[1]

    async def _fit_if_possible(
        self, asked: requests.ParsedRequest, limit: int | None, faults: Faults
    ) -> tuple[Session, Fitted]:
        """Make a request fit; after an internal error it is left as it is, if it fits so.

        Raises:
            BudgetExceededError: it does not fit.
            PrivacyError: it may not be sent without the masks of its citations.
        """
        with faults.caught("fit"):
            return await self._fit(asked, limit)
        if self.settings.privacy_policy == "mask":
            raise PrivacyError(
                f"the request was not sent, as it was not masked: {faults.warnings[0]}",
                where="privacy_policy mask",
                fix="Please report the error.",
            )
        options, conversation = self._options(asked, limit), asked.conversation
        counted = count_by_length(conversation, options.model, "counted after an internal error")
        most = options.limit or 0
        with faults.caught("count"):
            counted = count(conversation, model=options.model or None)
            most = most or request_limit(conversation, options.registry, model=options.model)
        if most and counted.tokens > most:
            raise BudgetExceededError(
                f"the request does not fit as it is: {faults.warnings[0]}",
                fix="Please report the error, and send less.",
                kind="input",
                limit=most,
                planned=counted.tokens,
            )
        state = FitState(conversation, conversation, origins_of(conversation.messages))
        body = write(conversation)
        fitted = Fitted(body, counted, most, (), state)
        return self.engine.session(self.name), fitted

    async def _prepare(self, asked: requests.ParsedRequest, limit: int | None) -> _Sending:
        """Make a request fit, and take room for it in the budget, before anything is sent."""
        faults = logged_faults("holdfast.client")
        session, fitted = await self._fit_if_possible(asked, limit, faults)
        id_ = uuid.uuid4().hex
        with faults.caught("budget"):
            planned = self.budget.estimate_completion(
                fitted.state.sent, self.max_output_tokens, self.transport.counted_as, fitted.count
            )
            self.budget.reserve(self.transport.provider, planned, id_)
        options = self._options(asked, limit)
        request = SentRequest(fitted.state.asked, session, fitted, options)
        exchange = ClientExchange(self.engine, self.transport, request, fitted.body, faults)
        return _Sending(id_, asked, session, fitted, exchange, faults, time.perf_counter())

    async def _record(self, sending: _Sending, answered: ExchangeResult) -> Reply:
        """Reconcile the budget, write the turn down, learn, and make the reply."""
        id_, request, session, fitted, exchange, faults, started = sending
        last = exchange.refitted or fitted
        report: object = answered.usage
        usage = Usage(fitted.count.tokens, None)
        parse = getattr(self._plugin, "parse_response", None)
        with faults.caught("usage"):
            if parse is not None:
                report = parse(answered.body)
            usage = reported_usage(report) or usage
            self.budget.track_usage(self.transport.provider, report or fitted.count, id_)
        number, unwritten = 0, ""
        with faults.caught("record"):
            observation = Observation(
                usage=answered.usages if parse is None else report,
                expanded=exchange.expanded,
                hidden=exchange.hidden,
                milliseconds=(time.perf_counter() - started) * 1000,
                warnings=faults.warnings,
                learn=self.transport.billed,
                billed=self.transport.billed,
                first=fitted.count,
            )
            recording = self.engine.sessions.record(session, last, observation)
            number, unwritten = await self._written(recording)
        dialect = self.transport.dialect
        return Reply(
            text=requests.text_of(dialect, answered.turn),
            calls=tuple(turn_calls(answered.turn, dialect)),
            messages=requests.turn_in(dialect, answered.turn, request.dialect, usage.output or 0),
            stop_reason=answered.stop_reason,
            model=self.transport.model,
            usage=usage,
            predicted=fitted.tokens,
            untouched=fitted.untouched,
            limit=fitted.limit,
            edits=(*last.edits, *exchange.expanded.edits),
            warnings=(*fitted.warnings, *faults.warnings, *filter(None, [unwritten])),
            turn=number,
            context_tokens=last.tokens if exchange.expanded.calls else usage.input or 0,
            session=session.name,
            body=answered.body,
        )

    async def _written(self, recording: Coroutine[Any, Any, Turn]) -> tuple[int, str]:
        """Return the number of a turn once it is written down, or 0 and a warning.

        The caller has waited for its answer: a store that hangs or fails does not keep it back.
        """
        task = asyncio.create_task(recording, context=without_deadline())
        self._recording.add(task)
        task.add_done_callback(self._recorded)
        await asyncio.wait({task}, timeout=REQUEST_SECONDS)
        if not task.done():
            return 0, "the store does not answer: the turn is not written down yet"
        try:
            return task.result().number, ""
        except StoreError as error:
            return 0, f"the turn was not written down: {error.what}"

    def _recorded(self, task: asyncio.Task[Turn]) -> None:
        """Forget a task; asyncio itself would log the text of its error, which may be content."""
        self._recording.discard(task)
        if not task.cancelled():
            task.exception()

    # --- the budget and the context ---------------------------------------------------------------

    def get_token_usage(self) -> TokenBudgetSnapshot:
        """Return the usage so far, by provider, with the budget."""
        return self.budget.snapshot()

    def set_token_budget(self, budget: Budget) -> None:
        """Change the budget; None takes the limits away."""
        limits: Mapping[str, int | None]
        if isinstance(budget, Mapping):
            limits = budget
        else:
            limits = {"input": None, "output": None, "total": budget}
        if unknown := set(limits) - set(_KINDS):
            raise SettingsError(
                "there is no such limit", where=f"budget.{min(unknown)}", fix=f"Take {_KINDS}."
            )
        for kind in _KINDS:
            if kind in limits:
                self.budget.set_limit(kind, limits[kind])

    def estimate(self, messages: Messages, *, tools: Messages = (), system: str = "") -> TokenCount:
        """Return the input tokens of an unedited request."""
        request = self._build(messages, tools, system, {})
        return self.budget.estimate_usage(request.conversation, self.transport.counted_as)

    async def trim_context(self, target_tokens: int | None = None) -> Fitted | None:
        """Fold the last request to `target` tokens; the next request continues from it.

        Without a target, to the share that a fold reaches. None if nothing was asked yet.

        Raises:
            ContextOptimizationError: too often within a minute, or the messages to keep need more.
        """
        if self._asked is None:
            return None
        self._pace.take(time.monotonic())
        options = self._options(self._asked, None)
        session = self.engine.session(self.name)
        if target_tokens is None:
            limit = (await session.preview(self._asked.conversation, options)).limit
            target_tokens = max(int(limit * LOW_WATER), 1)
        smaller = msgspec.structs.replace(options, limit=target_tokens)
        return await session.fit(self._asked.conversation, smaller)

    def report(self) -> ClientReport:
        """Return the usage, the accuracy of counting, and the savings of strategies."""
        return ClientReport(
            model=self.transport.counted_as,
            session=self.name,
            budget=self.budget.report(),
            accuracy=tuple(self.engine.calibration.accuracy()),
            effects=tuple(shared_engine.effects()),
        )


class _Sending(NamedTuple):
    """A request that is about to go out."""

    id: str
    asked: requests.ParsedRequest
    session: Session
    fitted: Fitted
    exchange: ClientExchange
    faults: Faults
    started: float


def _refuse_both(name: str, value: object, alias: str, other: object) -> None:
    """Raise if an argument with two names was given by both, because it is unclear which counts."""
    if value is not None and other is not None:
        raise SettingsError(
            "the same argument is given by two names", where=alias, fix=f"Give {name} alone."
        )


def _plugin_counter(counter: Callable[[object], object]) -> Counter:
    """Return a plugin's count of tokens; after an error or an invalid count, ours is used."""

    def counted(body: object) -> TokenCount:
        conversation = body if isinstance(body, Conversation) else read(body)
        tokens = counter([message.value for message in conversation.messages])
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
            raise TypeError("a plugin counted something else than tokens")
        ours = count(conversation)
        return msgspec.structs.replace(ours, tokens=tokens, upper=tokens, note="by a plugin")

    return counted
