"""completion: the script that lets a shell complete commands and options."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from typer._completion_shared import get_completion_script

COMPLETE_VARIABLE = "_HOLDFAST_COMPLETE"
"""Set by a shell that wants to know how a line could go on."""


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish", "powershell"], typer.Argument(help="Which shell.")
    ],
) -> None:
    """Print the script that lets a shell complete commands and options.

    \b
    Examples:
      holdfast completion bash >> ~/.bashrc
      holdfast completion zsh >> ~/.zshrc
      holdfast completion fish > ~/.config/fish/completions/holdfast.fish
    """
    typer.echo(
        get_completion_script(prog_name="holdfast", complete_var=COMPLETE_VARIABLE, shell=shell)
    )
