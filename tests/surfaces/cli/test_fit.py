from __future__ import annotations

import json

from holdfast import count, validate
from holdfast.trim import STRATEGIES
from tests.fitting.test_citing import chat, log
from tests.surfaces.harness import TOUR, Cli
from tests.trim.test_fit import talk


def test_a_request_is_made_to_fit_and_the_report_goes_to_stderr(cli: Cli) -> None:
    result = cli("fit", cli.write("request.json", talk(30)), "--limit", "3000")
    assert result.code == 0
    assert count(json.loads(result.out)).tokens <= 3000
    assert validate(result.out) == []
    assert "limit 3,000" in result.err
    assert "folded into a digest" in result.err


def test_what_fits_is_written_as_it_is(cli: Cli) -> None:
    body = json.dumps(talk(2))
    result = cli("fit", cli.write("request.json", body), "--limit", "100000")
    assert result.out == body
    assert "folded" not in result.err


def test_a_preview_writes_nothing(cli: Cli) -> None:
    result = cli("fit", str(TOUR), "--limit", "1400", "--preview", "--diff")
    assert result.out == ""
    assert "folded into a digest" in result.err
    assert "[Folded: messages" in result.err


def test_a_preview_says_what_each_strategy_could_save(cli: Cli) -> None:
    path = cli.write("request.json", talk(30))
    told = cli("fit", path, "--limit", "3000", "--preview").err
    savings = {
        words[0]: int(words[1].replace(",", ""))
        for words in map(str.split, told.splitlines())
        if words and words[0] in STRATEGIES
    }
    assert set(savings) == set(STRATEGIES)
    whole = count(talk(30)).tokens
    assert all(0 < tokens < whole for tokens in savings.values())
    smaller = cli("fit", path, "--limit", "3000", "--strategy", "fold").out
    assert whole - count(smaller).tokens <= savings["fold"]


def test_the_strategy_can_be_chosen(cli: Cli) -> None:
    path = cli.write("request.json", talk(30))
    assert "folded into a digest" in cli("fit", path, "--limit", "3000", "--strategy", "fold").err
    result = cli("fit", path, "--limit", "3000", "--strategy", "nonsense")
    assert result.code == 2
    assert "Use one of" in result.err
    roomy = cli("fit", path, "--strategy", "nonsense")  # where there is nothing to do, too
    assert (roomy.code, roomy.out) == (2, "")
    assert "Use one of auto, " in roomy.err


def test_what_cannot_fit_is_an_error_with_numbers(cli: Cli) -> None:
    result = cli("fit", str(TOUR), "--limit", "900")
    assert result.code == 2
    assert "900 are allowed" in result.err
    assert "raise the limit" in result.err.lower()


def test_the_result_can_be_written_to_a_file(cli: Cli) -> None:
    path = str(cli.folder / "smaller.json")
    result = cli("fit", cli.write("request.json", talk(30)), "--limit", "3000", "--write", path)
    assert result.out == ""
    assert count((cli.folder / "smaller.json").read_bytes()).tokens <= 3000


def test_the_plan_is_printed_and_no_request_is_written(cli: Cli) -> None:
    body = json.dumps(chat(log(3_000), "short"))
    path = cli.write("request.json", body)
    explained = json.loads(cli("fit", path, "--limit", "8000", "--explain").out)
    assert explained["limit"] == 8_000
    assert explained["tokens"] < 8_000 < explained["asked_tokens"]
    cited = [entry for entry in explained["plan"] if entry["action"] == "cite"]
    assert [entry["where"].partition(",")[0] for entry in cited] == ["message 2"]
    assert cited[0]["why"]
    assert cited[0]["to_tokens"] < cited[0]["from_tokens"]
    assert "offer" in {entry["action"] for entry in explained["plan"]}


def test_the_plan_names_what_stays_whole_and_why(cli: Cli) -> None:
    path = cli.write("request.json", json.dumps(chat(log(100))))
    table = cli("fit", path, "--explain", "--output", "table").out
    assert "whole" in table
    assert "result of read_log" in table
