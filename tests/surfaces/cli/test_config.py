from __future__ import annotations

import json
import re

import pytest

from holdfast.settings import Settings
from tests.surfaces.harness import Cli


def test_config_shows_every_setting_with_value_and_origin(cli: Cli) -> None:
    path = cli.write("holdfast.toml", "max_body_bytes = 7\n")
    cli.monkeypatch.setenv("HOLDFAST_COLOR", "never")
    shown = cli("config").json
    assert list(shown) == [key.name for key in Settings.defined()]
    assert shown["max_body_bytes"] == {"value": 7, "origin": f"file {path}:1"}
    assert shown["color"] == {"value": "never", "origin": "environment HOLDFAST_COLOR"}
    assert shown["output"] == {"value": "auto", "origin": "default"}


def test_config_shows_limits_of_models_as_they_were_written(cli: Cli) -> None:
    limits = {"ollama": {"context_window": 32768, "mode": "combined"}}
    cli.monkeypatch.setenv("HOLDFAST_MODEL_CONTEXT_OVERRIDES", json.dumps(limits))
    assert cli("config").json["model_context_overrides"]["value"] == limits


def test_config_shows_options_as_arguments(cli: Cli) -> None:
    assert cli("config", "--output", "json").json["output"]["origin"] == "argument"


def test_config_as_a_table_has_a_row_per_setting(cli: Cli) -> None:
    lines = cli("config", "--output", "table").out.splitlines()
    for key in Settings.defined():
        assert any(re.match(rf"{key.name} +(.* )?(default|argument)", line) for line in lines)


def test_config_with_a_broken_file_fails_with_file_line_and_key(cli: Cli) -> None:
    path = cli.write("holdfast.toml", "\nmax_body_byte = 7\n")
    result = cli("config")
    assert result.code == 2
    assert result.err == (
        f"holdfast: unknown setting 'max_body_byte' ({path}:2)\n  Did you mean 'max_body_bytes'?\n"
    )


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("[holdfast]\nserve_port = 9\n", "[holdfast]"),
        ("[tool.holdfast]\nserve_port = 9\n", "[tool.holdfast]"),
        ("[server]\nserve_port = 9\nunknown = 1\n", "[server]"),
    ],
)
@pytest.mark.parametrize("flag", [[], ["--check"]])
def test_settings_in_a_table_are_told_where_they_belong(
    cli: Cli, text: str, header: str, flag: list[str]
) -> None:
    """`holdfast config` gave the advice to run `holdfast config`."""
    path = cli.write("holdfast.toml", text)
    result = cli("config", *flag)
    assert result.err == (
        f"holdfast: the settings file has a table {header}, and settings belong to no table "
        f"({path}:1)\n  Delete the line `{header}`, and move its settings above any other table.\n"
    )


def test_a_table_without_settings_is_unknown(cli: Cli) -> None:
    path = cli.write("holdfast.toml", "color = 'never'\n[project]\nname = 'x'\n")
    assert cli("config").err == (
        f"holdfast: unknown table [project] ({path}:2)\n"
        "  `holdfast config --sample` prints a file with every setting.\n"
    )


def test_advice_for_an_unknown_setting_can_be_followed(cli: Cli) -> None:
    cli.write("holdfast.toml", "zzz = 1\n")
    assert "holdfast config --sample" in cli("config").err
    assert cli("config", "--sample").code == 0


def test_check_passes_in_one_line(cli: Cli) -> None:
    result = cli("config", "--check")
    assert (result.code, result.out, result.err) == (0, "The settings are valid.\n", "")


def test_check_lists_every_problem(cli: Cli) -> None:
    path = cli.write("holdfast.toml", 'max_body_bytes = "x"\n')
    cli.monkeypatch.setenv("HOLDFAST_COLOUR", "never")
    result = cli("config", "--check")
    assert result.code == 1
    assert f"{path}:1" in result.err
    assert "max_body_bytes must be a whole number, at least 1" in result.err
    assert "Did you mean 'HOLDFAST_COLOR'?" in result.err


@pytest.mark.parametrize("flag", ["--help", "--sample", "--check"])
def test_broken_settings_do_not_stop_what_helps_to_mend_them(cli: Cli, flag: str) -> None:
    cli.write("holdfast.toml", "= = =")
    assert cli("config", flag).code in {0, 1}


def test_sample_can_be_used_as_the_settings_file(cli: Cli) -> None:
    cli.write("holdfast.toml", cli("config", "--sample").out)
    assert cli("config", "--check").code == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[upstreams.x]\nurl = "nohttp"\nspeaks = "openai"\nmodels = ["*"]\n', "upstreams.x"),
        ('[upstreams.openai]\nurl = "nohttp"\n', "upstreams.openai"),
        ('serve_host = "0.0.0.0"\n', "serve_host 0.0.0.0"),
        ('tenant_by = "header"\n', "tenant_by header"),
        ('otel_endpoint = "collector"\n', "otel_endpoint"),
        ('store_url = "mysql://here/there"\n', "mysql://here/there"),
        ('serve_workers = 2\nstore_url = "memory:"\n', "serve_workers 2"),
    ],
)
def test_check_reports_what_serve_refuses(cli: Cli, text: str, problem: str) -> None:
    """`config --check` called an upstream fine that `serve` refused in the next line."""
    cli.write("holdfast.toml", text)
    checked = cli("config", "--check")
    refused = cli("serve", "--port", "0")
    assert (checked.code, checked.out) == (1, "")
    assert problem in checked.err
    assert (refused.code, refused.err) == (2, checked.err)


def test_check_reports_all_that_serve_would_refuse(cli: Cli) -> None:
    cli.write("holdfast.toml", 'serve_host = "0.0.0.0"\notel_endpoint = "x"\n')
    complaints = cli("config", "--check").err
    assert "serve_host" in complaints
    assert "otel_endpoint" in complaints
