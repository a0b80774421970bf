"""`holdfast research` as a command: its output and its exit codes for scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import researching
from tests.surfaces.harness import Cli, run_process


def test_a_report_quotes_its_sources_and_verifies_itself(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text(
        "# June deploy\n\nThe June deploy failed because the certificate of db-3 had expired.\n"
    )
    store = ("--store", f"sqlite:///{tmp_path}/research.db")
    question = "Why did the June deploy fail?"
    done = run_process(
        *("research", question, "notes.md", "--format", "json", "--out", "report.json", *store),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_bytes())
    quotes = [q["text"] for f in report["findings"] for q in f["supporting"]]
    assert any("the certificate of db-3 had expired" in quote for quote in quotes)
    checked = run_process("research", "verify", "report.json", *store, folder=tmp_path)
    assert checked.returncode == 0, checked.stderr


def test_sources_of_which_none_can_be_read_are_a_failure(tmp_path: Path) -> None:
    done = run_process(
        *("research", "Why?", "nosuch.md", "--store", "memory:", "--format", "md"), folder=tmp_path
    )
    assert done.returncode == 2
    assert b"no source could be read" in done.stderr
    assert b"nosuch.md" in done.stdout  # the report still lists it, with the reason


def test_as_many_sources_are_read_at_once_as_the_setting_says(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.md").write_text("The deploy failed.")
    seen: list[int] = []
    conduct = researching.conduct

    async def noted(*args: Any) -> Any:
        seen.append(args[-1].limits.at_once)
        return await conduct(*args)

    monkeypatch.setattr(researching, "conduct", noted)
    for most in ("1", "7"):
        monkeypatch.setenv("HOLDFAST_PARALLEL_CALLS", most)
        cli("research", "Why?", str(tmp_path / "notes.md"), "--store", "memory:")
    assert seen == [1, 7]
