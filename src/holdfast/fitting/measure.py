"""How large a request is, and how large it may be."""

from __future__ import annotations

import msgspec

from holdfast.fitting.options import FitOptions
from holdfast.tokens import TokenCount, count
from holdfast.tokens.counter import Correction, message_tokens
from holdfast.tokens.requested import request_limit
from holdfast.wire import Conversation, Message


class Measure(msgspec.Struct, frozen=True):
    """Counts one request in all its forms, by one rule."""

    model: str
    platform: str
    calibration: Correction | None
    most: int
    """Most input tokens."""
    by_bound: bool
    """Nobody gave the limit: then the count's upper bound must fit the model's own."""

    @classmethod
    def of(
        cls, asked: Conversation, options: FitOptions, calibration: Correction | None
    ) -> Measure:
        """The measure for a request."""
        model = options.model or asked.model or ""
        most = options.limit
        if most is None:
            most = request_limit(asked, options.registry, model=model, output=options.output)
        return cls(model, options.platform, calibration, most, options.limit is None)

    def count(self, conversation: Conversation) -> TokenCount:
        """Its tokens, as the provider will count them."""
        return count(
            conversation, model=self.model, platform=self.platform, calibration=self.calibration
        )

    def size(self, counted: TokenCount) -> int:
        """Return the tokens that have to fit.

        If calibration lowered a count, its upper bound has to: the share learnt from earlier turns
        was 7 % too low for a turn with another kind of call.
        """
        if self.by_bound:
            return counted.upper
        return max(counted.tokens, min(counted.plain, counted.upper))

    def fits(self, counted: TokenCount) -> bool:
        """Return whether a count is within the limit."""
        return self.size(counted) <= self.most

    def tokens(self, conversation: Conversation, messages: tuple[Message, ...]) -> float:
        """Tokens of some messages alone."""
        return message_tokens(conversation, messages, self.model, self.platform)
