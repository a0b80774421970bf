"""`make clients`: coding agents from npm and PyPI through the proxy, beside the same without it.

Installs what is missing into build/clients, then has each agent do one task four times: directly
against the scripted upstream, through the proxy at the model's window, through it in a window
in which the task does not fit, and under `holdfast wrap`. Prints a table; ends with 1 if an answer
differs, or if it took more requests though there was room. A program that cannot be installed or
does not work directly is left out, with the reason.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import holdfast
from tests.clients.programs import (
    PROGRAMS,
    PROMPT,
    Program,
    command_call,
    script_call,
    surroundings,
)
from tests.clients.story import ANSWERS, LOGS, QUESTIONS, Reader, read_log
from tests.proxy.gatekeeper import Got
from tests.proxy.harness import FAMILIES, running_proxy
from tests.proxy.spoken import says, text
from tests.proxy.upstream import Upstream
from tests.wire.answers.streams import Part, Script

FOLDER = Path(__file__).parents[2] / "build" / "clients"
PATIENCE = float(os.environ.get("CLIENT_SECONDS", "240"))
NATIVE = 200_000
ROOM = 3_500
"""Tokens of a narrow window beside instructions and tools: about half of the short logs."""
_ANSWER = re.compile(r"The code is \w+\.")


class Commands(Reader):
    """The reader for a program that shows files with a shell."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.is_lazy = False
        """The program's tools are found and called through two others."""
        self.base = 0
        """Tokens of the first request by our own count: instructions and tools."""

    def __call__(self, got: Got) -> Script:
        self.tool = next((name for name in self.program.tools if name in got.tools), "")
        self.is_lazy = not self.tool and "call_tool" in got.tools
        if self.is_lazy:  # its schemas took half of the window, and were set aside
            self.tool = self.program.tools[0]
        if self.program.tools and not self.tool:
            return says(text("Logs"))  # it asks on the side, for a title perhaps
        if not self.program.tools:
            self.read = LOGS  # it shows the model all files at once
        if not self.base:
            self.base = holdfast.count(got.body, dialect=got.dialect, model=got.model).tokens
        return super().__call__(got)

    def _call(self, name: str, arguments: dict[str, Any]) -> Part:
        if name == "exec":
            script = script_call(arguments["path"])
            return Part("call", (script,), f"call_{self.calls}", name, freeform=True)
        if name == self.tool:
            arguments = command_call(name, arguments["path"])
            if self.is_lazy:
                return super()._call("call_tool", {"name": name, "arguments": arguments})
        return super()._call(name, arguments)


@dataclass(frozen=True)
class Outcome:
    """What came of one run."""

    answer: str
    """The last answer that the program printed; empty if there is none."""
    calls: int
    trouble: str
    window: int
    base: int


def main(names: list[str]) -> int:
    console = Console()
    table = Table("client", "version", "directly", "native", "folding", "wrapped", "requests")
    remarks: list[str] = []
    failed = False
    for program in PROGRAMS:
        if names and program.name not in names:
            continue
        if reason := installed(program):
            table.add_row(program.label, "", "skipped", "", "", "", "")
            remarks.append(f"{program.label}: {reason}")
            continue
        outcomes = compare(program, console)
        wrong = [f"{way}: {o.trouble}" for way, o in outcomes.items() if o.trouble]
        wrong += more_requests(outcomes)
        remarks += [f"{program.label}, {words}" for words in wrong]
        works = not outcomes["directly"].trouble
        failed = failed or (works and bool(wrong))
        marks = ["ok" if not outcome.trouble else "FAILED" for outcome in outcomes.values()]
        marks += ["not run"] * (4 - len(marks))
        calls = " / ".join(str(outcome.calls) for outcome in outcomes.values())
        table.add_row(program.label, version(program), *marks, calls)
    console.print(table)
    for remark in remarks:
        console.print(remark, markup=False)
    return int(failed)


def compare(program: Program, console: Console) -> dict[str, Outcome]:
    """Run one program directly, and through the proxy in a wide and in a narrow window."""
    # The long log is cited: asked for one of its lines, the model must open it. The first log is
    # the oldest: in a narrow window it is folded.
    outcomes = {"directly": run(program, 1, NATIVE, proxied=False)}
    if not outcomes["directly"].trouble:
        outcomes["native"] = run(program, 1, NATIVE, proxied=True)
        base = outcomes["directly"].base
        window = base + ROOM if program.tools else base * 2 // 3
        outcomes["folding"] = run(program, 0, window, proxied=True)
        outcomes["wrapped"] = run_wrapped(program, 1)
    for way, outcome in outcomes.items():
        state = "failed" if outcome.trouble else "ok"
        words = f"{program.label}, {way}: {state}, {outcome.calls} requests"
        console.print(f"{words} in a window of {outcome.window:,} tokens")
    return outcomes


