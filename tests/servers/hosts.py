"""Claude Code and Gemini CLI with `holdfast mcp --config` as their one MCP server.

The model is scripted: it searches a tool with `find_tools`, calls it with `call_tool`, gets a long
log as a citation, opens a line with `expand_ref`, and answers with that line. It uses only the
host's input: a step that the host does not carry out leads to another answer.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.clients.programs import PROGRAMS, Program
from tests.clients.runs import Launch, installed, talk, version
from tests.surfaces.mcp.gateways import DEMO
from tests.surfaces.proxy.gatekeeper import Got
from tests.surfaces.proxy.spoken import REF, call, says, text, thinking
from tests.surfaces.proxy.upstream import Upstream
from tests.wire.responses.streams import Part, Script

PROMPT = "Which line of the service's log has request 14000? Use the tools of the server holdfast."
ANSWER = "It says: 02000 INFO request 14000 served"
HOSTS = ("claude", "gemini")
_SERVER = "holdfast"
_WAIT = "WaitForMcpServers"
"""With which Claude Code's models wait for a server that has not started yet, a while each time."""
_MOST_WAITS = 20
_LINE = re.compile(r"\d{5} INFO request 14000 served")
"""In the middle of a long log: no citation shows it."""


class Seeker:
    """The scripted model."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        """Its calls."""

    def __call__(self, got: Got) -> Script:
        asked = (got.value.get("thinking") or {}).get("type", "disabled")
        thoughts = [] if asked == "disabled" else [thinking("I need a tool.")]
        named = {name.rpartition("_" * 2)[2]: name for name in got.tools}
        named |= {name.removeprefix(f"mcp_{_SERVER}_"): name for name in got.tools}
        return says(*thoughts, *self._parts(got, named))

    def _parts(self, got: Got, named: Mapping[str, str]) -> list[Part]:
        if "find_tools" not in named:
            if _WAIT in named and len(self.steps) < _MOST_WAITS:
                return self._calls(_WAIT, {})
            return [text("Logs")]  # it asks on the side, for a title perhaps
        if line := _LINE.search(got.texts):
            return [text(f"It says: {line[0]}")]
        return self._next(got, named)

    def _next(self, got: Got, named: Mapping[str, str]) -> list[Part]:
        done = [step for step in self.steps if step != _WAIT]
        ref = REF.search(got.texts)
        if not done:
            return self._calls(named["find_tools"], {"query": "show the log of a service"})
        if len(done) == 1 and "demo__log" in got.texts:
            wanted = {"name": "demo__log", "arguments": {"lines": 4000}}
            return self._calls(named["call_tool"], wanted)
        if len(done) == 2 and ref is not None:
            return self._calls(named["expand_ref"], {"ref_id": ref[0], "pattern": "request 14000 "})
        return [text("I cannot find it.")]

    def _calls(self, name: str, arguments: dict[str, Any]) -> list[Part]:
        self.steps.append(name)
        return [text("I will look. "), call(name, arguments, f"call_{len(self.steps)}")]


def program(name: str, config: Path, store: Path) -> Program:
    """A host that has the gateway in its own list of servers."""
    chosen = next(each for each in PROGRAMS if each.name == name)
    arguments = ["-m", "holdfast", "mcp", "--config", str(config), "--directory"]
    arguments += ["--store", f"sqlite:///{store}"]
    entry = {"command": sys.executable, "args": arguments}
    servers = {"mcpServers": {_SERVER: entry}}
    if name == "claude":
        return replace(
            chosen,
            arguments=lambda _, prompt: [
                "-p", prompt, "--output-format", "text", "--mcp-config", json.dumps(servers),
                "--strict-mcp-config", "--allowedTools", f"mcp__{_SERVER}",
            ],
        )  # fmt: skip

    def prepare(home: Path, url: str) -> None:
        chosen.prepare(home, url)
        path = home / ".gemini" / "settings.json"
        trusted = {_SERVER: {**entry, "trust": True}}
        path.write_text(json.dumps({**json.loads(path.read_text()), "mcpServers": trusted}))

    return replace(chosen, prepare=prepare)


def tried(name: str) -> tuple[str, str, list[str]]:
    """Return a host's label with its version, the faults of its run, and its calls."""
    chosen = next(each for each in PROGRAMS if each.name == name)
    if reason := installed(chosen):
        return chosen.label, f"skipped: {reason}", []
    seeker = Seeker()
    with Upstream() as upstream, tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "servers.json"
        demo = {"command": sys.executable, "args": [DEMO]}
        config.write_text(json.dumps({"mcpServers": {"demo": demo}}))
        upstream.always = seeker
        home = Path(folder) / "home"
        home.mkdir()
        host = program(name, config, Path(folder) / "holdfast.db")
        printed = talk(Launch(host, upstream.url, home), [PROMPT])[0]
    label = f"{chosen.label} {version(chosen)}"
    if upstream.refused:
        return label, f"the upstream refused: {upstream.refused[0][:200]}", seeker.steps
    if ANSWER not in printed:
        return label, f"it printed {printed[-300:]!r}", seeker.steps
    return label, "", seeker.steps
