"""The first notes of every citation: ends, exit codes, verdicts, earlier cuts."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from holdfast.cite import cite
from holdfast.condense.glance import glance
from holdfast.condense.source import Source
from tests.support.steps import is_linear

FILLER = [f"step {n}: moved the crate of shelf {n % 7} to bay {n % 13}" for n in range(400)]
LOG = [f"2024-05-01 12:{n // 60 % 60:02}:{n % 60:02} INFO crate {n} moved" for n in range(400)]
CODE = [f"def move_{n}(crate: Crate) -> Bay:\n    return bays[{n}]\n" for n in range(130)]
KINDS = {"text": FILLER, "log": LOG, "code": CODE}

EXITS = [
    "exit code 1",
    "Exit status: 137",
    "Command 'make' returned non-zero exit status 2.",
    "[exit: 0]",
    "Process exited with code 3",
    "Process finished with exit code 139",
    "<returncode>1</returncode>",
    "npm ERR! exit status 254",
    "make: *** [Makefile:12: all] Error 2",
    "terminated by signal SIGKILL",
]
VERDICTS = [
    "PASSED",
    "FAILED",
    "ok",
    "OK (skipped=2)",
    "BUILD FAILED",
    "[INFO] BUILD SUCCESS",
    "BUILD SUCCESSFUL in 3s",
    "SUCCESS",
    "All tests passed!",
    "5 passed, 1 failed in 3.2s",
    "=========== 5 passed, 1 warning in 3.21s ===========",
    "Tests:       1 failed, 3 total",
    "ok  \tgithub.com/crate/bay\t0.013s",
    "FAIL\tgithub.com/crate/bay\t0.013s",
    "test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
    "  12 passing (34ms)",
    "  2 failing",
    "Tests run: 12, Failures: 1, Errors: 0, Skipped: 0",
    "Failed!  - Failed:     1, Passed:    11, Skipped:     0, Total:    12",
    "Build succeeded.",
    "7 examples, 1 failure",
    "Found 3 errors in 2 files (checked 40 source files)",
    "\x1b[32mPASSED\x1b[0m",
]
SAVED = [
    "Full output saved to: /tmp/tool/out-8841.txt",
    "full output written to /var/tmp/run/stdout.log",
    "truncated output saved at C:\\Temp\\run\\out.txt",
    "A complete log of this run can be found in: /var/npm/_logs/2024-05-01T12_00_00-debug-0.log",
]
CUTS = [
    "[... 1234 lines omitted ...]",
    "[... omitted 120 of 456 lines ...]",
    "<response clipped>",
    "output truncated",
    "(truncated)",
    "(Results are truncated. Consider using a more specific path or pattern.)",
    "... [CONTENT TRUNCATED] ...",
    "[... Observation truncated due to length ...]",
    "…1234 tokens truncated…",
    "The output of your last command was too long.",
    "6151 characters elided",
    "[File content truncated: showing lines 1-2000 of 5000 total lines.]",
    "(Showing first 300 of 412 results. Use a more specific search if necessary.)",
    "<error>Content truncated. Call the fetch tool with a start_index of 5000.</error>",
]


def words(line: str) -> str:
    return " ".join(line.replace("\x1b[32m", "").replace("\x1b[0m", "").split())


def within(lines: list[str], line: str) -> str:
    """A line in the middle of others."""
    half = len(lines) // 2
    return "\n".join([*lines[:half], line, *lines[half:]])


@pytest.mark.parametrize(
    ("kind", "question"), [("text", "Which bay has crate 211?"), ("log", ""), ("code", "")]
)
@pytest.mark.parametrize("line", [*EXITS, *VERDICTS, *SAVED, *CUTS])
def test_how_it_ended_is_shown_whatever_the_kind(kind: str, question: str, line: str) -> None:
    citation = cite(within(KINDS[kind], line), question=question)
    assert words(line) in words(citation.text)
    assert citation.tokens <= 400


@pytest.mark.parametrize("line", [*EXITS, *VERDICTS, *SAVED, *CUTS])
def test_how_it_ended_is_shown_of_an_output_inside_json(line: str) -> None:
    output = within(FILLER, line.replace("\x1b[32m", "").replace("\x1b[0m", ""))
    for content in ({"stdout": output}, [{"type": "text", "text": output}]):
        assert words(line) in words(cite(json.dumps(content)).text)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_and_the_last_lines_are_shown(kind: str) -> None:
    text = "\n".join(["Began in hall 5.", *KINDS[kind], "", "Ended in hall 9.", "</output>", ""])
    shown = cite(text, question="Which bay has crate 211?").text
    assert "Began in hall 5." in shown
    assert "Ended in hall 9." in shown


@pytest.mark.parametrize("line", CUTS)
def test_what_a_tool_had_cut_is_never_called_whole(line: str) -> None:
    shown = cite(within(FILLER, line)).text
    assert "; truncated by the tool; excerpts]" in shown


@pytest.mark.parametrize(
    "line",
    [
        "The list was never truncated, for it is short.",
        "def truncate(text): return text[:5]",
        "'truncated': false,",
        "TRUNCATE TABLE crates;",
        "if name is omitted, all crates are moved",
        "",
    ],
)
def test_what_only_speaks_of_cutting_is_not_called_truncated(line: str) -> None:
    assert "truncated by the tool" not in cite(within(FILLER, line)).text.partition("\n")[0]


def test_answers_of_apis_say_that_they_are_cut() -> None:
    rows = [{"path": f"crates/{n}.txt", "sha": f"{n:040x}"} for n in range(200)]
    assert not glance(Source(json.dumps({"tree": rows, "truncated": False}).encode())).is_cut
    shown = cite(json.dumps({"tree": rows, "truncated": True})).text
    assert "truncated by the tool" in shown


def test_exit_codes_beside_an_output_in_json_are_shown() -> None:
    content = {"stdout": "\n".join(FILLER), "stderr": "", "exit_code": 137, "success": False}
    shown = cite(json.dumps(content)).text
    assert "exit_code: 137" in shown
    assert "success: false" in shown


def test_of_many_verdicts_the_last_and_a_bad_one_are_shown() -> None:
    lines = [f"ok  \tbay/{n}\t0.1s" for n in range(500)]
    lines[250] = "FAIL\tbay/250\t0.2s"
    shown = cite("\n".join(lines)).text
    assert "bay/499" in shown
    assert "FAIL bay/250 0.2s" in words(shown)


@pytest.mark.parametrize("piece", [b"ok\n", b"exit code 1 ", b"(", b"<"])
def test_a_hostile_content_takes_linear_time(piece: bytes) -> None:
    def work(times: int) -> Callable[[], object]:
        content = piece * times
        return lambda: glance(Source(content))

    assert is_linear(work, 10_000)
