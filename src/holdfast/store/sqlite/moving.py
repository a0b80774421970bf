"""The reads of `export` and the writes of `restore`, in SQL.

Each function runs on a connection, inside of a transaction. Reads go page by page, each after the
last key of the previous one, so that no store is too large.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw
import msgspec

from holdfast.store import transfer
from holdfast.store.operations import moving
from holdfast.store.scope import Scope
from holdfast.store.sqlite import (
    answers,
    jobs,
    tools,
)
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


def answer_lines(db: apsw.Connection, scope: Scope, after: Any) -> Page:
    """Answers in the order they were kept."""
    page, last = answers.page(db, scope, after or 0, PAGE)
    return [transfer.AnswerLine(answer) for answer in page], last or None


def tool_lines(db: apsw.Connection, scope: Scope, after: Any) -> Page:
    """Tools in the order of their revisions."""
    page, last = tools.page(db, scope, after or 0, PAGE)
    lines: list[transfer.Line] = [
        transfer.ToolLine(msgspec.structs.replace(tool, revision=0)) for tool in page
    ]
    return lines, last or None


ALL: tuple[Read, ...] = (
    answer_lines,
    tool_lines,
)


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
        else _restore(db, scope, line)
        for line in batch
    )


def _restore(db: apsw.Connection, scope: Scope, line: transfer.Line) -> bool:
    match line:
        case transfer.AnswerLine(answer=answer):
            return answers.restore(db, scope, answer)
        case transfer.ToolLine(tool=tool):
            return tools.restore(db, scope, tool)
        case _:
            return run(db, moving.restore(scope, line))
