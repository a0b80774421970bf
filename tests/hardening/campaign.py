"""A campaign: random rounds under one seed, until they are done or the time is up.

The caller defines a round; this module has the duration, the random numbers and the report. The
same seed repeats the same rounds.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

TELL_SECONDS = 10.0
MOST_FINDINGS = 20
"""The campaign ends after this number of findings: more are usually repetitions."""


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
        """Return the random numbers of one place in the campaign, independent of earlier rounds."""
        return random.Random(":".join(map(str, (self.seed, *place))))

    def rounds(self, most: int) -> Iterator[int]:
        """The numbers of the rounds that there is time for; at least one."""
        told_at = self.begun
        for number in range(most):
            yield number
            self.done = number + 1
            now = time.monotonic()
            if now - told_at >= TELL_SECONDS:
                told_at = now
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


def short_and_full(
    name: str, short: object, full: object, *, is_slow: bool = True
) -> pytest.MarkDecorator:
    """Parametrise a test by its size: `make test` runs `short`, `make harden` runs `full`.

    Several names are separated by commas, and then `short` and `full` are tuples.
    """
    several = "," in name
    sizes = [tuple(size) if several else (size,) for size in (short, full)]  # type: ignore[arg-type]
    marks = [[pytest.mark.slow] if is_slow else [], [pytest.mark.campaign]]
    params = [
        pytest.param(*size, marks=marked, id=label)
        for size, marked, label in zip(sizes, marks, ("short", "full"), strict=True)
    ]
    return pytest.mark.parametrize(name, params)
