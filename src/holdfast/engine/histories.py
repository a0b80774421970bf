"""Remember the histories that clients send, each message once, and assemble turns from them.

remembering: after session. A message is identified by its place, the hash of all messages before
it, so that no process remembers a repeated history twice. Long tool results are stored and cited;
their citation is remembered.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import proxy

from holdfast.assemble.context_sections import SessionSections
from holdfast.assemble.intents import SECTION_BUDGETS, detect_intent
from holdfast.assemble.requests import (
    RequestParts,
    TurnMaterial,
    assemble_request,
    history_budget,
    message_text,
    recent_history,
    split_request,
)
from holdfast.assemble.working_set import ContextPiece
from holdfast.assemble.working_set_builder import gather
from holdfast.engine.session import COMPARING, Session, size_of
from holdfast.errors import PrivacyError
from holdfast.expand.tool import NAME
from holdfast.fitting import FitOptions, FitPlan, FitState, Fitted, plan
from holdfast.privacy import find
from holdfast.tokens.counter import Correction
from holdfast.trim.provenance import edits_of
from holdfast.wire import Conversation, Message
from holdfast.wire.places import places
from holdfast.wire.responses import HiddenTurn

if TYPE_CHECKING:
    from holdfast.engine.holdfast import Holdfast

NO_ROOM = "The request's own rules, tools and last turn leave no room to assemble it: it was fitted"
MOST_NEW = 10_000
"""Messages that one request adds to memory. Only a history that comes for the first time has more,
and 40,000 messages took 5 seconds of the processor. The next requests add the others."""
STILL_READING = (
    f"The history has more than {MOST_NEW:,} messages that are not in memory yet: it was fitted, "
    "and is assembled once the next requests have added them"
)
_MESSAGE_BYTES = 20
"""Size of a message for the choice of a thread, beside its bytes: a pass over 200 messages takes a
millisecond."""
_MOST_SESSIONS = 1_000
"""Of one tenant, a quarter of a megabyte: a number and a hash each."""
_RECENT = 200
"""Messages among which the last pairs are looked for: in a long tool loop they lie far apart."""


class AssembledRequest(NamedTuple):
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
    ) -> AssembledRequest:
        """Remember a request's history, and assemble a turn within the token budget.

        A short request, or one that must not be assembled, is fitted like any other.
        """
        off_loop, size = self._engine.workers.off_loop, _size(asked)
        parts = await off_loop(size, partial(split_request, asked))
        if parts is None:
            return AssembledRequest(await session.fit(asked, options))
        names = await self._remember(session.name, asked, parts, options)
        if names is None:
            return AssembledRequest(await session.fit(asked, options), STILL_READING)
        turn = TurnMaterial(budget=tokens, opens=self._engine.assembler.options.shows_refs)
        work = partial(history_budget, asked, parts, options, turn, self._engine.calibration)
        room = await off_loop(size, work)
        if room.tokens < 0:
            return AssembledRequest(await session.fit(asked, options), NO_ROOM)
        history = _History(self._engine, session.name, asked, parts, names)
        if not (room.over or await history.goes_on_elsewhere()):
            return AssembledRequest(await session.fit(asked, options))
        query = await off_loop(size, partial(_query, asked, parts))
        pack = SECTION_BUDGETS[detect_intent(query)]
        working = await gather(history, query, None, pack, room.tokens)
        turn = turn._replace(working=working, places=history.places)

        def make(
            body: object,
            options: FitOptions,
            *,
            state: FitState | None = None,
            hidden: Sequence[HiddenTurn] = (),
            calibration: Correction | None = None,
        ) -> FitPlan | Fitted:
            assembled = None
            if isinstance(body, Conversation) and not _went_out(body, state):
                assembled = assemble_request(body, options, turn, calibration)
            return assembled or plan(
                body, options, state=state, hidden=hidden, calibration=calibration
            )

        return AssembledRequest(await session.fit(asked, options, planner=make, size=size))

    async def _remember(
        self, session: str, asked: Conversation, parts: RequestParts, options: FitOptions
    ) -> dict[int, str] | None:
        """Remember the new part of a history; return the ids of its last messages by place.

        None if the rest takes more than one request: it is remembered with the next requests.
        """
        off_loop = self._engine.workers.off_loop
        messages = asked.messages[: parts.stop]
        first_new, place = self._known.get(session, (0, ""))
        work = partial(_marks, messages, first_new, place)
        first_new, first, marks = await off_loop(_size(messages[first_new:]), work)
        start = max(first_new, parts.start)
        stop = min(len(messages), start + MOST_NEW)
        names = {first + n: f"msg_{mark[:24]}" for n, mark in enumerate(marks[1:])}
        refuses = options.rules.privacy == "refuse"
        drafts = partial(_drafts, messages, range(start, stop), names, refuses=refuses)
        new: list[dict[str, Any]] = []
        for draft in await off_loop(_size(messages[start:stop]), lambda: list(drafts())):
            new += [draft] if isinstance(draft, dict) else await self._cited(draft, session)
        if new:
            await self._engine.remember(session, new)
        self._known[session] = (stop, marks[stop - first])
        self._known.move_to_end(session)
        while len(self._known) > _MOST_SESSIONS:
            self._known.popitem(last=False)
        return names if stop == len(messages) else None

    async def _cited(self, result: _ToolResult, session: str) -> list[dict[str, Any]]:
        """Return the citation that is remembered for a tool result."""
        await asyncio.sleep(0)  # a request may have thousands of short results
        try:
            cited = await self._engine.cite(result.text, tool=result.tool, session=session)
        except PrivacyError:
            return []
        if not cited.text.strip():
            return []
        return [{"role": "tool", "name": result.tool, "content": cited.text, "id": result.name}]


class _ToolResult(NamedTuple):
    """A tool result that is to be cited and remembered."""

    name: str
    tool: str
    text: str


def _marks(messages: Sequence[Message], known: int, place: str) -> tuple[int, int, list[str]]:
    """Return how many messages are remembered, and the places after the first `n` and all later.

    None is known of another history, or of one that this process has not seen.
    """
    first = min(known, max(0, len(messages) - _RECENT))
    marks = places(messages, first)
    if first <= known <= len(messages) and marks[known - first] == place:
        return known, first, marks
    return 0, 0, places(messages)


def _drafts(
    messages: Sequence[Message], numbers: range, names: dict[int, str], *, refuses: bool
) -> Iterator[dict[str, Any] | _ToolResult]:
    """Yield the turns to remember: the words of each message, and each tool result separately."""
    for at in numbers:
        message, name = messages[at], names[at]
        if message.role == "system":
            continue
        words = message_text(message)
        if words and not (refuses and find(words)):
            yield {"role": message.role, "content": words, "id": name}
        for n, result in enumerate(message.results):
            tool = result.name or _called(messages[max(0, at - _RECENT) : at], result.call_id)
            yield _ToolResult(f"{name}_{n}", tool, result.text)


def _query(asked: Conversation, parts: RequestParts) -> str:
    """Return the question of the user's turn."""
    return "\n".join(filter(None, map(message_text, asked.messages[parts.stop :])))


