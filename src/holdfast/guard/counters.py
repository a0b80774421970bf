"""What a session's context holds, as five numbers.

counters: beside targets; pure arithmetic without a lock, which is the guard's.

    current   sent before, as the provider reported it where it did
    pending   written, and waiting for the next request
    new       what tools answered since the last request
    schema    the tool schemas of the next request, as estimated
    counted   how much of `schema`'s predecessor is inside `current`, because it was reported

The first three only grow until the turn commits. Schemas are not part of the conversation: they
are projected in full until a report includes them, and from then on as the difference.
"""

from __future__ import annotations

import msgspec

from holdfast.errors import ContextOptimizationError


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """A state of the counters; each step returns the next one."""

    current: int = 0
    pending: int = 0
    new: int = 0
    schema: int = 0
    counted: int = 0
    """Schema tokens that the last report included."""
    sent: int = 0
    """Schema tokens of the last request that was committed."""

    @property
    def projected(self) -> int:
        """The input tokens of the next request."""
        return self.conversation + self.schema

    @property
    def conversation(self) -> int:
        """The next request without its schemas."""
        return self.current - self.counted + self.pending + self.new

    def with_pending(self, tokens: int) -> Counters:
        """Add what will be sent."""
        return msgspec.structs.replace(self, pending=self.pending + _grown(tokens))

    def with_new(self, tokens: int) -> Counters:
        """Add what a tool answered."""
        return msgspec.structs.replace(self, new=self.new + _grown(tokens))

    def with_schema(self, tokens: int) -> Counters:
        """Replace the schemas of the next request."""
        return msgspec.structs.replace(self, schema=_grown(tokens))

    def committed(self) -> Counters:
        """All of it goes out: pending and new become current, none is lost or counted twice."""
        return msgspec.structs.replace(
            self,
            current=self.current + self.pending + self.new,
            pending=0,
            new=0,
            sent=self.schema,
        )

    def reported(self, input_tokens: int, output_tokens: int) -> Counters:
        """Take the provider's numbers for the last request and its answer.

        What was added since the commit was not in that request, and stays on top.
        """
        given = _grown(input_tokens)
        return msgspec.structs.replace(
            self, current=given + _grown(output_tokens), counted=min(self.sent, given)
        )

    def rebased(self, tokens: int) -> Counters:
        """Start from a conversation that was made shorter, between turns."""
        if self.pending or self.new:
            raise ContextOptimizationError(
                f"the conversation was replaced in the middle of a turn, with "
                f"{self.pending + self.new:,} tokens not yet committed",
                fix="Call commit() before rebase().",
            )
        return msgspec.structs.replace(self, current=_grown(tokens), counted=0, sent=0)


def _grown(tokens: int) -> int:
    if tokens < 0:
        raise ValueError("a number of tokens is below zero")
    return tokens
