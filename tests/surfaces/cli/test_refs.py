"""`holdfast store refs`: the newest stored contents."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from holdfast.store import Scope, open_store
from holdfast.surfaces.cli._text import age
from tests.store.harness import content
from tests.surfaces.cli.test_cite import LOG
from tests.surfaces.harness import Cli

ROWS = json.dumps([{"id": n, "total": n * 1.5} for n in range(400)])


@pytest.fixture
def filled(cli: Cli) -> Cli:
    cli("cite", cli.write("build.log", LOG), "--session", "monday")
    cli("cite", cli.write("rows.json", ROWS))
    cli("cite", cli.write("mail.txt", "Write to ann.miller@corp.com at once.\n" * 100))
    return cli


def test_the_newest_come_first(filled: Cli) -> None:
    found = filled("store", "refs").json
    assert len(found) == 3
    assert [each["kind"] for each in found][1:] == ["json_rows", "log"]
    assert found[0]["flags"] == ["email"]
    assert found[2]["size"] == len(LOG)
    assert found[2]["tokens"] > 1000
    assert {each["state"] for each in found} == {"fresh"}
    assert "compressed" not in found[0]


def test_a_table_names_what_each_is(filled: Cli) -> None:
    lines = filled("store", "refs", "--output", "table").out.splitlines()
    assert re.split(r" {1,}", lines[0].strip()) == [
        *("ref", "kind", "size", "tokens", "age"),
        *("state", "flags", "tool", "summary"),
    ]
    ref = filled("store", "refs", "--kind", "log").json[0]["ref_id"]
    [row] = [line for line in lines if line.startswith(ref)]
    assert f"{len(LOG):,}" in row
    assert "fresh" in row
    assert "ann.miller" not in "".join(lines)


def test_a_narrow_terminal_gets_a_line_for_each(filled: Cli) -> None:
    filled.monkeypatch.setenv("COLUMNS", "80")
    head, _, *rows = filled("store", "refs", "--output", "table").out.splitlines()
    assert head.split() == ["ref", "size", "age", "state", "flags", "summary"]
    assert len(rows) == 3
    assert all(row.startswith("ref:") and "fresh" in row and len(row) <= 80 for row in rows)
    assert "email" in rows[0]


def test_kind_session_and_limit_choose(filled: Cli) -> None:
    assert [each["kind"] for each in filled("store", "refs", "--kind", "log").json] == ["log"]
    assert [each["kind"] for each in filled("store", "refs", "--session", "monday").json] == ["log"]
    assert len(filled("store", "refs", "--limit", "2").json) == 2
    assert filled("store", "refs", "--kind", "nonesuch").json == []
    assert filled("store", "refs", "--limit", "0").code == 2


def test_stale_and_tool_are_shown(cli: Cli) -> None:
    async def work() -> None:
        store = await open_store(folder=cli.folder / ".local/share/holdfast")
        await store.put(Scope(), [content("x" * 99, ttl_seconds=0.0, meta={"tool": "read_log"})])
        await store.close()

    asyncio.run(work())
    shown = cli("store", "refs", "--output", "table").out
    assert "stale" in shown
    assert "read_log" in shown


def test_an_empty_store_says_how_to_fill_it(cli: Cli) -> None:
    said = cli("store", "refs", "--output", "table")
    assert (said.code, said.out) == (0, "")
    assert "holdfast cite FILE" in said.err
    assert cli("store", "refs").json == []


def test_others_see_nothing_of_it(filled: Cli) -> None:
    for other in (("--user", "bob"), ("--workspace", "team")):
        assert filled("store", "refs", *other).json == []


def test_errors_say_the_next_step(cli: Cli) -> None:
    said = cli("store", "refs", "--store", "mysql://me:pa55@host")
    assert (said.code, said.out) == (2, "")
    assert "Use memory:" in said.err
    assert "pa55" not in said.err


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "now"), (0.2, "now"), (59, "59 s"), (61, "1 min"), (7300, "2 h"), (200_000, "2 d")],
)
def test_an_age_is_told_in_its_largest_unit(seconds: float, words: str) -> None:
    assert age(seconds) == words
