"""What holds for every test: how hypothesis draws, and that no test is left out in silence."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from typing import Any

import pytest
from hypothesis import settings

from tests.support.recorded import DATA

# A shared machine is slow at times; a slow example is no failure.
settings.register_profile("default", deadline=None)
# A merge is judged by the same examples every time; people, and `make fuzz`, look for new ones.
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# In the background of a shell Ctrl-C is ignored, and what tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_ABOUT_DATA = "HOLDFAST_DATA"
"""What a reason says that has to do with the recorded data: how to bring it (recorded.py)."""


@pytest.hookimpl(optionalhook=True)  # `make mutate` runs without xdist
def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are cores: many tests wait for programs that they started."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)


def pytest_collection_finish() -> None:
    """Take all that was imported out of the collector's sight: it stays to the end anyhow.

    The objects of a dozen frameworks were looked through again and again, which took between a
    tenth and a fifth of the time of the tests (measured in two parts of them, with all imported).
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Where the recorded data is, a test that says it is not there has looked at a wrong place."""
    del item, call
    report: pytest.TestReport = yield
    if report.skipped and DATA.exists() and _ABOUT_DATA in _reason(report):
        report.outcome = "failed"
        report.longrepr = f"{DATA.name} is on this machine, and yet skipped: {_reason(report)}"
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """End with what was skipped and why; a run that leaves tests out must say so."""
    reasons = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", ()))
    if not reasons:
        return
    terminalreporter.section("skipped")
    for reason, number in reasons.most_common():
        terminalreporter.write_line(f"{number:5} {reason}")


def _reason(report: pytest.TestReport) -> str:
    place = report.longrepr
    words = place[2] if isinstance(place, tuple) else str(place)
    return words.removeprefix("Skipped: ")
