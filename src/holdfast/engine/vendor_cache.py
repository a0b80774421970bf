"""What a vendor's prompt cache would have held of a request that it never saw.

vendor_cache: before accounting. Pure: a request, a price and counts come in, counts go out. A
cache holds the beginning of a request that went out before, where the vendor caches at all. OpenAI,
Gemini and DeepSeek do so unasked from a length on; Anthropic, and Bedrock, only up to the last part
that the client marked, and they charge for what they write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import re2  # type: ignore[import-untyped]

from holdfast.tokens.prices import Price
from holdfast.wire import Conversation, Message
from holdfast.wire.running import RunningNote

Life = Literal["5m", "1h"]
"""How long a vendor keeps what a client marked."""

LIFE_SECONDS: dict[Life, int] = {"5m": 300, "1h": 3_600}

# A key stands in the bytes with bare quotes; in the text of a message its quotes are escaped. A
# tool's schema may have a property of this name, but not of this type.
_KEYS = (b"cache_control", b"cachePoint")
_MARK = re2.compile(rb'"(?:cache_control|cachePoint)"\s*:\s*\{[^{}]*\}')
_KIND = re2.compile(rb'"type"\s*:\s*"(?:ephemeral|default)"')
_HOUR = re2.compile(rb'"ttl"\s*:\s*"1h"')

_UNASKED = {"openai": 1_024, "azure": 1_024, "deepseek": 64}
"""Fewest tokens that vendors cache without being asked; Gemini's depend on the model."""
_GEMINI_2, _GEMINI = 2_048, 4_096
_MARKED = 1_024
"""Fewest tokens that Anthropic caches; some of its models want more."""


def cache_lives(asked: Conversation) -> frozenset[Life]:
    """For how long the client asks the vendor to cache parts of its request; empty: not at all."""
    return _LIVES.over(asked) | _lives_in(asked.frame.hollow)


def _lives_in(part: bytes) -> frozenset[Life]:
    if not any(key in part for key in _KEYS):
        return frozenset()
    marks = (mark[0] for mark in _MARK.finditer(part))
    return frozenset("1h" if _HOUR.search(m) else "5m" for m in marks if _KIND.search(m))


def _with_lives(lives: frozenset[Life], messages: Sequence[Message]) -> frozenset[Life]:
    marked = (m for m in messages if any(map(m.holds, _KEYS)))
    return lives.union(*(_lives_in(message.raw) for message in marked))


_LIVES: RunningNote[frozenset[Life]] = RunningNote("cache lives", frozenset(), _with_lives)


class Policy(msgspec.Struct, frozen=True):
    """How a vendor caches prompts."""

    least: int
    """Fewest tokens."""
    marked: bool = False
    """Only what the client marks."""


def policy_of(price: Price) -> Policy | None:
    """How the vendor of this price caches; None if it is not known that it does."""
    model = price.model.lower()
    # Claude is sold by Google and Azure too, and caches there as it does at home.
    if "claude" in model or price.provider in ("anthropic", "aws"):
        return Policy(_MARKED, marked=True)
    if price.provider == "google":
        return Policy(_GEMINI_2 if "gemini-2" in model else _GEMINI)
    least = _UNASKED.get(price.provider)
    return None if least is None else Policy(least)


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """The input of the calls of one answer, as a vendor bills it."""

    input: int
    """All of it, the cached parts included."""
    cached: int = 0
    """Read from the cache."""
    written: int = 0
    """Written to the cache, for five minutes or an hour."""
    written_hour: int = 0
    """Of these, for an hour."""
    calls: int = 1
    reported: bool = True
    """By the vendor; else predicted."""

    @property
    def behind(self) -> int:
        """Tokens of a call behind the last mark: neither read from the cache nor written to it."""
        if not self.cached and not self.written:
            return 0
        return max(0, self.input - self.cached - self.written) // max(1, self.calls)


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """What the vendor saw before of a request, and of what was sent in its place, in tokens."""

    untouched: int = 0
    sent: int | None = None
    """None: not known, so that what the vendor cached of it tells nothing."""
    idle_seconds: float = 0.0
    """How long ago that was."""


def untouched_bill(
    untouched: int,
    before: Beginning,
    sent: Bill,
    policy: Policy | None,
    lives: frozenset[Life],
) -> Bill:
    """What the vendor would have billed for the untouched request, in the place of what was sent.

    It would have read as much from its cache as the untouched request had in common with the one
    before, whether or not ours broke the cache. What it did with ours tells whether it would.
    """
    seen = bool(sent.cached or sent.written)
    marked = policy is not None and policy.marked
    caches = bool(lives) if marked else policy is not None and untouched >= policy.least
    if not seen and not caches:
        return Bill(input=untouched)
    reach = max(0, untouched - sent.behind) if marked else untouched
    read = min(reach, _read(before, sent, policy, lives))
    # Vendors that cache unasked charge for writing only if they say so.
    written = reach - read if marked or sent.written else 0
    for_an_hour = lives == {"1h"} or (not lives and 0 < sent.written == sent.written_hour)
    hour = written if for_an_hour else min(written, sent.written_hour)
    return Bill(input=untouched, cached=read, written=written, written_hour=hour)


def _read(before: Beginning, sent: Bill, policy: Policy | None, lives: frozenset[Life]) -> int:
    """Tokens of the untouched request that the cache would have held."""
    if not sent.cached and _expired(before, sent, policy, lives):
        return 0
    if before.sent is None:
        return before.untouched
    # Of several calls the later ones read what the first has written: that tells nothing.
    cached = sent.cached if sent.calls == 1 else min(sent.cached, before.sent)
    # What the vendor missed of our beginning, it would have missed of the untouched one too.
    return max(0, before.untouched + cached - before.sent)


def _expired(before: Beginning, sent: Bill, policy: Policy | None, lives: frozenset[Life]) -> bool:
    """Whether what the vendor had cached was gone, and not just our request another."""
    if policy is not None and not policy.marked:
        # It knew a beginning of ours that is long enough to be cached, and did not find it.
        return sent.reported and before.sent is not None and before.sent >= policy.least
    # Entries end at marks, so a request folded behind one may miss them all while they live.
    return bool(lives) and before.idle_seconds > max(LIFE_SECONDS[life] for life in lives)
