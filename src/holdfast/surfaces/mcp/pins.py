"""Which definition of a tool is in force: the one that was pinned, until another is accepted.

pins: after cards, before catalog. The toolbox keeps what a server first said of a tool; the card
says what it says now. Where the two differ, hosts go on seeing what was pinned, for whoever took a
server over would begin with its descriptions. A tool that has only another name keeps the old one
for hosts, and is called by the new: rules that people wrote for the old name go on holding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import orjson

from holdfast.store.tool_shelf import StoredTool, ToolKey
from holdfast.surfaces.mcp.cards import ServerCard
from holdfast.toolbox.tool import Tool, read_tool, sorted_out

Pinned = Mapping[ToolKey, StoredTool]


class InForce(NamedTuple):
    """A tool by the definition that holds."""

    tool: Tool
    definition: dict[str, Any]
    own_name: str
    """As its server calls it now."""
    change: str
    """What its server says otherwise than what is pinned; empty if nothing."""


def in_force(card: ServerCard, server: str, pinned: Pinned) -> Iterator[InForce]:
    """The tools that a server gives, each by the definition that holds."""
    tools, _ = sorted_out(card.tools, server)
    given = {definition["name"]: definition for definition in card.tools}
    for tool in tools:
        stored = pinned.get(tool.key)
        if stored is None:  # it will be pinned as it is
            yield InForce(tool, given[tool.name], tool.name, "")
            continue
        definition, change = given[tool.name], ""
        if stored.hash != tool.hash:
            definition, change = orjson.loads(stored.definition), "changed"
        former = stored.renamed_from
        if former and former not in given and (server, former) in pinned:
            definition, change = {**definition, "name": former}, f"renamed from {former}"
        in_place = read_tool(definition, server) if change else tool
        yield InForce(in_place, definition, tool.name, change)


def waiting(stored: StoredTool) -> dict[str, Any]:
    """What of a pinned tool waits to be accepted, for people: what holds, and what would."""
    return {
        "server": stored.server,
        "tool": stored.name,
        "renamed_from": stored.renamed_from,
        "pinned": msgspec.json.decode(stored.definition),
        "offered": msgspec.json.decode(stored.offered) if stored.offered else None,
    }


def is_waiting(stored: StoredTool) -> bool:
    """Whether its server says something of a tool that nobody has accepted."""
    return bool(stored.offered or stored.renamed_from)
