"""Answer the calls of our own tools in one answer, which its client never sees.

hidden_calls: after expansions. The proxy and the client each have the loop that sends; this file
decides for both which request is sent next, which turns are kept, and when the answer ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec

from holdfast.engine import Holdfast, Session, ToolUse
from holdfast.errors import BudgetExceededError, ContextOptimizationError, StoreError
from holdfast.expand.tool_search import FINDERS
from holdfast.faults import Faults
from holdfast.fitting import FitOptions, Fitted
from holdfast.fitting.tool_directory import deferred_tools
from holdfast.privacy import check_unmasked
from holdfast.tokens import count
from holdfast.upstream.expansions import MOST_CALLS, Caps, Expansions
from holdfast.upstream.own_tools import OwnTools
from holdfast.upstream.tool_finder import ToolFinder
from holdfast.wire import Conversation
from holdfast.wire.bound_thinking import without_bound_thinking, without_bound_thinking_in_turn
from holdfast.wire.places import head_of
from holdfast.wire.responses import (
    HandedCalls,
    HiddenTurn,
    Hop,
    ModelCall,
    turn_calls,
    with_own_ids,
)

_T = TypeVar("_T")
_log = logging.getLogger("holdfast.upstream")
_CALL_BYTES = 100
"""Size of a call for the choice of a thread, beside its arguments."""


class SentRequest(NamedTuple):
    """A request that was sent."""

    asked: Conversation
    """As its client wrote it."""
    session: Session
    fitted: Fitted | None = None
    """The sent request; None where nothing is known of it."""
    options: FitOptions | None = None
    """The options with which it was fitted; None if it may not be folded again."""

    @property
    def sent(self) -> Conversation:
        """The conversation that was sent, from which hidden calls continue."""
        return self.asked if self.fitted is None else self.fitted.state.sent


class AnswerIds:
    """The ids of the upstream answers to one request."""

    def __init__(self) -> None:
        self.first = ""
        """The client knows the whole answer by it."""
        self.last = ""

    def keep(self, name: str) -> None:
        """Note the id of the next answer; some providers give none."""
        self.first = self.first or name
        self.last = name or self.last


class HiddenCalls:
    """The hidden calls of one answer. Create one instance per request."""

    def __init__(
        self,
        engine: Holdfast,
        request: SentRequest,
        caps: Caps,
        faults: Faults,
        own_tools: OwnTools | None = None,
    ) -> None:
        """Begin; `own_tools` are the sent tools that are not the client's own."""
        self._own_tools = own_tools or OwnTools()
        self.hops: list[Hop] = []
        """Upstream calls so far, with the parts that the model opened in each."""
        self.handed: HandedCalls = {}
        """Calls of the answer that the client gets as calls of its own tools."""
        self.tool_use = ToolUse()
        self.refitted: Fitted | None = None
        """The last sent request, if history was folded to make room."""
        self.expansions: Expansions | None = None
        """The parts that the model opens, after its first call."""
        self._engine = engine
        self._request = request
        self._caps = caps
        self._faults = faults
        self._failures = 0
        self._finder: ToolFinder

    def is_hidden(self, name: str) -> bool:
        """Return whether a call is for a tool that we added: only those calls are answered.

        A model that an attacker tricked into calling another tool could open a tenant's content in
        a request that cites nothing.
        """
        return name in self._own_tools

    @property
    def offered(self) -> frozenset[str]:
        """The names of these tools."""
        return self._own_tools.names

    def may_be_in(self, body: bytes) -> bool:
        """Return whether an answer that nobody could read may hold a hidden call."""
        return any(name.encode() in body.lower() for name in self.offered)

    async def next_request(
        self,
        sent: Conversation,
        turn_of: Callable[[], tuple[bytes, ...]],
        asked: Sequence[ModelCall],
    ) -> Conversation | None:
        """Answer the hidden calls of a turn; return the next request, or None after the last.

        The turn is only written where it is needed again, because most answers hide nothing. After
        an internal error the model is asked again without our tools, unless the client has calls of
        its own to answer.
        """
        with self._faults.caught("hidden calls"):
            return await self._answered(sent, turn_of, asked)
        self._failures += 1
        if self._failures > 1 or not all(self.is_hidden(call.name) for call in asked):
            return None
        return self.without_tools()

    def start_over(self, status: int) -> Conversation | None:
        """Return the first request without our tools, if the upstream refuses the continued one."""
        request = self.expansions.start_over(status) if self.expansions is not None else None
        if request is not None:
            self.hops.clear()
        return request

    def without_tools(self) -> Conversation:
        """Return the client's own request, to be sent instead of a continued one.

        Raises:
            UnmaskedError: it may contain data that the privacy policy masks.
        """
        check_unmasked(self._engine.options.rules.privacy)
        self.hops.clear()
        return self._request.asked

    def take_kept(self, ids: AnswerIds) -> HiddenTurn | None:
        """Return the turns that the client's next request will lack; None if nothing was hidden."""
        if not self.hops:
            return None
        hops, self.hops = tuple(self.hops), []
        conversation = self._request.asked
        return HiddenTurn(
            hops=hops,
            index=len(conversation.messages),
            place=head_of(conversation),
            seen_id=ids.first,
            last_id=ids.last,
            dialect=conversation.dialect,
        )

    async def _answered(
        self,
        sent: Conversation,
        turn_of: Callable[[], tuple[bytes, ...]],
        asked: Sequence[ModelCall],
    ) -> Conversation | None:
        hidden = await self._off_loop(asked, partial(self._hidden_among, asked))
        if not hidden:
            self._count_uses(asked)
            if self.expansions is None:
                return None
            return self._last_turn(self.expansions, await self._off_loop(asked, turn_of))
        if len(hidden) > MOST_CALLS:
            return self._refused(sent, len(hidden), alone=len(hidden) == len(asked))
        turn = with_own_ids(turn_of(), sent, self._own_tools.name_of)
        calls = turn_calls(turn, sent.dialect)
        expansions = self.expansions = self.expansions or self._begin()
        handed = self.handed = await self._finder.handed(calls) if self._is_lazy else {}
        hidden = [c for n, c in enumerate(calls) if self.is_hidden(c.name) and n not in handed]
        own = (call for call in calls if not self.is_hidden(call.name))
        self._count_uses((*own, *handed.values()), hidden)
        if not hidden:
            self.hops.append(Hop(turn, handed=dict(handed)))
            return None
        step = await expansions.step(sent, turn, hidden, alone=len(hidden) == len(calls))
        if expansions.is_asked_again:
            self.hops.clear()
            return step.following
        hop = await self._off_loop(hidden, partial(expansions.hop_of, sent, step, hidden, handed))
        if hop.turn:
            self.hops.append(hop)
        return step.following

    def _last_turn(self, expansions: Expansions, turn: tuple[bytes, ...]) -> Conversation | None:
        """Keep the turn that ends an answer; return the first request again if it is empty.

        A turn without a word is not kept: providers refuse a history that holds it.
        """
        again = expansions.ask_again(turn)
        if expansions.is_asked_again:
            self.hops.clear()
        elif self.hops and not expansions.is_silent(turn):
            self.hops.append(Hop(turn))
        return again

    def _hidden_among(self, calls: Sequence[ModelCall]) -> list[ModelCall]:
        return [call for call in calls if self.is_hidden(call.name)]

    def _refused(self, sent: Conversation, calls: int, *, alone: bool) -> Conversation | None:
        """Answer none of too many hidden calls; return the request without our tools.

        The turn is not kept: the client sees what else is in it, and its own calls above all.
        """
        _log.warning("too_many_calls calls=%d most=%d", calls, MOST_CALLS)
        self.hops.clear()  # they would lack their last turn in the client's next request
        expansions = self.expansions = self.expansions or self._begin()
        return expansions.refuse_all(sent) if alone else None

    async def _off_loop(self, calls: Sequence[ModelCall], work: Callable[[], _T]) -> _T:
        """Work on a turn with some calls; with many of them off the event loop."""
        size = sum(len(call.arguments) for call in calls) + _CALL_BYTES * len(calls)
        return await self._engine.workers.off_loop(size, work)

    def _count_uses(self, calls: Sequence[ModelCall], hidden: Sequence[ModelCall] = ()) -> None:
        """Count the calls that the client gets, and the searches for tools that were set aside."""
        names: set[str] = set()
        if calls and self._is_lazy and self._request.fitted is not None:
            names = deferred_tools(self._request.fitted.state)
        before = self.tool_use
        self.tool_use = ToolUse(
            before.calls + len(calls),
            before.lazy + sum(call.name in names for call in calls),
            before.searches + sum(call.name in FINDERS for call in hidden),
        )

    @property
    def _is_lazy(self) -> bool:
        """Whether tools were set aside in this request."""
        return not self.offered.isdisjoint(FINDERS)

    def _begin(self) -> Expansions:
        engine, request = self._engine, self._request
        embedder = engine.parts.tool_embedder
        self._finder = ToolFinder(request.asked, request.sent, engine.workers, embedder)
        return Expansions(
            engine,
            self._caps,
            self._room,
            self.is_hidden,
            self._make_room,
            session=request.session.name,
            finder=self._finder if self._is_lazy else None,
            faults=self._faults,
        )

    # --- room ------------------------------------------------------------------------------------

    def _room(self, grown: Conversation) -> int:
        """Return the tokens that a request may still grow by, as it was counted to make it fit."""
        fitted, options = self._request.fitted, self._request.options
        if fitted is None or options is None:
            return 0
        model = fitted.count.model or None
        counted = count(grown, model=model, calibration=self._engine.calibration)
        return fitted.limit - (counted.tokens if options.limit else counted.upper)

    async def _make_room(self, sent: Conversation, tokens: int) -> Conversation | None:
        """Fold the request until `tokens` more fit; parts opened since stay in it."""
        before = self.refitted or self._request.fitted
        if before is None:
            return None
        opened = self._room(before.state.sent) - self._room(sent)
        refitted = await self._folded(before, opened + tokens)
        if refitted is None:
            return None
        self.refitted = refitted
        since = sent.messages[len(before.state.sent.messages) :]
        folded = refitted.state.sent
        # Thinking blocks since then are bound to the folded messages, in this request and the next.
        self.hops = [
            Hop(without_bound_thinking_in_turn(hop.turn, folded), hop.results) for hop in self.hops
        ]
        return without_bound_thinking(
            folded.with_messages(folded.messages + since), len(folded.messages)
        )

    async def _folded(self, before: Fitted, tokens: int) -> Fitted | None:
        """Return the request folded until it may grow by `tokens`; None if that cannot be."""
        request, limit = self._request, before.limit - tokens
        if limit <= 0 or request.options is None:
            return None
        options = msgspec.structs.replace(request.options, limit=limit, ends=False, high_water=1.0)
        try:
            fitted = await request.session.fit(request.asked, options)
        except (BudgetExceededError, ContextOptimizationError, StoreError):
            return None
        return msgspec.structs.replace(
            fitted, limit=before.limit, edits=before.edits + fitted.edits
        )
