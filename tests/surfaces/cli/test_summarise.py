"""`holdfast research summarise`: its output, stored contents and calls to models."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from holdfast.cite import count
from tests.surfaces.harness import Cli

REPORT = "\n\n".join(
    f"Station {n} measured {n * 13} millimetres of rain. The gauge was read at noon. Nothing else "
    "was noted that day."
    for n in range(20, 60)
)


def test_a_summary_has_its_level_and_the_ref_of_its_original(cli: Cli) -> None:
    said = cli("research", "summarise", cli.write("rain.txt", REPORT), "--level", "key_points")
    [summary] = said.json
    assert (summary["level"], summary["provider"], summary["cost"]) == (
        "key_points",
        "extractive",
        0,
    )
    assert summary["to_tokens"] == count(summary["text"]) <= count(REPORT) // 4 + 1
    assert cli("expand", summary["ref"], "--raw").out == REPORT


def test_a_table_shows_the_text_and_tells_what_was_saved(cli: Cli) -> None:
    said = cli(
        "research",
        "summarise",
        cli.write("rain.txt", REPORT),
        "--level",
        "headline",
        "--output",
        "table",
    )
    assert "Station 20" in said.out
    assert "tokens, headline, by extractive, ref:" in said.err


def test_the_question_decides_and_the_budget_holds(cli: Cli) -> None:
    file = cli.write("rain.txt", REPORT)
    [summary] = cli(
        "research",
        "summarise",
        file,
        "--question",
        "What did station 47 measure?",
        "--budget",
        "40",
    ).json
    assert "611 millimetres" in summary["text"]
    assert summary["to_tokens"] <= 40
    assert (summary["level"], summary["requested_level"]) == ("headline", "condensed")


def test_several_files_share_a_budget(cli: Cli) -> None:
    names = [cli.write("a.txt", REPORT), cli.write("b.txt", REPORT[::2]), cli.write("c.txt", "Hi.")]
    summaries = cli("research", "summarise", *names, "--budget", "300").json
    assert [summary["file"] for summary in summaries] == names
    assert sum(count(summary["text"]) for summary in summaries) <= 300
    assert summaries[2]["text"] == "Hi."


@pytest.mark.skipif(sys.platform == "win32", reason="runs a script")
def test_a_program_is_asked_and_what_it_invents_is_dropped(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Path(cli.write("tiny", "#!/bin/sh\ncat > /dev/null\necho 'Station 20 measured 260 "))
    script.write_text(script.read_text() + "millimetres of rain. Station 21 measured 999.'\n")
    script.chmod(0o755)
    monkeypatch.setenv("HOLDFAST_SUMMARIZATION_COMMANDS", json.dumps({"tiny": [str(script)]}))
    said = cli(
        "research",
        "summarise",
        "-",
        "--provider",
        "[cli]tiny:one",
        "--output",
        "json",
        stdin=REPORT.encode(),
    )
    [summary] = said.json
    assert summary["text"] == "Station 20 measured 260 millimetres of rain."
    assert (summary["provider"], summary["unsupported_sentences"]) == ("[cli]tiny:one", 1)


@pytest.mark.skipif(sys.platform == "win32", reason="runs a script")
def test_what_was_paid_for_is_kept_in_the_store(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Path(
        cli.write("tiny", "#!/bin/sh\ncat > /dev/null\necho 'Station 20 measured rain.'\n")
    )
    script.chmod(0o755)
    monkeypatch.setenv("HOLDFAST_SUMMARIZATION_COMMANDS", json.dumps({"tiny": [str(script)]}))
    call = ("research", "summarise", cli.write("rain.txt", REPORT), "--provider", "[cli]tiny:one")
    assert [cli(*call).json[0]["cached"] for _ in range(2)] == [False, True]
    assert cli(*call, "--question", "Who?").json[0]["cached"] is False
    monkeypatch.setenv("HOLDFAST_SUMMARIZATION_CACHE_ENABLED", "false")
    assert cli(*call).json[0]["cached"] is False


def test_the_archive_keeps_the_original_too_where_it_is_on(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_CONTENT_ARCHIVE_ENABLED", "true")
    monkeypatch.setenv("HOLDFAST_RESEARCH_ARCHIVE_DIR", str(cli.folder / "kept"))
    cli("research", "summarise", cli.write("rain.txt", REPORT))
    assert list((cli.folder / "kept").glob("*.db"))


def test_a_provider_that_cannot_be_asked_is_told_beside_the_quotations(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_FORBID_MODEL_CALLS", "true")
    summarise = ("research", "summarise", "-", "--provider", "[cli]claude:haiku")
    said = cli(*summarise, stdin=REPORT.encode())
    assert said.json[0]["provider"] == "extractive"
    assert "forbid" not in said.out or "may not be asked" in said.err
    monkeypatch.setenv("HOLDFAST_SUMMARIZATION_EXTRACTIVE", "false")
    refused = cli(*summarise, stdin=REPORT.encode())
    assert (refused.code, refused.out) == (2, "")
    assert "All providers exhausted" in refused.err
    assert "millimetres" not in refused.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nowhere.txt",), "Check its name"),
        (("rain.txt", "--level", "tiny"), "headline"),
        (("rain.txt", "--budget", "0"), "1"),
        (("rain.txt", "--provider", "[cli]nobody:x"), "summarization_commands"),
    ],
)
def test_errors_say_the_next_step(cli: Cli, arguments: tuple[str, ...], told: str) -> None:
    cli.write("rain.txt", REPORT)
    said = cli("research", "summarise", *arguments)
    assert (said.code, said.out) == (2, "")
    assert told in said.err
