"""Server cards: the definitions from a server's last run, listed before it starts.

A card holds the server's definitions unchanged, within limits. It is stored under the fingerprint
of the server, so that another program or address under the same name has no card.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.errors import HoldfastError
from holdfast.store import Scope, Store
from holdfast.surfaces.mcp.config import ServerSpec

MOST_DEFINITIONS = 2_000
"""Maximum definitions of each kind; the rest is dropped and counted."""
MOST_DEFINITION_BYTES = 100_000
"""Maximum size of a definition as JSON; larger ones are dropped."""
_LONGEST_TEXT = 4_000


class ServerCard(msgspec.Struct, frozen=True, kw_only=True):
    """The definitions of a server."""

    tools: tuple[dict[str, Any], ...] = ()
    prompts: tuple[dict[str, Any], ...] = ()
    resources: tuple[dict[str, Any], ...] = ()
    templates: tuple[dict[str, Any], ...] = ()
    instructions: str = ""
    protocol: str = ""
    version: str = ""
    """The server's own name and version."""
    left_out: int = 0
    """Number of definitions dropped because of the limits."""
    at: float = 0.0
    """When it was read."""

    def __repr__(self) -> str:
        return f"<ServerCard of {len(self.tools)} tools>"


def card(
    lists: dict[str, Iterable[dict[str, Any]]], *, instructions: str, **what: Any
) -> ServerCard:
    """Return a card of a server's lists, within the limits."""
    fields: dict[str, Any] = {}
    left_out = 0
    for kind, definitions in lists.items():
        all_definitions = list(definitions)
        small = [each for each in all_definitions if _is_small(each)][:MOST_DEFINITIONS]
        left_out += len(all_definitions) - len(small)
        fields[kind] = tuple(small)
    return ServerCard(
        **fields, instructions=instructions[:_LONGEST_TEXT], left_out=left_out, **what
    )


def _is_small(definition: dict[str, Any]) -> bool:
    return len(msgspec.json.encode(definition)) <= MOST_DEFINITION_BYTES


class Cards:
    """The cards of a scope, in its store."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope

    async def get(self, spec: ServerSpec) -> ServerCard | None:
        """Return a server's card; None if it never ran here."""
        try:
            data = await self._store.summary(self._scope, _key(spec))
            return None if data is None else msgspec.json.decode(data, type=ServerCard)
        except (HoldfastError, msgspec.MsgspecError):
            return None  # an unreadable card is replaced at the next start

    async def put(self, spec: ServerSpec, server_card: ServerCard) -> None:
        """Store a server's card."""
        await self._store.put_summary(self._scope, _key(spec), msgspec.json.encode(server_card))


def _key(spec: ServerSpec) -> str:
    return f"mcp-card:{spec.fingerprint}"
