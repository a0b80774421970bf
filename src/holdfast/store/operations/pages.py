"""Reads of a whole table, page by page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Row, Runner
from holdfast.store.transfer import PAGE

RowPage = tuple[list[Row], Any]
"""Rows of a page, and the key of the last one; None after the last page."""


def last_key(rows: Sequence[Row]) -> Any:
    """Return the first column of the last row if the page is full, else None."""
    return rows[-1][0] if len(rows) == PAGE else None


async def damaged_rows(
    runner: Runner,
    scope: Scope,
    first: Any,
    read: Callable[[Scope, Any], Operation[RowPage]],
    remove: Callable[[Scope, Sequence[Row]], Operation[None]] | None = None,
) -> list[Row]:
    """Return the damaged rows of all pages.

    Args:
        runner: The database.
        scope: Whose rows they are.
        first: The key before the first row.
        read: Returns the damaged rows after a key.
        remove: Removes damaged rows; without it they stay.
    """
    damaged: list[Row] = []
    after = first
    while after is not None:
        rows, after = await runner.fetch(read, scope, after)
        if rows and remove is not None:
            await runner.write(remove, scope, rows)
        damaged += rows
    return damaged
