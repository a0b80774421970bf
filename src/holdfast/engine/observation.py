"""What became of a request that was sent.

observation: before session.
"""

from __future__ import annotations

import msgspec

from holdfast.engine.bill import ExpansionUsage, ReusedAnswer, ToolUse
from holdfast.tokens import TokenCount
from holdfast.wire.responses import HiddenTurn


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one request: its usage, status, openings and hidden calls."""

    usage: object = None
    """The provider's usage report of one upstream call, or a list with the report of each."""
    status: int = 200
    expanded: ExpansionUsage = ExpansionUsage()
    """The parts of contents that the model opened."""
    tools: ToolUse = ToolUse()
    hidden: HiddenTurn | None = None
    """The part of the answer that the client never saw."""
    milliseconds: float = 0.0
    warnings: tuple[str, ...] = ()
    read_only: bool = False
    """Whether the request was sent as the client wrote it."""
    learn: bool = True
    """Whether the usage calibrates our counting; usage that is our own count must not."""
    billed: bool = True
    """Whether somebody bills the calls; the offline model's turns are summed separately."""
    remembered: ReusedAnswer | None = None
    """The answer from memory, where no request was sent."""
    first: TokenCount | None = None
    """Count of the request as first sent, if it was folded again before the answer ended."""
    error: str = ""
    """The provider's error code."""

    @property
    def reports(self) -> list[object]:
        """The usage reports that are not empty."""
        usages = self.usage if isinstance(self.usage, list) else [self.usage]
        return [report for report in usages if report]
