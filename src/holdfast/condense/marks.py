"""Lines that report an outcome: exit codes, verdicts, paths of saved output, earlier truncation.

The marks are those of shells, test runners, build tools and agents' clients, independent of the
kind of the content: a log may end in a verdict, a JSON answer may contain the output of a command.
Uses RE2 on bytes, so that any content takes linear time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
import re2  # type: ignore[import-untyped]

_MOST = 2_000
"""Marks of one sort that are looked at: a log can hold one in each of a million lines."""
_CHUNK = 32_768
"""Bytes that are searched together."""


def _any_of(*patterns: str, start: str = "", end: str = "") -> Any:
    return re2.compile(f"(?im){start}(?:{'|'.join(patterns)}){end}".encode())


_ANY = r"[^\n]*"
_START = r"^(?:\[[A-Z]+\][ \t])?[^\w\n]*"
"""Where a line begins: Maven puts a level before it, others arrows, ticks and rules."""

_EXIT = _any_of(
    # exit code 1; Exit status: 137; non-zero exit status 2; "exitCode": 0; <exit_code>1
    r"""exit(?:ed|s)?[ _-]?(?:with[ _-])?(?:code|status|value)["'>]?[ \t]*(?:[:=]|of|is|was)?"""
    r"""[ \t]*["'(]?-?\d+""",
    r"exit(?:ed)?[ \t]?[:=][ \t]?-?\d+",
    r"\[exit[ \t]-?\d+\]",
    r"exited[ \t](?:with[ \t])?\(?-?\d+",
    # <returncode>0</returncode>; return code: 2; rc=1
    r"""return(?:ed)?[ _-]?(?:code|status)["'>]?[ \t]*(?:[:=]|of|is|was)?[ \t]*["'(]?-?\d+""",
    r"\brc[ \t]?=[ \t]?-?\d+",
    r"(?:finished|failed|completed|terminated|stopped|ended) with (?:code|status) -?\d+",
    r"(?:killed|terminated|stopped|died)[ \t](?:by|with|on)[ \t](?:signal[ \t])?(?:SIG[A-Z]+|\d+)",
    r"^make(?:\[\d+\])?:[ \t]\*\*\*[^\n]*[ \t](?:Error|Fehler)[ \t]\d+",
    r"^(?:Segmentation fault|Killed|Aborted|Terminated|Bus error)(?:[ \t]\(core dumped\))?[ \t]*$",
)
_WORD = (
    # In small letters `pass`, `done` and `fail` are words of Python, shells and prose.
    r"(?:(?-i:PASS|Pass|FAIL|Fail|DONE|Done|COMPLETE|ERROR)|passed|failed|failures?|ok"
    r"|success(?:ful(?:ly)?)?|succeeded|completed|finished|aborted|cancell?ed|timed out)"
)
_ALONE = r"(?: in [\d.:]+ ?[a-z]*)?[.!\x80-\xff]*(?:[ \t]*[=*#-]{2,})?[ \t\r]*$"
"""The rest of the line must be empty; `failed = []` is code and no verdict."""
_VERDICT = _any_of(
    # A verdict alone on its line: PASSED, BUILD FAILED, all tests passed!, Status: ok
    rf"(?:all )?(?:tests?|checks?|build|compilation|run|test run|job|pipeline|suite|deployment"
    rf"|installation|migration|overall)? ?(?:result|status|verdict|outcome)?[ \t]*[:=-]?[ \t]*"
    rf"(?:is |was |has |have )?{_WORD}{_ALONE}",
    rf"(?:final )?(?:verdict|outcome|conclusion|result)[ \t]*[:=][ \t]*{_WORD}\b{_ANY}",
    # pytest, with rules around it or quiet; mocha
    rf"(?:\d+ (?:passed|failed|passing|failing|pending)|no tests ran)\b{_ANY}",
    rf"\d+ (?:errors?|warnings?|skipped|deselected|xfailed)(?:,| in ){_ANY}",
    # unittest, PHPUnit
    r"Ran \d+ tests? in [^\n]*",
    r"(?:OK|FAILED|FAILURES!|ERRORS!) ?\([^\n)]*\)",
    rf"Tests: \d+, Assertions:{_ANY}",
    # jest, vitest, cargo, go
    rf"Test(?:s| Suites| Files)?[ \t]*:?[ \t]+\d+ (?:passed|failed|skipped|total|todo){_ANY}",
    rf"test result:{_ANY}",
    r"(?:ok|FAIL) *\t[^\n]*",
    # Maven, Gradle, dotnet
    rf"Tests run: \d+,{_ANY}",
    rf"BUILD (?:SUCCESS(?:FUL)?|FAIL(?:ED|URE))\b{_ANY}",
    rf"\d+ tests? completed,{_ANY}",
    rf"(?:Passed|Failed|Skipped)![ \t]+-{_ANY}",
    rf"(?:Build (?:succeeded|failed)|Test Run (?:Successful|Failed|Aborted))\b{_ANY}",
    r"\d+ (?:Error|Warning)\(s\)",
    # RSpec, CTest, Bazel, TAP
    rf"\d+ examples?, \d+ failures?{_ANY}",
    rf"\d+% tests passed{_ANY}",
    rf"Executed \d+ out of \d+ tests?:{_ANY}",
    r"(?:pass|fail) \d+[ \t]*$",
    # type checkers, linters, package managers, Terraform
    rf"Found \d+ errors?\b{_ANY}",
    rf"Success: no issues found{_ANY}",
    rf"\d+ problems? \(\d+ errors?{_ANY}",
    rf"(?:found )?\d+ vulnerabilities\b{_ANY}",
    rf"(?:Apply|Destroy) complete!{_ANY}",
    rf"error: could not compile{_ANY}",
    start=_START,
)
_PATH = (
    r"""(?:(?:[A-Za-z]:\\|~?/|\.{1,2}/|file://)[^\s"'`<>\\]+"""
    r"""|[\w.-]+\.(?:txt|log|json|jsonl|out|md|csv|xml|html|gz|zip))"""
)
_WHAT = r"(?:output|logs?|results?|contents?|response|text|report|trace|transcript|data|file)"
_SAVED = _any_of(
    rf"{_WHAT}\b[^\n]* (?:saved|written|stored|dumped|persisted|spilled|redirected|logged"
    rf"|captured|found|available) (?:to|at|in|as|under|into)\b",
    rf"(?:full|complete|entire|raw|untruncated|original) {_WHAT}\b[^\n]*?(?: (?:at|in|to)\b|:)",
    r"(?:saved|wrote|persisted) (?:the )?(?:full|complete|entire|remaining|rest)\b[^\n]* to\b",
    end=rf"""[ \t]*:?[ \t]*["'`<(\[]*{_PATH}""",
)
_GONE = (
    r"(?:truncated|omitted|clipped|elided|skipped|hidden|trimmed|snipped|collapsed|abbreviated"
    r"|cut off|left out|not shown|removed)"
)
_UNITS = (
    r"(?:lines?|char(?:acter)?s?|bytes|[kmg]i?b|tokens?|rows?|results?|items?|entries|matches"
    r"|messages|files?|pages?|words?|objects?|records?)"
)
_OUTPUT = (
    r"(?:output|results?|response|content|text|logs?|observation|file|listing|message|page|body)"
)
_CUT = _any_of(
    # [... 1234 lines omitted ...], <1,234 characters truncated>, …120 tokens truncated…
    rf"\d ?(?:more |remaining |other )?{_UNITS} (?:were |was |have been )?{_GONE}\b",
    rf"\b(?:truncated|omitted|clipped|elided|trimmed|skipped|hiding|omitting) (?:the )?"
    rf"(?:last |middle )?~?\d[\d,.]* ?(?:of \d[\d,]* )?{_UNITS}\b",
    # [truncated], (truncated), <output clipped>, ... [CONTENT TRUNCATED] ..., {{output cut off}}
    rf"[\[(<{{][^\w\n\])>}}]*(?:{_OUTPUT} )?(?:is |was |has been )?"
    rf"(?:truncated|clipped|elided|cut off)[^\w\n]*[\])>}}]",
    rf"[\[(<{{][^\w\n\])>}}]*{_OUTPUT} (?:is |was |has been )?{_GONE}\b",
    rf"(?:\.\.\.|…) *[\[(<]?(?:{_OUTPUT} )?(?:truncated|clipped|elided|omitted)\b",
    r"\b(?:truncated|clipped|elided|omitted) *[\])>]? *(?:\.\.\.|…)",
    # The output was truncated; Results are truncated; Content truncated.
    rf"\b{_OUTPUT} (?:was |were |is |are |has been |have been )"
    rf"(?:too (?:long|large) and (?:was |has been )?)?(?:truncated|clipped|cut off)\b",
    rf"(?:^|[>(\[]|note: |warning: ){_OUTPUT} (?:truncated|clipped)\b",
    r"output of [^\n]* was too (?:long|large)",
    r"output too (?:long|large) (?:\(|to (?:show|include|display))",
    # Showing lines 1-2000 of 5000, (Showing first 300 of 412 results, file has more lines
    rf"\bshowing (?:only )?(?:the )?(?:first|last|top|lines) \d[\d,]*(?: ?- ?\d[\d,]*)?"
    rf" (?:{_UNITS} )?(?:of|out of) (?:total )?\d",
    r"\bonly (?:the )?first \d[\d,]* [^\n]{0,20}(?:shown|displayed|returned|included)",
    r"\bfile has more lines",
    r"only part of this file has been shown",
    # fields in which APIs report their own outcome
    r"""["'](?:\w+_)?(?:is_?)?truncated["']:[ \t]*true""",
)


