"""`make clients`: coding agents and frameworks through the proxy, compared with the same without
it.

Installs missing programs into build/clients. Each program does one task in five ways: directly
against the scripted upstream; through the proxy with its default settings; with every long result
cited; in a window that the task exceeds; and under `holdfast wrap`. Prints a table. Exits with 1
if an answer differs, if the upstream refused a request, if with room it took more requests or
tokens than directly or changed the prompt's prefix, or if a conversation is not one session. A
program that cannot be installed or does not work directly is left out, with the reason.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import holdfast
from tests.clients.mcp_tools import answer, full_name, tool_name
from tests.clients.prefix import broken_prefixes
from tests.clients.programs import PROGRAMS, PROMPT, Program, command_call, script_call
from tests.clients.runs import Launch, installed, talk, version
from tests.clients.story import ANSWERS, LOGS, QUESTIONS, Coder, Reader
from tests.surfaces.proxy.gatekeeper import Got
from tests.surfaces.proxy.harness import FAMILIES, Running, running_proxy
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.upstream import Upstream
from tests.wire.responses.streams import Part, Script

NATIVE = 200_000
ROOM = 3_500
"""Tokens of a narrow window beside instructions and tools: about half of the short logs."""
MORE = 0.02, 80
"""Allowed growth of a request with room: this share, or this number of tokens."""
_RANDOM_IDS = re.compile(
    rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=Chunk ID: )[0-9a-f]{6}"
    rb"|(?<=Wall time: )[0-9.]+|(?<=create_time.:)[0-9.]+"
)
"""UUIDs, and Codex's descriptions of a command and of a message."""
_ANSWER = re.compile(r"The code is \w+\.")
_BILL = re.compile(r"holdfast: (\d+) requests? answered")
_OUR_WARNING = re.compile(r".*\.py:\d+: \w*Warning: .*|.*/holdfast/.*\.py:\d+.*")
"""Python's warnings: Node programs print others, without such a place."""


class Commands(Reader):
    """The reader for a program that shows files with a shell."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.is_lazy = False
        """The program's tools are found and called through two others."""
        self.main: list[Got] = []
        """The requests of the conversation, without those on the side."""
        self.mcp_calls = 0
        self.trouble = ""

    def __call__(self, got: Got) -> Script:
        self.tool = next((name for name in self.program.tools if name in got.tools), "")
        self.is_lazy = not self.tool and "call_tool" in got.tools
        if self.is_lazy:  # its schemas took half of the window, and were set aside
            self.tool = self.program.tools[0]
        if self.program.tools and not self.tool:
            return says(text("Logs"))  # it asks on the side, for a title perhaps
        if not self.program.tools:
            self.read = LOGS  # it shows the model all files at once
        self.main.append(got)
        if self.mcp_calls < 2 and self.program.mcp_tools:
            return self._mcp_call(got)
        if self.program.mcp_tools and answer(tool_name(_WANTED), "r-17") not in got.texts:
            self.trouble = self.trouble or "the answer of the MCP tool is not in the request"
        return super().__call__(got)

    def _mcp_call(self, got: Got) -> Script:
        """Load a tool that the program has set aside, as Claude does, then call it."""
        self.mcp_calls += 1
        self.calls += 1
        self.thinks = (got.value.get("thinking") or {}).get("type", "disabled") != "disabled"
        name = full_name(_WANTED)
        if self.mcp_calls == 1 and "ToolSearch" in got.tools:
            wanted = {"query": f"select:{name}", "max_results": 1}
            return self._says(super()._call("ToolSearch", wanted))
        self.mcp_calls = 2
        if name not in got.tools:
            self.trouble = f"{name} cannot be called"
        return self._says(super()._call(name, {"id": "r-17"}))

    def _call(self, name: str, arguments: dict[str, Any]) -> Part:
        if name == "exec":
            script = script_call(arguments["path"])
            return Part("call", (script,), f"call_{self.calls}", name, freeform=True)
        if name == self.tool and self.tool != "read_log":
            arguments = command_call(name, arguments["path"])
            if self.is_lazy:
                return super()._call("call_tool", {"name": name, "arguments": arguments})
        return super()._call(name, arguments)


_WANTED = 17
"""Number of the MCP tool that the model uses."""


