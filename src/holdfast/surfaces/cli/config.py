"""config: the commands that show and check settings, list models and set up completion."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from rich.console import Console
from typer._completion_shared import get_completion_script

from holdfast.errors import HoldfastError
from holdfast.settings import Settings

from ._context import OUTPUT, CommandContext, shared_options
from ._groups import CommandGroup
from ._output import complain, table
from .models import models

COMPLETE_VARIABLE = "_HOLDFAST_COMPLETE"
"""Set by a shell that asks how a command line could continue."""

app = typer.Typer(cls=CommandGroup, rich_markup_mode=None)
app.command()(models)


@app.callback(invoke_without_command=True)
@shared_options(*OUTPUT)
def _config(
    context: CommandContext,
    call: typer.Context,
    check: Annotated[
        bool, typer.Option("--check", help="Report every wrong setting; exit code 1 if any.")
    ] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Print a commented holdfast.toml with every setting.")
    ] = False,
) -> None:
    """Show every setting and where its value comes from.

    A value comes from the first of: option, environment (HOLDFAST_<KEY>), holdfast.toml, default.
    The file is searched from the working directory upwards, then in the user's configuration
    folder; HOLDFAST_CONFIG names another one.

    \b
    Show all settings:   holdfast config
    Check them:          holdfast config --check
    Write a file:        holdfast config --sample > holdfast.toml
    List models:         holdfast config models claude
    Complete commands:   holdfast config completion bash >> ~/.bashrc
    """
    if call.invoked_subcommand is not None:
        return
    if sample:
        typer.echo(Settings.sample(), nl=False)
    elif check:
        _check()
    else:
        _show(context)


@app.command()
def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish", "powershell"], typer.Argument(help="The shell to set up.")
    ],
) -> None:
    """Print the script that lets a shell complete commands and options.

    \b
    Examples:
      holdfast config completion bash >> ~/.bashrc
      holdfast config completion zsh >> ~/.zshrc
      holdfast config completion fish > ~/.config/fish/completions/holdfast.fish
    """
    typer.echo(
        get_completion_script(prog_name="holdfast", complete_var=COMPLETE_VARIABLE, shell=shell)
    )


def _check() -> None:
    problems: list[HoldfastError] = list(Settings.check())
    if not problems:
        from holdfast.surfaces.proxy import preflight  # noqa: PLC0415 - other commands start faster

        problems = preflight.problems(Settings.load())
    for problem in problems:
        complain(problem)
    if problems:
        raise typer.Exit(1)
    typer.echo("The settings are valid.")


def _show(context: CommandContext) -> None:
    traced = Settings.trace(**context.values)
    rows = [(key.name, key.shown(value), origin) for key, value, origin in traced]

    def draw(console: Console) -> None:
        console.print(table("setting", "value", "from", rows=rows))

    context.emit({name: {"value": value, "origin": origin} for name, value, origin in rows}, draw)
