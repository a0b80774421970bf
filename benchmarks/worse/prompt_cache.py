"""What a provider's prompt cache holds of a session's requests, and what each request costs.

Costs are in tokens of plain input. Two kinds of cache: marked (Anthropic: entries end at the marks
that the client sets; writes cost 1.25 for five minutes, 2 for an hour) and automatic (OpenAI:
writes cost nothing extra). Both read at the model's own ratio, begin at 1,024 tokens and refresh an
entry when it is read. OpenAI's steps of 128 tokens are left out, as in `benchmarks regret`: on
which side of a step a prompt ends is chance, with us and without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.worse.sessions import Life, RecordedSession
from holdfast.fitting.context_pressure import rates_of
from holdfast.wire import Message
from holdfast.wire.places import without_marks

LEAST = 1_024
"""Tokens: no provider caches a shorter prefix."""
_WRITES: dict[Life, float] = {"5m": 1.25, "1h": 2.0}
_LIVES: dict[Life, float] = {"5m": 300.0, "1h": 3_600.0}
_AUTOMATIC_LIFE = 3_600.0
"""Seconds. OpenAI promises minutes and mostly keeps an hour: 54 % of recorded prompts were found
again after 15 to 60 minutes. The longer life makes a broken prefix dearer, so it is stricter."""


class Prices(NamedTuple):
    """What input costs in one session."""

    read: float
    write: float
    life: float
    marked: bool

    @classmethod
    def of(cls, session: RecordedSession) -> Prices:
        """The prices of a session's model, with the life that its client asked for."""
        read = rates_of(session.model, session.dialect, marked=True).read
        if session.dialect == "anthropic":
            return cls(read, _WRITES[session.life], _LIVES[session.life], marked=True)
        return cls(read, 1.0, _AUTOMATIC_LIFE, marked=False)

    def cost(self, tokens: float, cached: float) -> float:
        """What a request costs of which the cache holds so many tokens."""
        held = cached if cached >= LEAST else 0.0
        return held * self.read + (tokens - held) * self.write


class UntouchedCache:
    """The cache under the client's own requests: each begins with all of the one before."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._before = 0.0
        self._at = 0.0

    def cost(self, tokens: float, at: float, *, starts_over: bool, frame: float) -> float:
        """Send a request of so many tokens, of which the frame has some."""
        cached = min(self._before, frame) if starts_over else self._before
        if at - self._at > self._prices.life:
            cached = 0.0
        self._before, self._at = tokens, at
        return self._prices.cost(tokens, cached)


class SentRequest(NamedTuple):
    """A request as the provider sees it."""

    frame: bytes
    frame_tokens: float
    messages: Sequence[Message]
    tokens: Sequence[float]
    """Of each message."""

    @property
    def total(self) -> float:
        """All input tokens."""
        return self.frame_tokens + sum(self.tokens)

    def first(self, messages: int) -> float:
        """Tokens of the frame and so many messages."""
        return self.frame_tokens + sum(self.tokens[:messages])


class SentCache:
    """The cache under the requests that went out."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._last: SentRequest | None = None
        self._at = 0.0
        self._ends: list[int] = []
        """Numbers of messages after which an entry ends. The frame has an entry of its own."""
        self.is_broken = False
        """Whether the last request did not begin with all of the one before."""

    def cost(self, request: SentRequest, at: float) -> float:
        """Send a request and return what its input costs."""
        last = self._last
        common = -1 if last is None else common_messages(last, request)
        self.is_broken = last is not None and common < len(last.messages)
        if at - self._at > self._prices.life:
            common = -1
        self._ends = [end for end in self._ends if end <= common]
        if self._prices.marked and common >= 0:
            common = max(self._ends, default=0)
        self._ends.append(len(request.messages))
        self._last, self._at = request, at
        return self._prices.cost(request.total, request.first(common) if common >= 0 else 0.0)


def common_messages(before: SentRequest, now: SentRequest) -> int:
    """How many messages two requests begin with alike; -1 if their frames differ."""
    if before.frame != now.frame:
        return -1
    pairs = zip(before.messages, now.messages, strict=False)
    differing = (n for n, (a, b) in enumerate(pairs) if not _same(a, b))
    return next(differing, min(len(before.messages), len(now.messages)))


def _same(a: Message, b: Message) -> bool:
    """Whether two messages are the same to the cache: the client's marks are no part of it."""
    if a is b or a.raw == b.raw:
        return True
    marked = b"cache_control" in a.raw or b"cache_control" in b.raw
    return marked and bool(without_marks(a.value) == without_marks(b.value))