class Writer(Coder):
    """The reader for a program whose model writes Python."""

    def __init__(self) -> None:
        super().__init__()
        self.main: list[Got] = []
        self.trouble = ""

    def __call__(self, got: Got) -> Script:
        self.main.append(got)
        return super().__call__(got)


def reader_of(program: Program) -> Commands | Writer:
    """Return the model that a program talks to."""
    return Writer() if program.writes_code else Commands(program)


@dataclass(frozen=True)
class Outcome:
    """The result of one run."""

    calls: int
    trouble: str
    window: int
    main: list[Got] = field(default_factory=list)

    @property
    def base(self) -> int:
        """Tokens of the first request by our own count: instructions and tools."""
        first = self.main[0]
        return holdfast.count(first.body, dialect=first.dialect, model=first.model).tokens


def main(names: list[str]) -> int:
    """Run the programs with these names, or all, and return the exit code."""
    console = Console(width=None if sys.stdout.isatty() else 130)
    ways = ("directly", "default", "citing", "folding", "wrapped")
    table = Table("client", "version", *ways, "requests")
    remarks: list[str] = []
    for program in PROGRAMS:
        if names and program.name not in names:
            continue
        if reason := installed(program):
            table.add_row(program.label, "", "skipped", *[""] * len(ways))
            remarks.append(f"{program.label}: {reason}")
            continue
        outcomes = compare(program, console)
        wrong = {way: outcome.trouble for way, outcome in outcomes.items() if outcome.trouble}
        remarks += [f"{program.label}, {way}: {trouble}" for way, trouble in wrong.items()]
        marks = ["FAILED" if way in wrong else "ok" for way in outcomes]
        marks += ["not run"] * (len(ways) - len(marks))
        calls = " ".join(str(outcome.calls) for outcome in outcomes.values())
        table.add_row(program.label, version(program), *marks, calls)
    console.print(table)
    for remark in remarks:
        console.print(remark, markup=False)
    return int(bool(remarks))


def compare(program: Program, console: Console) -> dict[str, Outcome]:
    """Run one program in every way; only directly if that does not work."""
    # The long log is cited: asked for one of its lines, the model must open it. The first log is
    # the oldest: in a narrow window it is folded.
    late, early = [1], [0]
    if program.talk != "once":
        late = early = [0, 1]
    direct = run(program, late, NATIVE)
    outcomes = {"directly": direct}
    if not direct.trouble:
        window = direct.base + ROOM
        if not program.tools:
            window = (direct.base if len(direct.main) == 1 else direct.main[-1].tokens) * 2 // 3
        outcomes |= {
            "default": never_worse(run(program, late, NATIVE, {"cite_policy": "auto"}), direct),
            "citing": run(program, late, NATIVE, {"cite_policy": "always"}),
            "folding": run(program, early, window, {"request_limit": window}),
            "wrapped": never_worse(run_wrapped(program, late), direct),
        }
    for way, outcome in outcomes.items():
        state = "failed" if outcome.trouble else "ok"
        words = f"{program.label}, {way}: {state}, {outcome.calls} requests"
        console.print(f"{words} in a window of {outcome.window:,} tokens")
        if outcome.trouble:  # at once: the table comes only after the last client
            console.print(f"  {outcome.trouble}", markup=False)
    return outcomes


def never_worse(outcome: Outcome, direct: Outcome) -> Outcome:
    """Add the trouble of a run that had room and yet cost more than the program alone."""
    if outcome.trouble:
        return outcome
    if outcome.calls > direct.calls:
        more = f"{outcome.calls} requests instead of {direct.calls}"
        return replace(outcome, trouble=more)
    share, tokens = MORE
    for number, (ours, theirs) in enumerate(zip(outcome.main, direct.main, strict=False), 1):
        sent, direct_tokens = _stable_tokens(ours), _stable_tokens(theirs)
        if sent > direct_tokens + max(share * direct_tokens, tokens):
            more = f"{sent} tokens instead of {direct_tokens} in request {number}"
            return replace(outcome, trouble=more)
    broken = len(broken_prefixes(outcome.main)), len(broken_prefixes(direct.main))
    if broken[0] > broken[1]:
        more = f"the prefix changed {broken[0]} times instead of {broken[1]}"
        return replace(outcome, trouble=more)
    return outcome


