"""Compare registered definitions with pinned ones: new, unchanged, changed, renamed.

A definition is pinned when a tool is first registered. A server that later changes it, or renames
the tool, may have been fixed or hijacked: the change is stored beside the pinned definition until
somebody accepts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import orjson

from holdfast.models.protocol import Embedder
from holdfast.store.tool_store import StoredTool, ToolKey
from holdfast.toolbox.intents import tool_intent, tool_warnings
from holdfast.toolbox.tool import InvalidTool, Tool, read_tool
from holdfast.toolbox.tool_features import encode_features, index_maker


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a registration, as tool names."""

    added: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Their server's definition differs from the pinned one, which stays in force."""
    renamed: tuple[str, ...] = ()
    """New tools whose definition was pinned under a name that their server no longer has."""
    warned: tuple[str, ...] = ()
    """New tools whose definitions give orders."""
    refused: tuple[InvalidTool, ...] = ()
    """Definitions that are not tools."""


class DefinitionDiff(msgspec.Struct, frozen=True):
    """Registered definitions compared with pinned ones."""

    new: list[Tool]
    renamed: dict[ToolKey, str]
    """The pinned names of renamed tools, by their new keys."""
    unchanged: list[StoredTool]
    changed: list[tuple[StoredTool, Tool]]


def compare_definitions(
    definitions: Iterable[Tool], pinned: Mapping[ToolKey, StoredTool]
) -> DefinitionDiff:
    """Compare definitions with the pinned ones."""
    tools = {tool.key: tool for tool in definitions}
    missing = {
        (stored.server, stored.hash): stored.name
        for key, stored in pinned.items()
        if key not in tools
    }
    new = [tool for key, tool in tools.items() if key not in pinned]
    both = [(pinned[key], tool) for key, tool in tools.items() if key in pinned]
    return DefinitionDiff(
        new=new,
        renamed={
            tool.key: missing[tool.server, tool.hash]
            for tool in new
            if (tool.server, tool.hash) in missing
        },
        unchanged=[stored for stored, tool in both if stored.hash == tool.hash],
        changed=[(stored, tool) for stored, tool in both if stored.hash != tool.hash],
    )


def build_records(
    tools: Sequence[Tool], embedder: Embedder | None, renamed: Mapping[ToolKey, str], now: float
) -> list[StoredTool]:
    """Return the records of new tools, with the features that search needs."""
    return [
        StoredTool(
            server=tool.server,
            name=tool.name,
            definition=tool.definition,
            hash=tool.hash,
            tokens=tool.tokens,
            intent=tool_intent(tool),
            warnings=tool_warnings(tool),
            maker=index_maker(embedder),
            read=read,
            renamed_from=renamed.get(tool.key, ""),
            updated_at=now,
        )
        for tool, read in zip(tools, encode_features(tools, embedder), strict=True)
    ]


def record_offer(stored: StoredTool, tool: Tool | None, now: float) -> StoredTool | None:
    """Return a record with the server's current definition; None if the record has it already.

    `tool` is None if the server is back at the pinned definition.
    """
    definition, hash_ = (b"", "") if tool is None else (tool.definition, tool.hash)
    if stored.offered_hash == hash_:
        return None
    return msgspec.structs.replace(stored, offered=definition, offered_hash=hash_, updated_at=now)


def accept_offer(stored: StoredTool, embedder: Embedder | None, now: float) -> StoredTool:
    """Return a record in which the server's current definition replaces the pinned one."""
    if not stored.offered:
        return msgspec.structs.replace(stored, renamed_from="", updated_at=now)
    tool = restore_tool(stored, offered=True)
    [record] = build_records([tool], embedder, {}, now)
    return msgspec.structs.replace(record, version=stored.version + 1, revision=stored.revision)


def restore_tool(stored: StoredTool, *, offered: bool = False) -> Tool:
    """Restore a tool from its pinned definition, or from its server's current one."""
    definition = orjson.loads(stored.offered if offered else stored.definition)
    return read_tool(definition, stored.server)
