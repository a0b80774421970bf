"""Summaries are kept by their keys, on every kind of store, and go with their content."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from holdfast.errors import StoreError
from holdfast.store import Store
from holdfast.store.protocol import GRACE_SECONDS
from holdfast.store.rules import SUMMARY_DAMAGE
from holdfast.store.sqlite.driver import APPLICATION_ID
from tests.store.harness import (
    HERE,
    OTHER_USER,
    ChangeTable,
    Opener,
    content,
    exported,
    lines_of,
    session,
    turn,
)

LONG = b"The build failed. " * 40


def test_a_summary_is_there_until_its_time_is_over(opener: Opener) -> None:
    async def work(store: Store) -> None:
        assert await store.summary(HERE, "k") is None
        await store.put_summary(HERE, "k", LONG, 60.0)
        await store.put_summary(HERE, "for good", b"")
        assert await store.summary(HERE.of("s2"), "k") == LONG
        opener.clock.advance(59.0)
        assert await store.summary(HERE, "k") == LONG
        opener.clock.advance(1.0)
        assert await store.summary(HERE, "k") is None
        await store.gc(HERE)
        assert await store.summary(HERE, "for good") == b""
        assert len([line for line in await exported(store, HERE) if b'"summary"' in line]) == 1

    opener.run(work)


def test_a_summary_takes_the_place_of_the_one_before(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.put_summary(HERE, "k", b"first", 1.0)
        await store.put_summary(HERE, "k", b"second")
        opener.clock.advance(2.0)
        assert await store.summary(HERE, "k") == b"second"

    opener.run(work)


def test_a_summary_that_is_imported_does_not_replace_a_newer_one(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.put_summary(HERE, "k", b"first")
        lines = await exported(store, HERE)
        await store.put_summary(HERE, "k", b"second")
        assert await store.restore(HERE, lines_of(lines)) == 0
        assert await store.summary(HERE, "k") == b"second"

    opener.run(work)


def test_a_summary_goes_with_the_last_ref_of_its_content(opener: Opener) -> None:
    log, page = content("text", "log"), content("text", "page")

    async def work(store: Store) -> None:
        await store.put(HERE, [log, page])
        await store.put_summary(HERE, "k", b"text", source=log.sha256)
        await store.forget(HERE, [log.ref_id])
        assert await store.summary(HERE, "k") == b"text"
        await store.forget(HERE, [page.ref_id])
        assert await store.summary(HERE, "k") is None

    opener.run(work)


def test_a_summary_goes_with_content_that_is_cleaned_up_or_with_its_session(opener: Opener) -> None:
    stale, left = content("stale", ttl_seconds=1.0), content("left")

    async def work(store: Store) -> None:
        await store.put(HERE.of(""), [stale])
        await store.put(HERE, [left])
        await store.add_turn(HERE, turn(1), session(), {})
        for each in (stale, left):
            await store.put_summary(HERE, each.sha256, b"short", source=each.sha256)
        opener.clock.advance(2 * GRACE_SECONDS)
        await store.gc(HERE)
        assert await store.summary(HERE, stale.sha256) is None
        assert await store.summary(HERE, left.sha256) == b"short"
        await store.delete_session(HERE)
        assert await store.summary(HERE, left.sha256) is None

    opener.run(work)


def test_summaries_are_exported_and_restored_once(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.put_summary(HERE, "k", LONG, 60.0, source="s")
        lines = await exported(store, HERE)
        assert await store.restore(HERE, lines_of(lines)) == 0
        assert await store.restore(OTHER_USER, lines_of(lines)) == 1
        assert await exported(store, OTHER_USER) == lines
        opener.clock.advance(60.0)
        assert await store.summary(OTHER_USER, "k") is None

    opener.run(work)


@pytest.mark.parametrize("key", ["", "x" * 501, "a\0b"])
def test_a_key_that_names_nothing_is_refused(opener: Opener, key: str) -> None:
    async def work(store: Store) -> None:
        with pytest.raises(StoreError, match="a key is empty"):
            await store.put_summary(HERE, key, b"x")

    opener.run(work)


def test_a_damaged_summary_is_never_served_and_verify_removes_it(
    opener: Opener, change_table: ChangeTable
) -> None:
    async def work(store: Store) -> None:
        await store.put_summary(HERE, "whole", LONG)
        await store.put_summary(HERE, "damaged", LONG + b"!")
        await change_table("summaries", "data = 'x'", "key = 'damaged'")
        assert await store.summary(HERE, "damaged") is None
        assert [damage.why for damage in await store.verify(HERE)] == [SUMMARY_DAMAGE]
        assert await store.verify(HERE) == []
        assert await store.summary(HERE, "whole") == LONG

    opener.run(work)


def test_a_file_of_before_gets_a_place_for_summaries(sqlite: Opener) -> None:
    file = Path(sqlite.url.removeprefix("sqlite:///"))

    async def fill(store: Store) -> None:
        await store.put(HERE, [content("kept")])

    sqlite.run(fill)
    db = apsw.Connection(str(file))
    facts = ("fact_sources", "facts", "fact_counters")
    answers = ("answer_refs", "answers", "journal", "tools")
    later = ("remembered", "remembered_changes", "remembered_words")
    ledger = ("daily_usage", "reservations", "removals")
    for table in ("summaries", "jobs", "quotas", "clock", *ledger, *later, *facts, *answers):
        db.execute(f"DROP TABLE IF EXISTS {table}")
    figures = ("cache_written", "cache_written_hour", "demo_cost", "demo_saved_cost")
    estimates = ("unreported", "estimated", "assumed", "unpriced", "overflows")
    tools_used = ("lazy_saved", "tool_searches", "tool_calls", "lazy_calls")
    for column in ("answered", *tools_used, *figures, *estimates):
        db.execute(f"ALTER TABLE turns DROP COLUMN {column}")
    for index in ("sessions_by_head", "sessions_by_client", "turns_failed"):
        db.execute(f"DROP INDEX {index}")
    for column in ("client_session", "client_agent", "purpose"):
        db.execute(f"ALTER TABLE sessions DROP COLUMN {column}")
    db.execute("CREATE INDEX sessions_by_head ON sessions (workspace, owner, head)")
    db.execute("PRAGMA user_version = 3")
    assert db.execute("PRAGMA application_id").get == APPLICATION_ID
    db.close()

    async def work(store: Store) -> None:
        await store.put_summary(HERE, "k", b"short")
        assert await store.summary(HERE, "k") == b"short"
        assert await store.get(HERE, content("kept").ref_id)

    sqlite.run(work)