def _stable_tokens(request: Got) -> int:
    """Return the tokens of a request with its random ids and times replaced by fixed ones.

    Codex writes the id of its turn into every message. Such ids differ in tokens: two runs without
    the proxy differed by 33 tokens after six requests, and by chance one with it had 257 more.
    """
    body = _RANDOM_IDS.sub(b"0", request.body)
    return replace(request, body=body).tokens


def run(
    program: Program,
    questions: list[int],
    window: int,
    settings: dict[str, Any] | None = None,
) -> Outcome:
    """Run a program against the upstream: directly, or through a proxy with these settings."""
    reader = reader_of(program)
    reader.opens_early = bool(settings)
    with Upstream(window=window) as upstream, same_folder() as folder:
        upstream.always = reader
        with address(upstream, settings) as (url, proxy):
            printed = talk(Launch(program, url, Path(folder)), prompts(questions))
            split = sessions_trouble(proxy) if proxy is not None else ""
    outcome = judged(printed, questions, upstream, window, reader)
    return outcome if outcome.trouble else replace(outcome, trouble=split)


@contextmanager
def same_folder() -> Iterator[str]:
    """Yield an empty folder that has the same name in every run.

    Programs write it into each request, and random names differ in tokens.
    """
    folder = Path(tempfile.gettempdir()) / f"holdfast-clients-{os.getpid()}"
    folder.mkdir()
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder)


def prompts(questions: list[int]) -> list[str]:
    """Return the prompts: the first names the folder of the files."""
    first, *others = questions
    return [PROMPT.format(QUESTIONS[first]), *(QUESTIONS[number] for number in others)]


def sessions_trouble(proxy: Running) -> str:
    """Return the faults of the sessions that a proxy has made of one conversation."""
    proxy.settled()
    engine = proxy.service.engine
    listed = proxy.do(engine.store.sessions(engine.scope))
    titles = [session.title for session in listed if not session.purpose]
    if len(titles) != 1:
        return f"one conversation became {len(titles)} sessions: {titles}"
    if "0.log" not in titles[0]:
        return f"the title is not the user's words: {titles[0]!r}"
    return ""


def judged(
    printed: list[str],
    questions: list[int],
    upstream: Upstream,
    window: int,
    reader: Commands | Writer,
) -> Outcome:
    """Check a run by the program's output and the upstream's requests."""
    answers = [(_ANSWER.findall(words) or [""])[-1] for words in printed]
    trouble = reader.trouble
    if upstream.refused:
        trouble = f"the upstream refused: {upstream.refused[0][:200]}"
    elif answers != [ANSWERS[number] for number in questions]:
        trouble = f"answered {answers}: {printed[-1][-200:]!r}"
    return Outcome(len(upstream.requests), trouble, window, reader.main)


def run_wrapped(program: Program, questions: list[int]) -> Outcome:
    """Run a program as `holdfast wrap` does; the upstream replaces the vendor."""
    reader = reader_of(program)
    with Upstream(window=NATIVE) as upstream, same_folder() as folder:
        upstream.always = reader
        settings = {f"HOLDFAST_{family.upper()}_UPSTREAM": upstream.url for family in FAMILIES}
        settings["HOLDFAST_STORE_URL"] = f"sqlite:{folder}/store.db"
        wrap = (sys.executable, "-m", "holdfast", "wrap", "--")
        launch = Launch(program, "", Path(folder), wrap, settings)
        printed = talk(launch, prompts(questions))
    outcome = judged(printed, questions, upstream, NATIVE, reader)
    if not outcome.trouble and (warning := _OUR_WARNING.search("\n".join(printed))):
        return replace(outcome, trouble=f"printed into the terminal: {warning[0][:200]!r}")
    bills = [int(calls) for calls in _BILL.findall("\n".join(printed))]
    if not outcome.trouble and sum(bills) != outcome.calls:
        return replace(outcome, trouble=f"the bill differs: {printed[-1][-300:]!r}")
    return outcome


@contextmanager
def address(
    upstream: Upstream, settings: dict[str, Any] | None
) -> Iterator[tuple[str, Running | None]]:
    """Yield the address that a program is pointed at, and the proxy there if there is one."""
    if settings is None:
        yield upstream.url, None
        return
    with running_proxy(settings, upstream.url) as proxy:
        yield proxy.url, proxy


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
