"""`holdfast expand`: the part that is asked for, exactly."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest

from holdfast.cite import count
from tests.surfaces.cli.test_cite import LOG
from tests.surfaces.harness import Cli, run_process

ROWS = [{"id": n, "owner": {"name": f"user {n}"}, "total": n * 1.5} for n in range(400)]
FILE = ".local/share/holdfast/holdfast.db"


@pytest.fixture
def log(cli: Cli) -> str:
    ref: str = cli("cite", cli.write("build.log", LOG)).json["ref"]
    return ref


@pytest.fixture
def rows(cli: Cli) -> str:
    ref: str = cli("cite", cli.write("rows.json", json.dumps(ROWS))).json["ref"]
    return ref


def test_help_teaches_with_examples(cli: Cli) -> None:
    said = cli("expand", "--help").out
    for option in ("--lines", "--path", "--fields", "--pattern", "--query", "--around", "--raw"):
        assert option in said
    assert "holdfast expand ref:log:" in said


@pytest.mark.parametrize(
    ("lines", "first", "last"),
    [("40-80", 40, 80), ("432", 432, 432), ("895-", 895, 900), ("-3", 898, 900)],
)
def test_lines_are_given_exactly(cli: Cli, log: str, lines: str, first: int, last: int) -> None:
    made = cli("expand", log, "--lines", lines, "--max-tokens", "4000").json
    assert made["content"].splitlines() == LOG.splitlines()[first - 1 : last]
    assert (made["complete"], made["next"], made["reason"]) == (True, None, "")


def test_a_terminal_shows_the_text_line_by_line(cli: Cli, log: str) -> None:
    said = cli("expand", log, "--lines", "431-432", "--output", "table").out.splitlines()
    assert said[0].startswith(f"[{log} lines 431-432")
    assert "step 430" in said[2]
    assert said[3] == LOG.splitlines()[431]
    assert said[1] == said[4] == "```"


def test_pages_go_on_where_the_last_ended(cli: Cli, log: str) -> None:
    first = cli("expand", log).json
    assert first["tokens"] == count(first["text"]) <= 1000
    assert (first["complete"], first["next"]) == (False, {"page": 2})
    parts: list[str] = []
    options: dict[str, int] | None = {"page": 1}
    while options is not None:
        made = cli("expand", log, "--page", str(options["page"]), "--max-tokens", "8000").json
        parts.append(made["content"])
        options = made["next"]
    assert len(parts) > 1
    assert "".join(parts) == LOG


def test_json_is_opened_by_structure(cli: Cli, rows: str) -> None:
    at = cli("expand", rows, "--path", "$[7].owner.name").json
    assert "user 7" in at["content"]
    some = cli("expand", rows, "--fields", "id,owner.name", "--offset", "100", "--limit", "3").json
    assert all(f"user {n}" in some["content"] for n in (100, 101, 102))
    assert "user 103" not in some["content"]
    assert "150.0" not in some["content"]


def test_patterns_questions_and_places_find_the_part(cli: Cli, log: str) -> None:
    for option, value in (
        ("--pattern", "sda[0-9]"),
        ("--query", "which disk is full?"),
        ("--around", "432"),
    ):
        made = cli("expand", log, option, value).json
        assert "ERROR disk sda1 is full" in made["content"], option
        assert made["tokens"] <= 1000


def test_raw_writes_the_exact_bytes(cli: Cli) -> None:
    data = bytes(range(256)) * 40 + b"\r\n"
    ref = cli("cite", "-", stdin=data).json["ref"]
    assert run_process("expand", ref, "--raw", folder=cli.folder).stdout == data


def test_other_forms_of_a_ref_are_understood(cli: Cli, log: str) -> None:
    digits = log.rpartition(":")[2]
    assert cli("expand", f"content_{digits}", "--lines", "1").json["content"] in LOG


def test_a_part_that_is_not_there_is_told_with_exit_code_1(cli: Cli, log: str) -> None:
    said = cli("expand", log, "--lines", "5000", "--output", "table")
    assert (said.code, said.err) == (1, "")
    assert "there are only 900 lines" in said.out
    assert f'Call expand_ref("{log}", "lines 860-900").' in said.out
    as_json = cli("expand", log, "--pattern", "no such thing")
    assert as_json.code == 1
    assert as_json.json["reason"]


@pytest.mark.parametrize("raw", [(), ("--raw",)], ids=["part", "raw"])
@pytest.mark.parametrize(
    ("ref", "why"),
    [("ref:log:0123456789abcdef", "no content is stored"), ("nonsense", "this is not a ref")],
)
def test_a_ref_that_is_not_there_is_an_error_with_the_next_step(
    cli: Cli, ref: str, why: str, raw: tuple[str, ...]
) -> None:
    said = cli("expand", ref, *raw)
    assert (said.code, said.out) == (2, "")
    assert why in said.err
    assert "holdfast store refs" in said.err


def test_another_user_finds_nothing(cli: Cli, log: str) -> None:
    for other in (("--user", "bob"), ("--workspace", "team")):
        for raw in ((), ("--raw",)):
            said = cli("expand", log, *other, *raw)
            assert (said.code, said.out) == (2, "")


@pytest.mark.parametrize("raw", [(), ("--raw",)], ids=["part", "raw"])
def test_damaged_content_is_not_served(cli: Cli, log: str, raw: tuple[str, ...]) -> None:
    damage(cli.folder)
    said = cli("expand", log, *raw)
    assert (said.code, said.out) == (2, "")
    assert "again" in said.err


def test_removed_content_says_so(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_CONTENT_TTL_HOURS", "0.0000001")
    ref = cli("cite", cli.write("build.log", LOG)).json["ref"]
    assert cli("store", "gc", "--grace", "0").json["refs"] == 1
    for raw in ((), ("--raw",)):
        said = cli("expand", ref, *raw)
        assert (said.code, said.out) == (2, "")
        assert "removed" in said.err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--lines", "x"), 'Write "40-120"'),
        (("--lines", "1-2", "--query", "a"), "contradict"),
        (("--max-tokens", "5"), "100 to 8000"),
        (("--raw", "--max-tokens", "500"), "--max-tokens cannot be combined"),
        (("--page", "0"), "--page"),
        (("--store", "mysql://me:pa55@host"), "Use memory:"),
    ],
)
def test_errors_say_the_next_step(cli: Cli, log: str, options: tuple[str, ...], told: str) -> None:
    said = cli("expand", log, *options)
    assert (said.code, said.out) == (2, "")
    assert told in said.err
    assert "pa55" not in said.err


def damage(folder: Path) -> None:
    database = apsw.Connection(str(folder / FILE))
    database.execute("UPDATE contents SET data = x'00'")
    database.close()
