"""Prepare a request for sending: its session, its limit and the headers that report on it.

preparing: after expansions, before exchange.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import msgspec

from holdfast.engine import Holdfast, Session
from holdfast.errors import BudgetExceededError, ContextOptimizationError, StoreError
from holdfast.faults import Faults
from holdfast.fitting import FitOptions, FitState, Fitted
from holdfast.fitting.draft import origins_of
from holdfast.fitting.tool_directory import deferred_tools
from holdfast.privacy import check_unmasked
from holdfast.store.records import Edit, saved_tokens
from holdfast.surfaces.proxy.client_ids import sender_of
from holdfast.surfaces.proxy.dispatch import Dispatch
from holdfast.surfaces.proxy.incoming_request import IncomingRequest
from holdfast.surfaces.proxy.logs import log
from holdfast.surfaces.proxy.service import Service
from holdfast.surfaces.proxy.switches import PREFIX
from holdfast.surfaces.proxy.telemetry import context_line
from holdfast.tokens import TokenCount, count
from holdfast.tokens.requested import request_limit
from holdfast.upstream.hidden_calls import SentRequest
from holdfast.upstream.tool_finder import lazy_rules
from holdfast.wire import Conversation
from holdfast.wire.responses import CONTINUED

SIGNED = "the request is signed (AWS SigV4), which covers its bytes: it went out as it came"
UNEDITED = "the request went out unedited"
REPLAYED = "the request went out with the edits of the one before and no others"
_NO_LIMIT = 2**40
"""Tokens: no request reaches it, so nothing is folded."""


class PreparedRequest(NamedTuple):
    """A request that may go out."""

    asked: Conversation
    """The client's request."""
    body: bytes
    session: Session
    fitted: Fitted | None = None
    """The request that is sent; None where nothing is known of it."""
    options: FitOptions | None = None
    """The options with which it was made to fit; None if it was not."""
    told: Fitted | None = None
    """The request that the response headers describe: the one that is sent, or would have been."""
    warnings: tuple[str, ...] = ()
    unedited: bool = False
    """The client's own bytes go out after an internal error, and the answer passes as it comes."""

    @property
    def sent(self) -> Conversation:
        """The conversation that is sent, from which hidden calls continue."""
        return self.asked if self.fitted is None else self.fitted.state.sent

    @property
    def request(self) -> SentRequest:
        """The same for whoever answers its hidden calls."""
        return SentRequest(self.asked, self.session, self.fitted, self.options)

    @property
    def asks_for_usage(self) -> bool:
        """Whether the proxy has asked for usage that the client did not ask for."""
        changes = self.fitted.state.frame_edits if self.fitted is not None else ()
        return any(change.edit.action == "usage" for change in changes)

    @property
    def headers(self) -> dict[str, str]:
        """Response headers about the edits."""
        headers = {f"{PREFIX}session": self.session.name}
        if self.told is not None:
            headers[f"{PREFIX}tokens"] = str(self.told.tokens)
            headers[f"{PREFIX}saved"] = str(self._saved(self.told))
            headers[f"{PREFIX}edits"] = str(len(self.told.edits))
            if any(edit.action == "assemble" for edit in self.told.edits):
                headers[f"{PREFIX}mode"] = "assemble"
            if deferred := deferred_tools(self.told.state):
                headers[f"{PREFIX}lazy-tools"] = str(len(deferred))
            if self.told.final:
                headers[f"{PREFIX}final"] = "true"
        if self.warnings:
            headers[f"{PREFIX}warning"] = "; ".join(self.warnings)
        return headers

    def _saved(self, told: Fitted) -> int:
        """Return the tokens saved; 0 where the request as asked exceeds the model's window."""
        window = self.session.known_window(told.count.model)
        if window is not None and told.untouched > window:
            return 0
        return saved_tokens(told.untouched, told.tokens)


