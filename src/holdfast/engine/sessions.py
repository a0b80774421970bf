"""The sessions of one scope: those in memory, those in the store, and how a request finds its own.

sessions: after session and response_chains, before holdfast. The client's own session id comes
first, then the history: one client session holds several conversations (the main one, subagents,
titles, compactions), and each of them is a session here. A conversation that continues differently
from a stored one is another session. A history that the provider stores is found by response id.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from holdfast.engine.identity import UNKNOWN, OpenRequest, Sender
from holdfast.engine.observation import Observation
from holdfast.engine.parts import EngineParts
from holdfast.engine.response_chains import ResponseChains
from holdfast.engine.session import COMPARING, Session, size_of
from holdfast.fitting import Fitted
from holdfast.store import Content, Scope, Turn
from holdfast.store.records import ClientKey
from holdfast.tokens import Calibration
from holdfast.wire import Conversation
from holdfast.wire.places import heads
from holdfast.wire.stored_history import stored_history_id

_SAVE_EVERY = 50
"""Recorded turns after which the calibration is stored."""
_MOST_HEADS = 1_000
"""Places of one tenant's requests, a quarter of a megabyte; the store knows all of them."""
_MOST_AT_ONE_PLACE = 16
"""Sessions of one client at one place: identical requests that were sent at the same time."""
_BEGUN = "head:"
"""Prefix of the link to the place at which a session began. Its first turn is stored when it is
answered, and another process may get the next request before that."""


class SessionMatch(NamedTuple):
    """The session of a request, if there is one."""

    session: Session | None = None
    """The session that the request continues."""
    parent: Session | None = None
    """If it continues none: a session with the same first messages and another continuation."""
    shared: int = 0
    """How many messages the request shares with the parent."""


