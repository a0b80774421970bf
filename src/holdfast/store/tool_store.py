"""tool_store: tools and their schemas, kept in the store: a record, and the calls on it.

tool_store: after records, before the stores, of which each has its own. Whose a tool is stands in
its scope, which every call carries; sessions share the tools of their user and workspace. A tool is
changed only by whoever saw its last revision, so that of two who change it one is refused. What a
definition says, and when it may take another's place, is for holdfast.toolbox.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.store import rules
from holdfast.store.records import Damage
from holdfast.store.scope import Scope

DAMAGE = "a tool did not match its hash; it was removed, and must be registered again"
ToolKey = tuple[str, str]
"""Its server and its name."""


class StoredTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as it was pinned, and what its server says of it since (004-22)."""

    server: str
    name: str
    definition: bytes
    """The definition that is in force, as it came."""
    hash: str
    """Of all that it says but its name."""
    tokens: int = 0
    """Of the definition, counted when it came."""
    version: int = 1
    """Counted up by every definition that was accepted."""
    intent: str = ""
    """In one line what it is for."""
    warnings: tuple[str, ...] = ()
    """Kinds of orders that its definition gives."""
    maker: str = ""
    """Who read the words and the vectors."""
    read: bytes = b""
    offered: bytes = b""
    """Another definition that its server gives now, which nobody has accepted."""
    offered_hash: str = ""
    renamed_from: str = ""
    """The name under which its server gave the same definition before."""
    uses: int = 0
    used_at: float | None = None
    updated_at: float = 0.0
    revision: int = 0
    """Given by the store; another whenever anything but the uses has changed."""

    @property
    def key(self) -> ToolKey:
        """What tells it from other tools of its scope."""
        return (self.server, self.name)

    def __repr__(self) -> str:
        return f"<StoredTool {self.name[:80]!r} of {self.server[:80]!r}, {self.tokens} tokens>"


class Stamp(NamedTuple):
    """What tells one state of a scope's tools from another."""

    tools: int
    revision: int


class ToolStore(ABC):
    """Tools in a store."""

    @abstractmethod
    async def add(self, scope: Scope, tools: Sequence[StoredTool]) -> list[ToolKey]:
        """Keep tools that are not there; those that were there stay, and are not named."""

    @abstractmethod
    async def replace(self, scope: Scope, tool: StoredTool) -> bool:
        """Put a tool in the place of its earlier revision; False if it is not there any more."""

    @abstractmethod
    async def get(self, scope: Scope, key: ToolKey) -> StoredTool | None:
        """A tool; None if it is not there or damaged."""

    @abstractmethod
    async def page(self, scope: Scope, after: int = 0, limit: int = 500) -> list[StoredTool]:
        """Tools behind a revision, in the order of their revisions; damaged ones are left out.

        A page may be short of what is damaged: only an empty one is the last.
        """

    @abstractmethod
    async def stamp(self, scope: Scope) -> Stamp:
        """How many tools there are, and the latest revision: whether what is held is still so."""

    @abstractmethod
    async def used(self, scope: Scope, keys: Sequence[ToolKey]) -> None:
        """Note that tools were used."""

    @abstractmethod
    async def forget(self, scope: Scope, keys: Sequence[ToolKey]) -> int:
        """Remove tools without a trace; how many went."""


def check(tool: StoredTool) -> None:
    """Raise unless a tool can be kept."""
    rules.check_key(tool.name)
    rules.check_key(tool.hash)
    if tool.server:
        rules.check_key(tool.server)


_Written = tuple[bytes, str, tuple[str, ...], str, bytes, bytes, str, str]


def written(tool: StoredTool) -> bytes:
    """What of a tool is content, in one piece: it is packed and hashed as a whole."""
    told = (tool.definition, tool.intent, tool.warnings, tool.maker, tool.read)
    return msgspec.msgpack.encode((*told, tool.offered, tool.offered_hash, tool.renamed_from))


def content_of(content: bytes) -> dict[str, object]:
    """The fields that `written` wrote."""
    names = ("definition", "intent", "warnings", "maker", "read")
    values = msgspec.msgpack.decode(content, type=_Written)
    return dict(zip((*names, "offered", "offered_hash", "renamed_from"), values, strict=True))


def damaged(sha256: str) -> Damage:
    """What there is to be told of a tool that was damaged."""
    return Damage(sha256=sha256, why=DAMAGE, refs=())
