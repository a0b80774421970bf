"""A research run killed with SIGKILL at any point ends with the same report."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.researching.mortal import SOURCES

ROOT = Path(__file__).parents[2]
PATIENCE = 600
LEAST_WRITES = 2 * SOURCES + 8
"""A text and a reading of each source, and the steps: begun, planned, gathered, gathered all, two
questions, refined, synthesised."""


def besieged(folder: Path, every: int) -> int:
    """Return how often a run was killed and resumed to the same report."""
    command = [sys.executable, "-m", "tests.researching.mortal", str(folder), str(every)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(line["same"] for line in lines)
    assert max(line["writes"] for line in lines if line["died"]) > LEAST_WRITES - every
    assert not lines[-1]["died"]  # the last one had nothing left to die at
    return sum(line["died"] for line in lines)


@pytest.mark.slow
def test_killed_at_any_fifth_write_it_goes_on_to_the_same_report(tmp_path: Path) -> None:
    besieged(tmp_path, every=5)


@pytest.mark.campaign
def test_killed_at_every_write_it_goes_on_to_the_same_report(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    kills = besieged(tmp_path, every=1)
    assert kills >= 2 * LEAST_WRITES
    record_property("rounds", kills)
