from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.tokens.prices import FILE_NAME
from tests.surfaces.harness import Cli

PRICES = [
    {
        "id": "openai",
        "models": [
            {
                "id": "newest",
                "match": {"equals": "newest"},
                "context_window": 77_000,
                "prices": {"input_mtok": 0.25, "cache_read_mtok": 0.025, "output_mtok": 2},
            }
        ],
    }
]


def test_models_are_json_in_a_pipe(cli: Cli) -> None:
    (row,) = cli("config", "models", "claude:sonnet").json
    assert row == {
        "id": "claude:sonnet",
        "context_window": 200_000,
        "max_output_tokens": 64_000,
        "vocabulary": row["vocabulary"],
        "accuracy": "calibrated",
        "price_per_million": {
            "input": 3.0,
            "cache_read": 0.3,
            "cache_write": 3.75,
            "output": 15.0,
            "currency": "USD",
            "listed_by": "anthropic",
        },
        "window_from": "built-in",
    }


def test_a_narrow_terminal_shows_names_whole(cli: Cli) -> None:
    cli.monkeypatch.setenv("COLUMNS", "80")
    head, _, row = cli(
        "config", "models", "openai:gpt-4o-mini", "--output", "table"
    ).out.splitlines()[:3]
    assert head.split() == ["model", "window", "output", "accuracy", "in", "cached", "out"]
    assert row.startswith("openai:gpt-4o-mini ")


def test_models_are_a_table_on_request(cli: Cli) -> None:
    head, _, row = cli(
        "config", "models", "openai:gpt-4o-mini", "--output", "table"
    ).out.splitlines()[:3]
    assert head.split() == (
        "model window output vocabulary accuracy in cached out window from".split()
    )
    assert row.split() == (
        "openai:gpt-4o-mini 128K 16K o200k_base exact 0.15 0.075 0.6 built-in".split()
    )


def test_filter_is_a_part_of_the_id_in_any_case(cli: Cli) -> None:
    ids = [row["id"] for row in cli("config", "models", "CLAUDE-Sonnet").json]
    assert "anthropic:claude-sonnet-4-5" in ids
    assert all("claude-sonnet" in id_.lower() for id_ in ids)


def test_each_model_is_listed_once(cli: Cli) -> None:
    ids = [row["id"].lower() for row in cli("config", "models").json]
    assert len(ids) == len(set(ids)) > 2000


def test_id_in_another_spelling_is_found_if_nothing_matches(cli: Cli) -> None:
    (row,) = cli("config", "models", "us.anthropic.claude-sonnet-4-5-20250929-v1:0").json
    assert row["id"] == "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    assert row["context_window"] == 200_000


def test_unknown_model_is_said_to_be_unknown(cli: Cli) -> None:
    result = cli("config", "models", "no-such-model")
    assert (result.code, result.out) == (1, "")
    assert "No model matches 'no-such-model'." in result.err


@pytest.mark.parametrize("text", ["x" * 10_000, "\x1b[31m"])
def test_filter_that_can_be_no_id_is_refused(cli: Cli, text: str) -> None:
    result = cli("config", "models", text)
    assert result.code == 2
    assert "\x1b" not in result.err


def test_overrides_of_the_settings_are_shown_with_their_origin(cli: Cli) -> None:
    cli.write(
        "holdfast.toml",
        '[model_context_overrides]\n"my-gateway:mine" = { context_window = 5000 }\n',
    )
    (row,) = cli("config", "models", "my-gateway").json
    assert row["context_window"] == 5000
    assert row["window_from"] == "config my-gateway:mine"
    assert row["max_output_tokens"] is None
    assert row["price_per_million"] is None


def test_newer_prices_are_kept_in_the_data_folder_and_used(cli: Cli) -> None:
    source = cli.write("data.json", json.dumps(PRICES))
    result = cli("config", "models", "--update", source)
    kept = cli.folder / ".local" / "share" / "holdfast" / FILE_NAME
    assert result.code == 0
    assert f"Stored the prices of 1 model in {kept}." in result.err
    assert json.loads(kept.read_bytes()) == PRICES
    (row,) = cli("config", "models", "openai:newest").json
    assert row["context_window"] == 77_000
    assert row["window_from"] == "prices"
    assert row["price_per_million"]["cache_read"] == 0.025


def test_data_folder_can_be_set(cli: Cli) -> None:
    cli.write("holdfast.toml", 'data_dir = "kept"\n')
    assert cli("config", "models", "--update", cli.write("data.json", json.dumps(PRICES))).code == 0
    assert (cli.folder / "kept" / FILE_NAME).exists()
    assert cli("config", "models", "openai:newest").code == 0


def test_bad_file_of_prices_is_refused_and_keeps_nothing(cli: Cli) -> None:
    result = cli("config", "models", "--update", cli.write("data.json", "{"))
    assert result.code == 2
    assert "not a file of prices" in result.err
    assert not (cli.folder / ".local").exists()


def test_kept_prices_that_broke_are_reported_and_passed_over(cli: Cli) -> None:
    cli("config", "models", "--update", cli.write("data.json", json.dumps(PRICES)))
    (cli.folder / ".local" / "share" / "holdfast" / FILE_NAME).write_text("{")
    result = cli("config", "models", "claude:sonnet")
    assert result.code == 0
    assert result.json[0]["price_per_million"]["input"] == 3.0
    assert "not a file of prices" in result.err
    assert "come with Holdfast" in result.err


def test_without_a_home_prices_cannot_be_kept_but_are_shown(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    assert cli("config", "models", "claude:sonnet").code == 0
    result = cli("config", "models", "--update", cli.write("data.json", json.dumps(PRICES)))
    assert result.code == 2
    assert "data_dir" in result.err


def test_listing_models_loads_no_vocabulary_and_no_http_client(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from holdfast.surfaces.cli import _run\n"
        "_run(['models', 'claude'])\n"
        "slow = {'genai_prices', 'httpx', 'aiohttp', 'requests'}\n"
        "assert not slow & set(sys.modules), slow & set(sys.modules)\n"
        "from holdfast.tokens.vocabulary import _tokenizer\n"
        "assert _tokenizer.cache_info().currsize == 0\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
