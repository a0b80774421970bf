"""moving: everything of a scope out as lines, and in again.

after originals and sessions, before store. The lines are those of transfer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, LiteralString

import msgspec

from holdfast.store import transfer
from holdfast.store.operations import moving
from holdfast.store.postgres import answers, jobs, tools
from holdfast.store.postgres.database import Connection, Database
from holdfast.store.postgres.running import run
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation

_AT_A_TIME = 16


async def export(database: Database, scope: Scope) -> AsyncIterator[bytes]:
    """Every record of the scope as lines of JSON, all of one moment."""
    yield transfer.encode(transfer.Header())
    async with database.snapshot() as connection:
        for lines in moving.LINES:
            async for line in _pages(connection, scope, lines):
                yield transfer.encode(line)
        async for line in _made_lines(connection, scope):
            yield transfer.encode(line)


async def _made_lines(connection: Connection, scope: Scope) -> AsyncIterator[transfer.Line]:
    """Yield the lines of records derived from contents, and of jobs."""

    def rows(sql: LiteralString) -> Any:
        return connection.cursor(sql, scope.workspace, scope.user, prefetch=_AT_A_TIME)

    async for row in rows(jobs.ALL):
        yield transfer.JobLine.of(jobs.job_of(row))
    async for row in rows(answers.ALL):
        if (answer := answers.opened(row)) is not None:
            yield transfer.AnswerLine(answer)
    async for row in rows(tools.ALL):
        if (tool := tools.opened(row)) is not None:
            yield transfer.ToolLine(msgspec.structs.replace(tool, revision=0))


async def _pages(
    connection: Connection,
    scope: Scope,
    lines_of: Callable[[Scope, Any], Operation[transfer.Page]],
) -> AsyncIterator[transfer.Line]:
    after: Any = None
    while True:
        lines, after = await run(connection, lines_of(scope, after))
        for line in lines:
            yield line
        if after is None:
            break


async def restore(database: Database, scope: Scope, lines: AsyncIterator[bytes]) -> int:
    """Read what `export` wrote, each part in one transaction."""
    new = 0
    async for batch in transfer.batches(lines):
        new += await database.transact(_part(scope, batch))
    return new


def _part(scope: Scope, batch: Sequence[transfer.Line]) -> Any:
    async def work(connection: Connection) -> int:
        await run(connection, moving.prepare(scope, moving.packed(batch)))
        return sum([await _restore(connection, scope, line) for line in batch])

    return work


async def _restore(connection: Connection, scope: Scope, line: transfer.Line) -> bool:
    who = (scope.workspace, scope.user)
    match line:
        case transfer.JobLine():
            return await _is_new(connection, jobs.RESTORE, *who, *msgspec.structs.astuple(line))
        case transfer.AnswerLine(answer=answer):
            values = answers.values(scope.of(answer.session), answer)
            return await _is_new(connection, answers.ADD, *values)
        case transfer.ToolLine(tool=tool):
            return await _is_new(connection, tools.ADD, *tools.values(scope, tool))
        case _:
            return await run(connection, moving.restore(scope, line))


async def _is_new(connection: Connection, sql: LiteralString, *values: object) -> bool:
    return bool(await connection.fetch(sql, *values))
