"""Servers from the command line: added, tried, called, and listed as they were last."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from holdfast.engine import Holdfast
from holdfast.settings import Settings
from holdfast.surfaces.mcp.handlers import own_server
from tests.surfaces.harness import Cli
from tests.surfaces.mcp.test_gateway import words

SERVER = Path(__file__).with_name("demo_server.py")


def test_a_server_is_added_tried_called_and_no_longer_never_started(
    cli: Cli, tmp_path: Path
) -> None:
    config, store = str(tmp_path / "servers.json"), f"sqlite:{tmp_path / 'h.db'}"
    where = ("--config", config)
    assert cli("mcp", "add", "demo", *where, "--", sys.executable, str(SERVER)).code == 0
    assert list(json.loads(Path(config).read_text())["mcpServers"]) == ["demo"]
    before = cli("mcp", "list", *where, "--store", "memory:").json
    assert [row["state"] for row in before] == ["never started"]
    tried = cli("mcp", "test", "demo", *where, "--store", store).json
    assert "echo" in {tool["name"] for tool in tried["tools"]}
    (row,) = cli("mcp", "list", *where, "--store", store).json
    assert (row["state"], row["tools"], row["calls"]) == ("idle", len(tried["tools"]), 0)
    called = cli("mcp", "call", "demo", "echo", '{"text": "hi"}', *where, "--store", store).json
    assert called["content"][0]["text"] == "hi"
    (row,) = cli("mcp", "list", *where, "--store", store).json
    assert (row["state"], row["calls"], row["failed"]) == ("idle", 1, 0)


def test_a_server_whose_program_is_missing_is_told_with_what_to_check(cli: Cli) -> None:
    """`holdfast mcp test bad` gave the advice to run `holdfast mcp test bad`."""
    config = cli.write("servers.json", {"mcpServers": {"bad": {"command": "no-such-program"}}})
    tried = cli("mcp", "test", "bad", "--config", config, "--store", "memory:")
    assert tried.code != 0
    assert "its program cannot be found" in tried.err
    assert "holdfast mcp test" not in tried.err
    assert "no-such-program must be installed and on PATH" in tried.err


def test_arguments_that_are_no_json_are_told_with_an_example(cli: Cli) -> None:
    config = cli.write("servers.json", {"mcpServers": {"self": {"command": sys.executable}}})
    called = cli("mcp", "call", "self", "count", "{bad", "--config", config)
    assert """Quote them, such as '{"text": "Hello"}'; {} means no arguments.""" in called.err


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [("count", {"text": 7}, "arguments['text']"), ("recall", {}, '"query"')],
)
def test_our_own_tools_name_the_argument_that_is_wrong(
    name: str, arguments: dict[str, Any], named: str
) -> None:
    async def main() -> str:
        async with (
            Holdfast.open("memory:", settings=Settings()) as engine,
            Client(own_server(engine)) as host,
        ):
            result = await host.call_tool(name, arguments)
            assert result.is_error
            return words(result)

    assert named in asyncio.run(main())
