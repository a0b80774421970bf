"""Which session a request goes on from, told by the places its history has been at.

finding: after session. A conversation that goes on differently from where another left is another
session; what the provider holds is known by the provider's own name for it.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING
from weakref import proxy

from holdfast.engine.session import COMPARING, Session, size_of
from holdfast.wire import Conversation
from holdfast.wire.chained import held_under
from holdfast.wire.places import heads

if TYPE_CHECKING:
    from holdfast.engine.holdfast import Holdfast

_MOST_HEADS = 1_000
"""Places of one tenant's requests, a quarter of a megabyte; the store knows all of them."""
_BEGUN = "head:"
"""Before the name of a place at which a session began, among the names it is linked by: its first
turn is written down when it is answered, and another process may be asked on before that."""


class SessionFinder:
    """Finds the sessions of one engine."""

    def __init__(self, engine: Holdfast) -> None:
        # Who asks holds the engine; held here too, that of a tenant who is let go would stay until
        # a full collection.
        self._engine: Holdfast = proxy(engine)
        self._sessions: OrderedDict[str, str] = OrderedDict()
        """By the places of their requests, also of earlier ones: there others part."""

    async def session_of(self, conversation: Conversation) -> Session:
        """The session whose last request a conversation goes on from; a new one if none does.

        Where the provider holds the history, only its name tells: another conversation may well
        have begun with the same few messages.
        """
        if held := held_under(conversation):
            chained = await self._engine.session(await self._engine.chains.session_of(held)).load()
            self._engine.chains.remember(held, chained.name)  # should the client send it once more
            return chained
        places = await self._places(conversation)
        session, parted = await self._gone_on_from(places, conversation)
        if session is None:
            messages = len(conversation.messages)
            known = next((n for n, head in enumerate(places) if head in self._sessions), messages)
            session = self._engine.session().begin(parted, messages - known, messages)
            if places:
                await self._engine.store.link(session.scope, [_BEGUN + places[0]])
        if places:  # at once: the next request may come before this one is written down
            session.head = places[0]
            self._sessions[places[0]] = session.name
            self._sessions.move_to_end(places[0])
            while len(self._sessions) > _MOST_HEADS:
                self._sessions.popitem(last=False)
        return session

    async def look_up(self, conversation: Conversation, name: str = "") -> Session:
        """The session that a conversation would go on in, for a look: none begins by this."""
        session: Session | None = None
        if not name and (held := held_under(conversation)):
            name = await self._engine.chains.session_of(held)
        elif not name:
            session, _ = await self._gone_on_from(await self._places(conversation), conversation)
        if session is None and name:
            scope = self._engine.scope.of(name)
            session = self._engine.live.get(scope) or await self._engine.unkept(scope).load()
        return session or self._engine.unkept(self._engine.scope.of(uuid.uuid4().hex)).begin()

    async def _places(self, conversation: Conversation) -> list[str]:
        work = partial(heads, conversation)
        return await self._engine.workers.off_loop(size_of(conversation) // COMPARING, work)

    async def _gone_on_from(
        self, places: list[str], conversation: Conversation
    ) -> tuple[Session | None, Session | None]:
        """The session whose last request was at one of these places; else one that has left them.

        The latter has gone on differently from there: what follows is another conversation.
        """
        name = next((self._sessions[head] for head in places if head in self._sessions), "")
        parted = await self._caught_up(name, conversation) if name else None
        if parted is not None and parted.head in places:
            return parted, None
        if places and (
            record := await self._engine.store.session_with_head(self._engine.scope, places)
        ):
            session = await self._caught_up(record.session, conversation)
            if session.head in places:
                return session, None
            parted = parted or session
        elif places and (name := await self._begun_at(places)):
            return await self._caught_up(name, conversation), None
        return None, parted

    async def _caught_up(self, name: str, conversation: Conversation) -> Session:
        return await (await self._engine.session(name).load()).catch_up(conversation)

    async def _begun_at(self, places: list[str]) -> str:
        """A session whose first request another process is still working on."""
        name = await self._engine.store.session_linked(
            self._engine.scope, *(_BEGUN + head for head in places)
        )
        record = await self._engine.store.session(self._engine.scope.of(name)) if name else None
        return name if record is None or record.head in places else ""
