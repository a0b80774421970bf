"""No statement on a request's path reads more of a store than its result.

SQLite is asked for the query plan of each statement. A statement that scans all sessions of a user
is as quick as any other in a test, and takes a quarter of a second for a user after a year.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast import Holdfast
from holdfast.store import Scope
from holdfast.wire import read

Statements = dict[str, Any]


@pytest.fixture
def statements() -> Iterator[Statements]:
    """Every statement that runs, with the values of its last run."""
    seen: Statements = {}

    def note(_cursor: apsw.Cursor, sql: str, values: Any) -> bool:
        seen[sql] = values
        return True

    def watch(connection: apsw.Connection) -> None:
        connection.exec_trace = note

    apsw.connection_hooks.append(watch)
    yield seen
    apsw.connection_hooks.remove(watch)


def test_no_statement_of_a_request_goes_through_what_others_left(
    tmp_path: Path, statements: Statements
) -> None:
    path = tmp_path / "holdfast.db"
    asyncio.run(_talk(f"sqlite:///{path}", statements))
    plans = _plans(path, statements)
    assert any("sessions_by_head" in plan for plan in plans.values())
    assert {sql: plan for sql, plan in plans.items() if _is_long(plan)} == {}


async def _talk(address: str, statements: Statements) -> None:
    """Two turns of one conversation, both seen by a process that has nothing in memory yet."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Why does the build fail?"}]
    for turn in range(2):
        async with Holdfast.open(address) as engine:
            statements.clear()  # opening looks at all of it
            body = {"model": "gpt-4o", "messages": messages}
            conversation = read(json.dumps(body).encode(), "openai-chat")
            session = await engine.session_of(conversation)
            fitted = await session.fit(conversation)
            await engine.observe(session, fitted, {"prompt_tokens": 12, "completion_tokens": 3})
            seen = dict(statements)
        statements.clear()
        statements.update(seen)
        messages += [
            {"role": "assistant", "content": "A disk is full."},
            {"role": "user", "content": f"Which one? {turn}"},
        ]


def _plans(path: Path, statements: Statements) -> dict[str, str]:
    """Return SQLite's query plans of statements that search for rows."""
    plans: dict[str, str] = {}
    connection = apsw.Connection(str(path))
    for sql, values in list(statements.items()):  # this connection is watched as well
        if sql.lstrip().startswith(("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")):
            steps = connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)
            plans[sql] = "; ".join(str(detail) for *_, detail in steps)
    connection.close()
    return plans


def _is_long(plan: str) -> bool:
    """Whether rows are looked through that only share their owner, or nothing."""
    steps = plan.split("; ")
    given = ("VIRTUAL TABLE", "VALUES CLAUSE", "CONSTANT ROW")  # rows of the statement itself
    whole = any(step.startswith("SCAN") and not any(g in step for g in given) for step in steps)
    return whole or any(step.endswith("(workspace=? AND owner=?)") for step in steps)


def test_pages_over_several_workspaces_sort_keys_and_no_records(
    tmp_path: Path, statements: Statements
) -> None:
    """With 1,000 workspaces and 40,000 sessions, ten of them were found in 33 ms instead of 3."""
    path = tmp_path / "holdfast.db"

    async def work() -> None:
        async with Holdfast.open(f"sqlite:///{path}") as engine:
            statements.clear()
            scopes = [Scope("local", name) for name in ("red", "blue")]
            across = engine.store.across
            await across.sessions(scopes, limit=10)
            await across.failures(scopes, limit=10)
            await across.usage_of_sessions([scope.of("s") for scope in scopes])

    asyncio.run(work())
    plans = [plan for sql, plan in _plans(path, statements).items() if "json_each" in sql]
    used = ["COVERING INDEX sessions_latest", "INDEX turns_failed", "INDEX turns_by_number"]
    assert len(plans) == len(used)
    assert all(any(index in plan for plan in plans) for index in used), plans
    own = [step for plan in plans for step in plan.split("; ") if step.startswith("SCAN")]
    assert all("VIRTUAL TABLE" in step or step == "SCAN n" for step in own), own
