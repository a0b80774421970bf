"""config: show the settings in force, check them, or print a sample file."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from holdfast.errors import HoldfastError
from holdfast.settings import Settings

from ._output import ColorOption, Output, OutputOption, complain, table


def config(
    check: Annotated[
        bool, typer.Option("--check", help="Report everything that is wrong; exit code 1 if any.")
    ] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Print a commented holdfast.toml with every setting.")
    ] = False,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Show every setting, and where its value came from.

    A value comes from the first of: option, environment (HOLDFAST_<KEY>), holdfast.toml, default.
    The file is searched from the working directory upwards, then in the user's configuration
    folder; HOLDFAST_CONFIG names another one.

    \b
    Examples:
      holdfast config
      holdfast config --check
      holdfast config --sample > holdfast.toml
      HOLDFAST_COLOR=never holdfast config
    """
    if sample:
        typer.echo(Settings.sample(), nl=False)
    elif check:
        _check()
    else:
        _show(Output(Settings.load(output=output, color=color)), output, color)


def _check() -> None:
    problems: list[HoldfastError] = list(Settings.check())
    if not problems:
        from holdfast.surfaces.proxy import preflight  # noqa: PLC0415 - other commands start faster

        problems = preflight.problems(Settings.load())
    for problem in problems:
        complain(problem)
    if problems:
        raise typer.Exit(1)
    typer.echo("The settings are fine.")


def _show(out: Output, output: str | None, color: str | None) -> None:
    rows = [
        (key.name, key.shown(value), origin)
        for key, value, origin in Settings.trace(output=output, color=color)
    ]

    def draw(console: Console) -> None:
        console.print(table("setting", "value", "from", rows=rows))

    out.emit(
        {name: {"value": value, "origin": origin} for name, value, origin in rows},
        draw,
    )
