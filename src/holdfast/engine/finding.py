"""Finds the session that a request belongs to.

finding: after session. The client's own session id comes first, then the history: one client
session holds several conversations (the main one, subagents, titles, compactions), and each of
them is a session here. A conversation that goes on differently from where another left is another
session. What the provider holds is known by the provider's own name for it.

Sessions whose history a provider holds: known by the provider's names, not by their messages. A
request that goes on from a response by its id has no beginning to be known by. Names are kept in
the store, so that they outlive the process, and the latest in memory, for the next request may come
before a name is written down.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from weakref import proxy

from holdfast.engine.identity import UNKNOWN, OpenRequest, Sender
from holdfast.engine.session import COMPARING, Session, size_of
from holdfast.store import Scope, Store
from holdfast.store.records import ClientKey
from holdfast.wire import Conversation
from holdfast.wire.chained import held_under
from holdfast.wire.places import heads

if TYPE_CHECKING:
    from holdfast.engine.holdfast import Holdfast

_MOST_HEADS = 1_000
"""Places of one tenant's requests, a quarter of a megabyte; the store knows all of them."""
_MOST_AT_ONE_PLACE = 16
"""Sessions of one client at one place: identical requests that were sent at the same time."""
_BEGUN = "head:"
"""Prefix of the link to the place at which a session began. Its first turn is stored when it is
answered, and another process may get the next request before that."""


class Match(NamedTuple):
    """What is known about the session of a request."""

    session: Session | None = None
    """The session that the request continues."""
    parent: Session | None = None
    """If it continues none: a session with the same first messages that went on differently."""
    shared: int = 0
    """How many messages the request shares with the parent."""


