"""The directory of tools: names and one-line intents by server, within a token budget.

The directory is part of a cached prefix, so it depends on nothing but the set of tools: neither
their order nor use or time changes a byte. If not all lines fit, intents are dropped first, then
names; the servers with their numbers of tools are dropped last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from holdfast.cite import count
from holdfast.quoting import bracketed, in_one_line
from holdfast.toolbox.intents import MOST_INTENT, tool_intent
from holdfast.toolbox.tool import Tool
from holdfast.trim.excerpts import before

BUDGET = 400
"""Tokens; a few tools take 100."""
HEADING = "Tools:"
_SHORT_INTENT = 40
_MOST_CHARACTERS_PER_TOKEN = 16
"""Characters per allowed token above which a text is not counted, since it cannot fit."""


class DirectoryEntry(NamedTuple):
    """An entry of the directory."""

    server: str
    name: str
    intent: str = ""


def directory(tools: Sequence[Tool | DirectoryEntry], budget: int = BUDGET) -> str:
    """Return the directory within a budget; empty if not even the number of tools fits."""
    ordered = sorted({_entry(tool) for tool in tools})
    groups = [(server, list(members)) for server, members in groupby(ordered, lambda t: t.server)]
    for text in _shorter_texts(groups):
        if len(text) <= budget * _MOST_CHARACTERS_PER_TOKEN and count(text) <= budget:
            return text
    return ""


_Groups = list[tuple[str, list[DirectoryEntry]]]


def _shorter_texts(groups: _Groups) -> Iterator[str]:
    """Yield the directory in ever shorter forms."""
    total = sum(len(tools) for _, tools in groups)
    if not total:
        return
    for length in (MOST_INTENT, _SHORT_INTENT):
        yield _with_heading([_describe_server(server, tools, length) for server, tools in groups])
    limit = max(len(tools) for _, tools in groups)
    while limit:
        yield _with_heading([_name_tools(server, tools, limit) for server, tools in groups])
        limit = limit * 2 // 3 if limit > 3 else limit - 1
    servers = len(groups)
    while servers:
        lines = [_count_tools(server, len(tools)) for server, tools in groups[:servers]]
        hidden = sum(len(tools) for _, tools in groups[servers:])
        more = [f"and {len(groups) - servers} more servers with {hidden} tools"] if hidden else []
        yield _with_heading([*lines, *more])
        servers = servers * 2 // 3 if servers > 3 else servers - 1
    yield f"{HEADING} {total}"


def _entry(tool: Tool | DirectoryEntry) -> DirectoryEntry:
    return (
        tool
        if isinstance(tool, DirectoryEntry)
        else DirectoryEntry(tool.server, tool.name, tool_intent(tool))
    )


def _with_heading(lines: Sequence[str]) -> str:
    return "\n".join([HEADING, *lines])


def _describe_server(server: str, tools: list[DirectoryEntry], most: int) -> str:
    lines = [f"{safe_name(server)}:"] if server else []
    for tool in tools:
        intent = before(tool.intent, most)
        lines.append(
            f"- {safe_name(tool.name)}: {intent}" if intent else f"- {safe_name(tool.name)}"
        )
    return "\n".join(lines)


def _name_tools(server: str, tools: list[DirectoryEntry], most: int) -> str:
    names = ", ".join(safe_name(tool.name) for tool in tools[:most])
    suffix = f" and {len(tools) - most} more" if len(tools) > most else ""
    return f"- {safe_name(server)}: {names}{suffix}" if server else f"- {names}{suffix}"


def _count_tools(server: str, tools: int) -> str:
    return f"- {safe_name(server) or 'others'}: {tools} tools"


def safe_name(name: str) -> str:
    """Return a name that cannot end its line or pass for one of our marks."""
    return in_one_line(bracketed(name))
