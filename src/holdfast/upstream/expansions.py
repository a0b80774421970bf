"""Answer the model's calls to our tools, and continue the conversation, within caps.

expansions: after finding. The next request contains the model's turn and the opened parts: its
tokens are counted as a whole before it is sent. A model that may open no more is informed and
continues with its task; in the last step it cannot call the tool any more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence, Set
from functools import partial
from typing import NamedTuple

import msgspec

from holdfast.cite import count
from holdfast.engine import ExpansionUsage, Holdfast
from holdfast.errors import EditError, ExpandError, StoreError
from holdfast.expand import ExpandOptions, parse_call, turn_recall
from holdfast.expand.calls import nearest_ref
from holdfast.expand.expansion import NO_REF, UNKNOWN_REF, refusal
from holdfast.expand.tool import call_of
from holdfast.expand.tool_search import CALLERS, FINDERS
from holdfast.faults import Faults
from holdfast.quoting import MEMORY, NO_MORE, NO_STORE, NOT_OPENED, NOTHING_SAID, SHOWN_ABOVE
from holdfast.store.deadline import store_deadline
from holdfast.store.refs import REF
from holdfast.trim.relevance import latest_question, words_of
from holdfast.upstream.tool_finder import ToolFinder
from holdfast.wire import Conversation, Message
from holdfast.wire.bound_thinking import without_bound_thinking, without_bound_thinking_in_turn
from holdfast.wire.message import common_prefix, result_texts
from holdfast.wire.responses import (
    HandedCalls,
    Hop,
    IsHidden,
    ModelCall,
    continuation,
    is_silent,
    split,
)
from holdfast.wire.tool_choice import forbid_tools, keeps_other_tools
from holdfast.wire.tools import remove_tools

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
_MOST_REFUSALS = 3
"""Consecutive rounds that may open nothing; after the last one the tool is withdrawn.

Models sometimes try another ref before they accept a refusal. A round of calls that only repeat
earlier ones is the last, because such a model is in a loop."""
_REFUSED = frozenset({400, 413, 422})
"""Statuses for a request that is too long or contains something that the upstream rejects."""
_MOST_REFS = 64
"""Refs of a conversation that a call may mean which names none of them, the latest first."""

Results = tuple[tuple[ModelCall, str], ...]
"""Calls with what each was answered."""
Room = Callable[[Conversation], int]
"""Says how many tokens a request may still grow by."""
MakeRoom = Callable[[Conversation, int], Awaitable[Conversation | None]]
"""Folds a request until it may grow by some tokens; None if that cannot be."""


_Shown = tuple[str, ExpandOptions]
"""A ref, and the opened part of it."""


class Caps(NamedTuple):
    """How much one answer may open."""

    rounds: int = 8
    """Rounds in which the model may open parts; after them it is informed that it may not."""
    calls: int = 24
    tokens: int = 16_000


class OpeningStep(NamedTuple):
    """What follows from a turn with hidden calls."""

    results: Results
    following: Conversation | None
    """The request that continues the conversation; None if the answer ends here."""
    turn: tuple[bytes, ...]
    """The turn as in that request: without thinking blocks that a fold has invalidated."""


class _Part(NamedTuple):
    """The result of one call."""

    text: str
    is_opened: bool = True
    """Whether it is content, and no reason why there is none."""
    is_repeated: bool = False
    """Whether the same call was answered before in this answer."""
    is_answer: bool = False
    """Whether it answers the user's question, because the call copied the example of a citation."""
    unknown_ref: bool = False
    """Whether nothing is stored under the ref of the call."""


class _Answers(NamedTuple):
    """What calls were answered, and how much of it was opened."""

    results: Results = ()
    opened: int = 0
    """Calls that brought content; the others are refused."""
    repeated: int = 0
    """Calls that were answered before."""
    copied: int = 0
    """Calls that copied an example, and were answered for the user's question."""
    tokens: int = 0
    """Tokens of the opened parts."""
    shown: Set[_Shown] = frozenset()
    """All that the model was shown until then, this included."""


class _Continued(NamedTuple):
    """A request that continues after a turn."""

    answers: _Answers
    following: Conversation | None
    turn: tuple[bytes, ...]


