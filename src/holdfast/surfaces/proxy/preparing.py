"""A request made ready to go out: its session, its hidden calls, its limit, and what is told.

preparing: after expansions and the final turn, before exchange.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from holdfast.engine import Session
from holdfast.errors import BudgetExceededError, ContextOptimizationError, StoreError
from holdfast.fitting import FitState, Fitted
from holdfast.fitting.state import one_by_one
from holdfast.surfaces.proxy.final_turn import final_turn
from holdfast.surfaces.proxy.incoming import Incoming
from holdfast.surfaces.proxy.service import Service
from holdfast.surfaces.proxy.switches import PREFIX
from holdfast.tokens import TokenCount, count
from holdfast.wire import Conversation
from holdfast.wire.answers import Hidden, rejoin
from holdfast.wire.strict import encode, splice


class Prepared(NamedTuple):
    """A request that may go out."""

    asked: Conversation
    """What the client sent."""
    body: bytes
    session: Session
    fitted: Fitted | None = None
    """What goes out; None where nothing is known of it."""
    told: Fitted | None = None
    """What the client is told of: that which went out, or which would have."""
    untouched: int = 0
    """Tokens of the request as the client sent it: edits overlap, so theirs cannot be summed."""
    warnings: tuple[str, ...] = ()
    final: bool = False

    @property
    def asks_for_usage(self) -> bool:
        """Whether the proxy has asked for usage that the client did not ask for."""
        return self.fitted is not None and self.body is not self.fitted.body

    @property
    def headers(self) -> dict[str, str]:
        """What the proxy tells about what it did."""
        headers = {f"{PREFIX}session": self.session.name}
        if self.told is not None:
            headers[f"{PREFIX}tokens"] = str(self.told.tokens)
            headers[f"{PREFIX}saved"] = str(self.untouched - self.told.tokens)
            headers[f"{PREFIX}edits"] = str(len(self.told.edits))
        if self.final:
            headers[f"{PREFIX}final"] = "true"
        if self.warnings:
            headers[f"{PREFIX}warning"] = "; ".join(self.warnings)
        return headers


class Preparing:
    """Makes one request ready."""

    def __init__(self, service: Service, incoming: Incoming, hidden: Hidden) -> None:
        self.service = service
        self.incoming = incoming
        self.dialect = incoming.route.dialect
        self.limit = incoming.switches.limit or service.settings.request_limit or None
        """Most input tokens, where that is not left to the model."""
        self._hidden = hidden

    async def prepare(self, conversation: Conversation) -> Prepared:
        """Make the request fit, with what was decided for its session before."""
        engine, switches = self.service.engine, self.incoming.switches
        try:
            if switches.session:
                session = await engine.session(switches.session).load()
            else:
                session = await engine.session_of(conversation)
            return await self._fit(conversation, session)
        except StoreError:
            self.incoming.seen.store_failed = True
            if self.service.settings.on_store_failure == "refuse":
                raise
            session = engine.session(switches.session)
            warning = "the store is unavailable: the request went out as it came"
            return self._as_it_came(conversation, session, warning)

    async def _fit(self, conversation: Conversation, session: Session) -> Prepared:
        switches = self.incoming.switches
        model = self.incoming.route.model or conversation.model or ""
        how: dict[str, Any] = {
            "dialect": self.dialect,
            "model": model,
            "limit": self.limit,
        }
        if not switches.cite or _wants_several(conversation):
            how["citing"] = None
        if switches.read_only:
            return await self._read_only(conversation, session, how)
        whole = rejoin(conversation, session.kept.get(self.dialect, ()), self._hidden)
        final = False
        try:
            fitted = await session.fit(whole, **how)
        except (BudgetExceededError, ContextOptimizationError) as error:
            # Nothing more can be folded: the tools go, and the model is asked to come to an end.
            last = final_turn(
                whole,
                provider=self.incoming.route.family,
                model=model,
                limit=self.limit or getattr(error, "limit", None) or 0,
                debug=self.service.settings.context_debug,
            )
            fitted = await session.fit(last, **how)
            final = True
        # Hidden calls that were brought back are not the client's; else what was read is known.
        came = fitted.state.source if whole is conversation else conversation
        return Prepared(
            asked=conversation,
            body=self._with_usage(fitted.body),
            session=session,
            fitted=fitted,
            told=fitted,
            untouched=self.count(came, model).tokens,
            warnings=fitted.warnings,
            final=final,
        )

    async def _read_only(
        self, conversation: Conversation, session: Session, how: dict[str, Any]
    ) -> Prepared:
        """Say what would be done, and do none of it."""
        try:
            told = await session.preview(conversation, **{**how, "citing": None})
        except (BudgetExceededError, ContextOptimizationError):
            warning = "the request does not fit: it went out as it came"
            return self._as_it_came(conversation, session, warning)
        counted = self.count(conversation, how["model"])
        same = one_by_one(0, len(conversation.messages))
        state = FitState(conversation, conversation, same)
        body = self.incoming.body
        fitted = Fitted(body, counted, told.limit, (), state)
        return Prepared(conversation, body, session, fitted, told, counted.tokens)

    def _as_it_came(self, conversation: Conversation, session: Session, warning: str) -> Prepared:
        return Prepared(conversation, self.incoming.body, session, warnings=(warning,))

    def _with_usage(self, body: bytes) -> bytes:
        """Ask for the usage of a stream where it has to be asked for."""
        if self.dialect != "openai-chat":
            return body
        asked = msgspec.json.decode(body, type=_Streaming)
        options = asked.stream_options if isinstance(asked.stream_options, dict) else {}
        if asked.stream is not True or options.get("include_usage"):
            return body
        return splice(body, ("stream_options",), encode({**options, **_USAGE}))

    def count(self, conversation: Conversation, model: str) -> TokenCount:
        """Count with what was learnt."""
        return count(conversation, model=model, calibration=self.service.engine.calibration)

    def room(self, prepared: Prepared, grown: Conversation) -> int:
        """Tokens that a request may still grow by; by the same measure as it was made to fit."""
        if prepared.fitted is None:
            return 0
        made = self.count(grown, prepared.fitted.count.model)
        return prepared.fitted.limit - (made.tokens if self.limit else made.upper)


def _wants_several(conversation: Conversation) -> bool:
    """Whether several answers are asked for: of those only one could be continued."""
    body = conversation.rest
    config = body.get("generationConfig")
    several = config.get("candidateCount") if isinstance(config, dict) else None
    return any(isinstance(wanted, int) and wanted > 1 for wanted in (body.get("n"), several))


class _Streaming(msgspec.Struct):
    """What is wrong with it, the provider says."""

    stream: Any = False
    stream_options: Any = None


_USAGE = {"include_usage": True}