class Sessions:
    """The sessions of one scope."""

    def __init__(
        self,
        parts: EngineParts,
        scope: Scope,
        calibration: Calibration,
        on_stored: Callable[[Scope, Sequence[Content]], None] | None = None,
    ) -> None:
        self.chains = ResponseChains(parts.store, scope)
        """Sessions whose history a provider stores."""
        self._parts = parts
        self._scope = scope
        self._calibration = calibration
        self._on_stored = on_stored
        self._places: OrderedDict[tuple[ClientKey, str], tuple[str, ...]] = OrderedDict()
        """Names of sessions by client and place, the newest first; also by earlier places, at
        which other conversations branch off."""
        self._recorded = 0
        self._saved = calibration.dump()

    def get(self, name: str = "") -> Session:
        """Return a session by its name; a new one without a name."""
        scope = self._scope.of(name or uuid.uuid4().hex)
        session = self._parts.live.get(scope)
        if session is None:
            session = self.unkept(scope)
            self._parts.live.add(session)
        return session

    def unkept(self, scope: Scope) -> Session:
        """Return a session that is not kept in memory."""
        return Session(self._parts, scope, self._calibration, self._on_stored)

    async def delete(self, name: str) -> int:
        """Delete a session from the store and from memory; return the number of its refs."""
        scope = self._scope.of(name)
        refs = await self._parts.store.delete_session(scope)
        self._parts.live.drop(scope)
        await asyncio.to_thread(self._parts.workers.recycle)
        return refs

    # --- turns -----------------------------------------------------------------------------------

    async def record(self, session: Session, fitted: Fitted, observation: Observation) -> Turn:
        """Record the turn of a request that was sent, and learn from its reported usage."""
        turn = await session.record_turn(fitted, observation)
        self._parts.live.weigh(session, await session.weighed())
        self._recorded += 1
        if self._recorded % _SAVE_EVERY == 0:
            await self.save_calibration()
        return turn

    @property
    def has_unsaved_calibration(self) -> bool:
        """Whether the calibration has changed since it was stored."""
        return self._calibration.dump() != self._saved

    async def save_calibration(self) -> None:
        """Store the calibration."""
        self._saved = self._calibration.dump()
        await self._parts.store.save_calibration(self._scope, self._saved)

    # --- finding ---------------------------------------------------------------------------------

    async def find(
        self,
        conversation: Conversation,
        sender: Sender = UNKNOWN,
        request: OpenRequest | None = None,
    ) -> Session:
        """Return the session that a request continues; a new one if it continues none.

        `request` shows whether the request is still open, so that an identical one in the meantime
        is not taken for a retry.
        """
        if history_id := stored_history_id(conversation):
            # Only the provider's name counts: many conversations begin with the same few messages.
            chained = await self.get(await self.chains.session_of(history_id)).load()
            self.chains.remember(history_id, chained.name)  # the client may send it once more
            return chained.sent_by(sender)
        places = await self._places_of(conversation)
        match = await self._match(places, conversation, sender)
        session = match.session
        if session is None:
            session = self.get()
            session.begin(match.parent, match.shared, len(conversation.messages), sender.purpose)
            if places and not sender.purpose:
                await self._parts.store.link(session.scope, [_begun(sender.key, places[0])])
        session.sent_by(sender, request)
        if places:  # at once: the next request may come before this one is stored
            session.head = places[0]
            self._remember(session.name, sender.key, places[0])
        return session

    async def look_up(
        self, conversation: Conversation, name: str = "", sender: Sender = UNKNOWN
    ) -> Session:
        """Return the session that a request would continue, without beginning one."""
        session: Session | None = None
        if not name and (history_id := stored_history_id(conversation)):
            name = await self.chains.session_of(history_id)
        elif not name:
            places = await self._places_of(conversation)
            session = (await self._match(places, conversation, sender)).session
        if session is None and name:
            scope = self._scope.of(name)
            session = self._parts.live.get(scope) or await self.unkept(scope).load()
        return session or self.unkept(self._scope.of(uuid.uuid4().hex)).begin()

    async def _places_of(self, conversation: Conversation) -> list[str]:
        work = partial(heads, conversation)
        return await self._parts.workers.off_loop(size_of(conversation) // COMPARING, work)

    def _remember(self, name: str, client: ClientKey, place: str) -> None:
        names = self._places.get((client, place), ())
        remaining = [each for each in names if each != name]
        self._places[client, place] = (name, *remaining[: _MOST_AT_ONE_PLACE - 1])
        self._places.move_to_end((client, place))
        while len(self._places) > _MOST_HEADS:
            self._places.popitem(last=False)

    async def _match(
        self, places: list[str], conversation: Conversation, sender: Sender
    ) -> SessionMatch:
        """Return the session whose last request was at one of these places, or a parent."""
        if not places:
            return SessionMatch()
        in_memory = await self._in_memory(places, conversation, sender)
        if in_memory.session is not None:
            return in_memory
        store, scope = self._parts.store, self._scope
        record = await store.session_with_head(scope, places, client=sender.key)
        if record is None and in_memory.parent is None and _has_answer(conversation):
            # The client continues under another id, or sends ids since an update. Two agents with
            # the same first request have no answer in common yet, so they do not get here.
            record = await store.session_with_head(scope, places[1:])
        if record is not None:
            match = await self._fits(record.session, places, conversation, sender)
            return match if match.session is not None or in_memory.parent is None else in_memory
        if not sender.purpose and (name := await self._begun_at(places[1:], sender.key)):
            return SessionMatch(await self._caught_up(name, conversation))
        return in_memory

    async def _in_memory(
        self, places: list[str], conversation: Conversation, sender: Sender
    ) -> SessionMatch:
        """Look among the sessions of this process, at the longest place that one of them had."""
        names = next((names for place in places if (names := self._names(place, sender))), ())
        parents = SessionMatch()
        # A session whose first request is still open has no answer to continue from yet.
        for name in sorted(names, key=self._is_answering):
            match = await self._fits(name, places, conversation, sender)
            if match.session is not None:
                return match
            parents = parents if parents.parent is not None else match
        return parents

    def _names(self, place: str, sender: Sender) -> tuple[str, ...]:
        return self._places.get((sender.key, place), ())

    def _is_answering(self, name: str) -> bool:
        session = self._parts.live.get(self._scope.of(name))
        return session is not None and session.answers_first

    async def _fits(
        self, name: str, places: list[str], conversation: Conversation, sender: Sender
    ) -> SessionMatch:
        """Return whether a request continues this session, or has only its beginning in common."""
        session = await self._caught_up(name, conversation)
        if session.head == places[0] and session.answers_first:
            return SessionMatch()  # an identical request that is still on its way: another agent's
        if session.head in places and session.record.purpose == sender.purpose:
            return SessionMatch(session)
        return SessionMatch(
            parent=session, shared=self._shared(session, places, conversation, sender)
        )

    def _shared(
        self, session: Session, places: list[str], conversation: Conversation, sender: Sender
    ) -> int:
        """Return how many messages a request has in common with a session, as far as known."""
        for n, place in enumerate(places):
            if place == session.head or session.name in self._names(place, sender):
                return len(conversation.messages) - n
        return 0

    async def _caught_up(self, name: str, conversation: Conversation) -> Session:
        return await (await self.get(name).load()).catch_up(conversation)

    async def _begun_at(self, places: list[str], client: ClientKey) -> str:
        """Return a session whose first request another process is still working on."""
        if not places:
            return ""
        name = await self._parts.store.session_linked(
            self._scope, *(_begun(client, place) for place in places)
        )
        record = await self._parts.store.session(self._scope.of(name)) if name else None
        return name if record is None or record.head in places else ""


def _begun(client: ClientKey, place: str) -> str:
    """Return the link under which a session that begins at a place is known."""
    return _BEGUN + "/".join((*filter(None, client), place))


def _has_answer(conversation: Conversation) -> bool:
    return any(message.role == "assistant" for message in conversation.messages)
