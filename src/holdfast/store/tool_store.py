"""Tools and their schemas in the store: the record of a tool, and the calls on it.

A tool belongs to a scope; sessions share the tools of their user and workspace. A change needs the
tool's last revision, so that of two concurrent changes one is refused. The content of a
definition, and its replacement, are decided by holdfast.toolbox.
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
    """A pinned tool, and its server's later definition."""

    server: str
    name: str
    definition: bytes
    """The definition in force, verbatim."""
    hash: str
    """Hash of all fields except its name."""
    tokens: int = 0
    """Of the definition, counted when it came."""
    version: int = 1
    """Counted up by every definition that was accepted."""
    intent: str = ""
    """Its purpose in one line."""
    warnings: tuple[str, ...] = ()
    """Kinds of orders that its definition gives."""
    maker: str = ""
    """The version of its words and vectors."""
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
        """Its identity among the tools of its scope."""
        return (self.server, self.name)

    def __repr__(self) -> str:
        return f"<StoredTool {self.name[:80]!r} of {self.server[:80]!r}, {self.tokens} tokens>"


class Stamp(NamedTuple):
    """Identifies a state of a scope's tools."""

    tools: int
    revision: int


class ToolStore(ABC):
    """Tools in a store."""

    @abstractmethod
    async def add(self, scope: Scope, tools: Sequence[StoredTool]) -> list[ToolKey]:
        """Store new tools; return their keys."""

    @abstractmethod
    async def replace(self, scope: Scope, tool: StoredTool) -> bool:
        """Put a tool in the place of its earlier revision; False if it is not there any more."""

    @abstractmethod
    async def get(self, scope: Scope, key: ToolKey) -> StoredTool | None:
        """A tool; None if it is not there or damaged."""

    @abstractmethod
    async def page(self, scope: Scope, after: int = 0, limit: int = 500) -> list[StoredTool]:
        """Return tools after a revision, in order of revisions, without damaged ones.

        A page may lack damaged tools: only an empty one is the last.
        """

    @abstractmethod
    async def stamp(self, scope: Scope) -> Stamp:
        """Return the number of tools and the latest revision, to check cached tools."""

    @abstractmethod
    async def used(self, scope: Scope, keys: Sequence[ToolKey]) -> None:
        """Note that tools were used."""

    @abstractmethod
    async def forget(self, scope: Scope, keys: Sequence[ToolKey]) -> int:
        """Remove tools without a trace; return their number."""


def check(tool: StoredTool) -> None:
    """Raise unless a tool can be kept."""
    rules.check_key(tool.name)
    rules.check_key(tool.hash)
    if tool.server:
        rules.check_key(tool.server)


_Written = tuple[bytes, str, tuple[str, ...], str, bytes, bytes, str, str]


def written(tool: StoredTool) -> bytes:
    """Return the content of a tool in one piece, which is compressed and hashed."""
    fields = (tool.definition, tool.intent, tool.warnings, tool.maker, tool.read)
    return msgspec.msgpack.encode((*fields, tool.offered, tool.offered_hash, tool.renamed_from))


def content_of(content: bytes) -> dict[str, object]:
    """The fields that `written` wrote."""
    names = ("definition", "intent", "warnings", "maker", "read")
    values = msgspec.msgpack.decode(content, type=_Written)
    return dict(zip((*names, "offered", "offered_hash", "renamed_from"), values, strict=True))


def damaged(sha256: str) -> Damage:
    """Return the report of a damaged tool."""
    return Damage(sha256=sha256, why=DAMAGE, refs=())
