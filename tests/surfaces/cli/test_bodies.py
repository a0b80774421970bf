"""validate, show, convert and tour, on the tour's own conversation."""

from __future__ import annotations

import io
import json
import re
from functools import partial
from typing import Any

import pytest
from rich.console import Console

from holdfast import read, validate
from holdfast.settings import Settings
from holdfast.surfaces.cli._input import limits_of
from holdfast.surfaces.cli.show import MessageRow, message_table
from holdfast.surfaces.cli.tour import FAILED, NARROW, night_log
from holdfast.wire import Limits
from tests.surfaces.harness import TOUR, Cli

SECRET_WORD = "xylophone"


@pytest.fixture
def good(cli: Cli) -> str:
    return cli.write("good.json", TOUR.read_bytes())


@pytest.fixture
def bad(cli: Cli) -> str:
    """The conversation without the message that answers its first call."""
    body = json.loads(TOUR.read_bytes())
    del body["messages"][2]
    return cli.write("bad.json", body)


# validate


def test_valid_body_passes_in_one_word(cli: Cli, good: str) -> None:
    result = cli("request", "validate", good, "--output", "table", "--dialect", "anthropic")
    assert (result.code, result.out, result.err) == (0, "valid\n", "")


def test_a_detected_dialect_is_named(cli: Cli, good: str) -> None:
    result = cli("request", "validate", good, "--output", "table")
    assert (result.code, result.out) == (0, "valid (anthropic)\n")


def test_violations_are_listed_with_their_source_and_exit_code_1(cli: Cli, bad: str) -> None:
    result = cli("request", "validate", bad)
    assert result.code == 1
    report = result.json
    assert report["valid"] is False
    first = report["violations"][0]
    assert first["rule"] == "A1"
    assert first["path"].startswith("$.messages[1]")
    assert first["source"]


def test_violations_in_a_table_name_rule_path_and_source(cli: Cli, bad: str) -> None:
    result = cli("request", "validate", bad, "--output", "table")
    assert result.code == 1
    for text in ("A1", "$.messages[1]", "what is wrong", "source"):
        assert text in result.out


def test_standard_input_is_read_when_the_file_is_a_dash(cli: Cli) -> None:
    report = cli("request", "validate", "-", stdin=TOUR.read_bytes()).json
    assert report == {"valid": True, "dialect": "anthropic", "violations": []}


def test_repair_writes_a_valid_body_to_stdout_and_its_deeds_to_stderr(cli: Cli, bad: str) -> None:
    result = cli("request", "validate", bad, "--repair")
    assert result.code == 0
    assert validate(result.out) == []
    assert "repaired A1 at $.messages[1]" in result.err


def test_repair_can_write_to_a_file(cli: Cli, bad: str) -> None:
    result = cli("request", "validate", bad, "--repair", "--write", "repaired.json")
    assert result.out == ""
    assert validate((cli.folder / "repaired.json").read_bytes()) == []


def test_repair_of_a_valid_body_gives_the_very_same_bytes(cli: Cli, good: str) -> None:
    result = cli("request", "validate", good, "--repair")
    assert (result.code, result.out.encode(), result.err) == (0, TOUR.read_bytes(), "")


def test_repair_names_what_it_cannot_mend_and_exits_with_1(cli: Cli) -> None:
    result = cli(
        "request", "validate", cli.write("empty.json", {"model": "m", "messages": []}), "--repair"
    )
    assert result.code == 1
    assert result.err.startswith("not repaired: C4 at $.messages: ")


def test_write_without_repair_is_refused(cli: Cli, good: str) -> None:
    result = cli("request", "validate", good, "--write", "x.json")
    assert result.code == 2
    assert "--repair" in result.err


# The settings' limits


def test_default_limits_are_those_of_the_library() -> None:
    assert limits_of(Settings()) == Limits()


@pytest.mark.parametrize("command", [("validate",), ("show",), ("convert", "--to", "gemini")])
def test_max_body_bytes_limits_what_is_read(cli: Cli, good: str, command: tuple[str, ...]) -> None:
    assert cli("request", *command, good).code == 0
    cli.monkeypatch.setenv("HOLDFAST_MAX_BODY_BYTES", "1000")
    assert cli("request", *command, good).code == 2


@pytest.mark.parametrize("command", [("validate",), ("show",), ("convert", "--to", "gemini")])
def test_a_body_with_too_many_keys_is_refused(
    cli: Cli, good: str, command: tuple[str, ...]
) -> None:
    few = partial(Limits, max_keys=10)
    cli.monkeypatch.setattr("holdfast.surfaces.cli._input.Limits", few)
    assert cli("request", *command, good).code == 2


# show


def test_show_counts_blocks_and_characters_without_content_when_piped(cli: Cli, good: str) -> None:
    result = cli("request", "show", good)
    shown = result.json
    assert (shown["dialect"], shown["model"]) == ("anthropic", "claude-sonnet-4-5")
    assert shown["tools"] == ["run_tests", "read_file", "search", "edit_file"]
    assert len(shown["messages"]) == 11
    assert shown["messages"][3] | {"characters": 0} == {
        "index": 3,
        "exchange": 3,
        "kind": "tool",
        "role": "assistant",
        "blocks": "text, call read_file, call search",
        "characters": 0,
    }
    assert "nightly" not in result.out


def test_show_includes_first_words_when_asked(cli: Cli, good: str) -> None:
    assert (
        cli("request", "show", good, "--text")
        .json["messages"][0]["first_words"]
        .startswith("The nightly")
    )
    assert "The nightly" in cli("request", "show", good, "--text", "--output", "table").out
    assert "The nightly" not in cli("request", "show", good, "--output", "table").out


