"""Malicious servers tried from the command line: none of their output controls the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.surfaces.mcp import upstream
from tests.surfaces.harness import Cli

SERVER = Path(__file__).with_name("hostile_server.py")


@pytest.fixture
def tried(cli: Cli, tmp_path: Path) -> Any:
    """Try or call the malicious server; `way` selects the attack."""
    where = ("--config", str(tmp_path / "servers.json"), "--store", f"sqlite:{tmp_path / 'h.db'}")

    def act(way: str, command: str, *arguments: str, output: str = "table") -> Any:
        target = (sys.executable, str(SERVER), way)
        assert cli("mcp", "add", "bad", *where[:2], "--", *target).code == 0
        return cli("mcp", command, "bad", *arguments, *where, "--output", output)

    return act


def test_words_of_a_server_do_not_drive_the_terminal(tried: Any) -> None:
    listed = tried("", "test")
    called = tried("", "call", "steal")
    assert (listed.code, called.code) == (0, 0)
    for shown in (listed.out, listed.err, called.out, called.err):
        assert "\x1b" not in shown
        assert "\x07" not in shown
    assert "conceals" in listed.out


def test_a_flood_of_complaints_is_cut_and_holds_nothing_up(tried: Any) -> None:
    done = tried("flood", "test")
    assert done.code == 0
    assert "line 0" in done.err
    assert "not shown" in done.err
    assert len(done.err) < 40_000
    assert "\x1b" not in done.err


def test_why_a_server_ended_is_shown(tried: Any) -> None:
    done = tried("dies", "test")
    assert done.code != 0
    assert "cannot find the database" in done.err
    assert "it ended at once" in done.err
    assert "\x1b" not in done.err


def test_a_server_that_never_answers_is_given_up(
    tried: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream, "START_SECONDS", 0.5)
    done = tried("mute", "test")
    assert done.code != 0
    assert "did not start within" in done.err


def test_a_huge_result_is_cited_on_the_terminal_too(tried: Any) -> None:
    done = tried("", "call", "huge")
    assert done.code == 0
    assert len(done.out) < 20_000
    assert "expand_ref" in done.out
