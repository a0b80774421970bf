"""How each benchmark compares, kept in `ratios.json`: what falls behind is named.

Milliseconds say as much about the machine as about the code; a ratio of two times in one run does
not. Each is the time of something else over ours, so that more is better: a peer's, that of the
same work done the plain way, or, where there is neither, that of a yardstick.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from rich.console import Console

from benchmarks.measure import best_ms

FILE = Path(__file__).with_name("ratios.json")
ALLOWED = 2 / 3
"""Of what a ratio was: noise of a busy machine is less, and what falls further has a reason."""

_noted: dict[str, float] = {}


def note(name: str, theirs: float, ours: float) -> None:
    """Note a ratio of two times, or of other numbers of which fewer are better."""
    if ours > 0:
        _noted[name] = theirs / ours


def note_ratio(name: str, ratio: float) -> None:
    """Note a ratio that was measured by turns."""
    _noted[name] = ratio


def note_ms(name: str, ms: float) -> None:
    """Note what has no peer: milliseconds against those of the yardstick."""
    note(name, yardstick_ms(), ms)


@cache
def yardstick_ms() -> float:
    """What this machine takes to read 100 KB of JSON with the parser of Python."""
    text = json.dumps([{"id": n, "name": f"item {n}", "tags": ["a", "b"]} for n in range(2_000)])
    return best_ms(lambda: json.loads(text))


def saved() -> dict[str, float]:
    """The ratios on file."""
    ratios: dict[str, float] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return ratios


def save(console: Console) -> None:
    """Put the ratios of this run on file; those of benchmarks that did not run stay."""
    rounded = {name: float(f"{ratio:.3g}") for name, ratio in _noted.items()}
    FILE.write_text(json.dumps(dict(sorted({**saved(), **rounded}.items())), indent=2) + "\n")
    console.print(f"wrote {len(rounded)} ratios to {FILE.name}")


def fallen(now: Mapping[str, float], before: Mapping[str, float]) -> list[str]:
    """What fell by more than a third, in words."""
    return [
        f"{name}: {ratio:.3g} times, was {before[name]:.3g}"
        for name, ratio in now.items()
        if name in before and ratio < before[name] * ALLOWED
    ]


def compare(console: Console) -> bool:
    """Name what fell against the ratios on file; whether nothing did."""
    fell = fallen(_noted, saved())
    if fell:
        console.print("[bold]Fell by more than a third:[/bold]")
        for line in fell:
            console.print(f"  {line}", highlight=False)
        console.print("Find out why, or accept it: python -m benchmarks --save NAME")
    elif _noted:
        console.print(f"{len(_noted)} ratios, none fell by more than a third.")
    return not fell
