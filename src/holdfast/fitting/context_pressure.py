"""How much room there is at each place of a request, and the cost of its tokens.

The messages before a result are weighed as they are sent, short ones by their bytes. So the result
is the same for a request that continues another, for one seen for the first time, and after a
restart; calibration does not change it, and a long conversation is not counted again.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, time
from typing import NamedTuple

from holdfast.errors import SettingsError
from holdfast.expand.tool import NAME, OTHER_NAME
from holdfast.fitting.draft import Draft
from holdfast.fitting.measure import Measure
from holdfast.fitting.policy import Pressure
from holdfast.tokens.prices import bundled, bundled_date
from holdfast.trim.provenance import shows_ref
from holdfast.wire import Conversation, Message
from holdfast.wire.prefix_values import PrefixNote

_BYTES_A_TOKEN = 4
_WEIGHED = 8_000
"""Bytes from which a message is counted: they may be an image or a signature, which cost less."""
_MARKED = ("anthropic", "converse")
_MARKS = (b'"cache_control"', b'"cachePoint"')
_LAST = 8
"""How many messages from the end a client's marks are looked for; agents mark the last ones."""


class Rates(NamedTuple):
    """What input costs, in tokens of plain input."""

    read: float
    """From the vendor's cache; 1 where nothing is cached."""
    write: float
    """When it is sent for the first time."""


_UNKNOWN = Rates(0.25, 1.0)
"""For models that no list has: most vendors cache by themselves, at a tenth to a half."""
LEAST_CACHED = 1_024
"""Tokens: no provider caches a shorter prefix. A request of 1,032 tokens that pointers shortened to
805 was not cached, and its session cost 1.07 of untouched."""
_UNCACHED = Rates(1.0, 1.0)
_ANTHROPIC = Rates(0.1, 1.25)


class ToolCost(NamedTuple):
    """Cost of offering the tool that opens refs with a request."""

    tokens: int = 0
    """Tokens of its definition; 0: the request has the tool anyway."""
    rewrites: bool = False
    """Whether it changes the beginning of the request, which the provider's cache holds."""


_TURNS = 20
"""Requests that are likely to follow, and carry the tool again."""


class ContextPressure:
    """Follows how full the window becomes, from message to message."""

    def __init__(self, draft: Draft, measure: Measure, tool: ToolCost) -> None:
        self._now = draft.now
        self._tool = tool
        self._sent = 0
        """Tokens of the request before the one that brought the message at hand."""
        self._measure = measure
        self._rates = rates_of(measure.model, draft.now.dialect, marked=_is_marked(draft.now))
        self._sent_before = draft.sent_before
        self._tokens = 0
        self._opened = 0
        self._weighed = -1

    def before(self, messages: Sequence[Message], place: int) -> Pressure:
        """Return the pressure at the message `place`; call it from the first to the last."""
        if self._weighed < 0:  # few requests bring something that is long enough to be weighed
            self._tokens = self._sent = self._around_and_before()
            self._opened = _OPENINGS.over(self._sent_before)
            self._weighed = len(self._sent_before.messages)
        for message in messages[self._weighed : place]:
            if message.role == "assistant":
                self._sent = self._tokens
            self._tokens += self._weight(message)
            if shows_ref(message):
                self._tool = ToolCost()  # a request with a ref has the tool
        self._opened = _with_openings(self._opened, messages[self._weighed : place])
        self._weighed = place
        return Pressure(
            self._measure.most,
            self._tokens,
            *self._rates,
            self._opened,
            self._opening(),
            own_window=self._measure.by_bound,
        )

    def _opening(self) -> float:
        """Return the cost of offering the tool at this place."""
        rates, tool = self._rates, self._tool
        cost = tool.tokens * (rates.write + _TURNS * rates.read)
        if tool.rewrites:
            cost += (rates.write - rates.read) * self._sent
        return cost

    def _around_and_before(self) -> int:
        """Return the tokens of the messages sent before and of the frame around them."""
        key = (self._measure.model, self._measure.platform)
        weight = _WEIGHTS.over(self._sent_before, key, self._with_weights)
        return weight + len(self._now.frame.hollow) // _BYTES_A_TOKEN

    def _with_weights(self, tokens: int, messages: Sequence[Message]) -> int:
        return tokens + sum(map(self._weight, messages))

    def _weight(self, message: Message) -> int:
        if message.size <= _WEIGHED:
            return message.size // _BYTES_A_TOKEN
        return round(self._measure.tokens(self._now, (message,)))


def _is_marked(request: Conversation) -> bool:
    """Whether a client asks the vendor to cache anything, where it has to."""
    if request.dialect not in _MARKED:
        return True
    hollow, last = request.frame.hollow, request.messages[-_LAST:]
    return any(mark in hollow or any(m.holds(mark) for m in last) for mark in _MARKS)


_WEIGHTS: PrefixNote[int] = PrefixNote("weights", 0, lambda tokens, _: tokens)
"""By the model and its platform; `ContextPressure` adds, which knows how both count."""


def _with_openings(openings: int, messages: Sequence[Message]) -> int:
    """Add the calls of the tool that opens refs."""
    may_open = (m for m in messages if m.role == "assistant" and m.holds(NAME.encode()))
    return openings + sum(call.name in (NAME, OTHER_NAME) for m in may_open for call in m.calls)


_OPENINGS: PrefixNote[int] = PrefixNote("openings", 0, _with_openings)


@functools.lru_cache(maxsize=1_024)
def rates_of(model: str, dialect: str, *, marked: bool) -> Rates:
    """Return the rates of a model's input, from the bundled list: the same on every day."""
    if not marked:
        return _UNCACHED
    price = None
    with suppress(SettingsError):  # a client may send anything as the name of a model
        price = bundled().price(model, at=datetime.combine(bundled_date(), time(12), UTC))
    if price is None or not price.input:
        return _ANTHROPIC if dialect == "anthropic" else _UNKNOWN
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    return Rates(float(read / price.input), float(write / price.input))
