"""moving: what `export` reads and `restore` writes, in SQL.

moving: after sessions. Each function is a job for a connection, inside of a transaction. Reads
go page by page, each behind the key that ended the last, so that no store is too large.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from holdfast.store import transfer
from holdfast.store.operations import moving
from holdfast.store.scope import Scope
from holdfast.store.sqlite import jobs
from holdfast.store.sqlite.running import run
from holdfast.store.sqlite.ticking import Ticking
from holdfast.store.statements import Operation, Values
from holdfast.store.transfer import PAGE, Page

Read = Callable[[apsw.Connection, Scope, Any], Page]


def page_of(
    lines: Callable[[Scope, Any], Operation[Page]], db: apsw.Connection, scope: Scope, after: Any
) -> Page:
    """Return a page of lines that an operation reads."""
    return run(db, lines(scope, after))


def job_lines(ticking: Ticking, db: apsw.Connection, scope: Scope, after: Any) -> Page:
    """Jobs in the order of queueing."""
    page, last = jobs.page(db, scope, after or 0, PAGE, ticking.moment(db))
    return [transfer.JobLine.of(job) for job in page], last or None


def restore(
    db: apsw.Connection,
    scope: Scope,
    batch: list[transfer.Line],
    packed: list[Values],
    ticking: Ticking,
) -> int:
    """Write lines; how many were new."""
    now = ticking.noted(db)
    run(db, moving.prepare(scope, packed))
    return sum(
        jobs.restore(db, scope, line, now)
        if isinstance(line, transfer.JobLine)
        else run(db, moving.restore(scope, line))
        for line in batch
    )
