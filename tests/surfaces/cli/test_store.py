"""`holdfast store …`: its output and its effect on a store."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from holdfast.store import Scope, SessionRecord, Turn, open_store
from tests.store.harness import content
from tests.surfaces.harness import Cli, run_process

FILE = ".local/share/holdfast/holdfast.db"


@pytest.fixture
def filled(cli: Cli) -> Cli:
    async def work() -> None:
        store = await open_store(None, folder=cli.folder / ".local/share/holdfast")
        made = [content("first secret", ttl_seconds=0.0), content("second" * 900, "page")]
        await store.put(Scope(), made)
        await store.close()

    asyncio.run(work())
    return cli


def damage(folder: Path) -> None:
    db = apsw.Connection(str(folder / FILE))
    db.execute(
        "UPDATE contents SET data = x'00' WHERE sha256 = ?", (content("first secret").sha256,)
    )
    db.close()


def test_help_teaches_every_command(cli: Cli) -> None:
    said = cli("store", "--help").out
    for command in ("stats", "verify", "gc", "export", "import", "backup"):
        assert f"holdfast store {command}" in said
        assert "holdfast store" in cli("store", command, "--help").out
    assert "Store:" not in said


def test_stats_say_how_full_the_store_is(filled: Cli) -> None:
    found = filled("store", "stats", "--output", "json").json
    assert (found["refs"], found["size"]) == (2, 12 + 5400)
    assert found["stored"] < 200
    assert found["by_kind"] == {"log": 1, "page": 1}
    assert found["store"] == f"sqlite:///{filled.folder / FILE}"
    drawn = filled("store", "stats", "--output", "table").out
    assert re.search(r"^  page +1 *$", drawn, re.MULTILINE)
    assert re.search(r"^size +5,412 bytes *$", drawn, re.MULTILINE)


def test_commands_see_one_user_in_one_workspace(filled: Cli) -> None:
    for other in (("--user", "bob"), ("--workspace", "team")):
        assert filled("store", "stats", *other).json["refs"] == 0


def test_setting_and_option_name_another_store(
    filled: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_STORE_URL", "memory:")
    assert filled("store", "stats").json["store"] == "memory:"
    url = f"sqlite:///{filled.folder / FILE}"
    assert filled("store", "stats", "--store", url).json["refs"] == 2
    assert "memory:" not in filled("config").out  # it may hold a password


def test_verify_is_content_with_a_sound_store_and_lists_what_is_damaged(filled: Cli) -> None:
    fine = filled("store", "verify", "--output", "table")
    assert fine.code == 0
    assert fine.out == "All contents and messages match their hashes (2 read).\n"
    damage(filled.folder)
    broken = filled("store", "verify")
    assert broken.code == 1
    assert broken.json["damaged"][0]["refs"] == [content("first secret").ref_id]
    assert "repair" in broken.err
    assert "secret" not in broken.out + broken.err
    assert content("first secret").ref_id in filled("store", "verify", "--output", "table").out


def test_gc_closes_sessions_that_nobody_uses_if_it_is_asked_to(cli: Cli) -> None:
    async def work() -> None:
        store = await open_store(
            None, folder=cli.folder / ".local/share/holdfast", clock=lambda: 1_000_000.0
        )
        scope = Scope().of("old")
        record = SessionRecord(session="old", turns=1, created_at=1e6, updated_at=1e6)
        await store.put(scope, [content("third", ttl_seconds=0.0)])
        await store.add_turn(scope, Turn(number=1, started_at=1e6), record, {})
        await store.close()

    asyncio.run(work())
    assert cli("store", "gc", "--grace", "0").json["refs"] == 0
    assert cli("store", "gc", "--grace", "0", "--idle-days", "1").json["refs"] == 1


def test_gc_removes_what_is_out_of_date(filled: Cli) -> None:
    assert filled("store", "gc").json == {"refs": 0, "contents": 0, "bytes": 0}
    said = filled("store", "gc", "--grace", "0", "--output", "table").out
    assert said == "Removed 1 ref and 1 content (12 bytes).\n"
    assert filled("store", "gc", "--grace", "-1").code == 2


def test_export_and_import_move_records_between_stores(filled: Cli) -> None:
    said = filled("store", "export", "mine.jsonl")
    assert (said.code, said.out) == (0, "")
    assert "Wrote 4 records to mine.jsonl." in said.err
    assert stat.S_IMODE((filled.folder / "mine.jsonl").stat().st_mode) == 0o600
    there = ("--store", "sqlite:///there.db", "--workspace", "team")
    assert filled("store", "import", "mine.jsonl", *there).json == {"new": 4}
    assert filled("store", "import", "mine.jsonl", *there).json == {"new": 0}
    filled("store", "export", "again.jsonl", *there)
    first, again = (filled.folder / name for name in ("mine.jsonl", "again.jsonl"))
    assert first.read_bytes() == again.read_bytes()
    assert [p.name for p in filled.folder.glob(".mine*")] == []


def test_export_to_a_pipe_is_read_from_a_pipe(filled: Cli) -> None:
    lines = run_process("store", "export", folder=filled.folder)
    assert lines.stderr == b""
    done = run_process(
        "store", "import", "-", "--store", "memory:", folder=filled.folder, stdin=lines.stdout
    )
    assert done.stdout == b'{\n  "new": 4\n}\n'


def test_backup_is_a_store_and_takes_no_name_twice(filled: Cli) -> None:
    assert "Wrote copy.db." in filled("store", "backup", "copy.db").err
    assert filled("store", "stats", "--store", "sqlite:copy.db").json["refs"] == 2
    again = filled("store", "backup", "copy.db")
    assert again.code == 2
    assert "Choose another name." in again.err


@pytest.mark.parametrize("place", [(), ("--store", "memory:"), ("--store", "sqlite:///typo.db")])
def test_a_store_that_does_not_exist_is_not_backed_up(cli: Cli, place: tuple[str, ...]) -> None:
    result = cli("store", "backup", "copy.db", *place)
    assert result.code == 2
    assert "there is no store" in result.err
    assert "Wrote" not in result.err
    assert not list(cli.folder.rglob("*.db*"))


def test_a_backup_into_a_missing_folder_says_the_next_step(filled: Cli) -> None:
    assert "Check that the folder exists" in filled("store", "backup", "nowhere/copy.db").err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("stats", "--store", "mysql://me:pa55@host"), "Use memory:"),
        (("stats", "--store", "postgres"), "Use memory:"),
        (("stats", "--store", "sqlite:///diary.txt"), "Choose another file"),
        (("import", "nowhere.jsonl"), "Check its name"),
        (("import", "diary.txt"), "Export again"),
        (("export", "nowhere/mine.jsonl"), "Choose another file"),
        (("stats", "--user", ""), "Give 1 to 200 characters"),
    ],
)
def test_errors_say_the_next_step(cli: Cli, arguments: tuple[str, ...], told: str) -> None:
    cli.write("diary.txt", "Dear diary, no database this is.\n" * 50)
    said = cli("store", *arguments)
    assert (said.code, said.out) == (2, "")
    assert told in said.err
    assert "pa55" not in said.err
    assert "Dear" not in said.err


def test_progress_of_long_work_shows_in_a_terminal_only(filled: Cli) -> None:
    """A clock that jumps makes the work long."""
    code = (
        "import itertools, time; jump = itertools.count(0, 5)\n"
        "time.monotonic = lambda m=time.monotonic: m() + next(jump)\n"
        "from holdfast.surfaces.cli import main; main(['store', 'export', 'mine.jsonl'])"
    )
    near, far = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "HOME": str(filled.folder)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, stderr=far, cwd=filled.folder, env=environment, timeout=60, check=True
    )
    os.close(far)
    shown = os.read(near, 10_000).decode()
    os.close(near)
    assert "Writing record" in shown
    assert shown.rpartition("\x1b[K")[2].startswith("Wrote 4 records")
    done = subprocess.run(
        command, stderr=subprocess.PIPE, cwd=filled.folder, env=environment, timeout=60, check=True
    )
    assert b"Writing record" not in done.stderr
