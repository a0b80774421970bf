"""The protocol's conformance suite, from npm, run against three servers.

The first server is written for the suite: scenarios that fail through the gateway but not directly
are the gateway's faults. The second is the gateway in front of it. The third, the engine's own
server, has none of the suite's tools; only scenarios without them are expected to pass.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mcp import Client

from tests.servers.comparing import PATIENCE, free_port, reachable
from tests.servers.installing import NODE, from_npm

ROOT = Path(__file__).parents[2]
SUITE = from_npm("conformance", "@modelcontextprotocol/conformance")
NEED_NOTHING = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
"""Scenarios that name no tool, prompt or resource, and no ability that a server may lack."""
_SERVER = [sys.executable, "-m", "tests.servers.suite_server"]
_LINE = re.compile(r"^[^\w\s]\s+([\w-]+): (\d+) passed, (\d+) failed", re.MULTILINE)


class Scenario(NamedTuple):
    """The suite's result for one scenario."""

    passed: int
    failed: int
    reason: str
    """Of the first check that failed."""


Judgement = dict[str, Scenario]


def judge(folder: Path) -> dict[str, Judgement]:
    """Run the suite against all three."""
    config = folder / "suite.json"
    entry = {"command": _SERVER[0], "args": _SERVER[1:], "cwd": str(ROOT)}
    config.write_text(json.dumps({"mcpServers": {"suite": entry}}))
    own = [sys.executable, "-m", "holdfast", "mcp", "--http", "--store", "memory:"]
    direct_port, gateway_port, own_port = free_port(), free_port(), free_port()
    subjects = {
        "directly": ([*_SERVER, str(direct_port)], direct_port, "test_simple_text"),
        "gateway": (
            [*own, "--port", str(gateway_port), "--config", str(config), "--all"],
            gateway_port,
            "test_simple_text",
        ),
        "server": ([*own, "--port", str(own_port)], own_port, "cite"),
    }
    judgements = {}
    for name, (command, port, tool) in subjects.items():
        with _running(command):
            asyncio.run(_ready(port, tool))
            judgements[name] = _suite(port, folder / name)
    return judgements


def lost(judgements: dict[str, Judgement]) -> list[str]:
    """Return the faults of ours."""
    direct, through, own = (judgements[name] for name in ("directly", "gateway", "server"))
    wrong = [
        f"gateway, {name}: {through[name].reason}"
        for name, scenario in direct.items()
        if name in through and through[name].failed and not scenario.failed
    ]
    missing = [f"gateway, {name}: not run" for name in direct if name not in through]
    unmet = [
        f"server, {name}: {own[name].reason if name in own else 'not run'}"
        for name in NEED_NOTHING
        if name not in own or own[name].failed
    ]
    return [*wrong, *missing, *unmet]


@contextmanager
def _running(command: list[str]) -> Iterator[None]:
    environment = {**os.environ, "HOLDFAST_LOG_LEVEL": "error"}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def _ready(port: int, tool: str) -> None:
    """Wait until a tool is listed: the gateway lists before its servers have started."""
    await reachable(port)
    async with (
        asyncio.timeout(PATIENCE),
        Client(f"http://127.0.0.1:{port}/mcp", mode="legacy") as host,
    ):
        while tool not in {each.name for each in (await host.list_tools()).tools}:
            await asyncio.sleep(0.1)


def _suite(port: int, folder: Path) -> Judgement:
    command = [str(NODE), str(SUITE.path), "server", "--url", f"http://127.0.0.1:{port}/mcp"]
    ran = subprocess.run(
        [*command, "--suite", "all", "--output-dir", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=10 * PATIENCE,
    )
    return {
        name: Scenario(int(passed), int(failed), _reason(folder, name))
        for name, passed, failed in _LINE.findall(ran.stdout)
    }


def _reason(folder: Path, scenario: str) -> str:
    for path in folder.glob(f"server-{scenario}-2*/checks.json"):
        for check in json.loads(path.read_text()):
            if check.get("status") == "FAILURE":
                return str(check.get("errorMessage", check.get("id")))[:200]
    return ""
