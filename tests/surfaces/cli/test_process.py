"""Tests that need a separate process: terminals, pipes, signals, start-up."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from tests.surfaces.harness import TOUR, run_process


def run_in_terminal(*arguments: str, folder: Path, **variables: str) -> str:
    """Run the program in a pseudo-terminal and return all it printed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TERM": "xterm-256color",
            "COLUMNS": "100",
            "PYTHONUTF8": "1",
        }
        | variables,
    )
    os.close(theirs)
    printed = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # Linux raises it when the other end has closed
            break
        if not chunk:
            break
        printed += chunk
    os.close(ours)
    assert process.wait(60) in {0, 1}
    return printed.decode()


def run_shell(command: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        f"{sys.executable} -m holdfast {command}",
        shell=True,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_help_teaches_with_examples(tmp_path: Path) -> None:
    result = run_process("--help", folder=tmp_path)
    assert result.returncode == 0
    assert b"holdfast wrap claude" in result.stdout


def test_version_is_the_packages_own(tmp_path: Path) -> None:
    result = run_process("--version", folder=tmp_path)
    assert result.stdout.decode() == f"holdfast {holdfast.__version__}\n"


def test_no_arguments_show_the_help(tmp_path: Path) -> None:
    assert b"holdfast tour" in run_process(folder=tmp_path).stderr


def test_unknown_command_and_option_are_refused_without_a_traceback(tmp_path: Path) -> None:
    for wrong in (["frobnicate"], ["request", "show", "--nonsense"], ["request", "show"]):
        result = run_process(*wrong, folder=tmp_path)
        assert result.returncode == 2
        assert b"Traceback" not in result.stderr


def test_terminal_gets_a_table_with_first_words_and_colour(tmp_path: Path) -> None:
    shown = run_in_terminal("request", "show", str(TOUR), folder=tmp_path)
    assert "first words" in shown
    assert "The nightly" in shown
    assert "\x1b[" in shown


def test_color_never_leaves_the_terminal_plain(tmp_path: Path) -> None:
    shown = run_in_terminal("config", folder=tmp_path, HOLDFAST_COLOR="never")
    assert "max_body_bytes" in shown
    assert "\x1b[" not in shown


def test_color_always_colours_a_pipe(tmp_path: Path) -> None:
    result = run_process("config", "--output", "table", "--color", "always", folder=tmp_path)
    assert b"\x1b[" in result.stdout
    plain = run_process("config", "--output", "table", folder=tmp_path)
    assert b"\x1b[" not in plain.stdout


def test_output_json_gives_json_in_a_terminal(tmp_path: Path) -> None:
    shown = run_in_terminal("config", folder=tmp_path, HOLDFAST_OUTPUT="json")
    assert shown.lstrip().startswith("{")


@pytest.mark.parametrize("command", ["config", "tour", "--help"])
def test_reader_that_leaves_early_causes_no_complaint(tmp_path: Path, command: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    complaint = process.stderr.read()
    process.stderr.close()
    process.wait(60)
    assert complaint == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
@pytest.mark.parametrize("command", ["config", "tour", "config --check", "--help"])
def test_full_disk_is_one_line(tmp_path: Path, command: str) -> None:
    result = run_shell(f"{command} > /dev/full", tmp_path)
    assert result.stderr == b"holdfast: the output cannot be written: No space left on device\n"
    assert result.returncode == 2


@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_cause_no_traceback(tmp_path: Path, streams: str) -> None:
    result = run_shell(f"request show - {streams}", tmp_path)
    assert b"Traceback" not in result.stderr
    assert result.returncode == 2


def test_interrupt_ends_quietly_with_130(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "request", "show", "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    assert process.stdin is not None
    process.stdin.write(b" " * 1_000_000)  # more than a pipe holds: returns once it is being read
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert b"Traceback" not in complaint
    assert process.returncode == 130


def test_encoding_that_lacks_a_character_is_no_obstacle(tmp_path: Path) -> None:
    result = run_process("tour", folder=tmp_path, PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert result.returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_shells_can_complete(tmp_path: Path, shell: str) -> None:
    script = run_process("config", "completion", shell, folder=tmp_path).stdout.decode()
    assert f"_HOLDFAST_COMPLETE=complete_{shell}" in script or "_HOLDFAST_COMPLETE" in script


def test_a_line_is_completed_with_commands_and_options(tmp_path: Path) -> None:
    def completed(words: str, at: int) -> list[str]:
        done = run_process(
            folder=tmp_path,
            COMP_WORDS=words,
            COMP_CWORD=str(at),
            _HOLDFAST_COMPLETE="complete_bash",
        )
        return done.stdout.decode().split()

    assert completed("holdfast st", 1) == ["stats", "store"]
    assert "--watch" in completed("holdfast stats --", 2)


@pytest.mark.parametrize(
    "command", [("stats",), ("store", "refs"), ("rebuild", "s", "1"), ("jobs", "list")]
)
def test_a_typo_in_the_store_makes_no_file(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = run_process(*command, "--store", "sqlite:///typo.db", folder=tmp_path)
    assert done.returncode == 2
    assert b"there is no store (typo.db)" in done.stderr
    assert not (tmp_path / "typo.db").exists()


def test_who_reads_without_a_store_makes_none(tmp_path: Path) -> None:
    assert run_process("store", "refs", folder=tmp_path).returncode == 0
    assert not list(tmp_path.rglob("*.db"))
