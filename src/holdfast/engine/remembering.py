"""What a client sends with its whole history, remembered once, and its turns assembled from that.

remembering: after session. A message is known by its place, the hash of all that stands before it:
so a history that is sent again is not remembered twice, by whichever process. Long tool results are
stored behind refs, and what is remembered of them is their citation.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import proxy

from holdfast.assemble.gathering import gather
from holdfast.assemble.intents import detect_intent
from holdfast.assemble.packs import PACKS
from holdfast.assemble.requests import (
    Spoken,
    Turn,
    assembled_request,
    history_of,
    room_of,
    said_in,
    spoken,
)
from holdfast.assemble.shelves import SessionShelves
from holdfast.assemble.working_set import Piece
from holdfast.engine.session import Session
from holdfast.errors import PrivacyError
from holdfast.expand.tool import NAME
from holdfast.fitting import FitOptions, FitState, Fitted, fit_request
from holdfast.privacy import find
from holdfast.tokens.counting import Correction
from holdfast.trim.standing import edits_of
from holdfast.wire import Conversation, Message
from holdfast.wire.answers import Kept
from holdfast.wire.places import places

if TYPE_CHECKING:
    from holdfast.engine.holdfast import Holdfast

NO_ROOM = "The request's own rules, tools and last turn leave no room to assemble it: it was fitted"
_MOST_SESSIONS = 1_000
"""Of one tenant, a quarter of a megabyte: a number and a hash each."""
_RECENT = 200
"""Messages among which the last pairs are looked for: in a long tool loop they lie far apart."""


class Assembled(NamedTuple):
    """A request that may go out."""

    fitted: Fitted
    warning: str = ""


class Histories:
    """The histories that clients send, of one user and workspace."""

    def __init__(self, engine: Holdfast) -> None:
        self._engine: Holdfast = proxy(engine)  # as in finding.py
        self._known: OrderedDict[str, tuple[int, str]] = OrderedDict()
        """By session: how many messages of its last request are remembered, and their place."""

    async def assemble(
        self, session: Session, asked: Conversation, options: FitOptions, tokens: int
    ) -> Assembled:
        """Remember a request's history, and make of it a turn of so many tokens.

        A request that has no more is left as it is, and so is one that must not be assembled: both
        are made to fit as any other.
        """
        parts = spoken(asked)
        if parts is None:
            return Assembled(await session.fit(asked, options))
        names = await self._remember(session.name, asked, parts, options)
        turn = Turn(budget=tokens, opens=self._engine.assembler.options.shows_refs)
        room = room_of(asked, parts, options, turn, self._engine.calibration)
        if room.tokens < 0:
            return Assembled(await session.fit(asked, options), NO_ROOM)
        history = _History(self._engine, session.name, asked, parts, names)
        if not (room.over or await history.goes_on_elsewhere()):
            return Assembled(await session.fit(asked, options))
        query = "\n".join(filter(None, map(said_in, asked.messages[parts.stop :])))
        pack = PACKS[detect_intent(query)]
        working = await gather(history, query, None, pack, room.tokens)
        turn = turn._replace(working=working, places=history.places)

        def make(
            body: object,
            options: FitOptions,
            *,
            state: FitState | None = None,
            hidden: Sequence[Kept] = (),
            calibration: Correction | None = None,
        ) -> Fitted:
            assembled = None
            if isinstance(body, Conversation) and not _went_out(body, state):
                assembled = assembled_request(body, options, turn, calibration)
            return assembled or fit_request(
                body, options, state=state, hidden=hidden, calibration=calibration
            )

        return Assembled(await session.fit(asked, options, maker=make))

    async def _remember(
        self, session: str, asked: Conversation, parts: Spoken, options: FitOptions
    ) -> dict[int, str]:
        """Remember what is new of a history; the ids of its last messages by their places."""
        messages = asked.messages[: parts.stop]
        known, place = self._known.get(session, (0, ""))
        first = min(known, max(0, len(messages) - _RECENT))
        marks = places(messages, first)
        if not (first <= known <= len(messages) and marks[known - first] == place):
            known, first = 0, 0  # another history, or one that this process has not seen
            marks = places(messages)
        names = {first + n: f"msg_{mark[:24]}" for n, mark in enumerate(marks[1:])}
        new: list[dict[str, Any]] = []
        for n in range(max(known, parts.start), parts.stop):
            new += await self._turns(messages, n, names[n], session, options)
        if new:
            await self._engine.remember(session, new)
        self._known[session] = (len(messages), marks[-1])
        self._known.move_to_end(session)
        while len(self._known) > _MOST_SESSIONS:
            self._known.popitem(last=False)
        return names

    async def _turns(
        self, messages: Sequence[Message], at: int, name: str, session: str, options: FitOptions
    ) -> list[dict[str, Any]]:
        """What is remembered of a message: its words, and each result for itself."""
        message = messages[at]
        if message.role == "system":
            return []
        refuses = options.rules.privacy == "refuse"
        turns: list[dict[str, Any]] = []
        words = said_in(message)
        if words and not (refuses and find(words)):
            turns.append({"role": message.role, "content": words, "id": name})
        for n, result in enumerate(message.results):
            tool = result.name or _called(messages[:at], result.call_id)
            try:
                cited = await self._engine.cite(result.text, tool=tool, session=session)
            except PrivacyError:
                continue
            if cited.text.strip():
                turns.append(
                    {"role": "tool", "name": tool, "content": cited.text, "id": f"{name}_{n}"}
                )
        return turns


def _called(messages: Sequence[Message], call: str) -> str:
    """The name of the tool that a call was for: it stands close before its result."""
    for message in reversed(messages[-_RECENT:]):
        for each in message.calls:
            if each.id == call:
                return each.name
    return ""


def _went_out(asked: Conversation, state: FitState | None) -> bool:
    """Whether a request was assembled before as it is: then it goes out once more as it did."""
    if state is None or state.asked.messages != asked.messages:
        return False
    edits = (edit for message in state.sent.messages for edit in edits_of(message))
    return any(edit.action == "assemble" for edit in edits)


class _History:
    """A session as pieces, whose recent pairs are those of the request."""

    def __init__(
        self,
        engine: Holdfast,
        session: str,
        asked: Conversation,
        parts: Spoken,
        names: dict[int, str],
    ) -> None:
        self._kept: SessionShelves = engine.assembler.shelves(
            session, NAME if engine.assembler.options.shows_refs else ""
        )
        self._asked = asked
        self._parts = parts
        self._names = names
        self.places = {name: place for place, name in names.items()}
        self.facts = self._kept.facts
        self.refs = self._kept.refs
        self.recalled = self._kept.recalled

    async def goes_on_elsewhere(self) -> bool:
        """Whether the session has a history and the request none: another device has it."""
        if self._parts.start < self._parts.stop:
            return False
        return bool(await self._kept.recent(1))

    async def recent(self, pairs: int) -> Sequence[Piece]:
        """The last pairs of the request; of the session, where the request begins anew."""
        start = max(self._parts.start, self._parts.stop - len(self._names))
        parts = self._parts._replace(start=start)
        return history_of(self._asked, parts, self._names, pairs) or await self._kept.recent(pairs)
