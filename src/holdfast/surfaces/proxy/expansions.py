"""Answer the model's own calls to open refs, under caps that it is told of.

expansions: after sending, before exchange.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.answers import Call
from holdfast.cite import count
from holdfast.engine import Expanded, Holdfast
from holdfast.errors import ExpandError, StoreError
from holdfast.expand import parse_call

_LEAST_ROOM = 120
_NO_MORE = "[No more can be opened in this turn: {why}. Answer with what you have.]"


class Caps(NamedTuple):
    """How much one answer may open."""

    rounds: int = 8
    """Times that the provider is called again."""
    calls: int = 24
    tokens: int = 16_000


class Expansions:
    """The calls of one answer, and what they were given."""

    def __init__(self, engine: Holdfast, caps: Caps, room: int) -> None:
        self._engine = engine
        self._caps = caps
        self._room = room
        """Tokens that are left in the model's window."""
        self._rounds = 0
        self.calls = 0
        self.tokens = 0

    @property
    def used(self) -> Expanded:
        """What was opened."""
        return Expanded(self.calls, self.tokens)

    @property
    def may_go_on(self) -> bool:
        """Whether the provider may be called again: once a cap is reached, it was told so."""
        return self._rounds < self._caps.rounds

    async def answer(self, calls: Sequence[Call]) -> tuple[tuple[Call, str], ...]:
        """What each call is answered; never silence."""
        self._rounds += 1
        return tuple([(call, await self._one(call, len(calls))) for call in calls])

    async def _one(self, call: Call, together: int) -> str:
        why = self._reached()
        left = min(self._caps.tokens - self.tokens, self._room // max(1, together))
        if not why and left < _LEAST_ROOM:
            why = "there is no room left in the context window"
        text = _NO_MORE.format(why=why) if why else await self._opened(call, left)
        self.calls += 1
        spent = count(text)
        self.tokens += spent
        self._room -= spent
        return text

    def _reached(self) -> str:
        if self._rounds >= self._caps.rounds:
            return "this is the last time"
        if self.calls >= self._caps.calls:
            return f"{self._caps.calls} were opened"
        if self.tokens >= self._caps.tokens:
            return f"{self._caps.tokens:,} tokens were opened"
        return ""

    async def _opened(self, call: Call, left: int) -> str:
        try:
            ref, options = parse_call(call.arguments)
            capped = msgspec.structs.replace(options, max_tokens=min(options.max_tokens, left))
            return (await self._engine.expand_ref(ref, capped)).text
        except ExpandError as error:
            return f"[{error}]"
        except StoreError:
            return "[The store cannot be read just now. Answer with what you have.]"
