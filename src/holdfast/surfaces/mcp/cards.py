"""What was learnt of a server the last time it ran, so that the gateway can list before it starts.

cards: after config; it knows no protocol. A card holds the definitions that a server gave, as it
gave them, within bounds. It is kept in the store beside the summaries, under the fingerprint of its
server: another program or address under the same name is another server.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.errors import HoldfastError
from holdfast.store import Scope, Store
from holdfast.surfaces.mcp.config import ServerSpec

MOST_DEFINITIONS = 2_000
"""Of each kind that a server may have; those behind them are left out, and that is said."""
MOST_DEFINITION_BYTES = 100_000
"""Of one definition, as JSON; a larger one is left out."""
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
    """Definitions over the bounds."""
    at: float = 0.0
    """When it was learnt."""

    def __repr__(self) -> str:
        return f"<ServerCard of {len(self.tools)} tools>"


def card(
    lists: dict[str, Iterable[dict[str, Any]]], *, instructions: str, **what: Any
) -> ServerCard:
    """A card of what a server gave, within bounds."""
    fields: dict[str, Any] = {}
    left_out = 0
    for kind, definitions in lists.items():
        every = list(definitions)
        small = [each for each in every if _is_small(each)][:MOST_DEFINITIONS]
        left_out += len(every) - len(small)
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
        """What is known of a server; None if it never ran here."""
        try:
            data = await self._store.summary(self._scope, _key(spec))
            return None if data is None else msgspec.json.decode(data, type=ServerCard)
        except (HoldfastError, msgspec.MsgspecError):
            return None  # what cannot be read is learnt anew

    async def put(self, spec: ServerSpec, learnt: ServerCard) -> None:
        """Keep what was learnt of a server."""
        await self._store.put_summary(self._scope, _key(spec), msgspec.json.encode(learnt))


def _key(spec: ServerSpec) -> str:
    return f"mcp-card:{spec.fingerprint}"
