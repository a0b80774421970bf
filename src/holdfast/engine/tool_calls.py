"""The results of tool calls through a gateway, by server, kept in the store.

tool_calls: beside holdfast. A gateway adds its new counts regularly; the dashboard and the command
line sum them up. They contain names and numbers, and no part of a call.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.errors import StoreError
from holdfast.store import Scope, Store

_JOURNAL = "mcp-servers"
_MOST_ENTRIES = 500
"""A journal that is longer is summed up into its first entry."""


class ServerReport(msgspec.Struct, frozen=True, kw_only=True):
    """A server of a gateway, and the results of its calls."""

    server: str
    state: str = ""
    """The last reported state: `idle`, `starting`, `ready`, `failed` or `off`."""
    reason: str = ""
    """Why it failed or is off."""
    tools: int = 0
    tool_tokens: int = 0
    """What its definitions would cost in every request."""
    left_out: int = 0
    """Definitions over the bounds of the gateway."""
    flagged: tuple[str, ...] = ()
    """Tools whose definitions speak to the model, and how: `name: secrecy`."""
    changed: tuple[str, ...] = ()
    """Tools whose definitions differ from the pinned ones."""
    calls: int = 0
    failed: int = 0
    cited: int = 0
    from_tokens: int = 0
    """Of results as servers gave them."""
    to_tokens: int = 0
    """Of the same as hosts got them."""
    seconds: float = 0.0
    """That calls took, ours and the servers' together."""
    at: float = 0.0

    @property
    def saved(self) -> int:
        """Tokens of results that hosts did not get."""
        return self.from_tokens - self.to_tokens


_COUNTS = ("calls", "failed", "cited", "from_tokens", "to_tokens", "seconds")


async def report(store: Store, scope: Scope, reports: Iterable[ServerReport]) -> None:
    """Add the counts since the last report; a failing store is ignored."""
    entry = msgspec.json.encode(list(reports))
    try:
        following = await store.journal.append(scope, _JOURNAL, [entry])
        if following > _MOST_ENTRIES:
            summed = msgspec.json.encode(await reported(store, scope))
            await store.journal.forget(scope, _JOURNAL)
            await store.journal.append(scope, _JOURNAL, [summed])
    except StoreError:
        return


async def reported(store: Store, scope: Scope) -> list[ServerReport]:
    """What all calls of each server came to, and how the server was last; by name."""
    servers: dict[str, ServerReport] = {}
    for entry in await store.journal.read(scope, _JOURNAL):
        for part in msgspec.json.decode(entry.data, type=list[ServerReport]):
            before = servers.get(part.server)
            if before is not None:
                sums = {name: getattr(before, name) + getattr(part, name) for name in _COUNTS}
                part = msgspec.structs.replace(part, **sums)  # noqa: PLW2901 - the sum so far
            servers[part.server] = part
    return [servers[name] for name in sorted(servers)]
