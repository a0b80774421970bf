"""The use of a tool result, derived from its call: a file, a test run, a listing, a page.

Reads names and the first words of a command, never the result, so that the cost is negligible. If
the call does not show the use, the kind of the content decides. Also finds the call of a result,
and the words in its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.wire import Message, ToolCall, ToolResult

_COMMAND = 300
"""Characters of a command that are read: its program is at the beginning."""
_LONGEST_NAME = 100

_SHELLS = frozenset({"bash", "shell", "sh", "exec", "command", "terminal", "console", "run"})
"""Words in the names of tools that run a command; only where there is a command among the
arguments, for `run_query` runs none."""
_COMMAND_KEYS = ("command", "cmd", "script", "code", "input")

_PROGRAMS: dict[str, str] = {
    **dict.fromkeys(("cat", "nl", "sed", "head", "tail", "less", "more", "bat", "awk"), "read"),
    **dict.fromkeys(("ls", "tree", "find", "fd", "du", "dir"), "list"),
    **dict.fromkeys(("grep", "rg", "ag", "ack", "egrep", "fgrep"), "search"),
    **dict.fromkeys(("pytest", "tox", "nox", "jest", "vitest", "mocha", "rspec", "ctest"), "test"),
    **dict.fromkeys(("curl", "wget", "lynx", "http"), "page"),
    **dict.fromkeys(("psql", "mysql", "sqlite3", "mongosh", "bq"), "rows"),
    **dict.fromkeys(("journalctl", "dmesg"), "log"),
    "diff": "diff",
    "patch": "edit",
}
_SECOND: dict[str, str] = {
    **dict.fromkeys(("test", "tests", "check"), "test"),  # npm test, go test, make check
    **dict.fromkeys(("diff", "show"), "diff"),  # git diff
    **dict.fromkeys(("logs", "log"), "log"),  # docker logs, git log
    "grep": "search",  # git grep
    "ls-files": "list",
}
_TOOLS_WITH_VERBS = frozenset(
    {"git", "npm", "yarn", "pnpm", "go", "cargo", "make", "docker", "kubectl", "mvn", "gradle"}
)
_BEFORE_IT = frozenset({"sudo", "time", "timeout", "env", "nice", "uv", "poetry", "npx", "exec"})

# Words of tools' names, the most significant first: `search_files` searches, `read_search_log` …
_WORDS: tuple[tuple[str, frozenset[str]], ...] = (
    ("test", frozenset({"test", "tests", "pytest"})),
    ("edit", frozenset({"edit", "write", "patch", "replace", "update", "insert", "create"})),
    ("search", frozenset({"search", "grep", "find", "rg", "lookup"})),
    ("list", frozenset({"list", "ls", "glob", "tree", "directory", "dir"})),
    ("log", frozenset({"log", "logs", "journal"})),
    # Not `database` or `query`: Notion's databases hold pages, which are needed as often as files.
    ("rows", frozenset({"sql", "table", "tables", "rows", "records"})),
    ("page", frozenset({"fetch", "browse", "browser", "navigate", "web", "url", "page", "crawl"})),
    ("diff", frozenset({"diff", "commit", "commits"})),
    ("read", frozenset({"read", "view", "cat", "open", "file", "contents"})),
)

_TEST_FILES = re.compile(r"(?:^|/)(?:run_?tests?|tests?|test_\w{1,80})(?:\.py|\.sh|\.js)?$")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
# Without the spaces around it: a pattern that begins with them looks at a run of them again from
# each of its signs, and steps are split into words anyway.
_STEP = re.compile(r"&&|\|\||;|\n")


def use_of(tool: str, arguments: Any = None) -> str:
    """Return the use of a call: read, edit, test, diff, list, search, page, log, rows, or ""."""
    words = [word.lower() for word in _WORD.findall(tool[:_LONGEST_NAME])]
    if not _SHELLS.isdisjoint(words) and (command := _command(arguments)):
        return _use_of_command(command)
    return next((use for use, names in _WORDS if not names.isdisjoint(words)), "")


def _command(arguments: Any) -> str:
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except msgspec.DecodeError:
            return str(arguments)[:_COMMAND]
    if isinstance(arguments, dict):
        for key in _COMMAND_KEYS:
            command = arguments.get(key)
            if isinstance(command, list):  # Codex gives a list: bash, -lc, the command
                command = command[-1] if command else ""
            if isinstance(command, str) and command:
                return command[:_COMMAND]
    return ""


def _use_of_command(command: str) -> str:
    """The use of the first step that shows something: `cd src && cat a.py` reads."""
    uses = (_use_of_step(step.split()) for step in _STEP.split(command))
    return next(filter(None, uses), "")


def _use_of_step(words: list[str]) -> str:
    while words and (words[0] in _BEFORE_IT or "=" in words[0] or words[0].isdecimal()):
        words = words[1:]
    if words[:1] == ["run"]:  # uv run, poetry run
        words = words[1:]
    if not words:
        return ""
    program, arguments = words[0].rpartition("/")[2], words[1:]
    if ">" in arguments or ">>" in arguments or "-i" in arguments[:2]:
        return "edit"  # cat > file, sed -i
    if program in _TOOLS_WITH_VERBS:
        return next((_SECOND[word] for word in arguments[:3] if word in _SECOND), "")
    if program.startswith("python"):
        return _use_of_python(arguments)
    return _PROGRAMS.get(program) or ("test" if _TEST_FILES.search(words[0]) else "")


def _use_of_python(rest: list[str]) -> str:
    """`python -m pytest`, `python tests/runtests.py`; any other program may print anything."""
    if rest[:1] == ["-m"]:
        return "test" if rest[1:2] and rest[1] in ("pytest", "unittest", "tox", "nose") else ""
    return "test" if rest and _TEST_FILES.search(rest[0]) else ""


_ARGUMENT_CHARACTERS = 200


def calls_before(messages: Sequence[Message], index: int) -> list[ToolCall]:
    """The calls that a message may answer: those of the turn before it."""
    calls: list[ToolCall] = []
    for n in range(index - 1, -1, -1):
        of_message = messages[n].calls
        calls.extend(reversed(of_message))
        if of_message and not messages[n - 1].calls:
            break  # a turn of the assistant may be several messages, one for each call
    calls.reverse()
    return calls


def call_of(result: ToolResult, message: Message, calls: Sequence[ToolCall]) -> ToolCall | None:
    """Return the call of a message's result; None if it is ambiguous.

    Gemini's calls may have no ids: several calls of one tool are matched in order.
    """
    if result.call_id:
        for call in reversed(calls):
            if call.id == result.call_id:
                return call
    named = [call for call in calls if result.name and call.name == result.name]
    if len(named) <= 1:
        return named[0] if named else None
    alike = [each.place for each in message.results if each.name == result.name]
    return named[alike.index(result.place)] if len(alike) == len(named) else None


def scalars(arguments: Any) -> list[str]:
    """The beginnings of the texts among a call's arguments."""
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except msgspec.DecodeError:
            return [arguments[:_ARGUMENT_CHARACTERS]]
    values = arguments.values() if isinstance(arguments, dict) else ()
    return [v[:_ARGUMENT_CHARACTERS] for v in values if isinstance(v, str) and v]
