"""Four processes remember, assemble, supersede and forget on one store: nothing lost, memory flat.

Each checks its results against its acknowledged operations. At the end, no forgotten text may be
anywhere in the files.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hardening.births import ROOT
from tests.hardening.campaign import Campaign, short_and_full
from tests.store.postgres_server import running_server

PROCESSES = 4
HOUR = 3_600.0
MOST_GROWTH = 40.0
"""Megabytes from the first third of the time to its end; half of it are pages of the store."""


def soaked(campaign: Campaign, url: str, seconds: float, processes: int) -> list[str]:
    """Run the processes to their end; return the forgotten texts."""
    arguments = (url, "{}", str(campaign.seed), str(seconds))
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.hardening.soaking"]
            + [argument.format(number) for argument in arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    gone: list[str] = []
    growth = steps = 0
    for child in children:
        out, err = child.communicate()
        if child.returncode:
            campaign.found(f"a process ended with {child.returncode}: {err[-500:]}")
            continue
        seen = json.loads(out.splitlines()[-1])
        steps += seen["steps"]
        gone += seen["gone"]
        growth = max(growth, round(seen["late"] - seen["early"]))
        for what in seen["wrong"][:5]:
            campaign.found(what)
    campaign.done = steps
    campaign.figures |= {"most megabytes of growth": growth, "forgotten": len(gone)}
    if seconds > 60 and growth > MOST_GROWTH:
        campaign.found(f"a process grew by {growth} MB")
    return gone


def check_file(campaign: Campaign, folder: Path, gone: list[str]) -> None:
    """Check that no forgotten text is in the files."""
    raw = b"".join(path.read_bytes() for path in folder.iterdir())
    for mark in gone:
        if mark.encode() in raw:
            campaign.found(f"{mark} was forgotten and stands in the file")


@short_and_full("seconds, processes", (1.0, 2), (HOUR, PROCESSES), is_slow=False)
def test_processes_share_what_is_remembered(
    campaign: Campaign, tmp_path: Path, seconds: float, processes: int
) -> None:
    url = f"sqlite:///{tmp_path}/soak.db"
    gone = soaked(campaign, url, min(seconds, campaign.seconds), processes)
    check_file(campaign, tmp_path, gone)


@pytest.mark.campaign
def test_an_hour_of_four_processes_loses_nothing_on_postgresql(campaign: Campaign) -> None:
    with running_server() as server, server.database() as url:
        soaked(campaign, url, min(HOUR, campaign.seconds), PROCESSES)
