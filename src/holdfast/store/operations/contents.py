"""Contents: bytes stored once per workspace, as long as anything refers to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from operator import itemgetter
from typing import Any

from holdfast.store.pack import pack, unpack
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Values, load

AT_ONCE_BYTES = 16_000
"""Hashed and compressed on the spot: that takes less than it costs to wake a thread (0.1 ms)."""

_sql = load("originals")


def packed(contents: Mapping[str, bytes | memoryview]) -> list[Values]:
    """Return contents, given by their hashes, as the rows that `keep` writes."""
    rows = []
    for sha256, data in sorted(contents.items()):
        codec, compressed = pack(data)
        rows.append({"sha256": sha256, "size": len(data), "codec": codec, "data": compressed})
    return rows


def joined(parts: Iterable[list[Values]]) -> list[Values]:
    """Return the rows of several parts in the order of their hashes.

    All add contents in this order: two who add the same do not wait for each other in a circle.
    """
    return sorted(chain.from_iterable(parts), key=itemgetter("sha256"))


def keep(scope: Scope, rows: list[Values]) -> Operation[None]:
    """Store new packed contents, and replace damaged ones."""
    if rows:
        yield _sql.keep.many(scope, rows)


def lock_to_add(scope: Scope) -> Operation[None]:
    """Keep everything in the workspace until the transaction ends."""
    yield _sql.lock_to_add(scope)


def lock_to_remove(scope: Scope) -> Operation[None]:
    """Keep others from adding to the workspace and removing from it until the transaction ends."""
    yield _sql.lock_to_remove(scope)


def opened(sha256: str, size: int, codec: int, damage: str | None, data: Any) -> bytes | None:
    """Return the exact bytes of a content, or None if its hash does not match."""
    if data is None or damage is not None:
        return None
    return unpack(codec, data, size=size, sha256=sha256)


def sweep(scope: Scope, hashes: Iterable[str]) -> Operation[list[int]]:
    """Remove the contents that nobody in the workspace refers to; return the sizes removed."""
    unused = sorted(set(hashes))
    if not unused:
        return []
    return [size for (size,) in (yield _sql.sweep(scope, hashes=unused))]


def sweep_all(scope: Scope) -> Operation[None]:
    """Remove the contents of the workspace that nobody refers to."""
    yield _sql.sweep_all(scope)