class SessionFinder:
    """Finds the sessions of one engine."""

    def __init__(self, engine: Holdfast) -> None:
        # A strong reference would keep the engine of a released tenant until a full collection.
        self._engine: Holdfast = proxy(engine)
        self._sessions: OrderedDict[tuple[ClientKey, str], tuple[str, ...]] = OrderedDict()
        """Names of sessions by client and place, the newest first; also by earlier places, from
        which forks part."""

    async def session_of(
        self,
        conversation: Conversation,
        sender: Sender = UNKNOWN,
        request: OpenRequest | None = None,
    ) -> Session:
        """Return the session that a request continues; a new one if it continues none.

        `request` tells whether the request is still on its way, so that an identical one that
        comes meanwhile is not taken for a retry.
        """
        if held := held_under(conversation):
            # Only the provider's name counts: many conversations begin with the same few messages.
            chained = await self._engine.session(await self._engine.chains.session_of(held)).load()
            self._engine.chains.remember(held, chained.name)  # the client may send it once more
            return chained.sent_by(sender)
        places = await self._places(conversation)
        match = await self._match(places, conversation, sender)
        session = match.session
        if session is None:
            session = self._engine.session()
            session.begin(match.parent, match.shared, len(conversation.messages), sender.purpose)
            if places and not sender.purpose:
                await self._engine.store.link(session.scope, [_begun(sender.key, places[0])])
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
        if not name and (held := held_under(conversation)):
            name = await self._engine.chains.session_of(held)
        elif not name:
            places = await self._places(conversation)
            session = (await self._match(places, conversation, sender)).session
        if session is None and name:
            scope = self._engine.scope.of(name)
            session = self._engine.live.get(scope) or await self._engine.unkept(scope).load()
        return session or self._engine.unkept(self._engine.scope.of(uuid.uuid4().hex)).begin()

    async def _places(self, conversation: Conversation) -> list[str]:
        work = partial(heads, conversation)
        return await self._engine.workers.off_loop(size_of(conversation) // COMPARING, work)

    def _remember(self, name: str, client: ClientKey, place: str) -> None:
        known = self._sessions.get((client, place), ())
        others = [other for other in known if other != name]
        self._sessions[client, place] = (name, *others[: _MOST_AT_ONE_PLACE - 1])
        self._sessions.move_to_end((client, place))
        while len(self._sessions) > _MOST_HEADS:
            self._sessions.popitem(last=False)

    async def _match(self, places: list[str], conversation: Conversation, sender: Sender) -> Match:
        """Return the session whose last request was at one of these places, or a parent."""
        if not places:
            return Match()
        known = await self._in_memory(places, conversation, sender)
        if known.session is not None:
            return known
        store, scope = self._engine.store, self._engine.scope
        record = await store.session_with_head(scope, places, client=sender.key)
        if record is None and known.parent is None and _has_answer(conversation):
            # The client goes on under another id, or sends ids since it was updated. Two agents
            # with the same first request have no answer in common yet: they do not come here.
            record = await store.session_with_head(scope, places[1:])
        if record is not None:
            match = await self._fits(record.session, places, conversation, sender)
            return match if match.session is not None or known.parent is None else known
        if not sender.purpose and (name := await self._begun_at(places[1:], sender.key)):
            return Match(await self._caught_up(name, conversation))
        return known

    async def _in_memory(
        self, places: list[str], conversation: Conversation, sender: Sender
    ) -> Match:
        """Look among the sessions of this process, at the longest place that one of them had."""
        names = next((names for place in places if (names := self._names(place, sender))), ())
        parents = Match()
        # A session whose first request is still being answered has no answer to go on from yet.
        for name in sorted(names, key=self._is_answering):
            match = await self._fits(name, places, conversation, sender)
            if match.session is not None:
                return match
            parents = parents if parents.parent is not None else match
        return parents

    def _names(self, place: str, sender: Sender) -> tuple[str, ...]:
        return self._sessions.get((sender.key, place), ())

    def _is_answering(self, name: str) -> bool:
        session = self._engine.live.get(self._engine.scope.of(name))
        return session is not None and session.answers_first

    async def _fits(
        self, name: str, places: list[str], conversation: Conversation, sender: Sender
    ) -> Match:
        """Return whether a request continues this session, or has only its beginning in common."""
        session = await self._caught_up(name, conversation)
        if session.head == places[0] and session.answers_first:
            return Match()  # an identical request that is still on its way: another agent's
        if session.head in places and session.record.purpose == sender.purpose:
            return Match(session)
        return Match(parent=session, shared=self._shared(session, places, conversation, sender))

    def _shared(
        self, session: Session, places: list[str], conversation: Conversation, sender: Sender
    ) -> int:
        """Return how many messages a request has in common with a session, as far as known."""
        for n, place in enumerate(places):
            if place == session.head or session.name in self._names(place, sender):
                return len(conversation.messages) - n
        return 0

    async def _caught_up(self, name: str, conversation: Conversation) -> Session:
        return await (await self._engine.session(name).load()).catch_up(conversation)

    async def _begun_at(self, places: list[str], client: ClientKey) -> str:
        """Return a session whose first request another process is still working on."""
        if not places:
            return ""
        name = await self._engine.store.session_linked(
            self._engine.scope, *(_begun(client, place) for place in places)
        )
        record = await self._engine.store.session(self._engine.scope.of(name)) if name else None
        return name if record is None or record.head in places else ""


def _begun(client: ClientKey, place: str) -> str:
    """Return the link under which a session that begins at a place is known."""
    return _BEGUN + "/".join((*filter(None, client), place))


def _has_answer(conversation: Conversation) -> bool:
    return any(message.role == "assistant" for message in conversation.messages)


_MOST_NAMES = 1_000
"""Of one tenant, a quarter of a megabyte. There may be 256 tenants, and a name is asked of memory
only until it is written down."""


class Chains:
    """Which session a provider's name belongs to."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope
        self._latest: OrderedDict[str, str] = OrderedDict()

    async def session_of(self, name: str) -> str:
        """The session whose history is held under a name; empty if none is known."""
        return self._latest.get(name) or await self._store.session_linked(self._scope, name)

    def remember(self, name: str, session: str) -> None:
        """Know a name at once."""
        self._latest[name] = session
        self._latest.move_to_end(name)
        while len(self._latest) > _MOST_NAMES:
            self._latest.popitem(last=False)

    async def answered(self, session: str, names: Sequence[str]) -> None:
        """Note what the client may call the history from now on: `names_of_answer` of it."""
        for name in names:
            self.remember(name, session)
        await self._store.link(self._scope.of(session), names)
