"""Python warnings in the command line: one plain line each, and none while a program runs."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from holdfast.errors import HoldfastWarning
from holdfast.surfaces.cli._warnings import plain_warnings, silent_logs
from tests.surfaces.harness import environment, run_process

UNKNOWN = "nobody-knows-it"
ASKS = """
import json, os, sys, urllib.request
body = {"model": sys.argv[1], "messages": [{"role": "user", "content": "Hello there?"}]}
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    json.dumps(body).encode(),
    {"content-type": "application/json", "authorization": "Bearer key"},
)
for _ in range(2):
    urllib.request.urlopen(request).read()
print("the program ends", file=sys.stderr, flush=True)
"""


def request_file(folder: Path) -> str:
    body = {"model": UNKNOWN, "messages": [{"role": "user", "content": "Hello there?"}]}
    (folder / "request.json").write_text(json.dumps(body))
    return "request.json"


def is_plain(lines: list[str]) -> bool:
    """Return whether no line is one that Python wrote about a warning."""
    return not any("Warning:" in line or ".py:" in line for line in lines)


@pytest.mark.parametrize("model", [UNKNOWN, "gpt-6.1-sol"])
def test_wrap_says_nothing_until_the_program_has_ended(tmp_path: Path, model: str) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    command = ("wrap", "--offline", "--store", "memory:", "--", sys.executable, "asks.py", model)
    done = run_process(*command, folder=tmp_path)
    first, bill, *lines = done.stderr.decode().splitlines()
    assert first == "the program ends"
    assert bill.startswith("holdfast: 2 requests answered")
    assert is_plain(lines)
    assert lines[-1].startswith(f"holdfast: the tokens of '{model}' are estimated")


@pytest.mark.parametrize("command", [("count",), ("fit", "--limit", "1000")])
def test_a_command_says_it_in_one_plain_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = run_process(*command, request_file(tmp_path), folder=tmp_path)
    assert done.returncode == 0
    lines = done.stderr.decode().splitlines()
    assert is_plain(lines)
    assert sum(UNKNOWN in line for line in lines) == 1


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_serve_logs_it(tmp_path: Path) -> None:
    arguments = ["serve", "--offline", "--store", "memory:", "--port", "0"]
    with subprocess.Popen(
        [sys.executable, "-m", "holdfast", *arguments],
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(tmp_path),
    ) as process:
        assert process.stderr is not None
        url = process.stderr.readline().decode().split()[3]
        body = (tmp_path / request_file(tmp_path)).read_bytes()
        urlopen(Request(f"{url}/v1/chat/completions", body)).read()
        process.send_signal(signal.SIGTERM)
        lines = process.stderr.read().decode().splitlines()
    assert is_plain(lines)
    [line] = [line for line in lines if "WARNING event=warning" in line]
    assert UNKNOWN in line


def test_each_warning_is_shown_once() -> None:
    lines: list[str] = []
    with plain_warnings(lines.append):
        for _ in range(3):
            warnings.warn("a limit is guessed\nby us", HoldfastWarning, stacklevel=1)
    assert lines == ["holdfast: a limit is guessed by us"]


def test_the_text_of_a_library_is_not_repeated() -> None:
    """It may hold text of a conversation."""
    lines: list[str] = []
    with plain_warnings(lines.append):
        warnings.simplefilter("always")
        warnings.warn("a secret text", FutureWarning, stacklevel=1)
    assert lines == ["holdfast: a library warns (FutureWarning in test_warnings)"]


def test_a_users_own_choice_of_warnings_does_not_let_ours_into_the_terminal(tmp_path: Path) -> None:
    chosen = {"PYTHONWARNINGS": "default"}
    done = run_process("count", request_file(tmp_path), folder=tmp_path, **chosen)  # type: ignore[arg-type]
    assert is_plain(done.stderr.decode().splitlines())


def test_logs_of_libraries_stay_away_from_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    stranger = logging.getLogger("a.library.of.others")
    with silent_logs():
        stranger.error("a text")
    assert capsys.readouterr().err == ""
