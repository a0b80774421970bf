"""Reads several workspaces of one user at once, for pages that show all of them together.

across: after records. One query reads all workspaces: with 1,000 of them, a query for each took
three seconds. Every call names the scopes it may read, and sees nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from holdfast.errors import StoreError
from holdfast.store.records import RefInfo, SessionRecord, StoreStats, Turn, UsageTotal
from holdfast.store.scope import Scope


class Period(NamedTuple):
    """A span of time, in seconds since 1970: from `start` on, before `stop`."""

    start: float = 0.0
    stop: float = float("inf")


ALWAYS = Period()


class AcrossScopes(Protocol):
    """Calls on a store that cover several workspaces of one user.

    All scopes of a call have the same user. Unless a method states otherwise, the session of a
    scope is ignored. Scopes in results name the session of a record.
    """

    async def sessions(
        self, scopes: Sequence[Scope], *, limit: int
    ) -> list[tuple[Scope, SessionRecord]]:
        """Return the sessions last used, the newest first."""

    async def usage_by_day(self, scopes: Sequence[Scope]) -> list[UsageTotal]:
        """Return the usage of each day, summed over all scopes, in the order of the days."""

    async def usage_of_sessions(self, scopes: Sequence[Scope]) -> list[UsageTotal]:
        """Return the usage of the session that each scope names, in the order of the scopes."""

    async def failures(
        self, scopes: Sequence[Scope], *, limit: int, within: Period = ALWAYS
    ) -> list[tuple[Scope, Turn]]:
        """Return the turns without an answer that began within a period, the newest first."""

    async def refs(
        self,
        scopes: Sequence[Scope],
        *,
        kind: str = "",
        limit: int,
        before: tuple[Scope, str] | None = None,
    ) -> list[tuple[Scope, RefInfo]]:
        """Return the refs stored last, the newest first; with `before`, older ones than that ref.

        Raises:
            StoreError: `before` is no ref of its scope.
        """

    async def stats(self, scopes: Sequence[Scope]) -> StoreStats:
        """Return how much all scopes together hold."""


NOTHING = UsageTotal(
    name="",
    turns=0,
    predicted=0,
    untouched=0,
    input=0,
    cached=0,
    output=0,
    expansions=0,
    expansion_tokens=0,
    cost=0.0,
    saved_cost=0.0,
)
"""The usage of a session without turns."""


def workspaces_of(scopes: Sequence[Scope]) -> tuple[str, list[str]]:
    """Return the one user of some scopes, and their workspaces.

    Raises:
        StoreError: the scopes are of several users.
    """
    users = {scope.user for scope in scopes}
    if len(users) > 1:
        raise StoreError("scopes of several users are never read together", where="scopes")
    return next(iter(users), ""), list(dict.fromkeys(scope.workspace for scope in scopes))