class Expansions:
    """The calls of one answer, and their results."""

    def __init__(  # noqa: PLR0913 - what it needs of one request, once
        self,
        engine: Holdfast,
        caps: Caps,
        room: Room,
        hidden: IsHidden,
        make_room: MakeRoom | None = None,
        *,
        faults: Faults,
        session: str = "",
        finder: ToolFinder | None = None,
    ) -> None:
        """Begin; `hidden` returns whether a tool is ours, by its name.

        Without `make_room`, parts that do not fit are not opened. Earlier turns are those of
        `session`; `finder` knows the deferred tools.
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
        """Requests whose remaining room was computed; the first is the one that was sent."""
        self._question = ""
        """The user's last question: the search text where a call finds nothing."""
        self._rounds = 0
        self._opening_rounds = 0
        """Rounds in which something was opened: the cap counts these."""
        self._refusals = 0
        """Rounds in a row that opened nothing."""
        self._has_spoken = False
        """The client was given text or a call."""
        self._is_last = False
        """Whatever the model answers now is its answer."""
        self._shown: Set[_Shown] = frozenset()
        """The parts that the model was shown in this answer."""
        self.used = ExpansionUsage()
        """The opened parts."""

    async def step(
        self,
        sent: Conversation,
        turn: tuple[bytes, ...],
        calls: Sequence[ModelCall],
        *,
        alone: bool,
    ) -> OpeningStep:
        """Answer the hidden calls of a turn; where they are not alone, it is the client's."""
        self._looked_at.append(sent)
        if self.is_asked_again:  # the model was given no tool to call
            return OpeningStep((), self.ask_again() if alone else None, turn)
        self._question = self._question or words_of(latest_question(sent.messages))
        with store_deadline():  # each round has its own: models may take a minute between two
            if alone:
                answers, following, turn = await self._fitting(sent, turn, calls)
            else:
                answers, following = await self._answers(calls, self._room(sent) // 2), None
        self._shown = answers.shown
        self._has_spoken |= not is_silent(turn, sent.dialect, self._hidden)
        following = self._withdrawn(following, answers)
        used = self.used
        self.used = msgspec.structs.replace(
            used,
            calls=used.calls + answers.opened,
            tokens=used.tokens + answers.tokens,
            rounds=used.rounds + (following is not None),
            refused=used.refused + len(calls) - answers.opened,
            repeated=used.repeated + answers.repeated,
        )
        if following is None and alone:
            following = self.ask_again()
        return OpeningStep(answers.results, following, turn)

    def _withdrawn(self, following: Conversation | None, answers: _Answers) -> Conversation | None:
        """Forbid the tool in the next request if its calls open nothing; return None otherwise.

        A call that opens nothing is answered with the reason. A model that repeats it will not find
        the right call.
        """
        self._rounds += 1
        is_repeated = answers.repeated == len(answers.results)
        if is_repeated and not self._opening_rounds and not self._has_spoken:
            return None  # the calls brought nothing: the first request has all that there is
        if answers.opened:
            self._opening_rounds += 1
            self._refusals = 0
        else:
            self._refusals += _MOST_REFUSALS if is_repeated else 1
        is_endless = (
            self._refusals >= _MOST_REFUSALS
            or self._rounds >= 2 * self._caps.rounds + _MOST_REFUSALS
        )
        # What copied once copies again: of such models none answered while it had the tool. But an
        # agent that meant its call must not lose the client's tools for it.
        is_copied = answers.copied == len(answers.results)
        if following is None or not (is_endless or is_copied):
            return following
        if not (is_endless or keeps_other_tools(following, self._hidden)):
            return following
        if self.used.withdrawn:  # it calls the forbidden tool
            return None
        self.used = msgspec.structs.replace(self.used, withdrawn=1)
        return forbid_tools(following, self._hidden)

    def ask_again(self, turn: tuple[bytes, ...] = ()) -> Conversation | None:
        """Return the first request without our tools, if the answer would be empty.

        `turn` is the model's last one. Small models open parts and then end their turn without
        text; asked again without the tool, seven of nine answered from the citation. First the tool
        is only forbidden, so that the provider's cache stays valid. If the model writes nothing
        even then, or ignores that, the definition is removed. The answer to that request is final.
        """
        if turn and not self.is_silent(turn):
            self._has_spoken = True
        if self._has_spoken or self._is_last:
            return None
        return self._first_again()

    def start_over(self, status: int) -> Conversation | None:
        """Return the first request without our tools, if the upstream refuses the continued one.

        Our count of the model's turn may be too low, and services that implement a provider's
        dialect refuse histories that the provider accepts. Return None if the first request itself
        is refused, or if the reason is not the content of the request.
        """
        if status not in _REFUSED or not self._looked_at or self.is_asked_again:
            return None
        return self._first_again()

    def _first_again(self) -> Conversation | None:
        first, used = self._looked_at[0], self.used
        if used.withdrawn or used.resent:
            self._is_last = True
            request = remove_tools(first, self._hidden)
        else:
            request = forbid_tools(first, self._hidden)
        if request is not None:
            self.used = msgspec.structs.replace(
                used, rounds=used.rounds + 1, resent=used.resent + 1
            )
        return request

    def hop_of(
        self, sent: Conversation, step: OpeningStep, calls: Sequence[ModelCall], handed: HandedCalls
    ) -> Hop:
        """Return the part of a turn with hidden calls that is kept until the client's next request.

        Calls that end an answer are restored in that request. After one with 100 KB of arguments no
        later request of the session fitted any more: of such a turn, only the part that the client
        saw is kept.
        """
        if step.following is None and not handed and self._exceed_room(sent, calls):
            return Hop(split(step.turn, sent.dialect, self._hidden))
        return Hop(step.turn, step.results, dict(handed))

    def _exceed_room(self, sent: Conversation, calls: Sequence[ModelCall]) -> bool:
        """Return whether calls alone take more than half of the room that a request has left."""
        room = self._room(sent) // 2
        if sum(len(call.arguments) for call in calls) <= room:  # a token has at least a character
            return False
        return sum(count(call.arguments) for call in calls) > room

    def is_silent(self, turn: tuple[bytes, ...]) -> bool:
        """Return whether a client sees nothing of a turn; providers refuse it in a history."""
        return is_silent(turn, self._looked_at[0].dialect, self._hidden)

    def refuse_all(self, sent: Conversation) -> Conversation | None:
        """Answer none of the calls; return the request to send instead, if there is one."""
        if not self._looked_at:
            self._looked_at.append(sent)
        return self.ask_again()

    @property
    def is_asked_again(self) -> bool:
        """Whether the first request was sent again, without our tools and the opened parts."""
        return self.used.resent > 0

    def end(self) -> None:
        """Open no more, and break reference cycles, so that the memory is free at once.

        The added messages are in no session, and the caller still holds this object.
        """
        first = self._looked_at[0].messages if self._looked_at else ()
        for request in self._looked_at:
            for message in request.messages[common_prefix(first, request.messages) :]:
                message.let_go()
        self._looked_at.clear()
        self._room, self._hidden, self._make_room = _no_room, _none_hidden, None

    def _room_of(self, request: Conversation) -> int:
        self._looked_at.append(request)
        return self._room(request)

    async def _fitting(
        self, sent: Conversation, turn: tuple[bytes, ...], calls: Sequence[ModelCall]
    ) -> _Continued:
        """Return results with which the next request fits, and that request or None."""
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
            return without_bound_thinking(
                self._continued(behind, turn, results), len(behind.messages)
            )

        room = room if behind is None else self._room_of(following(unanswered))
        going_on = turn if behind is None else without_bound_thinking_in_turn(turn, behind)
        answers = _Answers()
        # At most half at once, so that the model can open more and still receive its last
        # instruction. Parts are measured with one vocabulary, and may be longer in the model's own.
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
        self, sent: Conversation, turn_tokens: int, calls: Sequence[ModelCall]
    ) -> Conversation | None:
        """The request folded so that calls can be answered: in full, else in part."""
        if self._make_room is None:
            return None
        wanted_tokens, least = self._wanted(calls), _LEAST_ROOM * len(calls)
        # Half of the room is used at once, so twice the size of the part is needed. In a window
        # full of tools (Claude Code) no fold may free that much, and less will do.
        for tokens in sorted(
            {2 * wanted_tokens, max(wanted_tokens, 2 * least), 2 * least}, reverse=True
        ):
            folded = await self._make_room(sent, turn_tokens + tokens)
            if folded is not None:
                return folded
        return None

    def _wanted(self, calls: Sequence[ModelCall]) -> int:
        """Return the tokens that the calls ask for, within the caps, or those of a refusal."""
        remaining = max(self._caps.tokens - self.used.tokens, 0)
        return max(min(sum(map(_wanted, calls)), remaining), _LEAST_ROOM * len(calls))

    async def _answers(self, calls: Sequence[ModelCall], room: int) -> _Answers:
        """What each call is answered; never silence."""
        answers = _Answers()
        shown_before = set(self._shown)
        for n, call in enumerate(calls):
            remaining = self._caps.tokens - self.used.tokens - answers.tokens
            share = min(remaining, room) // (len(calls) - n)
            why = self._reached(self.used.calls + answers.opened, remaining)
            if not why and share < _LEAST_ROOM:
                why = "there is no room left in the context window"
            if why:
                part = _Part(NO_MORE.format(why=why), is_opened=False)
            else:
                part = await self._opened(call, share, shown_before)
            tokens = count(part.text)
            room -= tokens
            answers = _Answers(
                (*answers.results, (call, part.text)),
                answers.opened + part.is_opened,
                answers.repeated + part.is_repeated,
                answers.copied + part.is_answer,
                answers.tokens + (tokens if part.is_opened else 0),
                shown_before,
            )
        return answers

    def _reached(self, calls: int, left: int) -> str:
        """Return the text that informs the model of a reached cap; empty if none is reached."""
        if self._opening_rounds >= self._caps.rounds:
            return f"you have opened something {self._caps.rounds} times"
        if calls >= self._caps.calls:
            return f"{self._caps.calls} parts were opened"
        if left < _LEAST_ROOM:
            return f"{self._caps.tokens:,} tokens were opened"
        return ""

    async def _opened(self, call: ModelCall, most: int, shown: set[_Shown]) -> _Part:
        """Return the result of a call; after an internal error, a text that reports it."""
        with self._faults.caught("expansion"):
            return await self._opened_part(call, most, shown)
        return _Part(NOT_OPENED, is_opened=False)

    async def _opened_part(self, call: ModelCall, most: int, shown: set[_Shown]) -> _Part:
        try:
            if call.name in (turn_recall.NAME, turn_recall.OTHER_NAME):
                return await self._recalled(turn_recall.parse_query(call.arguments), most)
            if self._finder is not None and call.name in FINDERS | CALLERS:
                return _Part(await self._finder.answer(call, most))
            return await self._expanded(call, most, shown)
        except ExpandError as error:
            return _Part(refusal(error), is_opened=False)
        except StoreError:
            return _Part(NO_STORE, is_opened=False)

    async def _expanded(self, call: ModelCall, most: int, shown: set[_Shown]) -> _Part:
        """Open the part that a call asks for; an unknown ref is replaced by the most similar one.

        Raises:
            ExpandError: the call names no ref, and the conversation shows none.
        """
        refs: Sequence[str] = ()
        try:
            ref, options = parse_call(call.arguments, self._question)
        except ExpandError:
            refs = await self._refs()
            if not refs:
                raise
            ref, options = parse_call(call.arguments, self._question, refs[0])
        part = await self._part(call, ref, options, most, shown)
        if part.unknown_ref:
            refs = refs or await self._refs()
            if nearest := nearest_ref(ref, refs):
                return await self._part(call, nearest, options, most, shown)
            if refs:
                return part._replace(text=f"{part.text}\nCall {call_of(call.name, refs[0])}.")
        return part

    async def _part(
        self, call: ModelCall, ref: str, options: ExpandOptions, most: int, shown: set[_Shown]
    ) -> _Part:
        if (ref, options) in shown:
            return _Part(SHOWN_ABOVE, is_opened=False, is_repeated=True)
        capped = msgspec.structs.replace(options, max_tokens=min(options.max_tokens, most))
        try:
            expansion = await self._engine.expand_ref(ref, capped, opener=call.name)
        except ExpandError as error:
            return _Part(refusal(error, call_of(call.name, ref)), is_opened=False)
        if expansion.is_answer and self._is_visible(ref, expansion.content):
            return _Part(SHOWN_ABOVE, is_opened=False, is_repeated=True)
        if not expansion.reason:
            shown.add((ref, options))
        is_unknown = expansion.reason in (NO_REF, UNKNOWN_REF)
        return _Part(
            expansion.text,
            is_opened=not expansion.reason,
            is_answer=expansion.is_answer,
            unknown_ref=is_unknown,
        )

    def _is_visible(self, ref: str, content: str) -> bool:
        """Return whether the messages that show a ref show all of this content too."""
        name = ref.encode()
        visible_text = " ".join(
            " ".join(text.split())
            for message in self._looked_at[0].messages
            if message.holds(name)
            for _, _, text in result_texts(message)
        )
        return all(" ".join(line.split()) in visible_text for line in content.splitlines())

    async def _refs(self) -> list[str]:
        """Return the refs that the conversation shows, the latest first."""
        messages = self._looked_at[0].messages
        size = sum(message.size for message in messages)
        return await self._engine.workers.off_loop(size, partial(_refs_in, messages))

    async def _recalled(self, query: str, most: int) -> _Part:
        """Earlier turns that bear on a question, quoted."""
        head = f"{MEMORY}quoted from earlier turns.]"
        room = min(_RECALLED, most) - count(head) - 1
        recalled = await self._engine.recall(query, session=self._session, token_budget=room)
        if not recalled.passages:
            return _Part(NOTHING_SAID, is_opened=False)
        return _Part(f"{head}\n{recalled.text}")


def _refs_in(messages: Sequence[Message]) -> list[str]:
    refs: dict[str, None] = {}
    for message in reversed(messages):
        if message.holds(b"ref:"):
            texts = message.raw.decode("utf-8", "replace")
            refs |= dict.fromkeys(match[0] for match in reversed([*REF.finditer(texts)]))
        if len(refs) >= _MOST_REFS:
            break
    return list(refs)[:_MOST_REFS]


def _no_room(_: Conversation) -> int:
    return 0


def _none_hidden(_: str) -> bool:
    return False


def _wanted(call: ModelCall) -> int:
    if call.name in (turn_recall.NAME, turn_recall.OTHER_NAME):
        return _RECALLED
    if call.name in FINDERS | CALLERS:
        return _FOUND
    try:
        return parse_call(call.arguments)[1].max_tokens
    except ExpandError:
        return _LEAST_ROOM
