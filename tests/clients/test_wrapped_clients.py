"""Claude Code and Gemini CLI under `holdfast wrap`, compared with runs without it.

`make clients` installs the programs into build/clients. Without them these tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clients.mcp_tools import answer, full_name, mcp_config, tool_name
from tests.clients.programs import surroundings
from tests.surfaces.proxy.gatekeeper import KEY, Got
from tests.surfaces.proxy.harness import FAMILIES
from tests.surfaces.proxy.spoken import call, says, text
from tests.surfaces.proxy.upstream import Upstream
from tests.wire.responses.streams import Script

PROGRAMS = Path(__file__).parents[2] / "build" / "clients" / "npm" / "node_modules" / ".bin"
FIRST_PARTY = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"
"""Claude Code's own private switch: with it, an address counts as Anthropic's."""
PATIENCE = 240
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="the programs are scripts"),
]


def run(
    upstream: Upstream, home: Path, words: list[str], *, wrapped: bool, **variables: str
) -> str:
    """Run a program with a separate home; return its complete output."""
    program = PROGRAMS / words[0]
    if not program.exists():
        pytest.skip("the coding agents are not installed: `make clients` installs them")
    (home / "work").mkdir(exist_ok=True)
    before = [sys.executable, "-m", "holdfast", "wrap", "--"] if wrapped else []
    addresses = {f"HOLDFAST_{family.upper()}_UPSTREAM": upstream.url for family in FAMILIES}
    if not wrapped:
        addresses = {"ANTHROPIC_BASE_URL": upstream.url, "GOOGLE_GEMINI_BASE_URL": upstream.url}
    done = subprocess.run(
        [*before, program, *words[1:]],
        cwd=home / "work",
        env=surroundings(home) | addresses | {"HOLDFAST_STORE_URL": "memory:"} | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.stdout


def tool_calls(got: Got) -> int:
    """Return how many tools the model has called in this conversation."""
    contents = [message["content"] for message in got.value["messages"]]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    return sum(block.get("type") == "tool_use" for block in blocks)


def searches(steps: list[tuple[str, dict[str, Any]]]) -> Callable[[Got], Script]:
    """Return a model that makes these calls one after the other."""

    def model(got: Got) -> Script:
        listed = got.value.get("tools", [])
        if any(str(tool.get("type")).startswith("web_search") for tool in listed):
            return says(text("The web says 42."))  # WebSearch sends a separate request
        done = tool_calls(got)
        if done == len(steps):
            return says(text("The end."))
        return says(call(*steps[done], f"toolu_{done}"))

    return model


def claude(tmp_path: Path, tools: int) -> list[str]:
    """Return the command that runs Claude Code once, with this many tools of an MCP server."""
    allowed = "--allowedTools=ToolSearch,WebSearch,mcp__records"
    if not tools:
        return ["claude", "-p", "Go on.", allowed]
    config = tmp_path / f"{tools}.json"
    config.write_text(json.dumps(mcp_config(tools)))
    return ["claude", "--mcp-config", str(config), allowed, "-p", "Go on."]


def steps_with(tools: int) -> list[tuple[str, dict[str, Any]]]:
    """Return calls that find a deferred tool and use it, for an MCP server and for the web."""
    own = [("ToolSearch", {"query": f"select:{full_name(3)}"}), (full_name(3), {"id": "7"})]
    web = [("ToolSearch", {"query": "select:WebSearch"}), ("WebSearch", {"query": "an answer"})]
    return [*(own if tools else []), *web]


@pytest.mark.parametrize("tools", [0, 30, 80])
def test_claude_code_searches_its_tools_as_it_does_without_us(tmp_path: Path, tools: int) -> None:
    sizes: dict[bool, list[int]] = {}
    for wrapped in (False, True):
        with Upstream() as upstream:
            upstream.always = searches(steps_with(tools))
            variables = {"ANTHROPIC_API_KEY": KEY} | ({} if wrapped else {FIRST_PARTY: "1"})
            words = claude(tmp_path, tools)
            printed = run(upstream, tmp_path, words, wrapped=wrapped, **variables)
        assert "The end." in printed, printed
        assert upstream.refused == []
        assert tools == 0 or answer(tool_name(3), "7") in upstream.requests[-1].texts
        sizes[wrapped] = [len(got.body) for got in upstream.requests]
    assert len(sizes[True]) == len(sizes[False])
    # Each request has one tool of ours (expand_ref): about 500 bytes.
    assert all(ours - own < 600 for own, ours in zip(sizes[False], sizes[True], strict=True)), sizes


def test_under_a_login_claude_code_asks_a_small_model_on_the_side(tmp_path: Path) -> None:
    hook = {"type": "prompt", "prompt": "Is this fine? $ARGUMENTS", "timeout": 60}
    settings = {"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}}
    words = ["claude", "--settings", json.dumps(settings), "-p", "Go on."]
    with Upstream() as upstream:
        upstream.always = says(text('{"ok": true}'))
        printed = run(upstream, tmp_path, words, wrapped=True, CLAUDE_CODE_OAUTH_TOKEN=KEY)
    side, main = upstream.requests
    assert side.model.startswith("claude-haiku-"), printed
    assert not main.model.startswith("claude-haiku-")


def test_a_model_with_a_window_of_a_million_keeps_it(tmp_path: Path) -> None:
    chosen = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_MODEL": "claude-opus-4-8"}
    with Upstream() as upstream:
        printed = run(upstream, tmp_path, ["claude", "-p", "/context"], wrapped=True, **chosen)
    assert "/ 1m" in printed, printed


def test_claude_code_obeys_our_address_above_that_of_its_settings(tmp_path: Path) -> None:
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()
    with Upstream() as upstream, Upstream() as gateway:
        settings.write_text(json.dumps({"env": {"ANTHROPIC_BASE_URL": gateway.url}}))
        gateway.always = upstream.always = says(text("The end."))
        words = ["claude", "-p", "Go on."]
        printed = run(upstream, tmp_path, words, wrapped=True, ANTHROPIC_API_KEY=KEY)
    assert "holdfast: 1 request answered" in printed, printed
    assert len(upstream.requests) == 1
    assert gateway.requests == []


def test_gemini_cli_with_only_a_key_works_in_a_fresh_home(tmp_path: Path) -> None:
    words = ["gemini", "-p", "Go on.", "-m", "gemini-2.5-flash"]
    trusted = {"GEMINI_API_KEY": KEY, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    with Upstream() as upstream:
        upstream.always = says(text("The end."))
        printed = run(upstream, tmp_path, words, wrapped=True, **trusted)
    assert "The end." in printed, printed
    assert upstream.refused == []
    assert not (tmp_path / ".gemini" / "settings.json").exists()
    assert list((tmp_path / ".gemini" / "tmp").rglob("session-*"))  # it can be resumed


def test_gemini_cli_with_a_login_keeps_it(tmp_path: Path) -> None:
    login = {"security": {"auth": {"selectedType": "oauth-personal"}}}
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "settings.json").write_text(json.dumps(login))
    words = ["gemini", "-p", "Go on.", "-m", "gemini-2.5-flash"]
    with Upstream() as upstream:
        printed = run(upstream, tmp_path, words, wrapped=True, GEMINI_API_KEY=KEY)
    assert upstream.requests == []
    assert "Manual authorization is required" in printed
    assert json.loads((tmp_path / ".gemini" / "settings.json").read_text()) == login
