"""Answers the calls of our own tools in one answer, which its client never sees.

hidden_calls: after preparing, before exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from holdfast.calling.expansions import MOST_CALLS, Expansions
from holdfast.calling.finding import ToolFinder
from holdfast.calling.own_tools import OwnTools
from holdfast.engine import ToolUse
from holdfast.expand.finding import FINDERS
from holdfast.faults import Faults
from holdfast.fitting import Fitted
from holdfast.fitting.deferring import deferred_tools
from holdfast.surfaces.proxy.logs import Fields, log
from holdfast.surfaces.proxy.preparing import Prepared, Preparing
from holdfast.wire import Conversation
from holdfast.wire.answers import Call, Handed, Hop, turn_calls, with_own_ids
from holdfast.wire.thinking import unbound, unbound_turn

_T = TypeVar("_T")
_CALL_BYTES = 100
"""What a call counts for in the size of a task, beside its arguments."""


class HiddenCalls:
    """The hidden calls of one answer. Create one instance per request."""

    def __init__(
        self,
        preparing: Preparing,
        prepared: Prepared,
        faults: Faults,
        own_tools: OwnTools | None = None,
    ) -> None:
        """Begin; `own_tools` are the tools that went out and are not the client's own."""
        self._own_tools = own_tools or OwnTools()
        self.hops: list[Hop] = []
        """Upstream calls so far, with what the model opened in each."""
        self.handed: Handed = {}
        """Calls of the answer that the client gets as calls of its own tools."""
        self.tool_use = ToolUse()
        self.refitted: Fitted | None = None
        """The request as it went out last, where history was folded to make room."""
        self.expansions: Expansions | None = None
        """What the model opens, once it does."""
        self._preparing = preparing
        self._prepared = prepared
        self._faults = faults
        self._failures = 0
        self._finder: ToolFinder

    def is_hidden(self, name: str) -> bool:
        """Return whether a call is for a tool that we put into this request: no other is answered.

        A model that was talked into a tool it was not given would open what a tenant owns for a
        request that cites nothing.
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
        self, sent: Conversation, turn_of: Callable[[], tuple[bytes, ...]], asked: Sequence[Call]
    ) -> Conversation | None:
        """Answer the hidden calls of a turn; return the request that goes on, None if none does.

        The turn is written only where it is needed again: most answers hide nothing. After an
        internal error the model is asked again without our tools, unless the client has calls of
        its own to answer.
        """
        with self._faults.caught("hidden calls"):
            return await self._answered(sent, turn_of, asked)
        self._failures += 1
        if self._failures > 1 or not all(self.is_hidden(call.name) for call in asked):
            return None
        return self.without_tools()

    def start_over(self, status: int) -> Conversation | None:
        """Return the first request without our tools, where one that goes on from it is refused."""
        request = self.expansions.start_over(status) if self.expansions is not None else None
        if request is not None:
            self.hops.clear()
        return request

    def without_tools(self) -> Conversation:
        """Return the client's own request, to be sent instead of one that goes on."""
        self._preparing.service.check_unedited()
        self.hops.clear()
        return self._prepared.asked

    async def _answered(
        self, sent: Conversation, turn_of: Callable[[], tuple[bytes, ...]], asked: Sequence[Call]
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

    def _hidden_among(self, calls: Sequence[Call]) -> list[Call]:
        return [call for call in calls if self.is_hidden(call.name)]

    def _refused(self, sent: Conversation, calls: int, *, alone: bool) -> Conversation | None:
        """Answer none of too many hidden calls; return the request without our tools.

        The turn is not kept: the client sees what else is in it, and its own calls above all.
        """
        log.warning(Fields(event="too_many_calls", calls=calls, most=MOST_CALLS))
        self.hops.clear()  # they would lack their last turn when the client goes on
        expansions = self.expansions = self.expansions or self._begin()
        return expansions.refuse_all(sent) if alone else None

    async def _off_loop(self, calls: Sequence[Call], work: Callable[[], _T]) -> _T:
        """Work on a turn with some calls; with many of them off the event loop."""
        size = sum(len(call.arguments) for call in calls) + _CALL_BYTES * len(calls)
        return await self._preparing.engine.workers.off_loop(size, work)

    def _count_uses(self, calls: Sequence[Call], hidden: Sequence[Call] = ()) -> None:
        """Count the calls that the client gets, and the searches for tools that were set aside."""
        names: set[str] = set()
        if calls and self._is_lazy and self._prepared.fitted is not None:
            names = deferred_tools(self._prepared.fitted.state)
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
        preparing, prepared = self._preparing, self._prepared
        engine = preparing.engine
        self._finder = ToolFinder(
            prepared.asked, prepared.sent, engine.workers, engine.tool_embedder
        )
        return Expansions(
            engine,
            preparing.service.caps,
            partial(preparing.room, prepared),
            self.is_hidden,
            self._make_room,
            session=prepared.session.name,
            finder=self._finder if self._is_lazy else None,
            faults=self._faults,
        )

    async def _make_room(self, sent: Conversation, tokens: int) -> Conversation | None:
        """Fold the request until it may grow by `tokens`; what was opened since stays."""
        preparing, prepared = self._preparing, self._prepared
        before = self.refitted or prepared.fitted
        if before is None:
            return None
        room = partial(preparing.room, prepared)
        opened = room(before.state.sent) - room(sent)
        refitted = await preparing.folded(prepared, before, opened + tokens)
        if refitted is None:
            return None
        self.refitted = refitted
        since = sent.messages[len(before.state.sent.messages) :]
        folded = refitted.state.sent
        # What the model thought since then is bound to what was just folded, here and next time.
        self.hops = [Hop(unbound_turn(hop.turn, folded), hop.results) for hop in self.hops]
        return unbound(folded.with_messages(folded.messages + since), len(folded.messages))
