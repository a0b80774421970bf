"""How a provider's prompt cache bills a request, sent or only asked.

vendor_cache: before accounting. Pure: counts in, counts out. A cache holds the beginning of an
earlier request. OpenAI, Gemini and DeepSeek cache every long request. Anthropic and Bedrock cache
up to the last part that the client marked, and charge for writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec
import re2  # type: ignore[import-untyped]

from holdfast.tokens.prices import Price
from holdfast.wire import Conversation, Message
from holdfast.wire.prefix_values import PrefixNote

Life = Literal["5m", "1h"]
"""How long a provider keeps a part that the client marked."""

Lives = frozenset[Life]

LIFE_SECONDS: dict[Life, int] = {"5m": 300, "1h": 3_600}

# A key has bare quotes in the bytes; in the text of a message its quotes are escaped. A tool's
# schema may have a property of this name, but not of this type.
_KEYS = (b"cache_control", b"cachePoint")
_MARK = re2.compile(rb'"(?:cache_control|cachePoint)"\s*:\s*\{[^{}]*\}')
_KIND = re2.compile(rb'"type"\s*:\s*"(?:ephemeral|default)"')
_HOUR = re2.compile(rb'"ttl"\s*:\s*"1h"')

_UNASKED = {"openai": 1_024, "azure": 1_024, "deepseek": 64}
"""Minimum tokens of a prompt that providers cache unasked; Gemini's depend on the model."""
_GEMINI_2, _GEMINI = 2_048, 4_096
_UNASKED_SECONDS = 3_600
"""How long these caches live at most (OpenAI: "up to one hour")."""
_MARKED, _MARKED_AT_MOST = 1_024, 4_096
"""Minimum tokens of a prompt that Anthropic caches: by model, between these two."""
_STEP = 256
"""Tokens by which a report of cached tokens may be rounded."""


def cache_lives(asked: Conversation) -> Lives:
    """Return for how long the client asks the provider to cache parts; empty: not at all."""
    return _LIVES.over(asked) | _lives_in(asked.frame.hollow)


def _lives_in(part: bytes) -> Lives:
    if not any(key in part for key in _KEYS):
        return frozenset()
    marks = (mark[0] for mark in _MARK.finditer(part))
    return frozenset("1h" if _HOUR.search(m) else "5m" for m in marks if _KIND.search(m))


def _with_lives(lives: Lives, messages: Sequence[Message]) -> Lives:
    marked = (m for m in messages if any(map(m.holds, _KEYS)))
    return lives.union(*(_lives_in(message.raw) for message in marked))


_LIVES: PrefixNote[Lives] = PrefixNote("cache lives", frozenset(), _with_lives)


class Policy(msgspec.Struct, frozen=True):
    """How a provider caches prompts."""

    least: int
    """Minimum tokens of a cached prompt."""
    marked: bool = False
    """Whether only the parts that the client marks are cached."""


def policy_of(price: Price) -> Policy | None:
    """Return how the provider of this price caches; None if it is not known to cache."""
    model = price.model.lower()
    # Google and Azure sell Claude too, with Anthropic's rules.
    if "claude" in model or price.provider in ("anthropic", "aws"):
        return Policy(_MARKED, marked=True)
    if price.provider == "google":
        return Policy(_GEMINI_2 if "gemini-2" in model else _GEMINI)
    least = _UNASKED.get(price.provider)
    return None if least is None else Policy(least)


