"""Answer the model's own calls to our tools, and go on from them, under caps that it is told of.

expansions: the last of calling. The request that goes on holds the model's turn and
what was opened: it is counted as a whole before it may go out. A model that may open no more is
told so and goes on with its task; in the last step it cannot call the tool any more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence, Set
from typing import NamedTuple

import msgspec

from holdfast.calling.finding import ToolFinder
from holdfast.cite import count
from holdfast.engine import Expanded, Holdfast
from holdfast.errors import EditError, ExpandError, StoreError
from holdfast.expand import ExpandOptions, parse_call, recalling
from holdfast.expand.finding import CALLERS, FINDERS
from holdfast.faults import Faults
from holdfast.store.deadline import store_deadline
from holdfast.trim.worth import latest_question, words_of
from holdfast.voice import MEMORY, NO_MORE, NO_STORE, NOT_OPENED, NOTHING_SAID, SHOWN_ABOVE
from holdfast.wire import Conversation
from holdfast.wire.answers import Call, Hidden, continuation, is_silent
from holdfast.wire.message import beginning
from holdfast.wire.thinking import unbound, unbound_turn
from holdfast.wire.withdrawing import withdraw

_LEAST_ROOM = 120
"""Tokens that are worth opening something for: a page's head and a few lines."""
_USEFUL_ROOM = 400
"""Tokens of an opening for which room is made: in fewer, a page is little more than its head."""
_RECALLED = 1_000
"""Tokens of earlier turns that a call to find some may bring."""
_FOUND = 1_000
"""Tokens of schemas that a call to find tools is given room for."""
MOST_CALLS = 256
"""Hidden calls of one turn that are answered, ten times the cap on openings. Answering 100,000 held
the event loop for 40 seconds, and no window has room for the answers."""
_MOST_TELLINGS = 3
"""Rounds in a row that may bring nothing; with the last one the tool is withdrawn.

Models that were told once sometimes try another ref before they believe it. A call that only
repeats an earlier one counts for two: who does that again is in a loop.
"""

Results = tuple[tuple[Call, str], ...]
"""Calls with what each was answered."""
Room = Callable[[Conversation], int]
"""Says how many tokens a request may still grow by."""
MakeRoom = Callable[[Conversation, int], Awaitable[Conversation | None]]
"""Folds a request until it may grow by some tokens; None if that cannot be."""


_Shown = tuple[str, ExpandOptions]
"""A ref, and what of it was opened."""


class Caps(NamedTuple):
    """How much one answer may open."""

    rounds: int = 8
    """Times that it may open something; from then on it is told that it may not."""
    calls: int = 24
    tokens: int = 16_000


class OpeningStep(NamedTuple):
    """What follows from a turn with hidden calls."""

    results: Results
    following: Conversation | None
    """The request that goes on; None where the answer ends here."""
    turn: tuple[bytes, ...]
    """The turn as it stands in that request: without thinking that a fold has made invalid."""


class _Part(NamedTuple):
    """What one call was answered."""

    text: str
    is_opened: bool = True
    """Whether it is content, and no reason why there is none."""
    is_fruitless: bool = False
    """Whether the call could not be understood, or found nothing."""
    is_repeated: bool = False
    """Whether the same call was answered before in this answer."""


class _Answers(NamedTuple):
    """What calls were answered, and how much of it was opened."""

    results: Results = ()
    tried: int = 0
    """Calls that the caps allowed."""
    fruitful: int = 0
    """Those of them that brought something."""
    repeated: int = 0
    """Calls that were answered before."""
    opened: int = 0
    tokens: int = 0
    shown: Set[_Shown] = frozenset()
    """All that the model was shown until then, this included."""


class _Continued(NamedTuple):
    """A request that goes on from a turn."""

    answers: _Answers
    following: Conversation | None
    turn: tuple[bytes, ...]


