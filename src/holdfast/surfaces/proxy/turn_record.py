"""The record of one request: its turn in the store, and the calls that its client never saw.

turn_record: after preparing, before exchange. An internal error here costs the record, and
never the answer.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec

from holdfast.engine import ExpansionUsage, Holdfast, Observation, ReusedAnswer
from holdfast.faults import Faults
from holdfast.store.deadline import REQUEST_SECONDS
from holdfast.surfaces.proxy.dispatch import Dispatch
from holdfast.surfaces.proxy.incoming_request import IncomingRequest
from holdfast.surfaces.proxy.logs import Fields, log
from holdfast.surfaces.proxy.request_preparer import SIGNED, PreparedRequest
from holdfast.surfaces.proxy.service import Service
from holdfast.upstream.hidden_calls import AnswerIds, HiddenCalls
from holdfast.wire import Conversation
from holdfast.wire.responses import HiddenTurn
from holdfast.wire.stored_history import history_ids_after, stored_fields

_RECORD_SECONDS = REQUEST_SECONDS
"""Seconds for which the end of a response waits for its record. A client that has a response can
have its request rebuilt, even if the proxy is killed in the next moment; but a store that hangs
must not block responses."""


class TurnRecord:
    """The stored record of one request. Create one instance per request."""

    def __init__(
        self,
        service: Service,
        incoming: IncomingRequest,
        engine: Holdfast,
        dispatch: Dispatch,
        faults: Faults,
    ) -> None:
        self.ids = AnswerIds()
        self.hidden_answer: HiddenTurn | None = None
        """The part of the answer that the client never saw."""
        self.error = ""
        """The provider's word for a failure."""
        self._service = service
        self._seen = incoming.seen
        self._read_only = incoming.switches.read_only
        self._engine = engine
        self._dispatch = dispatch
        self._faults = faults
        self._started = time.perf_counter()
        self._linked = False

    def hide(self, prepared: PreparedRequest, hidden: HiddenCalls) -> None:
        """Keep the hidden calls for the client's next request, which will be without them."""
        conversation = prepared.asked
        if self.ids.first and conversation.dialect == "openai-responses" and not self._linked:
            self._link(prepared)
        hidden_turn = hidden.take_kept(self.ids)
        if hidden_turn is not None:
            self.hidden_answer = hidden_turn
            prepared.session.hide(hidden_turn)

    def _link(self, prepared: PreparedRequest) -> None:
        """Let the client's next request be known: it may name this answer and hold no history."""
        self._linked = True
        if names := history_ids_after(prepared.asked, self.ids.first):
            answered = self._engine.sessions.chains.answered(prepared.session.name, names)
            self._service.later(answered, self._faults)

    def note(
        self,
        prepared: PreparedRequest,
        hidden: HiddenCalls,
        status: int,
        usages: list[dict[str, Any]],
        remembered: ReusedAnswer | None = None,
    ) -> None:
        """Begin to write the turn down, once; `written` waits for it."""
        with self._faults.caught("record"):
            self.hide(prepared, hidden)
        with self._faults.caught("record"):
            if hidden.expansions is not None:
                hidden.expansions.end()
        self._note(prepared, hidden, status, usages, remembered)

    def _note(
        self,
        prepared: PreparedRequest,
        hidden: HiddenCalls,
        status: int,
        usages: list[dict[str, Any]],
        remembered: ReusedAnswer | None,
    ) -> None:
        fitted = hidden.refitted or prepared.fitted
        if fitted is None or self._seen.turn is not None:
            return
        if remembered is None and (routed := self._dispatch.edit) is not None:
            fitted = msgspec.structs.replace(fitted, edits=(*fitted.edits, routed))
        signed = (SIGNED,) if self._dispatch.is_signed else ()
        observation = Observation(
            usage=usages,
            status=status,
            expanded=hidden.expansions.used if hidden.expansions is not None else ExpansionUsage(),
            tools=hidden.tool_use,
            hidden=self.hidden_answer,
            milliseconds=(time.perf_counter() - self._started) * 1000,
            read_only=self._read_only or self._dispatch.is_signed or prepared.unedited,
            warnings=(*signed, *self._faults.warnings),
            learn=self._teaches(prepared.asked),
            billed=self._dispatch.target is not None,
            remembered=remembered,
            first=prepared.fitted.count if prepared.fitted is not None else None,
            error=self.error,
        )
        recording = self._engine.sessions.record(prepared.session, fitted, observation)
        self._seen.turn = self._service.later(recording, self._faults)
        if hidden.expansions is not None:
            used = hidden.expansions.used
            self._service.telemetry.metrics.refused(used.refused, used.repeated)

    async def written(self) -> bool:
        """Wait until the turn is written down, before the client has the end of its answer.

        Return whether it is. One that is not may be written later, when the store answers.
        """
        turn = self._seen.turn
        if turn is None:
            return True
        await asyncio.wait({turn}, timeout=_RECORD_SECONDS)
        if not turn.done():
            log.warning(Fields(event="written_late", id=self._seen.id))
        return turn.done() and not turn.cancelled() and turn.result() is not None

    @property
    def saved(self) -> int | None:
        """Tokens that the turn saved over all its calls; None if there is no record yet."""
        turn = self._seen.turn
        written = turn.result() if turn is not None and turn.done() else None
        return written.usage.saved if written is not None else None

    def _teaches(self, asked: Conversation) -> bool:
        """Return whether the reported usage can calibrate our counting.

        It cannot if it is our own count (the offline model), includes a history that the provider
        stores, or is of another model than the one that was counted for.
        """
        if self._dispatch.target is None or self._dispatch.fell_back:
            return False
        return not stored_fields(asked)