class Mark(msgspec.Struct, frozen=True):
    """A line, or a value, that reports an outcome."""

    begin: int
    end: int
    """Its offset in the searched bytes."""


def exit_codes(data: bytes) -> list[Mark]:
    """Return the exit codes of processes."""
    return _marks(_EXIT, data)


def verdicts(data: bytes) -> list[Mark]:
    """Return the verdicts of runners, compilers and people."""
    return _marks(_VERDICT, data)


def saved_places(data: bytes) -> list[Mark]:
    """Return the paths under which a tool reports that it saved more output."""
    return _marks(_SAVED, data)


def earlier_cuts(data: bytes) -> list[Mark]:
    """Return the notes of tools or clients that the content was truncated before."""
    return _marks(_CUT, data)


def _marks(pattern: Any, data: bytes) -> list[Mark]:
    matches = (
        match for begin, end in _chunks(data) for match in pattern.finditer(data, begin, end)
    )
    return [Mark(*match.span()) for match in islice(matches, _MOST)]


def _chunks(data: bytes) -> Iterator[tuple[int, int]]:
    """Runs of lines; one that is longer than a chunk is cut.

    In it something may begin a mark every few bytes and never end it: the rest of the line would
    be searched anew for each mark that is there.
    """
    begin = 0
    while begin < len(data):
        end = data.rfind(b"\n", begin, begin + _CHUNK) + 1
        end = end if end > begin else min(begin + _CHUNK, len(data))
        yield begin, end
        begin = end
