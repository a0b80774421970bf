"""Answer the model's own calls to open refs, and go on from them, under caps that it is told of.

expansions: after sending, before exchange. The request that goes on holds the model's turn and
what was opened: it is counted as a whole before it may go out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from holdfast.cite import count
from holdfast.engine import Expanded, Holdfast
from holdfast.errors import EditError, ExpandError, StoreError
from holdfast.expand import parse_call
from holdfast.wire import Conversation
from holdfast.wire.answers import Call, continuation

_LEAST_ROOM = 120
_NO_MORE = "[No more can be opened in this turn: {why}. Answer with what you have.]"

Results = tuple[tuple[Call, str], ...]
"""Calls with what each was answered."""


class Caps(NamedTuple):
    """How much one answer may open."""

    rounds: int = 8
    """Times that it may open something; once more it is told that it may not."""
    calls: int = 24
    tokens: int = 16_000


class Step(NamedTuple):
    """What follows from a turn with hidden calls."""

    results: Results
    following: Conversation | None
    """The request that goes on; None where the answer ends here."""


class Expansions:
    """The calls of one answer, and what they were given."""

    def __init__(self, engine: Holdfast, caps: Caps, room: Callable[[Conversation], int]) -> None:
        """Begin; `room` says how many tokens a request may still grow by."""
        self._engine = engine
        self._caps = caps
        self._room = room
        self._rounds = 0
        self.used = Expanded()
        """What was opened."""

    async def step(
        self, sent: Conversation, turn: tuple[bytes, ...], hidden: Sequence[Call], *, alone: bool
    ) -> Step:
        """Answer the hidden calls of a turn; where they are not alone, it is the client's."""
        if alone:
            results, following = await self._fitting(sent, turn, hidden)
        else:
            results, following = await self._answers(hidden, self._room(sent) // 2), None
        self._rounds += 1
        if self._rounds > self._caps.rounds + 1:
            following = None
        self.used = Expanded(
            self.used.calls + len(results),
            self.used.tokens + sum(count(text) for _, text in results),
            self.used.rounds + (following is not None),
        )
        return Step(results, following)

    async def _fitting(
        self, sent: Conversation, turn: tuple[bytes, ...], hidden: Sequence[Call]
    ) -> Step:
        """Results with which the request that goes on fits; without it if none would."""
        try:
            room = self._room(continuation(sent, turn, [(call, "") for call in hidden]))
        except EditError:  # such as a call with an id that was used before
            return Step(await self._answers(hidden, self._room(sent) // 2), None)
        results: Results = ()
        # At most half at once, so that the model can open more and still be told to end. What is
        # opened is measured by one vocabulary, and may count for more in the model's own.
        for share in (room // 2, room // 4, 0):
            results = await self._answers(hidden, share)
            following = continuation(sent, turn, results)
            if self._room(following) >= 0:
                return Step(results, following)
        return Step(results, None)

    async def _answers(self, calls: Sequence[Call], room: int) -> Results:
        """What each call is answered; never silence."""
        results: list[tuple[Call, str]] = []
        tokens = self.used.tokens
        for n, call in enumerate(calls):
            share = min(self._caps.tokens - tokens, room) // (len(calls) - n)
            why = self._reached(self.used.calls + n, tokens)
            if not why and share < _LEAST_ROOM:
                why = "there is no room left in the context window"
            text = _NO_MORE.format(why=why) if why else await self._opened(call, share)
            results.append((call, text))
            spent = count(text)
            tokens += spent
            room -= spent
        return tuple(results)

    def _reached(self, calls: int, tokens: int) -> str:
        if self._rounds >= self._caps.rounds:
            return "this is the last time"
        if calls >= self._caps.calls:
            return f"{self._caps.calls} were opened"
        if tokens >= self._caps.tokens:
            return f"{self._caps.tokens:,} tokens were opened"
        return ""

    async def _opened(self, call: Call, most: int) -> str:
        try:
            ref, options = parse_call(call.arguments)
            capped = msgspec.structs.replace(options, max_tokens=min(options.max_tokens, most))
            return (await self._engine.expand_ref(ref, capped)).text
        except ExpandError as error:
            return f"[{error}]"
        except StoreError:
            return "[The store cannot be read just now. Answer with what you have.]"
