"""The help of every command, and the error for a wrong name."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from holdfast.surfaces.cli._groups import COMMANDS, MOVED, application
from tests.surfaces.harness import Cli, environment


def walk(group: TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield the path of every command, and whether it is a group."""
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        is_group = isinstance(command, TyperGroup)
        yield (*path, name), is_group
        if isinstance(command, TyperGroup):
            yield from walk(command, (*path, name))


def everything() -> list[tuple[tuple[str, ...], bool]]:
    root = typer.main.get_command(application())
    assert isinstance(root, TyperGroup)
    return list(walk(root))


ALL = everything()
PATHS = list(dict.fromkeys(path for path, _ in ALL))
GROUPS = [path for path, is_group in ALL if is_group]


def test_the_help_lists_each_of_at_most_eighteen_commands_once(cli: Cli) -> None:
    lines = cli("--help").out.splitlines()
    listed = [line.split()[0] for line in lines if re.match(r"  [a-z]+ {2,}[A-Z]", line)]
    assert listed == list(COMMANDS)
    assert 8 <= len(listed) <= 18
    sections = [line[:-1] for line in lines if re.fullmatch(r"[A-Z][a-z ]+:", line)]
    assert sections == [
        *("Options", "Start here", "Look at a request", "Content", "Memory", "Run", "Maintain"),
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_sentence_of_the_help_fits_one_line_of_a_narrow_terminal(name: str) -> None:
    about = COMMANDS[name].about
    assert re.fullmatch(r"[A-Z][^.]*\.", about)
    assert len(about) + len("  research  ") <= 80


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_command_teaches_with_an_example_of_its_own(cli: Cli, path: tuple[str, ...]) -> None:
    result = cli(*path, "--help")
    assert result.code == 0
    assert f"holdfast {' '.join(path)}" in result.out.split("\n", 1)[1]


@pytest.mark.parametrize("name", MOVED)
def test_an_older_name_is_answered_with_a_command_that_exists(cli: Cli, name: str) -> None:
    result = cli(*name.split(), "anything")
    assert result.code == 2
    assert result.err.splitlines()[0] == f"holdfast: there is no such command (holdfast {name})"
    assert f"Use `holdfast {MOVED[name]}`." in result.err
    words = [word for word in MOVED[name].split() if not word.startswith("-")]
    assert tuple(words) in PATHS
    assert tuple(name.split()) not in PATHS


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (["servee"], "holdfast serve"),
        (["validat"], "holdfast request validate"),
        (["sumarise", "x.md"], "holdfast research summarise"),
        (["store", "verfy"], "holdfast store verify"),
        (["backup", "copy.db"], "holdfast store backup"),
        (["export"], "holdfast store export"),
        (["memory", "facts", "serch"], "holdfast memory facts search"),
        (["mcp", "accept", "github"], "holdfast tools accept --server"),
        (["memory", "facts", "top"], "holdfast memory facts search"),
    ],
)
def test_a_mistyped_command_is_answered_with_the_right_one(
    cli: Cli, wrong: list[str], right: str
) -> None:
    result = cli(*wrong)
    assert result.code == 2
    assert f"Use `{right}`." in result.err


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (["stats", "--live"], "holdfast stats --watch"),
        (["memory", "recall", "--forget", "t1"], "holdfast memory forget"),
        (["memory", "facts", "list", "--search", "x"], "holdfast memory facts search"),
    ],
)
def test_an_option_that_is_a_command_or_another_is_answered_with_it(
    cli: Cli, wrong: list[str], right: str
) -> None:
    result = cli(*wrong)
    assert result.code == 2
    assert f"No such option: {next(word for word in wrong if word[0] == '-')}" in result.err
    assert f"Use `{right}`." in result.err


def test_a_name_like_no_other_is_answered_with_the_list(cli: Cli) -> None:
    result = cli("frobnicate")
    assert result.code == 2
    assert result.err.splitlines()[1] == "  `holdfast --help` lists the commands."


def test_help_and_version_import_no_command(tmp_path: Path) -> None:
    for argument in ("--help", "--version"):
        code = (
            "import sys; from holdfast.surfaces.cli import main\n"
            f"try: main(['{argument}'])\n"
            "except SystemExit: pass\n"
            "slow = {'holdfast.engine', 'holdfast.store', 'numpy'} & set(sys.modules)\n"
            "sys.exit(1 if slow else 0)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            env=environment(tmp_path),
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
