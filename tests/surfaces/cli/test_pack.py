from __future__ import annotations

import json
import os
import re

import pytest

from holdfast.allocate.manager import token_counter
from holdfast.settings import Settings
from holdfast.tokens import ModelContextRegistry
from tests.allocate.made import read_prompt
from tests.surfaces.harness import ROOT, Cli

FLOOD = "The Elbe rose to 8.76 metres in Dresden in August 2013.\n\n" + "\n\n".join(
    f"Paragraph {n} tells of bridges, of boats and of the weather in year {1900 + n}, at length."
    for n in range(60)
)
BREAD = "\n\n".join(
    f"Step {n}: knead the dough for {n} minutes, then let it rest in a warm place."
    for n in range(60)
)


@pytest.fixture
def sources(cli: Cli) -> list[str]:
    return [
        cli.write("flood.md", FLOOD),
        cli.write("bread.md", BREAD),
        cli.write("n.txt", "Short."),
    ]


def test_sources_are_packed_into_a_prompt_that_fits(cli: Cli, sources: list[str]) -> None:
    result = cli(
        "research", "pack", *sources, "--question", "How high was the Elbe?", "--budget", "700"
    )
    assert result.code == 0
    assert token_counter("")(result.out) <= 700
    shown = read_prompt(result.out)
    assert "8.76 metres" in shown[sources[0]].text
    assert shown[sources[2]].text == "Short."
    assert "tokens of 700" in result.err
    assert "extractive" in result.err


def test_what_is_not_shown_whole_can_be_opened(cli: Cli, sources: list[str]) -> None:
    url = f"sqlite:///{cli.folder}/s.db"
    shown = read_prompt(cli("research", "pack", *sources, "--budget", "700", "--store", url).out)
    opened = cli("expand", shown[sources[1]].ref, "--lines", "1-1", "--store", url)
    assert "knead the dough for 0 minutes" in opened.out


def test_the_record_goes_with_the_prompt_as_json(cli: Cli, sources: list[str]) -> None:
    packed = cli("research", "pack", *sources, "--budget", "700", "--json").json
    levels = {name: shown.level for name, shown in read_prompt(packed["text"]).items()}
    records = packed["fidelity"].values()
    assert levels == {r["source_id"]: r["level"] for r in records if not r["dropped"]}
    assert packed["tokens"] == token_counter("")(packed["text"]) <= 700
    assert (packed["phase"], packed["strategy"]) == ("analysis", "best_total")


def test_items_can_come_with_their_priorities_in_lines_of_json(cli: Cli) -> None:
    lines = [
        {"source_id": "good", "content": BREAD, "quality": "high", "confidence": "confirmed"},
        {"source_id": "bad", "content": FLOOD, "quality": "low", "confidence": "speculation"},
        {"content": FLOOD[:500], "priority": 0.25},
    ]
    path = cli.write("items.jsonl", "\n".join(map(json.dumps, lines)) + "\n\n")
    packed = cli(
        "research", "pack", path, "--budget", "1200", "--json", "--strategy", "priority_first"
    ).json
    priorities = {r["source_id"]: r["priority"] for r in packed["fidelity"].values()}
    assert priorities["good"] > priorities["bad"]
    assert priorities[f"{path}:3"] == 0.25
    wrong = cli("research", "pack", cli.write("wrong.jsonl", '{"text": "secret"}'), "--budget", "9")
    assert wrong.code == 2
    assert "wrong.jsonl:1" in wrong.err
    assert "secret" not in wrong.err


def test_a_line_of_json_may_hold_every_character_that_json_allows(cli: Cli) -> None:
    content = "one\u2028two\x85three\u2029four"
    line = json.dumps({"source_id": "a", "content": content}, ensure_ascii=False)
    packed = cli(
        "research", "pack", cli.write("items.jsonl", f"{line}\r\n"), "--budget", "99", "--json"
    ).json
    assert content in packed["text"]


