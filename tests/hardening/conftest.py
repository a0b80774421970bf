"""What campaigns share: their seed and their time, and the table at the end.

The short form of each is a test of `make test` with a fixed seed; the long form is marked
`campaign`, and `make harden` runs it: HARDEN_SECONDS bounds each one, HARDEN_SEED repeats a run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.hardening.campaign import Campaign
from tests.store.postgres_server import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

SHORT_SEED = 11
_COLUMNS = ("campaign", "seed", "rounds", "seconds", "findings")


@pytest.fixture
def campaign(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Iterator[Campaign]:
    """Return the campaign of this test; the test fails with the campaign's findings."""
    is_long = request.node.get_closest_marker("campaign") is not None
    run = _long(request) if is_long else Campaign(SHORT_SEED)
    yield run
    record_property("seed", run.seed)
    record_property("rounds", run.done)
    record_property("findings", len(run.findings))
    for name, figure in run.figures.items():
        record_property(name, figure)
    if run.findings:
        pytest.fail(f"seed {run.seed}:\n" + "\n".join(run.findings))


def _long(request: pytest.FixtureRequest) -> Campaign:
    capture = request.config.pluginmanager.getplugin("capturemanager")
    writer = request.config.get_terminal_writer()

    def tell(line: str) -> None:
        with capture.global_and_fixture_disabled():
            writer.line(line)

    seed = int(os.environ.get("HARDEN_SEED") or time.time_ns() % 2**32)
    seconds = float(os.environ.get("HARDEN_SECONDS") or "inf")
    tell(f"\n{request.node.name}: seed {seed}")
    return Campaign(seed, seconds, tell)


@dataclass
class _Outcome:
    """What became of one test, from the reports of its stages."""

    seconds: float = 0.0
    is_failed: bool = False
    properties: dict[str, Any] = field(default_factory=dict)


class _Table:
    """Gathers the reports of campaigns."""

    def __init__(self) -> None:
        self.outcomes: dict[str, _Outcome] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome = self.outcomes.setdefault(report.nodeid.rpartition("::")[2], _Outcome())
        outcome.seconds += report.duration
        outcome.is_failed |= report.failed
        outcome.properties |= dict(report.user_properties)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        rows = [_COLUMNS, *(_row(name, outcome) for name, outcome in sorted(self.outcomes.items()))]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        terminalreporter.section("campaigns")
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            terminalreporter.write_line("  ".join(cells).rstrip())
        for name, outcome in sorted(self.outcomes.items()):
            figures = {n: v for n, v in outcome.properties.items() if n not in _COLUMNS}
            if figures:
                words = ", ".join(f"{n}: {v}" for n, v in figures.items())
                terminalreporter.write_line(f"{name.removeprefix('test_')}: {words}")


def pytest_configure(config: pytest.Config) -> None:
    """Only who asked for campaigns gets their table."""
    if config.option.markexpr == "campaign":
        config.pluginmanager.register(_Table())


def _row(name: str, outcome: _Outcome) -> tuple[str, ...]:
    rounds = outcome.properties.get("rounds")
    return (
        name.removeprefix("test_"),
        str(outcome.properties.get("seed", "-")),
        f"{rounds:,}" if isinstance(rounds, int) else "-",
        f"{outcome.seconds:,.0f}",
        str(outcome.properties.get("findings") or int(outcome.is_failed)),
    )
