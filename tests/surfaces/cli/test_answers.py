"""`holdfast memory answers`: list, match, forget, and import the cache of another system."""

from __future__ import annotations

import asyncio
import csv
import json
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.answer_cache.importing import rows_of
from holdfast.engine import Holdfast
from holdfast.errors import StoreError
from holdfast.store import RefInfo, Scope, open_store
from holdfast.store.refs import digest
from tests.surfaces.harness import Cli

LONG = json.dumps({"items": [{"name": f"repo-{n}", "stars": n} for n in range(200)]})


def semantic_cache(path: Path) -> Path:
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE semantic_cache (cache_key TEXT, query_text TEXT, answer_text TEXT,"
            " context_signature TEXT, created_at REAL, ttl_expires_at REAL)"
        )
        db.execute("CREATE TABLE other (x)")
        later, before = time.time() + 600, time.time() - 600
        rows = [
            ("k1", "How can I reset a router?", "Hold.", "sig", before, later),
            ("k2", "What is over?", "This.", "sig", before, before),
            ("k3", "What is nothing?", "", "sig", before, later),
        ]
        db.executemany("INSERT INTO semantic_cache VALUES (?, ?, ?, ?, ?, ?)", rows)
    db.close()
    return path


def cache_entries(path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["key", "value", "content_hash"])
        rows.writerow(["search:alfred", LONG, ""])
        rows.writerow(["search:again", LONG, digest(LONG.encode())])
        rows.writerow(["search:broken", LONG + " ", digest(LONG.encode())])
        rows.writerow(["search:empty", "", ""])
        rows.writerow(["search:short", "42", ""])
    return path


def test_a_table_of_answers_is_imported_once(cli: Cli, tmp_path: Path) -> None:
    table = semantic_cache(tmp_path / "old.db")
    would = cli("memory", "answers", "import", str(table), "--dry-run", "--output", "json").json
    assert (would["answers"], would["contents"]) == (1, 0)
    assert cli("memory", "answers", "list", "--output", "json").json["answers"] == []
    for _ in range(2):
        told = cli("memory", "answers", "import", str(table), "--output", "json").json
        assert told["answers"] == 1
        assert [each["row"] for each in told["skipped"]] == [2, 3]
    [kept] = cli("memory", "answers", "list", "--output", "json").json["answers"]
    assert (kept["question"], kept["answer"], kept["signature"]) == (
        *("How can I reset a router?", "Hold."),
        "sig",
    )
    assert 0 < kept["expires_at"] - time.time() <= 600


def test_a_table_of_values_is_stored_behind_refs_with_hash_citation_and_gist(
    cli: Cli, tmp_path: Path
) -> None:
    table = cache_entries(tmp_path / "cache.csv")
    told = cli("memory", "answers", "import", str(table), "--output", "json").json
    assert told["contents"] == 2
    assert [each["why"] for each in told["skipped"]] == [
        "its content_hash is not that of its value",
        "it holds neither a question with its answer nor a value",
        "it is shorter than cite_threshold",
    ]

    async def stored() -> list[RefInfo]:
        store = await open_store(None, folder=cli.folder / ".local/share/holdfast")
        refs = await store.refs(Scope())
        await store.close()
        return refs

    [ref] = asyncio.run(stored())
    assert ref.sha256 == digest(LONG.encode())
    assert ref.compressed
    assert ref.summary
    assert ref.meta["tool"].startswith("search:")


def test_lines_of_json_are_read_and_what_is_none_is_told(tmp_path: Path) -> None:
    path = tmp_path / "cache.jsonl"
    created = "2026-01-31T12:00:00+00:00"
    lines: list[Any] = [
        {"prompt": "Why?", "response": "So.", "created_at": created, "expires_at": "never"},
        {"key": "k", "value": {"a": [1, 2]}},
        [1],
    ]
    path.write_text("\n".join([*map(json.dumps, lines), "{", ""]))
    rows = list(rows_of(path))
    assert [bool(row.fault) for row in rows] == [False, False, True, True]
    assert (rows[0].question, rows[0].created_at, rows[0].expires_at) == (
        "Why?",
        1_769_860_800.0,
        None,
    )
    assert rows[1].value == '{"a": [1, 2]}'


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2026-01-31T12:00:00Z", 1_769_860_800.0),
        ("2026-01-31T12:00:00+02:00", 1_769_853_600.0),
        ("2026-01-31 12:00:00", 1_769_860_800.0),
        (1_769_860_800, 1_769_860_800.0),
        ("1769860800.5", 1_769_860_800.5),
        ("on a Friday", None),
        (None, None),
    ],
)
def test_times_are_read_as_numbers_and_as_dates_of_any_zone(
    tmp_path: Path, written: Any, seconds: float | None
) -> None:
    path = tmp_path / "cache.jsonl"
    path.write_text(json.dumps({"prompt": "Why?", "response": "So.", "created_at": written}))
    [row] = rows_of(path)
    assert row.created_at == seconds


@pytest.mark.parametrize("name", ["missing.csv", "none.db"])
def test_what_is_no_table_says_so_without_its_content(tmp_path: Path, name: str) -> None:
    if name == "none.db":
        with sqlite3.connect(tmp_path / name) as db:
            db.execute("CREATE TABLE other (secret)")
        db.close()
    with pytest.raises(StoreError) as error:
        list(rows_of(tmp_path / name))
    assert error.value.fix


def test_the_table_of_a_file_is_named(tmp_path: Path) -> None:
    path = semantic_cache(tmp_path / "old.db")
    assert len(list(rows_of(path, "semantic_cache"))) == 3
    with pytest.raises(StoreError, match="no such table"):
        list(rows_of(path, 'semantic_cache"; DROP TABLE other; --'))


def test_answers_are_matched_and_forgotten_on_the_command_line(cli: Cli) -> None:
    async def fill() -> None:
        async with Holdfast.open(f"sqlite:///{cli.folder}/a.db") as engine:
            await engine.answers.put("How can I reset a router?", "sig", "Hold the button.")
            await engine.answers.put("How can I reset 2 routers?", "sig", "Hold both.")

    asyncio.run(fill())
    store = ("--store", f"sqlite:///{cli.folder}/a.db")
    listed = cli("memory", "answers", "list", "--output", "table", *store)
    assert "Hold the button." in listed.out
    assert "enable_semantic_cache" in listed.err
    matches = cli(
        "memory", "answers", "match", "How can I reset a router?", "--output", "json", *store
    ).json
    assert [match["differs_in"] for match in matches] == ["", "numbers"]
    drawn = cli(
        "memory", "answers", "match", "How can I reset a router?", "--output", "table", *store
    ).out
    assert "1.0000" in drawn
    assert "numbers" in drawn
    preview = cli("memory", "answers", "forget", "--contains", "BOTH", "--output", "table", *store)
    assert "1 answer would be removed: add --yes." in preview.err
    assert len(cli("memory", "answers", "list", "--output", "json", *store).json["answers"]) == 2
    gone = cli(
        "memory", "answers", "forget", "--contains", "BOTH", "--yes", "--output", "table", *store
    )
    assert "1 answer removed." in gone.err
    [left] = cli("memory", "answers", "list", "--output", "json", *store).json["answers"]
    assert cli("memory", "answers", "forget", left["id"], "--yes", *store).code == 0
    assert "No answers match." in cli("memory", "answers", "list", "--output", "table", *store).err
    for wrong in ((), ("ans_12345678", "--contains", "x"), ("nothing",)):
        refused = cli("memory", "answers", "forget", *wrong, *store)
        assert refused.code == 2
