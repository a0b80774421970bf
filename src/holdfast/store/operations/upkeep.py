"""Upkeep: statistics, damage and garbage collection."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.store.operations import contents, originals
from holdfast.store.protocol import Progress
from holdfast.store.records import CleanupResult, Damage, StoreStats
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Runner, load

_CHECKED_AT_ONCE = 16
"""Contents in memory at once when all are read."""
_REMOVED_AT_ONCE = 100
"""Refs that are removed in one transaction: other writers wait for it."""
_FIELDS = (
    "refs", "contents", "size", "stored", "sessions", "turns", "stale", "damaged", "flagged",
)  # fmt: skip

_sql = load("upkeep")


def stats(scope: Scope, workspaces: Sequence[str], now: float) -> Operation[StoreStats]:
    """Return how much some workspaces of the scope's user hold together."""
    ((*numbers, kinds),) = yield _sql.stats(scope, workspaces=workspaces, now=now)
    by_kind = dict(sorted(json.loads(kinds).items()))
    return StoreStats(**dict(zip(_FIELDS, numbers, strict=True)), by_kind=by_kind)


# --- damage --------------------------------------------------------------------------------------


class _Checked(NamedTuple):
    """A part of the contents, read."""

    read: int
    last: str
    """The last hash of the part."""
    unsound: list[str]


async def verify(
    runner: Runner, scope: Scope, clock: Callable[[], float], progress: Progress | None
) -> list[Damage]:
    """Read all contents of a scope once, set damaged ones apart and return them."""
    total = await runner.fetch(_count_contents, scope)
    damages: list[Damage] = []
    done, after = 0, ""
    while True:
        part = await runner.fetch(_check, scope, after)
        if part.unsound:
            damages += await runner.write(originals.set_apart, scope, part.unsound, clock())
        done, after = done + part.read, part.last
        if progress is not None and part.read:
            progress(done, max(done, total))
        if part.read < _CHECKED_AT_ONCE:
            return damages


def _count_contents(scope: Scope) -> Operation[int]:
    ((number,),) = yield _sql.count_contents(scope)
    return int(number)


def _check(scope: Scope, after: str) -> Operation[_Checked]:
    """Read contents after a hash, in the order of their hashes."""
    rows = yield _sql.contents(scope, after=after, limit=_CHECKED_AT_ONCE)
    unsound = [row[0] for row in rows if contents.opened(*row) is None]
    return _Checked(len(rows), rows[-1][0] if rows else after, unsound)


# --- what may go ---------------------------------------------------------------------------------


async def clean(
    runner: Runner, scope: Scope, clock: Callable[[], float], grace_seconds: float
) -> CleanupResult:
    """Remove contents that are stale or that closed sessions left, in parts that are each whole.

    They are looked for by a reader, which keeps nobody from writing, and judged again when they are
    removed.
    """
    now = clock()
    cutoff = now - grace_seconds
    cleaned = CleanupResult(0, 0, 0)
    after = 0
    while numbers := await runner.fetch(_candidates, scope, cutoff, after):
        part = await runner.write(_clean, scope, numbers, cutoff, now)
        cleaned = CleanupResult(
            cleaned.refs + part.refs, cleaned.contents + part.contents, cleaned.bytes + part.bytes
        )
        after = numbers[-1]
    return cleaned


def _candidates(scope: Scope, cutoff: float, after: int) -> Operation[list[int]]:
    rows = yield _sql.candidates(scope, cutoff=cutoff, after=after, limit=_REMOVED_AT_ONCE)
    return [number for (number,) in rows]


def _clean(scope: Scope, numbers: list[int], cutoff: float, now: float) -> Operation[CleanupResult]:
    """Remove the contents of those refs that still may go; `info` still knows the refs."""
    yield from contents.lock_to_remove(scope)
    rows = yield _sql.still_candidates(scope, cutoff=cutoff, numbers=numbers)
    removed = yield from originals.with_numbers(scope, [number for (number,) in rows])
    sizes = yield from originals.remove_contents(scope, removed, now)
    return CleanupResult(len(removed), len(sizes), sum(sizes))
