"""`make mcp`: the gateway with real MCP servers, under the protocol's suite, and in real hosts.

Installs missing packages from npm and PyPI into build/mcp and build/clients. Prints a table of
each part; exits with 1 if a result differs from the one without us. Packages that cannot be
installed are left out, with the reason. Parts are chosen by name: `servers`, `suite`, `hosts`.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.servers import suite
from tests.servers.comparing import compared
from tests.servers.hosts import HOSTS, tried
from tests.servers.installing import missing
from tests.servers.table import over_http, servers
from tests.servers.world import pages

_WORDS = ("same", "same error", "cited", "DIFFERS")


def main(names: list[str]) -> int:
    console = Console()
    parts = {"servers": _servers, "suite": _suite, "hosts": _hosts}
    chosen = [part for name, part in parts.items() if not names or name in names]
    outcomes = [part(console) for part in chosen]  # run all of them, even after a failure
    return int(any(outcomes))


def _servers(console: Console) -> bool:
    """Return whether a server behaved differently through the gateway, or did not recover."""
    remarks: list[str] = []
    with tempfile.TemporaryDirectory() as folder, pages() as page:
        every = servers(Path(folder) / "world", page)
        reasons = {served.name: missing(served.package) for served in every}
        remarks += [f"{name}: skipped, {reason}" for name, reason in reasons.items() if reason]
        there = [served for served in every if not reasons[served.name]]
        addressed = [] if reasons["everything"] else [over_http("http"), over_http("sse")]
        verdicts = asyncio.run(compared(there, addressed, Path(folder))) if there else []
    table = Table("server", "tools called", "calls", *_WORDS, "killed in mid-call")
    for verdict in verdicts:
        counts = [str(verdict.counts[word] or "") for word in _WORDS]
        calls = str(verdict.counts.total())
        table.add_row(
            verdict.name, f"{verdict.called} of {verdict.tools}", calls, *counts, verdict.killed
        )
    console.print(table)
    for verdict in verdicts:
        remarks += [f"{verdict.name}: {words}" for words in verdict.trouble]
    _print(console, remarks)
    return any(verdict.trouble for verdict in verdicts)


def _suite(console: Console) -> bool:
    """Whether the gateway or the server fails where it should not."""
    if reason := missing(suite.SUITE):
        _print(console, [f"the conformance suite: skipped, {reason}"])
        return False
    with tempfile.TemporaryDirectory() as folder:
        judgements = suite.judge(Path(folder))
    table = Table("scenario", *judgements, "why the server fails")
    for name in judgements["directly"]:
        scenarios = [judgement.get(name) for judgement in judgements.values()]
        marks = [f"{s.passed}/{s.passed + s.failed}" if s else "" for s in scenarios]
        table.add_row(name, *marks, scenarios[-1].reason if scenarios[-1] else "")
    totals = [sum(each.passed for each in judgement.values()) for judgement in judgements.values()]
    table.add_row("checks passed", *map(str, totals), "")
    console.print(table)
    lost = suite.lost(judgements)
    _print(console, lost)
    return bool(lost)


def _hosts(console: Console) -> bool:
    """Whether a host did not find, call and open through the gateway."""
    table = Table("host", "found, called and opened", "calls")
    failed = False
    for name in HOSTS:
        label, trouble, steps = tried(name)
        table.add_row(label, trouble or "yes", " → ".join(steps))
        failed = failed or (bool(trouble) and not trouble.startswith("skipped"))
    console.print(table)
    return failed


def _print(console: Console, remarks: list[str]) -> None:
    for remark in remarks:
        console.print(remark, markup=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