class CallTokens(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of one upstream call, by the classes that providers price apart."""

    input: int
    """All input tokens, cached ones included."""
    cached: int = 0
    """Input tokens read from the provider's cache."""
    written: int = 0
    """Input tokens written to the provider's cache, for five minutes or an hour."""
    written_hour: int = 0
    """Of these, the tokens written for an hour."""
    output: int = 0

    @property
    def used_cache(self) -> bool:
        """Whether the provider read or wrote a cache entry."""
        return bool(self.cached or self.written)

    @property
    def behind_marks(self) -> int:
        """Tokens after the last marked part: neither read from the cache nor written to it."""
        return max(0, self.input - self.cached - self.written) if self.used_cache else 0


class Prefixes(msgspec.Struct, frozen=True, kw_only=True):
    """The length of the common beginning with the previous request, asked and sent, in tokens.

    Positions correspond in pairs: `frame`, `known` and the end of the sent request correspond to
    `asked_frame`, `asked_known` and the end of the asked one.
    """

    frame: int = 0
    """System text and tools of the sent request; every provider puts them first."""
    asked_frame: int = 0
    known: int = 0
    """Tokens of the sent request that the previous answered request began with."""
    asked_known: int = 0
    broken: bool = False
    """Whether one of our edits, such as a fold, changed bytes that the provider had cached."""
    idle_seconds: float = 0.0
    """Time since the previous answered request was sent."""


def expected_call(
    tokens: int, known: int, prefixes: Prefixes, policy: Policy | None, lives: Lives
) -> CallTokens:
    """Return how a provider bills a request of which it has read `known` tokens before."""
    if not _caches(tokens, policy, lives) or policy is None:
        return CallTokens(input=tokens)
    read = min(known, tokens) if known >= policy.least and _is_alive(prefixes, lives) else 0
    return _split(tokens, tokens, read, lives if policy.marked else frozenset())


def asked_call(
    asked: int, sent: CallTokens, prefixes: Prefixes, policy: Policy | None, lives: Lives
) -> CallTokens:
    """Return how the provider would have billed the asked request, had it been sent instead.

    `sent` is the provider's report of the sent request. The provider would have read the
    corresponding beginning of the asked request from its cache. Where one of our edits broke the
    cached prefix, or left too little of it to be cached, it would have read the common beginning
    with the previous request.
    """
    if not sent.used_cache and not _would_cache(asked, sent, policy, lives):
        return CallTokens(input=asked)
    read = asked_position(sent.cached, asked, sent, prefixes)
    # A sent request that is too short to be cached does not show that the asked one is, too.
    is_silent = prefixes.broken or (policy is not None and prefixes.known < policy.least)
    if is_silent and _is_alive(prefixes, lives) and _may_hit(sent, prefixes, policy):
        read = max(read, prefixes.asked_known)
    is_marked = policy is not None and policy.marked
    reach = max(0, asked - sent.behind_marks) if is_marked else asked
    # these providers charge for writes only if they report them
    if not is_marked and not sent.written:
        return CallTokens(input=asked, cached=min(read, asked))
    if not lives and sent.written:
        lives = frozenset({"1h"} if sent.written == sent.written_hour else {"5m"})
    call = _split(asked, reach, min(read, reach), lives)
    if lives == {"1h"}:
        return call
    hour = min(call.written, sent.written_hour)
    return msgspec.structs.replace(call, written_hour=hour)


def asked_position(position: int, asked: int, sent: CallTokens, prefixes: Prefixes) -> int:
    """Return the place in the asked request that corresponds to one in the sent request.

    Between the known pairs of positions the place is interpolated.
    """
    if not position:
        return 0
    # Reported tokens differ from counted ones by a few percent, and OpenAI rounds down by 127.
    if abs(position - prefixes.known) <= max(_STEP, sent.input // 20) and prefixes.known:
        return min(prefixes.asked_known, asked)
    pairs = [(0, 0), (prefixes.frame, prefixes.asked_frame)]
    pairs += [(prefixes.known, prefixes.asked_known), (sent.input, asked)]
    pairs = sorted((min(x, sent.input), min(y, asked)) for x, y in pairs)
    for (low_sent, low), (right, high) in pairwise(pairs):
        if low_sent < position <= right:
            return low + max(0, high - low) * (position - low_sent) // (right - low_sent)
    return asked


def _split(tokens: int, reach: int, read: int, lives: Lives) -> CallTokens:
    """Return a call that reads a beginning and writes the rest, up to `reach`, if it is marked."""
    written = reach - read if lives else 0
    hour = written if lives == {"1h"} else 0
    return CallTokens(input=tokens, cached=read, written=written, written_hour=hour)


def _caches(tokens: int, policy: Policy | None, lives: Lives) -> bool:
    if policy is None or tokens < policy.least:
        return False
    return bool(lives) or not policy.marked


def _would_cache(asked: int, sent: CallTokens, policy: Policy | None, lives: Lives) -> bool:
    """Whether the asked request would have been cached though the sent one was not."""
    # A gateway that ignores the marks of a long request would have ignored them in the asked one.
    ignores_marks = policy is not None and policy.marked and sent.input >= _MARKED_AT_MOST
    return _caches(asked, policy, lives) and not ignores_marks


def _may_hit(sent: CallTokens, prefixes: Prefixes, policy: Policy | None) -> bool:
    """Whether the provider's cache may hold the asked request's beginning, for all we know."""
    if policy is not None and prefixes.asked_known < policy.least:
        return False
    if policy is None or policy.marked:
        return True  # entries end at marks: a broken prefix may miss them all while they live
    # It knew a beginning that is long enough to be cached, and did not find it.
    return sent.cached > 0 or prefixes.known < policy.least


def _is_alive(prefixes: Prefixes, lives: Lives) -> bool:
    longest = max((LIFE_SECONDS[life] for life in lives), default=_UNASKED_SECONDS)
    return prefixes.idle_seconds <= longest
