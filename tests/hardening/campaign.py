"""A campaign: rounds of chance under one seed, until they are done or the time is up.

campaign: the first word of this folder. What a round does is its caller's; here is how long it
goes on, what its chance is, and what is told of it. A seed brings a campaign back exactly.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

TELL_SECONDS = 10.0
MOST_FINDINGS = 20
"""After so many a campaign ends: more of them say the same."""


@dataclass
class Campaign:
    """One run of a campaign."""

    seed: int
    seconds: float = float("inf")
    tell: Callable[[str], None] = lambda _: None
    begun: float = field(default_factory=time.monotonic)
    done: int = 0
    findings: list[str] = field(default_factory=list)
    figures: dict[str, object] = field(default_factory=dict)
    """What else is worth a place in the table."""

    def chance(self, *place: object) -> random.Random:
        """The chance of one place in the campaign, whatever happened before it."""
        return random.Random(":".join(map(str, (self.seed, *place))))

    def rounds(self, most: int) -> Iterator[int]:
        """The numbers of the rounds that there is time for; at least one."""
        told = self.begun
        for number in range(most):
            yield number
            self.done = number + 1
            now = time.monotonic()
            if now - told >= TELL_SECONDS:
                told = now
                self.tell(self._progress(most, now))
            if now - self.begun >= self.seconds or len(self.findings) >= MOST_FINDINGS:
                return

    def found(self, what: str) -> None:
        """Note what should not be."""
        self.findings.append(what)
        self.tell(f"  FINDING: {what}")

    def _progress(self, most: int, now: float) -> str:
        took = now - self.begun
        rate = self.done / took
        return (
            f"  {self.done:,} of {most:,} rounds in {took:,.0f} s ({rate:,.1f} per second), "
            f"{len(self.findings)} findings"
        )
