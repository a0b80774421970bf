"""Install coding agents, start them, and talk to them as a person or a script would.

A conversation function (`ask_once`, `ask_in_one_process`, `ask_and_continue`) takes a `Launch` and
prompts, and returns the program's output for each prompt.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.clients.programs import Program, surroundings
from tests.clients.story import LOGS, read_log

FOLDER = Path(__file__).parents[2] / "build" / "clients"
TIMEOUT = float(os.environ.get("CLIENT_SECONDS", "240"))
"""Seconds after which a program is ended."""


@dataclass
class Launch:
    """One program with a separate home, configured for one provider."""

    program: Program
    url: str
    """The provider's address; empty to leave the program as `holdfast wrap` finds it."""
    home: Path
    before: tuple[str, ...] = ()
    """Words before the program, such as `holdfast wrap --`."""
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        """The folder that the program runs in; it holds the logs."""
        return self.home / "work"

    def prepare(self) -> None:
        """Write the logs, and the files that the program reads from its home."""
        self.work.mkdir()
        for number in range(LOGS):
            (self.work / f"{number}.log").write_text(read_log(f"{number}.log"))
        self.program.prepare(self.home, self.url)

    @contextmanager
    def process(
        self, arguments: Sequence[str], stdin: int = subprocess.DEVNULL
    ) -> Iterator[subprocess.Popen[str]]:
        """Run the program; at the end it and everything that it started are killed."""
        process = subprocess.Popen(
            [*self.before, *command(self.program), *arguments],
            cwd=self.work,
            env={
                **surroundings(self.home),
                **self.program.environment(self.url),
                **self.variables,
            },
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def printed(self, arguments: Sequence[str]) -> str:
        """Return all that the program prints until it ends."""
        with self.process(arguments) as process:
            try:
                return process.communicate(timeout=TIMEOUT)[0]
            except subprocess.TimeoutExpired:
                return f"still running after {TIMEOUT:.0f} seconds"


def command(program: Program) -> list[str]:
    """Return the words that start a program: an installed one, or a module of the tests."""
    if program.module:
        return [sys.executable, "-W", "ignore", "-m", program.module]
    return [str(program.executable(FOLDER))]


def talk(launch: Launch, prompts: Sequence[str]) -> list[str]:
    """Send all prompts in the program's way; return the output for each."""
    launch.prepare()
    if launch.program.talk == "one process":
        return _ask_in_one_process(launch, prompts)
    if launch.program.talk == "continued":
        return _ask_and_continue(launch, prompts)
    return [launch.printed(launch.program.arguments(launch.url, prompts[0]))]


def _ask_and_continue(launch: Launch, prompts: Sequence[str]) -> list[str]:
    """A process for each prompt; all but the first continue the conversation."""
    arguments = launch.program.arguments
    first = launch.printed(arguments(launch.url, prompts[0]))
    others = (["--continue", *arguments(launch.url, prompt)] for prompt in prompts[1:])
    return [first, *map(launch.printed, others)]


def _ask_in_one_process(launch: Launch, prompts: Sequence[str]) -> list[str]:
    """Claude Code's protocol for programs: a JSON line for each prompt, once the last is done."""
    answers: list[str] = []
    with launch.process(launch.program.arguments(launch.url, ""), subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(TIMEOUT, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        try:
            for prompt in prompts:
                message = {"role": "user", "content": prompt}
                process.stdin.write(json.dumps({"type": "user", "message": message}) + "\n")
                process.stdin.flush()
                answers.append(_until_result(process.stdout))
            process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended: its output has the reason
        finally:
            rest = process.stdout.read()
            process.wait()
            timer.cancel()
    answers[-1:] = [answers[-1] + rest] if answers else [rest]
    return answers


def _until_result(stdout: IO[str]) -> str:
    """Return the text of the next result; everything that was printed if there is none."""
    lines: list[str] = []
    for line in stdout:
        lines.append(line)
        if line.startswith("{") and json.loads(line).get("type") == "result":
            return str(json.loads(line).get("result"))
    return "".join(lines)


def installed(program: Program) -> str:
    """Install a program if it is missing; return why that did not work, or nothing."""
    if program.module or program.executable(FOLDER).exists():
        return ""
    folder = FOLDER / ("npm" if program.from_npm else program.name)
    folder.mkdir(parents=True, exist_ok=True)
    if program.from_npm:
        # Some packages download their program in an install script.
        words = ["npm", "install", "--no-audit", "--no-fund", "--foreground-scripts"]
        words += ["--prefix", str(folder), program.package]
    else:
        venv.create(folder, with_pip=True)
        words = [str(folder / "bin" / "pip"), "install", "--quiet", program.package]
    try:
        ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=900)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"could not be installed: {error}"
    if ran.returncode or not program.executable(FOLDER).exists():
        return f"could not be installed: {(ran.stderr or ran.stdout)[-200:]}"
    return ""


def version(program: Program) -> str:
    """Return the version that a program prints; "?" if it prints none in time."""
    words = [*command(program), "--version"]
    try:
        ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:  # a busy machine must not cost the table
        return "?"
    number = re.search(r"\d+(?:\.\d+)+", ran.stdout)
    return number[0] if number else "?"
