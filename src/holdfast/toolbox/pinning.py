"""What becomes of definitions that a server gives: new, the same, changed, renamed; by rule.

pinning: after reading and intents. A definition is pinned when it first comes. A server that later
says something else under the same name, or the same under another, may have been mended, or taken
over: its word is kept beside what is pinned, and waits until somebody accepts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import orjson

from holdfast.models.protocol import Embedder
from holdfast.store.tool_shelf import StoredTool, ToolKey
from holdfast.toolbox.intents import intent_of, warnings_of
from holdfast.toolbox.reading import maker_of, read_all
from holdfast.toolbox.tool import Refused, Tool, read_tool


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the definitions that were given, by the names of the tools."""

    added: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Their servers say something else of them than what is pinned, which stays in force."""
    renamed: tuple[str, ...] = ()
    """New, but what they say stood under another name, which their server does not give now."""
    warned: tuple[str, ...] = ()
    """Of the new ones, those whose definitions give orders."""
    refused: tuple[Refused, ...] = ()
    """Definitions that are no tools."""


class Sorting(msgspec.Struct, frozen=True):
    """The definitions that were given, beside those that are pinned."""

    new: list[Tool]
    renamed: dict[ToolKey, str]
    """Of the new ones, those that stood under another name, with that name."""
    unchanged: list[StoredTool]
    changed: list[tuple[StoredTool, Tool]]


def sort(given: Iterable[Tool], pinned: Mapping[ToolKey, StoredTool]) -> Sorting:
    """Compare what is given with what is pinned."""
    tools = {tool.key: tool for tool in given}
    gone = {
        (stored.server, stored.hash): stored.name
        for key, stored in pinned.items()
        if key not in tools
    }
    new = [tool for key, tool in tools.items() if key not in pinned]
    both = [(pinned[key], tool) for key, tool in tools.items() if key in pinned]
    return Sorting(
        new=new,
        renamed={
            tool.key: gone[tool.server, tool.hash]
            for tool in new
            if (tool.server, tool.hash) in gone
        },
        unchanged=[stored for stored, tool in both if stored.hash == tool.hash],
        changed=[(stored, tool) for stored, tool in both if stored.hash != tool.hash],
    )


def pinned_records(
    tools: Sequence[Tool], embedder: Embedder | None, renamed: Mapping[ToolKey, str], now: float
) -> list[StoredTool]:
    """New tools as they are kept, with what a search reads in them."""
    return [
        StoredTool(
            server=tool.server,
            name=tool.name,
            definition=tool.definition,
            hash=tool.hash,
            tokens=tool.tokens,
            intent=intent_of(tool),
            warnings=warnings_of(tool),
            maker=maker_of(embedder),
            read=read,
            renamed_from=renamed.get(tool.key, ""),
            updated_at=now,
        )
        for tool, read in zip(tools, read_all(tools, embedder), strict=True)
    ]


def offering(stored: StoredTool, tool: Tool | None, now: float) -> StoredTool | None:
    """A pinned tool with what its server says now beside it; None if that is so already.

    None as the tool: the server says again what is pinned.
    """
    definition, hash_ = (b"", "") if tool is None else (tool.definition, tool.hash)
    if stored.offered_hash == hash_:
        return None
    return msgspec.structs.replace(stored, offered=definition, offered_hash=hash_, updated_at=now)


def accepted(stored: StoredTool, embedder: Embedder | None, now: float) -> StoredTool:
    """A pinned tool with what its server says now in its place."""
    if not stored.offered:
        return msgspec.structs.replace(stored, renamed_from="", updated_at=now)
    tool = tool_of(stored, offered=True)
    [record] = pinned_records([tool], embedder, {}, now)
    return msgspec.structs.replace(record, version=stored.version + 1, revision=stored.revision)


def tool_of(stored: StoredTool, *, offered: bool = False) -> Tool:
    """A pinned tool as it was given; or as its server gives it now."""
    definition = orjson.loads(stored.offered if offered else stored.definition)
    return read_tool(definition, stored.server)