def more_requests(outcomes: dict[str, Outcome]) -> list[str]:
    """Where the proxy took more requests than none, in a window that had room for everything."""
    directly, native = outcomes["directly"], outcomes.get("native")
    if native is None or native.calls <= directly.calls:
        return []
    return [f"native: {native.calls} requests instead of {directly.calls}"]


def run(program: Program, question: int, window: int, *, proxied: bool) -> Outcome:
    reader = Commands(program)
    with Upstream(window=window) as upstream, tempfile.TemporaryDirectory() as folder:
        upstream.always = reader
        settings = {} if window == NATIVE else {"request_limit": window}
        with address(upstream, settings, proxied=proxied) as url:
            printed = printed_by(program, url, PROMPT.format(QUESTIONS[question]), Path(folder))
    return judged(printed, question, upstream, window, reader.base)


def judged(printed: str, question: int, upstream: Upstream, window: int, base: int) -> Outcome:
    """What is to be said of a run by what it printed and what the upstream saw."""
    answers = _ANSWER.findall(printed)
    answer = answers[-1] if answers else ""
    trouble = ""
    if upstream.refused:
        trouble = f"the upstream refused: {upstream.refused[0][:200]}"
    elif answer != ANSWERS[question]:
        trouble = f"answered {answer!r}: {printed[-200:]!r}" if not answer else f"said {answer!r}"
    return Outcome(answer, len(upstream.requests), trouble, window, base)


def run_wrapped(program: Program, question: int) -> Outcome:
    """Run a program as `holdfast wrap` does; the upstream stands where the vendor would."""
    reader = Commands(program)
    with Upstream(window=NATIVE) as upstream, tempfile.TemporaryDirectory() as folder:
        upstream.always = reader
        settings = {f"HOLDFAST_{family.upper()}_UPSTREAM": upstream.url for family in FAMILIES}
        settings["HOLDFAST_STORE_URL"] = "memory:"
        prompt = PROMPT.format(QUESTIONS[question])
        wrap = (sys.executable, "-m", "holdfast", "wrap", "--")
        printed = printed_by(program, "", prompt, Path(folder), wrap, settings)
    outcome = judged(printed, question, upstream, NATIVE, reader.base)
    if not outcome.trouble and f"holdfast: {outcome.calls} call" not in printed:
        return replace(outcome, trouble=f"the bill differs: {printed[-300:]!r}")
    return outcome


@contextmanager
def address(upstream: Upstream, settings: dict[str, Any], *, proxied: bool) -> Iterator[str]:
    if not proxied:
        yield upstream.url
        return
    with running_proxy(settings, upstream.url) as proxy:
        yield proxy.url


def printed_by(
    program: Program,
    url: str,
    prompt: str,
    home: Path,
    before: tuple[str, ...] = (),
    variables: Mapping[str, str] | None = None,
) -> str:
    """All that a program prints; it and what it started are ended when its time is over."""
    work = home / "work"
    work.mkdir()
    for number in range(LOGS):
        (work / f"{number}.log").write_text(read_log(f"{number}.log"))
    program.prepare(home, url)
    process = subprocess.Popen(
        [*before, program.executable(FOLDER), *program.arguments(url, prompt)],
        cwd=work,
        env={**surroundings(home), **program.environment(url), **(variables or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=PATIENCE)[0]
    except subprocess.TimeoutExpired:
        return f"still running after {PATIENCE:.0f} seconds"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def installed(program: Program) -> str:
    """Install a program if it is missing; why that did not work, else empty."""
    if program.executable(FOLDER).exists():
        return ""
    folder = FOLDER / ("npm" if program.from_npm else program.name)
    folder.mkdir(parents=True, exist_ok=True)
    if program.from_npm:
        # Some fetch their real program in a script of the package.
        command = ["npm", "install", "--no-audit", "--no-fund", "--foreground-scripts"]
        command += ["--prefix", str(folder), program.package]
    else:
        venv.create(folder, with_pip=True)
        command = [str(folder / "bin" / "pip"), "install", "--quiet", program.package]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"could not be installed: {error}"
    if ran.returncode or not program.executable(FOLDER).exists():
        return f"could not be installed: {(ran.stderr or ran.stdout)[-200:]}"
    return ""


def version(program: Program) -> str:
    ran = subprocess.run(
        [program.executable(FOLDER), "--version"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    number = re.search(r"\d+(?:\.\d+)+", ran.stdout)
    return number[0] if number else "?"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