class Expansions:
    """The calls of one answer, and what they were given."""

    def __init__(  # noqa: PLR0913 - what it needs of one request, once
        self,
        engine: Holdfast,
        caps: Caps,
        room: Room,
        hidden: Hidden,
        make_room: MakeRoom | None = None,
        *,
        faults: Faults,
        session: str = "",
        finder: ToolFinder | None = None,
    ) -> None:
        """Begin; `hidden` says of a tool's name whether it is ours.

        Without `make_room` what does not fit is not opened. Earlier turns are those of `session`;
        `finder` knows the tools that were set aside.
        """
        self._faults = faults
        self._finder = finder
        self._session = session
        self._engine = engine
        self._caps = caps
        self._room = room
        self._hidden = hidden
        self._make_room = make_room
        self._looked_at: list[Conversation] = []
        """Requests whose room was asked for; the first is the one that went out."""
        self._question = ""
        """What the user asked last: searched for where a call finds nothing."""
        self._rounds = 0
        self._tried = 0
        self._tellings = 0
        self._is_withdrawn = False
        self._has_spoken = False
        """The client was given text or a call."""
        self.is_asked_again = False
        """The first request went out again, without our tools and what they brought."""
        self._shown: Set[_Shown] = frozenset()
        """What the model was shown in this answer."""
        self.used = Expanded()
        """What was opened."""

    async def step(
        self, sent: Conversation, turn: tuple[bytes, ...], calls: Sequence[Call], *, alone: bool
    ) -> OpeningStep:
        """Answer the hidden calls of a turn; where they are not alone, it is the client's."""
        self._looked_at.append(sent)
        self._question = self._question or words_of(latest_question(sent.messages))
        with store_deadline():  # each round has its own: models may take a minute between two
            if alone:
                answers, following, turn = await self._fitting(sent, turn, calls)
            else:
                answers, following = await self._answers(calls, self._room(sent) // 2), None
        self._rounds += 1
        self._tried += answers.tried
        self._shown = answers.shown
        self._has_spoken |= not is_silent(turn, sent.dialect, self._hidden)
        # A call that brings nothing is told why; the same again and again is what a model does
        # that will not get it right.
        if answers.fruitful:
            self._tellings = 0
        else:
            self._tellings += 2 if answers.repeated == len(calls) else 1
        if following is not None and self._tellings >= _MOST_TELLINGS:
            # It calls what it cannot call: no end of that.
            following = None if self._is_withdrawn else withdraw(following, self._hidden)
            self._is_withdrawn = True
        self.used = Expanded(
            self.used.calls + answers.opened,
            self.used.tokens + answers.tokens,
            self.used.rounds + (following is not None),
        )
        if following is None and alone:
            following = self.ask_again()
        return OpeningStep(answers.results, following, turn)

    def ask_again(self, turn: tuple[bytes, ...] = ()) -> Conversation | None:
        """Return the first request without our tools, once, if the answer would be empty.

        `turn` is the model's last one. Small models open parts and then end their turn without a
        word; asked again without the tool, seven of nine answered from the citation.
        """
        first = self._looked_at[0]
        if turn and not is_silent(turn, first.dialect, self._hidden):
            self._has_spoken = True
        if self._has_spoken or self.is_asked_again:
            return None
        self.is_asked_again = True
        self.used = msgspec.structs.replace(self.used, rounds=self.used.rounds + 1)
        return withdraw(first, self._hidden)

    def end(self) -> None:
        """Nothing more is opened: break what refers to itself, so that the memory is free at once.

        The messages that were added are in no session, and who asks for what is opened keeps this.
        """
        first = self._looked_at[0].messages if self._looked_at else ()
        for request in self._looked_at:
            for message in request.messages[beginning(first, request.messages) :]:
                message.let_go()
        self._looked_at.clear()
        self._room, self._hidden, self._make_room = _no_room, _none_hidden, None

    def _room_of(self, request: Conversation) -> int:
        self._looked_at.append(request)
        return self._room(request)

    async def _fitting(
        self, sent: Conversation, turn: tuple[bytes, ...], calls: Sequence[Call]
    ) -> _Continued:
        """Results with which the request that goes on fits; without it if none would."""
        unanswered = tuple((call, "") for call in calls)
        try:
            room = self._room_of(continuation(sent, turn, unanswered))
        except EditError:  # such as a call with an id that was used before
            return _Continued(await self._answers(calls, self._room(sent) // 2), None, turn)
        behind: Conversation | None = None
        if room // 2 < min(self._wanted(calls), _USEFUL_ROOM * len(calls)):
            behind = await self._folded(sent, self._room(sent) - room, calls)

        def following(results: Results) -> Conversation:
            if behind is None:
                return self._continued(sent, turn, results)
            return unbound(self._continued(behind, turn, results), len(behind.messages))

        room = room if behind is None else self._room_of(following(unanswered))
        going_on = turn if behind is None else unbound_turn(turn, behind)
        answers = _Answers()
        # At most half at once, so that the model can open more and still be told to end. What is
        # opened is measured by one vocabulary, and may count for more in the model's own.
        for share in (room // 2, room // 4, 0):
            answers = await self._answers(calls, share)
            request = following(answers.results)
            if self._room_of(request) >= 0:
                return _Continued(answers, request, going_on)
        return _Continued(answers, None, going_on)

    def _continued(
        self, sent: Conversation, turn: tuple[bytes, ...], results: Results
    ) -> Conversation:
        """The request with a turn and what its calls were answered."""
        longer = continuation(sent, turn, results)
        return longer if self._finder is None else self._finder.going_on(longer, len(sent.messages))

    async def _folded(
        self, sent: Conversation, turn_tokens: int, calls: Sequence[Call]
    ) -> Conversation | None:
        """The request folded so that calls can be answered: in full, else in part."""
        if self._make_room is None:
            return None
        wanted, least = self._wanted(calls), _LEAST_ROOM * len(calls)
        # Half of the room is given away at once, so twice of what is to be opened is needed. In a
        # window that is full of tools (Claude Code) no fold may give that much, and less will do.
        for tokens in sorted({2 * wanted, max(wanted, 2 * least), 2 * least}, reverse=True):
            folded = await self._make_room(sent, turn_tokens + tokens)
            if folded is not None:
                return folded
        return None

    def _wanted(self, calls: Sequence[Call]) -> int:
        """Tokens that calls ask for, within the caps; at least what it takes to tell them no."""
        left = max(self._caps.tokens - self.used.tokens, 0)
        return max(min(sum(map(_wanted, calls)), left), _LEAST_ROOM * len(calls))

    async def _answers(self, calls: Sequence[Call], room: int) -> _Answers:
        """What each call is answered; never silence."""
        answers = _Answers()
        shown = set(self._shown)
        for n, call in enumerate(calls):
            left = self._caps.tokens - self.used.tokens - answers.tokens
            share = min(left, room) // (len(calls) - n)
            why = self._reached(self._tried + answers.tried, left)
            if not why and share < _LEAST_ROOM:
                why = "there is no room left in the context window"
            if why:
                part = _Part(NO_MORE.format(why=why), is_opened=False, is_fruitless=True)
            else:
                part = await self._opened(call, share, shown)
            tokens = count(part.text)
            room -= tokens
            answers = _Answers(
                (*answers.results, (call, part.text)),
                answers.tried + (not why),
                answers.fruitful + (not part.is_fruitless),
                answers.repeated + part.is_repeated,
                answers.opened + part.is_opened,
                answers.tokens + (0 if why else tokens),
                shown,
            )
        return answers

    def _reached(self, calls: int, left: int) -> str:
        """Which cap is reached, in the words that the model is told; nothing if none is."""
        if self._rounds >= self._caps.rounds:
            return f"you have opened something {self._caps.rounds} times"
        if calls >= self._caps.calls:
            return f"{self._caps.calls} parts were opened"
        if left < _LEAST_ROOM:
            return f"{self._caps.tokens:,} tokens were opened"
        return ""

    async def _opened(self, call: Call, most: int, shown: set[_Shown]) -> _Part:
        """Return what a call is answered; after an internal error the model is told so."""
        with self._faults.caught("expansion"):
            return await self._opened_part(call, most, shown)
        return _Part(NOT_OPENED, is_opened=False)

    async def _opened_part(self, call: Call, most: int, shown: set[_Shown]) -> _Part:
        try:
            if call.name in (recalling.NAME, recalling.OTHER_NAME):
                return await self._recalled(recalling.parse_query(call.arguments), most)
            if self._finder is not None and call.name in FINDERS | CALLERS:
                return _Part(await self._finder.answer(call, most))
            ref, options = parse_call(call.arguments, self._question)
            if (ref, options) in shown:
                return _Part(SHOWN_ABOVE, is_opened=False, is_fruitless=True, is_repeated=True)
            capped = msgspec.structs.replace(options, max_tokens=min(options.max_tokens, most))
            expansion = await self._engine.expand_ref(ref, capped, opener=call.name)
            is_missed = bool(expansion.reason)
            if not is_missed:
                shown.add((ref, options))
            return _Part(expansion.text, is_opened=not is_missed, is_fruitless=is_missed)
        except ExpandError as error:
            return _Part(f"[{error}]", is_opened=False, is_fruitless=True)
        except StoreError:
            return _Part(NO_STORE, is_opened=False)

    async def _recalled(self, query: str, most: int) -> _Part:
        """Earlier turns that bear on a question, quoted."""
        head = f"{MEMORY}quoted from earlier turns.]"
        room = min(_RECALLED, most) - count(head) - 1
        recalled = await self._engine.recall(query, session=self._session, token_budget=room)
        if not recalled.passages:
            return _Part(NOTHING_SAID, is_opened=False)
        return _Part(f"{head}\n{recalled.text}")


def _no_room(_: Conversation) -> int:
    return 0


def _none_hidden(_: str) -> bool:
    return False


def _wanted(call: Call) -> int:
    if call.name in (recalling.NAME, recalling.OTHER_NAME):
        return _RECALLED
    if call.name in FINDERS | CALLERS:
        return _FOUND
    try:
        return parse_call(call.arguments)[1].max_tokens
    except ExpandError:
        return _LEAST_ROOM