def test_a_call_and_its_results_share_an_exchange(cli: Cli, good: str) -> None:
    exchanges = [message["exchange"] for message in cli("request", "show", good).json["messages"]]
    assert exchanges == [1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7]


@pytest.mark.parametrize("output", ["table", "json"])
def test_terminal_codes_inside_a_request_do_not_reach_the_terminal(cli: Cli, output: str) -> None:
    codes = "\x1b]0;owned\x07\x1b[31mred\x9b\u202e[bold][/]"
    body = {"model": codes, "messages": [{"role": "user", "content": codes}]}
    file = cli.write("codes.json", body)
    result = cli("request", "show", file, "--dialect", "openai-chat", "--text", "--output", output)
    assert result.code == 0
    assert result.out.count("red") == 2
    assert not set("\x1b\x07\x9b\u202e") & set(result.out)


def test_table_of_very_many_messages_is_cut_and_says_so(cli: Cli) -> None:
    messages = [{"role": "user", "content": "hi"}] * 3000
    file = cli.write("many.json", {"model": "m", "messages": messages})
    result = cli("request", "show", file, "--dialect", "openai-chat", "--output", "table")
    assert result.out.count("\n") < 1100
    assert "… 2,000 more: --output json" in result.out
    assert len(cli("request", "show", file, "--dialect", "openai-chat").json["messages"]) == 3000


# convert


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "gemini", "converse"])
def test_convert_writes_a_valid_body_of_the_other_dialect(
    cli: Cli, good: str, dialect: str
) -> None:
    result = cli("request", "convert", good, "--to", dialect)
    assert result.code == 0
    assert validate(result.out, dialect) == []


def test_convert_says_what_could_not_be_converted(cli: Cli) -> None:
    image = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    request: dict[str, Any] = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "top_k": 3,
        "messages": [
            {"role": "user", "content": [{"type": "image", "source": image}]},
        ],
    }
    result = cli("request", "convert", cli.write("image.json", request), "--to", "openai-chat")
    assert "not converted: " in result.err


def test_convert_to_an_unknown_dialect_lists_the_known_ones(cli: Cli, good: str) -> None:
    result = cli("request", "convert", good, "--to", "openai")
    assert result.code == 2
    assert "openai-chat" in result.err


# Errors


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        f'{{"messages": "{SECRET_WORD}'.encode(),
        f'["{SECRET_WORD}"]'.encode(),
        f'{{"{SECRET_WORD}": 1}}'.encode(),
        b'{"messages": [{"role": "user", "content": "\xff"}]}',
        b"[" * 100_000,
    ],
)
@pytest.mark.parametrize("command", ["validate", "show"])
def test_bad_body_is_a_short_message_without_content(cli: Cli, command: str, body: bytes) -> None:
    result = cli("request", command, "-", stdin=body)
    assert result.code == 2
    assert 1 <= result.err.count("\n") <= 2
    assert result.err.startswith("holdfast: ")
    assert SECRET_WORD not in result.err


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_unreadable_file_is_named(cli: Cli, name: str) -> None:
    result = cli("request", "validate", name)
    assert result.code == 2
    assert result.err.startswith("holdfast: cannot read the file")
    assert name in result.err


def test_unwritable_file_is_named(cli: Cli, good: str) -> None:
    result = cli("request", "convert", good, "--to", "gemini", "--write", "no/where.json")
    assert result.code == 2
    assert "no/where.json" in result.err


def test_a_bug_is_reported_by_place_without_its_text(
    cli: Cli, good: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(SECRET_WORD)

    monkeypatch.setattr("holdfast.surfaces.cli.show.read", fail)
    result = cli("request", "show", good)
    assert result.code == 3
    assert "RuntimeError" in result.err
    assert "test_bodies.py:" in result.err
    assert SECRET_WORD not in result.err


# tour


def test_tour_cites_opens_fits_and_sums_up_what_it_saved(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(cli.folder / "data"))
    before = set(cli.folder.rglob("*"))
    result = cli("tour")
    assert (result.code, result.err) == (0, "")
    figures = re.findall(r"([\d,]+) tokens asked, ([\d,]+) sent", result.out)
    ((asked, cited), (_, folded)) = ([int(n.replace(",", "")) for n in row] for row in figures)
    assert cited < asked / 5
    assert folded <= NARROW
    assert "; excerpts]" in result.out
    assert result.out.count(f"ERROR tides row={FAILED}") == 2  # in the citation, and opened
    assert "The request breaks no rule of the provider." in result.out
    assert "bytes, identical." in result.out
    assert set(cli.folder.rglob("*")) == before  # no store was created


def test_log_of_the_tour_has_one_line_that_matters() -> None:
    lines = night_log().splitlines()
    assert [n for n, line in enumerate(lines, 1) if "ERROR" in line] == [FAILED]


def test_bundled_conversation_is_small_realistic_and_valid() -> None:
    conversation = read(TOUR.read_bytes())
    assert 8 <= len(conversation.messages) <= 12
    assert validate(TOUR.read_bytes()) == []


@pytest.mark.parametrize("width", [24, 30, 36, 60])
def test_a_message_takes_one_line_of_the_table_whatever_the_width(width: int) -> None:
    rows = [MessageRow(n, n, "user", "user", "text", 10**n, "some words") for n in range(5)]
    console = Console(width=width, file=io.StringIO())
    with console.capture() as shown:
        console.print(message_table(rows, with_text=True))
    assert len(shown.get().splitlines()) == len(rows) + 2  # the heading and its rule
