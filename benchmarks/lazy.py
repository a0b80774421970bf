"""What a request costs when the schemas of its tools are set aside: tokens before and after.

Tools of real MCP servers, the first of `../shared/data/tools/livemcp` that make so many, in every
dialect. Counted as the providers count; the time is that of one whole fit, seen for the first time
and again, so it is of this machine.
"""

from __future__ import annotations

import json
import time
from typing import Any

from rich.console import Console
from rich.table import Table

from holdfast.calling.finding import lazy_rules
from holdfast.fitting import FitOptions, fit_request
from holdfast.settings import Settings
from tests.proxy.harness import DIALECTS, request_in
from tests.recorded import DATA

_SIZES = (40, 120, 400)


def run(console: Console) -> None:
    """Print the table."""
    listed = DATA / "tools" / "livemcp" / "tools.jsonl"
    if not listed.exists():
        console.print("lazy: the recorded tools are not on this machine; set HOLDFAST_DATA")
        return
    tools = _tools(listed.read_text().splitlines())
    table = Table("tools", "dialect", "asked", "sent", "share", "ms first", "ms again")
    for size in _SIZES:
        for dialect in DIALECTS:
            table.add_row(f"{size}", dialect, *_measured(tools[:size], dialect))
    console.print(table)


def _tools(lines: list[str]) -> list[dict[str, Any]]:
    """Functions with names of their own."""
    tools: dict[str, dict[str, Any]] = {}
    for entry in map(json.loads, lines):
        name = "".join(c if c.isascii() and c.isalnum() else "_" for c in entry["name"])[:64]
        schema = entry["input_schema"] or {"type": "object", "properties": {}}
        function = {"name": name, "description": entry["description"], "parameters": schema}
        tools.setdefault(name, {"type": "function", "function": function})
    return list(tools.values())


def _measured(tools: list[dict[str, Any]], dialect: str) -> list[str]:
    chat = {"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    body = request_in(dialect, chat)
    rules = lazy_rules(Settings(lazy_tool_tokens=1_000))
    options = FitOptions(dialect=dialect, model="gpt-5", cites=True, opens=True, lazy=rules)
    started = time.perf_counter()
    first = fit_request(body, options)
    between = time.perf_counter()
    fit_request(body, options, state=first.state)
    ended = time.perf_counter()
    return [
        f"{first.untouched:,}",
        f"{first.tokens:,}",
        f"{first.tokens / first.untouched:.3f}",
        f"{(between - started) * 1000:.0f}",
        f"{(ended - between) * 1000:.0f}",
    ]