class RequestPreparer:
    """Makes one request ready."""

    def __init__(
        self, service: Service, incoming: IncomingRequest, engine: Holdfast, dispatch: Dispatch
    ) -> None:
        self.service = service
        self.incoming = incoming
        self.is_signed = dispatch.is_signed
        self._continues = incoming.route.dialect in CONTINUED
        """Whether calls of our tools would be answered: else none is offered, nothing is cited."""
        self.model = dispatch.model
        """The model that is asked in the end; tokens are counted for it."""
        self._lazy = lazy_rules(service.settings, dispatch.targets, incoming.route.dialect)
        self.engine = engine
        """That of the tenant who asks."""
        self._session: Session | None = None
        """The session of the request, once it is known."""

    async def prepare(self, conversation: Conversation) -> PreparedRequest:
        """Make the request fit, keeping the earlier decisions for its session."""
        engine, switches = self.engine, self.incoming.switches
        try:
            session = await self._session_of(conversation)
            if self.is_signed:
                return await self._as_signed(conversation, session)
            if switches.read_only:
                return await self._read_only(conversation, session)
            options = self.options(conversation)
            fitted, warnings = await self._made(session, conversation, options)
        except StoreError as error:
            self.incoming.seen.store_failed_with(error)
            if self.service.settings.on_store_failure == "refuse":
                raise
            session = engine.session(switches.session)
            warning = "the store is unavailable: the request went out as it came"
            return PreparedRequest(conversation, self.incoming.body, session, warnings=(warning,))
        return self._prepared(conversation, session, fitted, options, warnings)

    def _prepared(
        self,
        conversation: Conversation,
        session: Session,
        fitted: Fitted,
        options: FitOptions,
        warnings: tuple[str, ...],
    ) -> PreparedRequest:
        if self.service.settings.context_debug:
            log.debug(context_line(self.incoming.seen, session.name, fitted))
        return PreparedRequest(
            conversation, fitted.body, session, fitted, options, told=fitted, warnings=warnings
        )

    # --- after an internal error -----------------------------------------------------------------

    async def replay(self, conversation: Conversation) -> PreparedRequest | None:
        """Prepare the request with the edits of the session's last one, and no others.

        Return None if that had none, because the client's own bytes are the same then. Where
        history was folded, those bytes may not fit the window and would lack the hidden turns.
        """
        session = self._session
        if session is None or session.state is None or self.is_signed:
            return None
        if session.state.sent.messages == session.state.asked.messages and not session.hidden:
            return None
        check_unmasked(self.service.settings.privacy_policy)
        options = self.options(conversation)
        window = request_limit(conversation, options.registry, model=options.model)
        unlimited = msgspec.structs.replace(
            options, cites=False, ends=False, limit=_NO_LIMIT, high_water=1.0
        )
        try:
            fitted = await session.fit(conversation, unlimited)
        except StoreError:
            if self.service.settings.on_store_failure == "refuse":
                raise
            return None
        fitted = msgspec.structs.replace(fitted, limit=options.limit or window)
        warnings = (*fitted.warnings, REPLAYED)
        return self._prepared(conversation, session, fitted, options, warnings)

    async def unedited(self, conversation: Conversation, faults: Faults) -> PreparedRequest:
        """Prepare the client's own bytes; record the turn where that is possible.

        A policy that refuses to store secrets is applied during fitting. Since that did not happen,
        nothing of the request is recorded under such a policy.
        """
        check_unmasked(self.service.settings.privacy_policy)
        body, fitted = self.incoming.body, None
        session = self._session or self.engine.session(self.incoming.switches.session)
        if self._session is not None and self.service.settings.privacy_policy == "allow":
            with faults.caught("count"):
                model = self.model or conversation.model or ""
                fitted = await self._unchanged(conversation, model, 0)
        return PreparedRequest(
            conversation, body, session, fitted, told=fitted, warnings=(UNEDITED,), unedited=True
        )

    @property
    def turn_budget(self) -> int | None:
        """Most tokens of a turn that is assembled; None where requests are fitted."""
        settings, switches = self.service.settings, self.incoming.switches
        if (switches.mode or settings.mode) == "fit" or not self._continues:
            return None
        limits = (switches.limit, settings.request_limit, settings.assemble_tokens)
        return min(filter(None, limits))

    async def _made(
        self, session: Session, conversation: Conversation, options: FitOptions
    ) -> tuple[Fitted, tuple[str, ...]]:
        """Return the request in the requested mode, and the warnings about it."""
        budget = self.turn_budget
        if budget is None:
            fitted = await session.fit(conversation, options)
            return fitted, fitted.warnings
        # The budget limits the assembled turn; contents that the model opens in it may use the
        # rest.
        options = msgspec.structs.replace(
            options, limit=self.service.settings.request_limit or None
        )
        turn = await self.engine.histories.assemble(session, conversation, options, budget)
        return turn.fitted, (*turn.fitted.warnings, *filter(None, [turn.warning]))

    def options(self, conversation: Conversation) -> FitOptions:
        """Return the options for fitting the request."""
        route, switches = self.incoming.route, self.incoming.switches
        settings, defaults = self.service.settings, self.engine.options
        # Of several answers only one could be continued.
        continues = self._continues and not _wants_several(conversation)
        return msgspec.structs.replace(
            defaults,
            dialect=route.dialect,
            model=self.model,
            limit=switches.limit or settings.request_limit or None,
            rules=switches.citing(defaults.rules),
            cites=defaults.cites and switches.cite and continues,
            opens=defaults.opens and continues,
            # A client that sends the switch has decided; assembled turns contain our own tools.
            in_place=switches.offer_expand is None and self.turn_budget is None,
            offer_expand=switches.offer_expand or defaults.offer_expand,
            lazy=switches.deferring(self._lazy),
            betas=_betas(self.incoming) if route.dialect == "anthropic" else frozenset(),
            reports_usage=True,
        )

    async def _read_only(self, conversation: Conversation, session: Session) -> PreparedRequest:
        """Say what would be done, and do none of it."""
        body, options = self.incoming.body, self.options(conversation)
        try:
            preview = await session.preview(conversation, options)
        except (BudgetExceededError, ContextOptimizationError):
            warning = "the request does not fit: it went out as it came"
            return PreparedRequest(conversation, body, session, warnings=(warning,))
        fitted = await self._unchanged(conversation, options.model, preview.limit)
        return PreparedRequest(
            conversation, body, session, fitted, told=preview, warnings=preview.warnings
        )

    async def _as_signed(self, conversation: Conversation, session: Session) -> PreparedRequest:
        """Prepare the request unedited but counted: one changed byte would break its signature."""
        model = self.model or conversation.model or ""
        limit = request_limit(conversation, self.engine.options.registry, model=model)
        fitted = await self._unchanged(conversation, model, limit)
        return PreparedRequest(
            conversation, self.incoming.body, session, fitted, told=fitted, warnings=(SIGNED,)
        )

    async def unsent(self, conversation: Conversation, edit: Edit) -> PreparedRequest:
        """Prepare a request that is not sent: it is answered from memory, as the edit records."""
        session = await self._session_of(conversation)
        model = self.options(conversation).model
        fitted = await self._unchanged(conversation, model, 0, (edit,))
        return PreparedRequest(conversation, self.incoming.body, session, fitted)

    async def _unchanged(
        self, conversation: Conversation, model: str, limit: int, edits: tuple[Edit, ...] = ()
    ) -> Fitted:
        work = partial(self.count, conversation, model)
        counted = await self.engine.workers.off_loop(len(self.incoming.body), work)
        state = FitState(conversation, conversation, origins_of(conversation.messages))
        return Fitted(self.incoming.body, counted, limit, edits, state)

    async def _session_of(self, conversation: Conversation) -> Session:
        """Return the session that the client names, else the one that the request continues."""
        sender = sender_of(self.incoming.headers, conversation)
        if name := self.incoming.switches.session:
            session = (await self.engine.session(name).load()).sent_by(sender)
        else:
            session = await self.engine.sessions.find(conversation, sender, self.incoming.seen)
        self._session = session
        return session

    def takes(self, prepared: PreparedRequest, model: str) -> bool:
        """Whether another model than the one that was asked for could take the request as well."""
        if prepared.fitted is None:
            return True
        limit = request_limit(prepared.asked, self.engine.options.registry, model=model)
        return prepared.fitted.count.upper <= limit

    def count(self, conversation: Conversation, model: str) -> TokenCount:
        """Count a conversation, with calibration."""
        return count(conversation, model=model, calibration=self.engine.calibration)


def _wants_several(conversation: Conversation) -> bool:
    """Whether several answers are asked for: of those only one could be continued."""
    body = conversation.rest
    config = body.get("generationConfig")
    several = config.get("candidateCount") if isinstance(config, dict) else None
    return any(isinstance(count, int) and count > 1 for count in (body.get("n"), several))


def _betas(incoming: IncomingRequest) -> frozenset[str]:
    """The betas of Anthropic's API that a request names, in one header or in several."""
    values = (value for name, value in incoming.headers if name.lower() == "anthropic-beta")
    return frozenset(beta.strip() for value in values for beta in value.split(","))