def _size(content: Conversation | tuple[Message, ...]) -> int:
    """Return how much work it is to go through messages once, in bytes that are worked on."""
    count = len(content.messages if isinstance(content, Conversation) else content)
    return size_of(content) // COMPARING + _MESSAGE_BYTES * count


def _called(messages: Sequence[Message], call: str) -> str:
    """Return the name of the called tool, which appears shortly before its result."""
    for message in reversed(messages):
        for each in message.calls:
            if each.id == call:
                return each.name
    return ""


def _went_out(asked: Conversation, state: FitState | None) -> bool:
    """Return whether the request was sent assembled before: then the same bytes are sent again."""
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
        parts: RequestParts,
        names: dict[int, str],
    ) -> None:
        self._kept: SessionSections = engine.assembler.sections(
            session, NAME if engine.assembler.options.shows_refs else ""
        )
        self._workers = engine.workers
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

    async def recent(self, pairs: int) -> Sequence[ContextPiece]:
        """The last pairs of the request; of the session, where the request begins anew."""
        start = max(self._parts.start, self._parts.stop - len(self._names))
        parts = self._parts._replace(start=start)
        work = partial(recent_history, self._asked, parts, self._names, pairs)
        size = _size(self._asked.messages[start : self._parts.stop])
        return await self._workers.off_loop(size, work) or await self._kept.recent(pairs)