def test_what_cannot_be_packed_is_told_by_its_name(cli: Cli, sources: list[str]) -> None:
    nothing = cli("research", "pack", cli.write("none.jsonl", "\n\n"), "--budget", "99")
    assert (nothing.code, "there is nothing to pack" in nothing.err) == (2, True)
    twice = cli("research", "pack", sources[0], sources[0], "--budget", "99")
    assert f"two items have the same id ({sources[0]})" in twice.err
    bad = cli(
        "research",
        "pack",
        cli.write("bad.jsonl", '{"content": "x", "priority": 7}'),
        "--budget",
        "99",
    )
    assert "between 0 and 1" in bad.err
    assert "bad.jsonl:1" in bad.err
    assert "Give a number" in bad.err


def test_a_file_that_is_not_utf_8_is_told(cli: Cli) -> None:
    path = cli.write("latin1.txt", b"caf\xe9 au lait. " * 40)
    for command in (["research", "pack", path, "--budget", "99"], ["research", "summarise", path]):
        told = cli(*command)
        assert told.code == 0
        assert "latin1.txt: is not UTF-8" in told.err


def test_newer_files_have_the_higher_priority(cli: Cli, sources: list[str]) -> None:
    os.utime(sources[0], (0, 0))
    packed = cli("research", "pack", *sources, "--budget", "700", "--json").json
    first, second, _ = (record["priority"] for record in packed["fidelity"].values())
    assert first < second


def test_a_model_and_a_phase_give_the_budget(cli: Cli, sources: list[str]) -> None:
    for phase, share in (("analysis", 0.80), ("synthesis", 0.85)):
        packed = cli(
            "research", "pack", sources[2], "--model", "openai:gpt-4.1", "--phase", phase, "--json"
        )
        input_limit = 1_000_000 - 16_384  # the answer's room is not the prompt's
        assert packed.json["budget"] == pytest.approx(0.9 * share * input_limit, abs=2)
    assert "Give --budget" in cli("research", "pack", sources[2]).err


def test_what_cannot_fit_is_an_error_with_what_to_do(cli: Cli, sources: list[str]) -> None:
    result = cli("research", "pack", *sources, "--budget", "20")
    assert (result.code, result.out) == (2, "")
    assert re.search(r"3 items must stay and need at least \d+ tokens", result.err)
    assert "min_items_per_phase" in result.err
    assert (
        "Use one of best_total"
        in cli("research", "pack", *sources, "--strategy", "x", "--budget", "9").err
    )


def test_the_documented_sample_is_valid_with_every_line_uncommented(cli: Cli) -> None:
    """000-96: the providers, the fallbacks, the archive's folder and the override as documented."""
    sample = (ROOT / "docs" / "examples" / "summaries.toml").read_text("utf-8")
    assert 'summarization_provider = "[cli]gemini:flash"' in sample
    assert '["[cli]gemini:flash", "[cli]claude:haiku", "[cli]gemini:pro"]' in sample
    for text in (sample, sample.replace("# model_context_overrides", "model_context_overrides")):
        cli.write("holdfast.toml", text)
        checked = cli("config", "--check")
        assert checked.code == 0, checked.err
    loaded = Settings.load(cwd=cli.folder, environ={})
    assert loaded.research_archive_dir == "./specs/.research_archive"
    limits = ModelContextRegistry(loaded).resolve("gemini:flash")
    assert (limits.context_window, limits.output_reserved) == (1_000_000, 8192)


def test_all_sources_can_be_taken_down_together(cli: Cli, sources: list[str]) -> None:
    asked = ("research", "pack", *sources, "--budget", "700", "--strategy", "degradation")
    packed = cli(*asked, "--json").json
    assert packed["steps"][0] == "key_points"
    levels = {record["level"] for record in packed["fidelity"].values()}
    assert packed["steps"][-1] in levels
    assert "all sources were shortened together: key_points" in cli(*asked).err
